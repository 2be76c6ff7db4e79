//! One connection: a nonblocking socket, what it is doing, and when it must be looked at again.
//!
//! In come readiness and the time, out go bytes to the server. What an end means is the worker's business.

use super::fault::Fault;
use super::request::Wire;
use super::response::Reader;
use super::schedule::Sample;
use super::{Error, target};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The first pause before a refused connection is tried again, in ns.
const FIRST_PAUSE: u64 = 10_000_000;

/// The longest.
const LONGEST_PAUSE: u64 = 1_000_000_000;

/// A time that does not come.
pub(super) const NEVER: u64 = u64::MAX;

/// What all connections of a worker share.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) wire: Wire,
    pub(super) epoll: OwnedFd,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: no request is under way.
    Idle,
    /// Waiting to be tried again, without a request.
    Pausing,
    /// Its request waits for the connection.
    Connecting,
    /// Its request is being sent or answered.
    Exchanging,
}

/// One connection and its request.
#[derive(Debug)]
pub(super) struct Connection {
    /// What epoll calls it.
    token: u64,
    socket: Option<OwnedFd>,
    pub(super) stage: Stage,
    pub(super) reader: Reader,
    /// The times of the request; `done` is set when it is.
    pub(super) sample: Sample,
    /// When the request, or the pause, is over.
    pub(super) deadline: u64,
    /// When sending goes on.
    resume: u64,
    /// How much of the request was sent.
    position: usize,
    /// Whether the socket takes no more for now.
    blocked: bool,
    /// The next pause.
    pause: u64,
}

impl Connection {
    /// One that is not connected.
    pub(super) fn new(token: u64, method: &str) -> Self {
        Self {
            token,
            socket: None,
            stage: Stage::Idle,
            reader: Reader::new(method),
            sample: Sample { due: 0, sent: 0, done: 0 },
            deadline: NEVER,
            resume: NEVER,
            position: 0,
            blocked: false,
            pause: FIRST_PAUSE,
        }
    }

    /// When it must be looked at, whatever the server does.
    pub(super) fn wake(&self) -> u64 {
        self.deadline.min(self.resume)
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Exchanging)
    }

    /// Whether there is a socket.
    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether all of the request was sent.
    pub(super) fn has_sent(&self, wire: &Wire) -> bool {
        self.position == wire.bytes.len()
    }

    /// Takes up a request that is due `now`.
    pub(super) fn take_up(&mut self, now: u64) {
        self.sample = Sample { due: now, sent: now, done: now };
        self.reader.reset();
        self.position = 0;
    }

    /// Begins to connect. A fault says that this server cannot be reached, an error that the generator cannot go on.
    pub(super) fn dial(&mut self, peer: &Peer) -> Result<Option<Fault>, Error> {
        let family = if peer.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(|errno| match errno {
                Errno::MFILE | Errno::NFILE => Error::Descriptors,
                _ => Error::system("opening a socket")(errno),
            })?;
        sockopt::set_tcp_nodelay(&socket, true).map_err(Error::system("setting up a socket"))?;
        match rustix::net::connect(&socket, &peer.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(Errno::ADDRNOTAVAIL) if target::is_routed(peer.address) => {
                return Err(Error::Ports { address: peer.address });
            }
            Err(errno) => return Ok(Some(Fault::Connect(errno))),
        }
        let token = EventData::new_u64(self.token);
        epoll::add(&peer.epoll, &socket, token, EventFlags::OUT).map_err(Error::system("watching a socket"))?;
        self.socket = Some(socket);
        self.stage = Stage::Connecting;
        Ok(None)
    }

    /// What became of connecting, once the socket is ready.
    pub(super) fn connected(&mut self, peer: &Peer) -> Result<Option<Fault>, Error> {
        let Some(socket) = &self.socket else { return Ok(None) };
        let outcome = sockopt::socket_error(socket).map_err(Error::system("asking a socket"))?;
        if let Err(errno) = outcome {
            return Ok(Some(Fault::Connect(errno)));
        }
        self.pause = FIRST_PAUSE;
        // The socket was watched for writing; from here on it is for reading, until it takes no more.
        self.blocked = true;
        self.watch(peer, false)?;
        Ok(None)
    }

    /// Sends what can be sent at `now`. A connection that is gone shows when its answer is read.
    pub(super) fn push(&mut self, peer: &Peer, now: u64) -> Result<(), Error> {
        self.stage = Stage::Exchanging;
        self.resume = NEVER;
        let Some(socket) = &self.socket else { return Ok(()) };
        let wire = &peer.wire;
        let end = wire.piece_end(self.position);
        let mut blocked = false;
        while self.position < end {
            match rustix::net::send(socket, &wire.bytes[self.position..end], SendFlags::NOSIGNAL) {
                Ok(sent) => self.position += sent,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    blocked = errno == Errno::AGAIN;
                    break;
                }
            }
        }
        if self.position == end && !self.has_sent(wire) {
            self.resume = now.saturating_add(wire.pause);
        }
        self.watch(peer, blocked)
    }

    /// Reads what has come into `buffer`: how many bytes, none at the end of the connection.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        loop {
            match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                read => return read.map(|(bytes, _)| bytes),
            }
        }
    }

    /// Ends its request, and the connection with it unless that is kept.
    pub(super) fn release(&mut self, keep: bool) {
        if !keep {
            self.socket = None;
        }
        self.stage = Stage::Idle;
        self.deadline = NEVER;
        self.resume = NEVER;
    }

    /// Pauses before it is tried again, twice as long each time until one succeeds.
    pub(super) fn back_off(&mut self, now: u64) {
        self.stage = Stage::Pausing;
        self.deadline = now.saturating_add(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Watches for reading, and for writing where the socket is `blocked`.
    fn watch(&mut self, peer: &Peer, blocked: bool) -> Result<(), Error> {
        let Some(socket) = &self.socket else { return Ok(()) };
        if self.blocked == blocked {
            return Ok(());
        }
        self.blocked = blocked;
        let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        let token = EventData::new_u64(self.token);
        epoll::modify(&peer.epoll, socket, token, flags).map_err(Error::system("watching a socket"))
    }
}
