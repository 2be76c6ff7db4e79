//! Submissions and completions in batches, by `io_uring`: what a turn of the worker sends goes out in the call that waits.
//!
//! A receive stays armed for as long as its connection lives, and fills buffers that all connections of the thread share.
//! Sends copy what they take, so that no memory of the worker must outlive a call. Completions carry the generation of
//! their connection: one that was closed and made anew is never told what belongs to its predecessor.
//!
//! Memory that the kernel may still touch is the subject of `memory`; nothing else in here is unsafe but handing it over.

mod memory;

use super::{Broken, Engine, Ready};
use crate::load::Error;
use crate::load::target::Address;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use memory::{Buffers, Peer, Piece};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Entries of the submission queue; a full one is submitted at once.
const SUBMISSIONS: u32 = 256;

/// Entries of the completion queue.
const COMPLETIONS: u32 = 4096;

/// The group of the shared buffers.
const GROUP: u16 = 0;

/// The most that one send takes.
const TAKEN: usize = 16 * 1024;

/// How long what is in flight is waited for at the end, in ns; after that its memory is never given back.
const PARTING: u64 = 1_000_000_000;

/// What the stop event is called.
const STOP: u64 = u64::MAX;

/// What a completion is of: the lowest bits of its name. The index of the connection and its generation are above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect,
    Receive,
    Send,
    Other,
}

/// One ring and its connections.
pub(in crate::load) struct Uring {
    ring: IoUring,
    buffers: Buffers,
    peer: Peer,
    address: Address,
    ephemeral: bool,
    slots: Vec<Slot>,
    /// Sockets of closed connections that the submission queue may still name by their number.
    closing: Vec<OwnedFd>,
    /// What closed connections were sending, by the name of the completion that will come.
    parting: HashMap<u64, Vec<u8>>,
    /// Connections of which there is more to read, although no completion will say so.
    again: Vec<usize>,
    /// Connections whose receive ended for want of a buffer.
    starved: Vec<usize>,
    /// Completions that will come.
    in_flight: usize,
    completed: Vec<cqueue::Entry>,
}

/// One connection.
#[derive(Default)]
struct Slot {
    socket: Option<OwnedFd>,
    generation: u32,
    is_open: bool,
    received: VecDeque<Piece>,
    /// How the connection ended, once it has.
    ended: Option<Result<(), Errno>>,
    out: Vec<u8>,
    /// How much of `out` was sent; it is being sent while this is less than all.
    sent: usize,
    /// Whether the worker waits to write.
    awaited: bool,
}

impl Slot {
    fn is_sending(&self) -> bool {
        self.sent < self.out.len()
    }
}

impl Uring {
    /// Whether the kernel permits a ring as it is needed here; why not, if it does not.
    pub(in crate::load) fn permitted() -> std::io::Result<()> {
        let ring = build(8)?;
        Buffers::register(&ring.submitter(), GROUP).map(drop)
    }

    /// One with room for so many connections; `stop` becomes readable when the worker is to end.
    pub(in crate::load) fn new(address: Address, connections: usize, stop: BorrowedFd<'_>) -> Result<Self, Error> {
        let failed = |source| Error::System { doing: "making an io_uring", source };
        let ring = build(SUBMISSIONS).map_err(failed)?;
        let buffers = Buffers::register(&ring.submitter(), GROUP).map_err(failed)?;
        let peer = Peer::new(&address).map_err(Error::system("taking up an address"))?;
        let mut uring = Self {
            ring,
            buffers,
            peer,
            ephemeral: address.is_ephemeral(),
            address,
            slots: std::iter::repeat_with(Slot::default).take(connections).collect(),
            closing: Vec::new(),
            parting: HashMap::new(),
            again: Vec::new(),
            starved: Vec::new(),
            in_flight: 0,
            completed: Vec::new(),
        };
        let watch = opcode::PollAdd::new(Fd(stop.as_raw_fd()), libc::POLLIN as u32).build().user_data(STOP);
        uring.submit(watch)?;
        Ok(uring)
    }

    /// The name of a completion of a connection.
    fn name(&self, index: usize, kind: Kind) -> u64 {
        u64::from(self.slots[index].generation) << 32 | (index as u64) << 2 | kind as u64
    }

