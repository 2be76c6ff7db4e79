//! The loop of one thread: in come readiness and time, out goes the outcome of a window.
//!
//! It owns its connections, their epoll and its books. A request begins in `begin`, ends in `settle`, and nothing else
//! counts. Epoll is level-triggered and told of a socket only when it is made or blocked, so that a request costs one
//! send, one receive, and its share of a wait.
//!
//! Bytes that come after a whole answer in the same read are that answer's fault. When they come later, the next
//! request is out already: they stand where its answer should begin, and are its fault.

use super::connection::{Connection, NEVER, Peer, Stage};
use super::fault::Fault;
use super::request::Wire;
use super::running::Shared;
use super::schedule::{Clock, Origin, Schedule, nanos};
use super::tally::Tally;
use super::{Error, Expect, Generator, Kind, Latency, Options, Outcome, Stop, latency};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many events one wait may bring.
const EVENTS: usize = 256;

/// How much one read takes.
const BUFFER: usize = 64 * 1024;

/// How many full reads in a row a connection gets before others have their turn.
const READS: usize = 16;

/// How many connections are begun in the opening before their readiness is looked at.
const OPENED_AT_ONCE: usize = 16;

/// What epoll calls the event that stops the worker.
const STOP: u64 = u64::MAX;

/// One thread's share of a load.
pub(super) struct Worker {
    peer: Peer,
    expect: Expect,
    stop: Stop,
    timeout: u64,
    keep_alive: bool,
    origin: Origin,
    clock: Clock,
    shared: Arc<Shared>,
    events: Vec<Event>,
    buffer: Vec<u8>,
    connections: Vec<Connection>,
    schedule: Schedule,
    tally: Tally,
    connect: Latency,
    /// No deadline is set beyond this: the end of the opening.
    latest: u64,
    /// No connection wants to be looked at before this.
    wake: u64,
    /// How many requests are under way.
    busy: usize,
}

