//! Readiness by epoll: level-triggered, and told of a socket only when it is made or blocked, so that a request costs one
//! send, one receive, and its share of a wait.

use super::{Broken, Engine, Ready};
use crate::load::Error;
use crate::load::target::Address;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use std::os::fd::{BorrowedFd, OwnedFd};

/// How many events one wait may bring.
const EVENTS: usize = 256;

/// What epoll calls the event that stops the worker.
const STOP: u64 = u64::MAX;

/// One epoll and its sockets.
pub(in crate::load) struct Epoll {
    epoll: OwnedFd,
    address: Address,
    /// Whether the kernel could choose the server's port for a client.
    ephemeral: bool,
    sockets: Vec<Option<Socket>>,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    stage: Stage,
}

/// What epoll was told of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To say when it is connected.
    Connecting,
    /// To say when it can be read.
    Open,
    /// To say when it can be read or written.
    Blocked,
}

impl Epoll {
    /// One with room for so many connections; `stop` becomes readable when the worker is to end.
    pub(in crate::load) fn new(address: Address, connections: usize, stop: BorrowedFd<'_>) -> Result<Self, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("making an epoll"))?;
        epoll::add(&epoll, stop, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(Error::system("watching an event"))?;
        let sockets = (0..connections).map(|_| None).collect();
        let ephemeral = address.is_ephemeral();
        Ok(Self { epoll, address, ephemeral, sockets, events: Vec::with_capacity(EVENTS) })
    }

    /// Tells epoll what to say of a socket.
    fn watch(&mut self, index: usize, stage: Stage) -> Result<(), Errno> {
        let Some(socket) = &mut self.sockets[index] else { return Ok(()) };
        if socket.stage == stage {
            return Ok(());
        }
        socket.stage = stage;
        let flags = if stage == Stage::Blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(&self.epoll, &socket.descriptor, EventData::new_u64(index as u64), flags)
    }

    /// What became of connecting.
    fn connected(&mut self, index: usize) -> Result<Ready, Error> {
        let Some(socket) = &self.sockets[index] else { return Ok(Ready::Refused(index, Broken::Itself)) };
        let outcome = sockopt::socket_error(&socket.descriptor).map_err(Error::system("asking a socket"))?;
        if let Err(errno) = outcome {
            return Ok(Ready::Refused(index, Broken::System(errno)));
        }
        if self.ephemeral && super::is_own(&socket.descriptor) {
            return Ok(Ready::Refused(index, Broken::Itself));
        }
        self.watch(index, Stage::Open).map_err(Error::system("watching a socket"))?;
        Ok(Ready::Connected(index))
    }
}

impl Engine for Epoll {
    const NAME: &'static str = "epoll";

    fn connect(&mut self, index: usize) -> Result<Option<Broken>, Error> {
        let descriptor = super::socket(&self.address, true)?;
        match self.address.connect(&descriptor) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return super::refused(errno, &self.address).map(Some),
        }
        epoll::add(&self.epoll, &descriptor, EventData::new_u64(index as u64), EventFlags::OUT)
            .map_err(Error::system("watching a socket"))?;
        self.sockets[index] = Some(Socket { descriptor, stage: Stage::Connecting });
        Ok(None)
    }

    fn write(&mut self, index: usize, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        loop {
            let Some(socket) = &self.sockets[index] else { return Err(Broken::System(Errno::NOTCONN)) };
            if socket.stage != Stage::Open {
                return Ok(None);
            }
            match rustix::net::send(&socket.descriptor, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => return Ok(Some(sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    return self.watch(index, Stage::Blocked).map(|()| None).map_err(Broken::System);
                }
                Err(errno) => return Err(Broken::System(errno)),
            }
        }
    }

    fn read(&mut self, index: usize, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let Some(socket) = &self.sockets[index] else { return Err(Broken::System(Errno::NOTCONN)) };
        loop {
            match rustix::net::recv(&socket.descriptor, &mut *buffer, RecvFlags::empty()) {
                Ok((bytes, _)) => return Ok(Some(bytes)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(Broken::System(errno)),
            }
        }
    }

    fn close(&mut self, index: usize) {
        self.sockets[index] = None;
    }

    fn wait(&mut self, longest: Option<u64>, ready: &mut Vec<Ready>) -> Result<(), Error> {
        let longest = longest.map(timespec);
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("waiting for sockets")(errno)),
        }
        for at in 0..self.events.len() {
            let Event { flags, data } = self.events[at];
            let index = data.u64() as usize;
            if data.u64() == STOP {
                ready.push(Ready::Stop);
                continue;
            }
            let stage = self.sockets[index].as_ref().map(|socket| socket.stage);
            if stage == Some(Stage::Connecting) {
                let ended = self.connected(index)?;
                ready.push(ended);
                continue;
            }
            if stage == Some(Stage::Blocked) && flags.contains(EventFlags::OUT) {
                self.watch(index, Stage::Open).map_err(Error::system("watching a socket"))?;
                ready.push(Ready::Writable(index));
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                ready.push(Ready::Readable(index));
            }
        }
        Ok(())
    }
}

/// A time in ns as epoll takes it.
fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