    /// Puts an entry into the submission queue.
    #[expect(unsafe_code, reason = "an entry may name memory")]
    fn submit(&mut self, entry: squeue::Entry) -> Result<(), Error> {
        // SAFETY: an entry made here names no memory, or a send's bytes, which stay in `out` or `parting` until their
        // completion, or the peer's address, which lives as long as the ring. On drop, what is in flight is waited for,
        // or its memory never given back.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.enter(0, None)?;
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Hands the queue over, and waits for so many completions, at most for so many ns.
    fn enter(&mut self, wanted: usize, longest: Option<u64>) -> Result<(), Error> {
        let result = match longest {
            Some(longest) => {
                let time = Timespec::new().sec(longest / 1_000_000_000).nsec((longest % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(wanted, &SubmitArgs::new().timespec(&time))
            }
            None => self.ring.submit_and_wait(wanted),
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(Error::System { doing: "waiting for sockets", source: error }),
            },
        }
    }

    /// Gives up the sockets of closed connections, after the queue has been handed over: an entry in it that names a
    /// number would otherwise reach whatever file gets that number next.
    fn give_up_sockets(&mut self) {
        if !self.ring.submission().is_empty() && self.enter(0, None).is_err() {
            return;
        }
        if self.ring.submission().is_empty() {
            for socket in self.closing.drain(..) {
                // What is in flight holds the file: without this the other side would not see the end.
                let _ = shutdown(&socket, Shutdown::Both);
            }
        }
    }

    /// Arms the receive of a connection.
    fn receive(&mut self, index: usize) -> Result<(), Error> {
        let Some(socket) = &self.slots[index].socket else { return Ok(()) };
        let receive = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        let name = self.name(index, Kind::Receive);
        self.submit(receive.user_data(name))
    }

    /// Sends what a connection has not sent yet.
    fn send(&mut self, index: usize) -> Result<(), Error> {
        let slot = &self.slots[index];
        let Some(socket) = &slot.socket else { return Ok(()) };
        let rest = &slot.out[slot.sent..];
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let send = opcode::Send::new(Fd(socket.as_raw_fd()), rest.as_ptr(), rest.len() as u32).flags(flags).build();
        let name = self.name(index, Kind::Send);
        self.submit(send.user_data(name))
    }

    /// What a completion means.
    fn complete(&mut self, entry: &cqueue::Entry, ready: &mut Vec<Ready>) -> Result<(), Error> {
        let (name, result, goes_on) = (entry.user_data(), entry.result(), cqueue::more(entry.flags()));
        self.in_flight -= usize::from(!goes_on);
        if name == STOP {
            ready.push(Ready::Stop);
            return Ok(());
        }
        let piece = cqueue::buffer_select(entry.flags()).map(|buffer| Piece::new(buffer, result));
        let (generation, index) = ((name >> 32) as u32, (name >> 2 & 0x3fff_ffff) as usize);
        if self.slots[index].generation != generation {
            self.parting.remove(&name);
            piece.into_iter().for_each(|piece| self.buffers.give_back(piece));
            return Ok(());
        }
        match [Kind::Connect, Kind::Receive, Kind::Send, Kind::Other][(name & 3) as usize] {
            Kind::Connect => {
                let made = self.connected(index, result)?;
                ready.push(made);
            }
            Kind::Receive => {
                if self.received(index, piece, result) {
                    ready.push(Ready::Readable(index));
                }
                if !goes_on && self.slots[index].ended.is_none() {
                    self.starved.push(index);
                }
            }
            Kind::Send => {
                if self.sent(index, result)? {
                    ready.push(Ready::Writable(index));
                }
            }
            Kind::Other => {}
        }
        Ok(())
    }

    /// What became of connecting.
    fn connected(&mut self, index: usize, result: i32) -> Result<Ready, Error> {
        if result < 0 {
            let refused = super::refused(Errno::from_raw_os_error(-result), &self.address)?;
            return Ok(Ready::Refused(index, refused));
        }
        if self.ephemeral && self.slots[index].socket.as_ref().is_some_and(super::is_own) {
            return Ok(Ready::Refused(index, Broken::Itself));
        }
        self.slots[index].is_open = true;
        self.receive(index)?;
        Ok(Ready::Connected(index))
    }

    /// Takes up what was received: whether the worker is to be told.
    fn received(&mut self, index: usize, piece: Option<Piece>, result: i32) -> bool {
        let slot = &mut self.slots[index];
        match (piece, result) {
            (Some(piece), 1..) => slot.received.push_back(piece),
            // A receive that found no buffer is armed again.
            (_, result) if result == -libc::ENOBUFS => return false,
            (piece, result) => {
                slot.ended = Some(if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(()) });
                piece.into_iter().for_each(|piece| self.buffers.give_back(piece));
            }
        }
        true
    }

    /// Takes note of what was sent: whether the worker waited for it.
    fn sent(&mut self, index: usize, result: i32) -> Result<bool, Error> {
        let slot = &mut self.slots[index];
        // A connection that is gone shows when it is read.
        slot.sent = if result > 0 { slot.sent + result as usize } else { slot.out.len() };
        if slot.is_sending() {
            return self.send(index).map(|()| false);
        }
        Ok(std::mem::take(&mut slot.awaited))
    }

    /// Takes the completions that are there.
    fn reap(&mut self, ready: &mut Vec<Ready>) -> Result<(), Error> {
        let mut completed = std::mem::take(&mut self.completed);
        completed.extend(self.ring.completion());
        for entry in completed.drain(..) {
            self.complete(&entry, ready)?;
        }
        self.completed = completed;
        Ok(())
    }
}

/// A ring that one thread submits to, which runs what the kernel has to do for it only when it waits.
fn build(entries: u32) -> std::io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_submit_all();
    builder.setup_cqsize(COMPLETIONS.max(entries)).build(entries)
}