impl Worker {
    /// One that has not begun; `stop` becomes readable when it is to end.
    pub(super) fn new(
        options: Options,
        wire: Wire,
        address: SocketAddr,
        stop: &OwnedFd,
        shared: Arc<Shared>,
    ) -> Result<Self, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("making an epoll"))?;
        epoll::add(&epoll, stop, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(Error::system("watching an event"))?;
        let clock = Clock::start();
        let connections = (0..options.connections as u64).map(|token| Connection::new(token, &options.request.method));
        Ok(Self {
            peer: Peer { address, wire, epoll },
            stop: options.stop,
            timeout: nanos(options.timeout),
            keep_alive: options.keep_alive,
            origin: Origin::closed(options.keep_alive),
            clock,
            shared,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; BUFFER],
            connections: connections.collect(),
            expect: options.expect,
            schedule: Schedule::opening(),
            tally: Tally::new(clock.now()),
            connect: Latency::new(latency::DIGITS),
            latest: NEVER,
            wake: NEVER,
            busy: 0,
        })
    }

    /// Opens the connections, then measures one window.
    pub(super) fn run(mut self) -> Result<Outcome, Error> {
        self.open()?;
        let from = self.clock.now();
        let opening = std::mem::replace(&mut self.tally, Tally::new(from));
        opening.counts.check(opening.latency.count())?;
        if opening.answered == 0 {
            let why = opening.kept.into_iter().next().map_or_else(|| "nothing was sent".to_owned(), |kept| kept.reason);
            return Err(Error::Unanswered { address: self.peer.address, why });
        }
        let before = Generator::now()?;
        self.shared.begin();
        let stopped = self.window(from)?;
        let until = self.end(stopped);
        let generator = Generator::now()?.since(before);
        self.shared.end();

        let under_way = self.connections.iter().filter(|connection| connection.is_busy());
        let age = |connection: &Connection| Duration::from_nanos(connection.sample.done_at(until).latency(self.origin));
        let in_flight: Vec<_> = under_way.map(age).collect();
        let mut tally = self.tally;
        tally.close(until);
        tally.counts.in_flight = in_flight.len() as u64;
        tally.counts.check(tally.latency.count())?;
        Ok(Outcome {
            address: self.peer.address,
            elapsed: Duration::from_nanos(until - from),
            stopped,
            opening: opening.counts,
            counts: tally.counts,
            latency: tally.latency,
            connect: self.connect,
            reconnects: tally.connections,
            received: tally.received,
            in_flight,
            seconds: tally.seconds,
            kept: tally.kept,
            generator,
        })
    }

    /// Has every connection send one request, until each has its end.
    fn open(&mut self) -> Result<(), Error> {
        self.latest = self.clock.now().saturating_add(self.timeout);
        let mut begun = 0;
        while begun < self.connections.len() || self.busy > 0 {
            let next = (begun + OPENED_AT_ONCE).min(self.connections.len());
            for index in begun..next {
                self.begin(index, self.clock.now())?;
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

    /// Keeps the connections busy until the schedule is over, or a stop, which it says.
    fn window(&mut self, from: u64) -> Result<bool, Error> {
        self.schedule = Schedule::window(self.stop, from);
        for index in 0..self.connections.len() {
            self.next(index)?;
        }
        while !self.schedule.is_over(self.clock.now(), self.busy) {
            if self.turn(NEVER)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When the window that is over ended: at its time, just after its last request, or now.
    fn end(&self, stopped: bool) -> u64 {
        match self.stop {
            _ if stopped => self.clock.now().min(self.schedule.until),
            Stop::Duration(_) => self.schedule.until,
            Stop::Count(_) => self.tally.last + 1,
        }
    }

    /// Waits, at the longest until `latest`, and does what is to be done then. True says that a stop was asked for.
    fn turn(&mut self, latest: u64) -> Result<bool, Error> {
        let until = latest.min(self.wake).min(self.schedule.until);
        let wait = (until != NEVER).then(|| timespec(until.saturating_sub(self.clock.now())));
        self.events.clear();
        match epoll::wait(&self.peer.epoll, spare_capacity(&mut self.events), wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("waiting for sockets")(errno)),
        }
        for at in 0..self.events.len() {
            let Event { flags, data } = self.events[at];
            if data.u64() == STOP {
                return Ok(true);
            }
            self.ready(data.u64() as usize, flags)?;
        }
        // What was due before the end of the window is done even when the thread wakes after it.
        let now = self.inside();
        if now >= self.wake {
            self.wake = NEVER;
            for index in 0..self.connections.len() {
                if self.connections[index].wake() <= now {
                    self.elapsed(index, now)?;
                }
                self.wake = self.wake.min(self.connections[index].wake());
            }
        }
        Ok(false)
    }

    /// The time, or the last of the window if that is over.
    fn inside(&self) -> u64 {
        self.clock.now().min(self.schedule.until - 1)
    }

    /// Takes up the next request of a free connection, if there is to be one.
    fn next(&mut self, index: usize) -> Result<(), Error> {
        let now = self.clock.now();
        if self.schedule.take(now) { self.begin(index, now) } else { Ok(()) }
    }

    /// Begins a request: sends it, or connects for it.
    fn begin(&mut self, index: usize, now: u64) -> Result<(), Error> {
        self.busy += 1;
        self.tally.counts.started += 1;
        self.report();
        let connection = &mut self.connections[index];
        connection.take_up(now);
        connection.deadline = now.saturating_add(self.timeout).min(self.latest);
        if connection.is_open() {
            connection.push(&self.peer, now)?;
        } else {
            self.tally.connections += 1;
            if let Some(fault) = connection.dial(&self.peer)? {
                return self.settle(index, self.inside(), Err(fault));
            }
        }
        self.wake = self.wake.min(connection.wake());
        Ok(())
    }

    /// A socket is ready.
    fn ready(&mut self, index: usize, flags: EventFlags) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        match connection.stage {
            Stage::Pausing => Ok(()),
            Stage::Idle => {
                // Nothing is to come now: whatever did, this connection carries no further request.
                if connection.read(&mut self.buffer) != Err(Errno::AGAIN) {
                    connection.release(false);
                }
                Ok(())
            }
            Stage::Connecting => self.connected(index),
            Stage::Exchanging => {
                if flags.contains(EventFlags::OUT) {
                    connection.push(&self.peer, self.clock.now())?;
                    self.wake = self.wake.min(connection.wake());
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.receive(index)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// A connection is made, or was refused.
    fn connected(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        let now = self.clock.now();
        if now >= self.schedule.until {
            return Ok(());
        }
        if let Some(fault) = connection.connected(&self.peer)? {
            return self.settle(index, now, Err(fault));
        }
        self.connect.record(now - connection.sample.due);
        connection.sample.sent = now;
        if self.origin == Origin::Sent {
            connection.deadline = now.saturating_add(self.timeout).min(self.latest);
        }
        connection.push(&self.peer, now)?;
        self.wake = self.wake.min(connection.wake());
        Ok(())
    }

    /// Reads what has come of an answer. What comes after the window is left as it is: the request is in flight.
    fn receive(&mut self, index: usize) -> Result<(), Error> {
        for _ in 0..READS {
            let connection = &mut self.connections[index];
            let read = connection.read(&mut self.buffer);
            let now = self.clock.now();
            if now >= self.schedule.until {
                return Ok(());
            }
            let end = match read {
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => Err(connection.reader.broken(errno)),
                Ok(0) => connection.reader.end(),
                Ok(bytes) => {
                    self.tally.received += bytes as u64;
                    match connection.reader.feed(&self.buffer[..bytes]) {
                        Ok(true) => Ok(()),
                        Ok(false) if bytes == BUFFER => continue,
                        Ok(false) => return Ok(()),
                        Err(fault) => Err(fault),
                    }
                }
            };
            return self.settle(index, now, end);
        }
        Ok(())
    }

    /// A time has come that a connection waited for.
    fn elapsed(&mut self, index: usize, now: u64) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        match connection.stage {
            _ if connection.deadline > now => connection.push(&self.peer, now),
            Stage::Idle => Ok(()),
            Stage::Pausing => {
                connection.release(false);
                self.next(index)
            }
            Stage::Connecting => self.settle(index, now, Err(Fault::ConnectTimeout)),
            Stage::Exchanging => self.settle(index, now, Err(Fault::Timeout)),
        }
    }

    /// Ends a request: counts it, keeps or ends its connection, and takes up the next.
    fn settle(&mut self, index: usize, now: u64, end: Result<(), Fault>) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        let keep =
            end.is_ok() && self.keep_alive && connection.reader.is_persistent() && connection.has_sent(&self.peer.wire);
        self.busy -= 1;
        let answer = connection.reader.answer();
        self.tally.answered += u64::from(answer.is_some());
        let end = end.and_then(|()| answer.map_or(Err(Fault::Closed), |(status, got)| self.expect.judge(status, got)));
        connection.release(keep);
        match &end {
            Ok(()) => self.tally.ok(now, connection.sample.done_at(now).latency(self.origin)),
            Err(fault) => self.tally.fail(now, fault, || connection.reader.excerpt()),
        }
        self.report();
        if end.is_err_and(|fault| fault.kind() == Kind::Connect) {
            let connection = &mut self.connections[index];
            connection.back_off(now);
            self.wake = self.wake.min(connection.wake());
            Ok(())
        } else {
            self.next(index)
        }
    }

    /// Hands over the counters of the window.
    fn report(&self) {
        // The opening is in none of them.
        if self.latest == NEVER {
            let counts = &self.tally.counts;
            self.shared.started.store(counts.started, Relaxed);
            self.shared.ok.store(counts.ok, Relaxed);
            self.shared.errors.store(counts.errors(), Relaxed);
        }
    }
}

/// A time in ns as epoll takes it.
fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
