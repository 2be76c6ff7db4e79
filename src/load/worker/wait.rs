//! What a thread does between requests: it waits for sockets and for times, and hands each to what it means.
//!
//! A kernel timer wakes a thread some 10 to 70 µs late, so an open loop sleeps until shortly before a request is due and
//! looks at the clock from then on.

use super::Worker;
use crate::load::Error;
use crate::load::engine::{Engine, Ready};
use crate::load::schedule::{AWAKE, NEVER};

/// How long before it is due the thread looks at nothing but the clock: about what taking up an answer costs, in ns.
const GUARD: u64 = 3_000;

impl<E: Engine> Worker<'_, E> {
    /// Waits, at the longest until `latest`, and does what is to be done then. True says that a stop was asked for.
    pub(super) fn turn(&mut self, latest: u64) -> Result<bool, Error> {
        self.wait(latest)?;
        let mut ready = std::mem::take(&mut self.ready);
        let mut stop = false;
        for event in ready.drain(..) {
            match event {
                Ready::Stop => stop = true,
                Ready::Connected(index) => self.connected(index)?,
                Ready::Refused(index, broken) => self.refused(index, broken)?,
                Ready::Writable(index) => self.push(index)?,
                Ready::Readable(index) => self.receive(index)?,
            }
        }
        self.ready = ready;
        if stop {
            return Ok(true);
        }
        // What was due before the end of the window is done even when the thread wakes after it.
        let now = self.books.inside();
        if now >= self.wake {
            self.wake = NEVER;
            for index in 0..self.connections.len() {
                if self.connections[index].wake() <= now {
                    self.elapsed(index, now)?;
                }
                self.wake = self.wake.min(self.connections[index].wake());
            }
        }
        self.dispatch()?;
        Ok(false)
    }

    /// Waits for sockets, and for the next time at which there is something to do.
    fn wait(&mut self, latest: u64) -> Result<(), Error> {
        let due = self.next_due();
        let until = latest.min(self.wake).min(self.books.schedule.until).min(self.books.given_up()).min(due);
        if until == NEVER {
            return self.engine.wait(None, &mut self.ready);
        }
        let now = self.task.clock.now();
        let gap = until.saturating_sub(now);
        if !(self.spins && until == due) {
            self.engine.wait(Some(gap), &mut self.ready)
        } else if gap > AWAKE {
            self.engine.wait(Some(gap - AWAKE), &mut self.ready)
        } else if gap > GUARD {
            self.engine.wait(Some(0), &mut self.ready)?;
            if self.ready.is_empty() {
                self.books.spun += self.task.clock.now() - now;
            }
            Ok(())
        } else {
            let mut then = now;
            while then < due {
                std::hint::spin_loop();
                then = self.task.clock.now();
            }
            // More than the gap, where another thread got the processor meanwhile.
            self.books.spun += then - now;
            // Requests that are due all the time must not keep a stop, or an answer, from being seen.
            self.engine.wait(Some(0), &mut self.ready)
        }
    }

    /// When the next request of an open loop is to be sent, or is over for want of a connection.
    fn next_due(&self) -> u64 {
        match self.books.schedule.next_due() {
            Some(due) if self.line.is_empty() => due.saturating_add(self.task.timeout),
            Some(due) => due,
            None => NEVER,
        }
    }
}
