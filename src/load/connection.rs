//! One connection of HTTP/1.1: the requests that wait on it in order, how far they are sent, and the answer being read.
//!
//! In come the requests that were taken up and how many bytes were taken or came, out come the bytes to be sent next and
//! when the connection must be looked at again. It moves no bytes and reads no clock; what an end means is the worker's
//! business.

use super::books::Pending;
use super::request::Wire;
use super::response::Reader;
use super::schedule::NEVER;
use std::collections::VecDeque;

/// The first pause before a refused connection is tried again, in ns.
pub(super) const FIRST_PAUSE: u64 = 10_000_000;

/// The longest.
pub(super) const LONGEST_PAUSE: u64 = 1_000_000_000;

/// How many bytes of several requests go out at once.
const TOGETHER: usize = 64 * 1024;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: it is to be made for its next request.
    Closed,
    /// Waiting to be tried again.
    Pausing,
    /// Being made.
    Connecting,
    /// Open.
    Open,
}

/// One connection and its requests.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stage: Stage,
    /// Reads the answer to the first of the pending requests.
    pub(super) reader: Reader,
    /// Whether it stands in the worker's line of free connections.
    pub(super) in_line: bool,
    /// When it was last begun to be made.
    pub(super) dialed: u64,
    /// The oldest first.
    pending: VecDeque<Pending>,
    /// How many of them were sent whole.
    sent: usize,
    /// How much was sent of the one after those.
    position: usize,
    /// When sending goes on.
    resume: u64,
    /// When the pause is over.
    again: u64,
    /// The next pause.
    pause: u64,
}

impl Connection {
    /// One that is not connected.
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Closed,
            reader: Reader::default(),
            in_line: false,
            dialed: 0,
            pending: VecDeque::new(),
            sent: 0,
            position: 0,
            resume: NEVER,
            again: NEVER,
            pause: FIRST_PAUSE,
        }
    }

    /// When it must be looked at, whatever the server does.
    pub(super) fn wake(&self) -> u64 {
        let deadline = self.pending.front().map_or(NEVER, |first| first.deadline);
        deadline.min(self.resume).min(self.again)
    }

    /// The requests without an end.
    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Pending> {
        self.pending.iter()
    }

    /// The request whose answer comes next.
    pub(super) fn first(&self) -> Option<&Pending> {
        self.pending.front()
    }

    /// How many requests were begun to be sent: no other can have an answer.
    pub(super) fn on_the_wire(&self) -> usize {
        self.sent + usize::from(self.position > 0)
    }

    /// Whether the first request was sent whole.
    pub(super) fn has_sent_first(&self) -> bool {
        self.sent > 0
    }

    /// Whether sending pauses until a time that has come.
    pub(super) fn resumes(&self, now: u64) -> bool {
        self.resume <= now
    }

    /// Takes up a request.
    pub(super) fn take_up(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// It is connected.
    pub(super) fn connected(&mut self) {
        self.stage = Stage::Open;
        self.pause = FIRST_PAUSE;
    }

    /// What is to be sent at `now`: of one request, or of several, put together in `room`.
    pub(super) fn outgoing<'a>(&mut self, wires: &'a [Wire], now: u64, room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if self.resume != NEVER && self.resume > now {
            return None;
        }
        self.resume = NEVER;
        let wire = &wires[self.pending.get(self.sent)?.part];
        let rest = &wire.bytes[self.position..wire.piece_end(self.position)];
        let is_last = self.sent + 1 == self.pending.len();
        if is_last || wire.has_pauses() || rest.len() > TOGETHER {
            return Some(rest);
        }
        room.clear();
        room.extend_from_slice(rest);
        for next in self.pending.range(self.sent + 1..) {
            let wire = &wires[next.part];
            if wire.has_pauses() || room.len() + wire.bytes.len() > TOGETHER {
                break;
            }
            room.extend_from_slice(&wire.bytes);
        }
        Some(room)
    }

    /// So many bytes of what is outgoing were taken at `now`; `sent` is told of each request whose first byte was.
    pub(super) fn wrote(&mut self, mut bytes: usize, now: u64, wires: &[Wire], mut sent: impl FnMut(&mut Pending)) {
        while bytes > 0 {
            let Some(pending) = self.pending.get_mut(self.sent) else { return };
            if self.position == 0 {
                pending.sample.sent = now;
                sent(pending);
            }
            let wire = &wires[pending.part];
            let taken = bytes.min(wire.bytes.len() - self.position);
            bytes -= taken;
            self.position += taken;
            if self.position == wire.bytes.len() {
                (self.sent, self.position) = (self.sent + 1, 0);
            } else if wire.pauses_at(self.position) {
                self.resume = now.saturating_add(wire.pause);
            }
        }
    }

    /// Takes away the first request, which has an end, and makes ready for the answer to the next.
    pub(super) fn end_first(&mut self) -> Option<Pending> {
        self.reader.reset();
        let first = self.pending.pop_front()?;
        if self.sent > 0 {
            self.sent -= 1;
        } else {
            (self.position, self.resume) = (0, NEVER);
        }
        Some(first)
    }

    /// It is no longer connected. Requests that were begun to be sent must have been taken away.
    pub(super) fn closed(&mut self) {
        self.stage = Stage::Closed;
        self.reader.reset();
        (self.sent, self.position, self.resume) = (0, 0, NEVER);
    }

    /// Pauses before it is tried again, twice as long each time until one succeeds.
    pub(super) fn back_off(&mut self, now: u64) {
        self.stage = Stage::Pausing;
        self.again = now.saturating_add(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether its pause is over at `now`, which ends it.
    pub(super) fn pause_is_over(&mut self, now: u64) -> bool {
        let over = self.stage == Stage::Pausing && self.again <= now;
        if over {
            (self.stage, self.again) = (Stage::Closed, NEVER);
        }
        over
    }
}
