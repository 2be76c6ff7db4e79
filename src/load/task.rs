//! What the threads of one load share: its plain values, and the little that passes between them.
//!
//! Nothing here is waited for on the hot path: the counters are relaxed, each thread's on a cache line of its own, and the
//! gate is passed once.

use super::Error;
use super::mix::Mix;
use super::options::{Options, Protocol, Stop};
use super::running::Counters;
use super::schedule::{Clock, NEVER, Origin, Schedule, nanos};
use super::series::Series;
use super::target::Address;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// How far ahead the begin of a window is set where threads must meet it, or the first request of an open loop, in ns.
const LEAD: u64 = 2_000_000;

/// A load as its threads see it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) mix: Mix,
    pub(super) address: Address,
    pub(super) connections: usize,
    pub(super) threads: usize,
    pub(super) stop: Stop,
    pub(super) rate: Option<f64>,
    pub(super) pipeline: usize,
    /// In ns.
    pub(super) timeout: u64,
    pub(super) keep_alive: bool,
    pub(super) protocol: Protocol,
    pub(super) origin: Origin,
    pub(super) cpus: Vec<usize>,
    pub(super) spin: bool,
    pub(super) clock: Clock,
    pub(super) series: Arc<Series>,
    /// Each thread's counters.
    pub(super) counters: Vec<Counters>,
    /// Becomes readable when all threads are to end.
    pub(super) stopping: OwnedFd,
    /// Becomes readable when all threads have ended.
    pub(super) done: OwnedFd,
    pub(super) gate: Gate,
    /// How many requests of a count are left.
    left: Arc<AtomicU64>,
}

impl Task {
    /// That of checked options.
    pub(super) fn new(options: Options, mix: Mix, address: Address) -> Result<Self, Error> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let left = if let Stop::Count(count) = options.stop { count } else { 0 };
        Ok(Self {
            mix,
            address,
            connections: options.connections,
            threads: options.threads,
            stop: options.stop,
            rate: options.rate,
            pipeline: options.pipeline,
            timeout: nanos(options.timeout),
            keep_alive: options.keep_alive,
            protocol: options.protocol,
            origin: Origin::of(options.rate.is_some(), options.keep_alive),
            cpus: options.cpus,
            spin: options.spin,
            clock: Clock::start(),
            series: Arc::new(Series::new(options.threads)),
            counters: std::iter::repeat_with(Counters::default).take(options.threads).collect(),
            stopping: event().map_err(Error::system("making an event"))?,
            done: event().map_err(Error::system("making an event"))?,
            gate: Gate::new(options.threads),
            left: Arc::new(AtomicU64::new(left)),
        })
    }

    /// How many connections a thread has: as many as every other, or one more.
    pub(super) fn connections_of(&self, thread: usize) -> usize {
        (self.connections + self.threads - 1 - thread) / self.threads
    }

    /// The processors that a thread is bound to; empty where it may run anywhere. They are dealt out in turn.
    pub(super) fn cpus_of(&self, thread: usize) -> Vec<usize> {
        let count = self.cpus.len();
        if count < self.threads {
            return self.cpus.get(thread % count.max(1)).copied().into_iter().collect();
        }
        self.cpus.iter().skip(thread).step_by(self.threads).copied().collect()
    }

    /// What a thread is to send in a window that begins at `from`.
    pub(super) fn schedule(&self, thread: usize, from: u64) -> Schedule {
        match self.rate {
            Some(rate) => Schedule::open(self.stop, from, rate, (thread, self.threads)),
            None => Schedule::closed(self.stop, from, Arc::clone(&self.left)),
        }
    }

    /// Says that a thread's connections have had their opening, of which so many got an answer. The last one to say so
    /// sets the begin of the window.
    pub(super) fn opened(&self, answered: u64) {
        self.gate.answered.fetch_add(answered, SeqCst);
        if self.gate.awaited.fetch_sub(1, SeqCst) == 1 {
            let lead = if self.threads > 1 || self.rate.is_some() { LEAD } else { 0 };
            self.gate.from.store(self.clock.now() + lead, SeqCst);
        }
    }

    /// Ends all threads.
    pub(super) fn halt(&self) {
        raise(&self.stopping);
    }

    /// Says that a thread has ended; `failed` ends the others.
    pub(super) fn ended(&self, failed: bool) {
        if failed {
            self.halt();
        }
        if self.gate.running.fetch_sub(1, SeqCst) == 1 {
            self.gate.until.store(self.clock.now(), SeqCst);
            raise(&self.done);
        }
    }
}

/// Where the threads of a load meet: at the begin of the window, and at its end.
#[derive(Debug)]
pub(super) struct Gate {
    /// Threads whose opening is going on.
    awaited: AtomicUsize,
    /// Connections of the opening that got an answer.
    answered: AtomicU64,
    /// The begin of the window, once that is known.
    from: AtomicU64,
    /// Threads that have not ended.
    running: AtomicUsize,
    /// When the last one ended.
    until: AtomicU64,
}

impl Gate {
    fn new(threads: usize) -> Self {
        Self {
            awaited: AtomicUsize::new(threads),
            answered: AtomicU64::new(0),
            from: AtomicU64::new(NEVER),
            running: AtomicUsize::new(threads),
            until: AtomicU64::new(NEVER),
        }
    }

    /// The begin of the window, once every thread is ready for it.
    pub(super) fn from(&self) -> Option<u64> {
        Some(self.from.load(SeqCst)).filter(|&from| from != NEVER)
    }

    /// When the last thread ended, once it has.
    pub(super) fn until(&self) -> Option<u64> {
        Some(self.until.load(SeqCst)).filter(|&until| until != NEVER)
    }

    /// How many connections of the opening got an answer; it is whole when [`Self::from`] is known.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }
}

/// Makes an event readable. It can only fail when the event is raised already.
fn raise(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}
