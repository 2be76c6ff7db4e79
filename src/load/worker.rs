//! The life of one thread: its connections are opened, it meets the other threads, and keeps its books for one window.
//!
//! It owns its connections, their engine and its books. `exchange` has what happens to a single request, `wait` what the
//! thread does in between.

mod exchange;
mod wait;

use super::Error;
use super::books::{Books, Share};
use super::connection::Connection;
use super::engine::{Engine, Ready};
use super::generator;
use super::outcome::Ending;
use super::request::Wire;
use super::schedule::NEVER;
use super::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;

/// How much one read takes.
const BUFFER: usize = 64 * 1024;

/// How many connections are begun in the opening before their readiness is looked at.
const OPENED_AT_ONCE: usize = 16;

/// How often a thread that is ready looks whether the others are, in ns.
const MEETING: u64 = 200_000;

/// How long before the begin of an open loop's window a thread is awake, in ns.
const AWAKE: u64 = 100_000;

/// One thread's share of a load.
pub(super) struct Worker<'a, E> {
    task: &'a Task,
    wires: &'a [Wire],
    books: Books,
    engine: E,
    connections: Vec<Connection>,
    /// The free connections of an open loop, in the order in which they became free.
    line: VecDeque<usize>,
    buffer: Vec<u8>,
    room: Vec<u8>,
    ready: Vec<Ready>,
    /// No connection wants to be looked at before this.
    wake: u64,
    /// Whether it waits for the next request without sleeping.
    spins: bool,
}

impl<'a, E: Engine> Worker<'a, E> {
    /// One that has not begun.
    pub(super) fn new(task: &'a Arc<Task>, wires: &'a [Wire], thread: usize, engine: E) -> Self {
        let connections = std::iter::repeat_with(Connection::new).take(task.connections_of(thread)).collect();
        Self {
            task,
            wires,
            books: Books::new(Arc::clone(task), thread),
            engine,
            connections,
            line: VecDeque::new(),
            buffer: vec![0; BUFFER],
            room: Vec::new(),
            ready: Vec::new(),
            wake: NEVER,
            spins: task.rate.is_some() && task.spin && generator::can_spin(task.threads),
        }
    }

    /// Opens the connections, then measures one window.
    pub(super) fn run(mut self) -> Result<Share, Error> {
        self.open()?;
        let from = self.meet()?;
        self.books.begin_window(from)?;
        let ending = self.window()?;
        let in_flight: Vec<_> = self.connections.iter().flat_map(Connection::pending).copied().collect();
        let was_free = self.connections.iter().any(|connection| self.is_free(connection));
        self.books.close(E::NAME, ending, &in_flight, was_free)
    }

    /// Has every connection send one request, until each has its end.
    fn open(&mut self) -> Result<(), Error> {
        self.books.open();
        let task = self.task;
        let parts = task.mix.parts().len();
        let mut begun = 0;
        while begun < self.connections.len() || self.books.busy > 0 {
            let next = (begun + OPENED_AT_ONCE).min(self.connections.len());
            for index in begun..next {
                let now = task.clock.now();
                self.take_up(index, index % parts, now, now);
                self.send(index)?;
            }
            begun = next;
            let at_once = begun < self.connections.len();
            if self.turn(if at_once { 0 } else { NEVER })? {
                return Err(Error::Stopped);
            }
        }
        self.books.opened()
    }

    /// Waits until all threads are ready and the begin of the window has come, which it gives.
    fn meet(&mut self) -> Result<u64, Error> {
        let task = self.task;
        loop {
            let now = task.clock.now();
            let until = match (task.gate.from(), task.rate) {
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
            if let Some(ending) = self.books.ending(self.task.clock.now()) {
                return Ok(ending);
            }
            if self.turn(NEVER)? {
                return Ok(Ending::Stopped);
            }
        }
    }
}
