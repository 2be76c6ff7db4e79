//! The life of one thread: its connections are opened, it meets the other threads, and keeps its books for one window.
//!
//! It owns its connections, their engine and its books. `exchange` has what happens to a single request, `wait` what the
//! thread does in between.

mod exchange;
mod wait;

use super::connection::Connection;
use super::engine::{Engine, Ready};
use super::generator::{self, Thread};
use super::latency::{DIGITS, Latency};
use super::mix::Draws;
use super::outcome::Ending;
use super::schedule::{NEVER, Schedule};
use super::tally::Tally;
use super::task::Task;
use super::{Error, Stop};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How much one read takes.
const BUFFER: usize = 64 * 1024;

/// How many connections are begun in the opening before their readiness is looked at.
const OPENED_AT_ONCE: usize = 16;

/// How often a thread that is ready looks whether the others are, in ns.
const MEETING: u64 = 200_000;

/// How long before the begin of an open loop's window a thread is awake, in ns.
const AWAKE: u64 = 100_000;

/// What one thread has to say at the end.
pub(super) struct Share {
    pub(super) engine: &'static str,
    pub(super) opening: Tally,
    pub(super) window: Tally,
    pub(super) connect: Latency,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) ending: Ending,
    /// The ages of the requests without an end, in ns.
    pub(super) in_flight: Vec<u64>,
    /// Requests that were due and not begun.
    pub(super) backlog: u64,
    /// Whether a connection was free at the end.
    pub(super) was_free: bool,
    pub(super) thread: Thread,
}

/// One thread's share of a load.
pub(super) struct Worker<'a, E> {
    task: &'a Task,
    thread: usize,
    engine: E,
    connections: Vec<Connection>,
    /// The free connections of an open loop, in the order in which they became free.
    line: VecDeque<usize>,
    draws: Draws,
    schedule: Schedule,
    tally: Tally,
    /// How long connections took to be made, those of the opening with them.
    connect: Latency,
    buffer: Vec<u8>,
    room: Vec<u8>,
    ready: Vec<Ready>,
    /// No deadline is set beyond this: the end of the opening.
    latest: u64,
    /// No connection wants to be looked at before this.
    wake: u64,
    /// How many requests are under way.
    busy: usize,
    /// Since when no answer has come, while requests were begun.
    hushed: u64,
    /// Whether it waits for the next request without sleeping, and for how long it has, in ns.
    spins: bool,
    spun: u64,
}

impl<'a, E: Engine> Worker<'a, E> {
    /// One that has not begun.
    pub(super) fn new(task: &'a Task, thread: usize, engine: E) -> Self {
        let connections = std::iter::repeat_with(Connection::new).take(task.connections_of(thread)).collect();
        Self {
            task,
            thread,
            engine,
            connections,
            line: VecDeque::new(),
            draws: task.mix.draws(thread),
            schedule: Schedule::opening(),
            tally: Tally::new(task.clock.now(), task.mix.parts().len(), 1, None),
            connect: Latency::new(DIGITS),
            buffer: vec![0; BUFFER],
            room: Vec::new(),
            ready: Vec::new(),
            latest: NEVER,
            wake: NEVER,
            busy: 0,
            hushed: NEVER,
            spins: task.rate.is_some() && task.spin && generator::can_spin(task.threads),
            spun: 0,
        }
    }

    /// Opens the connections, then measures one window.
    pub(super) fn run(mut self) -> Result<Share, Error> {
        self.open()?;
        self.tally.check()?;
        self.task.opened(self.tally.answered);
        let from = self.meet()?;
        let series = Some(Arc::clone(&self.task.series));
        let window = Tally::new(from, self.task.mix.parts().len(), DIGITS, series);
        let opening = std::mem::replace(&mut self.tally, window);
        if self.task.gate.answered() == 0 {
            let why = opening.kept.into_iter().next().map_or_else(|| "nothing was sent".to_owned(), |kept| kept.reason);
            return Err(Error::Unanswered { address: self.task.address.clone(), why });
        }
        let before = Thread::now()?;
        self.schedule = self.task.schedule(self.thread, from);
        let ending = self.window()?;
        let until = self.end(ending);
        let mut thread = Thread::now()?.since(before);
        thread.spun = std::time::Duration::from_nanos(self.spun);
        thread.elapsed = std::time::Duration::from_nanos(until - from);
        self.finish(opening, (from, until, ending), thread)
    }

