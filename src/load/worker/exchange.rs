//! What happens to a request: it is taken up, sent, answered or not, and counted once.
//!
//! A request begins in `take_up` and ends in `end_first`, or in `expire` where there was no connection for it; nothing
//! else counts. Several may be under way on a connection: answers come in the order of the requests, and what ends the
//! connection ends all that were begun to be sent. Those that were not are sent on the next one.
//!
//! Bytes that come after a whole answer in the same read are that answer's fault. When they come later and the next
//! request is out already, they stand where its answer should begin, and are its fault. When no request is out, they are
//! counted for themselves.

use super::{BUFFER, Worker};
use crate::load::Error;
use crate::load::connection::{Connection, Stage};
use crate::load::engine::{Broken, Engine};
use crate::load::fault::Fault;

/// How many requests that are due are begun, or ended, before sockets are looked at again.
const AT_ONCE: usize = 256;

/// How many full reads in a row a connection gets before others have their turn.
const READS: usize = 16;

impl<E: Engine> Worker<'_, E> {
    /// Takes up what a connection can carry now.
    pub(super) fn next(&mut self, index: usize) -> Result<(), Error> {
        if self.task.rate.is_some() {
            self.line_up(index);
            self.send(index)?;
            return self.dispatch();
        }
        while self.is_free(&self.connections[index]) {
            let now = self.task.clock.now();
            if !self.books.schedule.take(now) {
                break;
            }
            let part = self.books.draw();
            self.take_up(index, part, now, now);
        }
        self.send(index)
    }

    /// Whether a connection could carry another request.
    pub(super) fn is_free(&self, connection: &Connection) -> bool {
        connection.stage != Stage::Pausing && connection.pending().len() < self.task.pipeline
    }

    /// Puts a free connection at the end of the line.
    fn line_up(&mut self, index: usize) {
        if !self.connections[index].in_line && self.is_free(&self.connections[index]) {
            self.connections[index].in_line = true;
            self.line.push_back(index);
        }
    }

    /// Begins the requests of an open loop that are due, as long as connections are free; ends those that are over.
    pub(super) fn dispatch(&mut self) -> Result<(), Error> {
        for _ in 0..AT_ONCE {
            let Some(due) = self.books.schedule.next_due() else { break };
            let now = self.task.clock.now();
            if due > now || now >= self.books.schedule.until {
                break;
            }
            if due.saturating_add(self.task.timeout) <= now {
                self.books.schedule.advance();
                self.books.expire(now);
                continue;
            }
            let Some(index) = self.line.pop_front() else { break };
            self.connections[index].in_line = false;
            if !self.is_free(&self.connections[index]) {
                continue;
            }
            self.books.schedule.advance();
            let part = self.books.draw();
            self.take_up(index, part, due, now);
            self.line_up(index);
            self.send(index)?;
        }
        Ok(())
    }

    /// Begins a request at `now` that was due at a time.
    pub(super) fn take_up(&mut self, index: usize, part: usize, due: u64, now: u64) {
        let pending = self.books.begin(part, due, now);
        self.connections[index].take_up(pending);
    }

    /// Sends what a connection has, or makes it.
    pub(super) fn send(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        match connection.stage {
            Stage::Open => self.push(index),
            Stage::Closed if connection.first().is_some() => {
                let now = self.task.clock.now();
                connection.stage = Stage::Connecting;
                connection.dialed = now;
                self.books.tally.connections += 1;
                self.wake = self.wake.min(connection.wake());
                match self.engine.connect(index)? {
                    Some(broken) => self.refused(index, broken),
                    None => Ok(()),
                }
            }
            Stage::Closed | Stage::Pausing | Stage::Connecting => Ok(()),
        }
    }

    /// Sends what can be sent now. A connection that is gone shows when it is read.
    pub(super) fn push(&mut self, index: usize) -> Result<(), Error> {
        let Self { task, wires, books, connections, engine, room, .. } = self;
        let connection = &mut connections[index];
        if connection.stage != Stage::Open {
            return Ok(());
        }
        loop {
            let now = task.clock.now();
            let Some(bytes) = connection.outgoing(wires, now, room) else { break };
            let Ok(Some(taken)) = engine.write(index, bytes) else { break };
            connection.wrote(taken, now, wires, |pending| books.sent(pending));
        }
        self.wake = self.wake.min(connection.wake());
        Ok(())
    }

    /// A connection is made.
    pub(super) fn connected(&mut self, index: usize) -> Result<(), Error> {
        let now = self.task.clock.now();
        let connection = &mut self.connections[index];
        if now >= self.books.schedule.until || connection.stage != Stage::Connecting {
            return Ok(());
        }
        connection.connected();
        self.books.connect.record(now - connection.dialed);
        self.push(index)
    }

    /// A connection could not be made: every request that waited for it ends.
    pub(super) fn refused(&mut self, index: usize, broken: Broken) -> Result<(), Error> {
        let now = self.task.clock.now();
        if now < self.books.schedule.until {
            self.give_up(index, now, &Fault::Connect(broken));
        }
        Ok(())
    }

    /// Ends every request of a connection that is not made, and pauses.
    fn give_up(&mut self, index: usize, now: u64, fault: &Fault) {
        self.engine.close(index);
        while self.connections[index].first().is_some() {
            self.end_first(index, now, Err(fault.clone()));
        }
        let connection = &mut self.connections[index];
        connection.closed();
        connection.back_off(now);
        self.wake = self.wake.min(connection.wake());
    }

    /// Reads what has come. What comes after the window is left as it is: its request is in flight.
    pub(super) fn receive(&mut self, index: usize) -> Result<(), Error> {
        for _ in 0..READS {
            if self.connections[index].stage != Stage::Open {
                return Ok(());
            }
            let read = self.engine.read(index, &mut self.buffer);
            let now = self.task.clock.now();
            if now >= self.books.schedule.until {
                return Ok(());
            }
            let reader = &self.connections[index].reader;
            match read {
                Ok(None) => return Ok(()),
                Ok(Some(0)) => {
                    let end = reader.end();
                    return self.close(index, now, end);
                }
                Err(broken) => {
                    let end = Err(reader.broken(broken));
                    return self.close(index, now, end);
                }
                Ok(Some(bytes)) => {
                    self.books.tally.received += bytes as u64;
                    self.consume(index, bytes, now)?;
                    if bytes < BUFFER {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the answers out of what was read.
    fn consume(&mut self, index: usize, length: usize, now: u64) -> Result<(), Error> {
        let mut at = 0;
        while at < length {
            let connection = &mut self.connections[index];
            let first = connection.first().filter(|_| connection.on_the_wire() > 0);
            let Some(first) = first else {
                self.books.tally.unasked += 1;
                return self.close(index, now, Ok(()));
            };
            let bodiless = self.task.mix.part(first.part).bodiless;
            match connection.reader.feed(&self.buffer[at..length], bodiless) {
                Err(fault) => return self.close(index, now, Err(fault)),
                Ok(None) => return Ok(()),
                Ok(Some(taken)) => at += taken,
            }
            if at < length && connection.on_the_wire() == 1 {
                return self.close(index, now, Err(Fault::Protocol("bytes came after a whole answer")));
            }
            if !(self.task.keep_alive && connection.reader.is_persistent() && connection.has_sent_first()) {
                return self.close(index, now, Ok(()));
            }
            self.end_first(index, now, Ok(()));
        }
        self.next(index)
    }

    /// Ends a connection: with it its first request, in this way, and all others that were begun to be sent. The rest is
    /// sent on the next one.
    fn close(&mut self, index: usize, now: u64, end: Result<(), Fault>) -> Result<(), Error> {
        let late = end == Err(Fault::Timeout);
        // A request that is over may not have been sent: the one before it is in its way.
        let wired = self.connections[index].on_the_wire().max(usize::from(late));
        let others = if late { Fault::Behind } else { Fault::Closed };
        let ends = std::iter::once(end).chain(std::iter::repeat_with(|| Err(others.clone())));
        for end in ends.take(wired) {
            self.end_first(index, now, end);
        }
        self.engine.close(index);
        self.connections[index].closed();
        self.next(index)
    }

    /// Ends the first request of a connection, and counts it.
    fn end_first(&mut self, index: usize, now: u64, end: Result<(), Fault>) {
        let connection = &mut self.connections[index];
        let Some(&first) = connection.first() else { return };
        let reader = &connection.reader;
        self.books.end(first, now, (end, reader.answer()), || reader.excerpt());
        connection.end_first();
    }

    /// A time has come that a connection waited for.
    pub(super) fn elapsed(&mut self, index: usize, now: u64) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        if connection.pause_is_over(now) {
            self.next(index)
        } else if connection.first().is_some_and(|first| first.deadline <= now) {
            match connection.stage {
                Stage::Connecting => {
                    self.give_up(index, now, &Fault::ConnectTimeout);
                    Ok(())
                }
                _ => self.close(index, now, Err(Fault::Timeout)),
            }
        } else if connection.resumes(now) {
            self.push(index)
        } else {
            Ok(())
        }
    }
}