impl Engine for Uring {
    const NAME: &'static str = "io_uring";

    fn connect(&mut self, index: usize) -> Result<Option<Broken>, Error> {
        let socket = super::socket(&self.address, false)?;
        let (address, length) = self.peer.parts();
        let connect = opcode::Connect::new(Fd(socket.as_raw_fd()), address, length).build();
        self.slots[index].socket = Some(socket);
        let name = self.name(index, Kind::Connect);
        self.submit(connect.user_data(name))?;
        Ok(None)
    }

    fn write(&mut self, index: usize, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let slot = &mut self.slots[index];
        if !slot.is_open || slot.is_sending() {
            slot.awaited = true;
            return Ok(None);
        }
        let taken = bytes.len().min(TAKEN);
        slot.out.clear();
        slot.out.extend_from_slice(&bytes[..taken]);
        slot.sent = 0;
        self.send(index).map_err(|_| Broken::System(Errno::IO))?;
        Ok(Some(taken))
    }

    fn read(&mut self, index: usize, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let slot = &mut self.slots[index];
        let mut filled = 0;
        while filled < buffer.len()
            && let Some(piece) = slot.received.front_mut()
        {
            filled += self.buffers.copy(piece, &mut buffer[filled..]);
            if piece.is_empty() {
                slot.received.pop_front().into_iter().for_each(|piece| self.buffers.give_back(piece));
            }
        }
        let is_last = slot.received.is_empty();
        if filled > 0 {
            if !is_last || (filled == buffer.len() && slot.ended.is_some()) {
                self.again.push(index);
            }
            return Ok(Some(filled));
        }
        match slot.ended {
            None => Ok(None),
            Some(Ok(())) => Ok(Some(0)),
            Some(Err(errno)) => Err(Broken::System(errno)),
        }
    }

    fn close(&mut self, index: usize) {
        let name = self.name(index, Kind::Send);
        let slot = &mut self.slots[index];
        self.closing.extend(slot.socket.take());
        if slot.is_sending() {
            self.parting.insert(name, std::mem::take(&mut slot.out));
        }
        let generation = slot.generation.wrapping_add(1);
        for piece in std::mem::take(&mut self.slots[index]).received {
            self.buffers.give_back(piece);
        }
        self.slots[index].generation = generation;
        self.give_up_sockets();
    }

    fn wait(&mut self, longest: Option<u64>, ready: &mut Vec<Ready>) -> Result<(), Error> {
        for index in std::mem::take(&mut self.starved) {
            if self.slots[index].is_open && self.slots[index].ended.is_none() {
                self.receive(index)?;
            }
        }
        let again = std::mem::take(&mut self.again);
        let longest = if again.is_empty() { longest } else { Some(0) };
        ready.extend(again.into_iter().map(Ready::Readable));
        self.enter(1, longest)?;
        if !self.closing.is_empty() {
            self.give_up_sockets();
        }
        self.reap(ready)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for index in 0..self.slots.len() {
            self.close(index);
        }
        let stop = opcode::AsyncCancel::new(STOP).build().user_data(Kind::Other as u64);
        let mut left = self.submit(stop).is_ok();
        let began = std::time::Instant::now();
        let mut ready = Vec::new();
        while left && self.in_flight > 0 && began.elapsed().as_nanos() < u128::from(PARTING) {
            left = self.enter(1, Some(PARTING / 10)).is_ok() && self.reap(&mut ready).is_ok();
        }
        if self.in_flight > 0 {
            self.buffers.leak();
            self.peer.leak();
            std::mem::forget(std::mem::take(&mut self.parting));
        }
    }
}