    /// Closes the books.
    fn finish(
        mut self,
        opening: Tally,
        (from, until, ending): (u64, u64, Ending),
        thread: Thread,
    ) -> Result<Share, Error> {
        let mut in_flight = Vec::with_capacity(self.busy);
        for pending in self.connections.iter().flat_map(Connection::pending) {
            in_flight.push(pending.sample.latency(self.task.origin, until));
            self.tally.pages[pending.part].counts.in_flight += 1;
        }
        self.tally.close(until);
        self.tally.check()?;
        Ok(Share {
            engine: E::NAME,
            backlog: self.schedule.backlog(until),
            was_free: self.connections.iter().any(|connection| self.is_free(connection)),
            opening,
            window: self.tally,
            connect: self.connect,
            from,
            until,
            ending,
            in_flight,
            thread,
        })
    }

    /// Has every connection send one request, until each has its end.
    fn open(&mut self) -> Result<(), Error> {
        self.latest = self.task.clock.now().saturating_add(self.task.timeout);
        let parts = self.task.mix.parts().len();
        let mut begun = 0;
        while begun < self.connections.len() || self.busy > 0 {
            let next = (begun + OPENED_AT_ONCE).min(self.connections.len());
            for index in begun..next {
                let now = self.task.clock.now();
                self.take_up(index, index % parts, now, now);
                self.send(index)?;
            }
            begun = next;
            let at_once = begun < self.connections.len();
            if self.turn(if at_once { 0 } else { NEVER })? {
                return Err(Error::Stopped);
            }
        }
        self.latest = NEVER;
        Ok(())
    }

    /// Waits until all threads are ready and the begin of the window has come, which it gives.
    fn meet(&mut self) -> Result<u64, Error> {
        loop {
            let now = self.task.clock.now();
            let until = match (self.task.gate.from(), self.task.rate) {
                (Some(from), None) if now >= from => return Ok(from),
                (Some(from), Some(_)) if now + AWAKE >= from => return Ok(from),
                (Some(from), None) => from,
                (Some(from), Some(_)) => from - AWAKE,
                (None, _) => now + MEETING,
            };
            if self.turn(until)? {
                return Err(Error::Stopped);
            }
        }
    }

    /// Keeps the connections busy until the schedule is over.
    fn window(&mut self) -> Result<Ending, Error> {
        self.line.clear();
        self.connections.iter_mut().for_each(|connection| connection.in_line = false);
        for index in 0..self.connections.len() {
            self.next(index)?;
        }
        loop {
            let now = self.task.clock.now();
            if self.schedule.is_over(now, self.busy) {
                return Ok(Ending::Whole);
            }
            if now >= self.given_up() {
                return Ok(Ending::Silent);
            }
            if self.turn(NEVER)? {
                return Ok(Ending::Stopped);
            }
        }
    }

    /// When the window that is over ended: at its time, just after its last request, or now.
    fn end(&self, ending: Ending) -> u64 {
        match (ending, self.task.stop) {
            (Ending::Whole, Stop::Duration(_)) => self.schedule.until,
            (Ending::Whole, Stop::Count(_)) => self.tally.last + 1,
            (Ending::Stopped | Ending::Silent, _) => self.task.clock.now().min(self.schedule.until),
        }
    }

    /// When a count is given up: after two timeouts without any answer. Within the first, every request that was under
    /// way has ended; within the second, every one that was begun then.
    fn given_up(&self) -> u64 {
        match self.task.stop {
            Stop::Count(_) => self.hushed.saturating_add(self.task.timeout.saturating_mul(2)),
            Stop::Duration(_) => NEVER,
        }
    }

    /// Hands over the counters of the window.
    fn report(&self) {
        // The opening is in none of them.
        if self.latest == NEVER {
            let counters = &self.task.counters[self.thread];
            counters.started.store(self.tally.started, Relaxed);
            counters.ok.store(self.tally.ok, Relaxed);
            counters.errors.store(self.tally.errors, Relaxed);
        }
    }
}
