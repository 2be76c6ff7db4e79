//! What a load is asked to do: in come plain values, out goes the certainty that they can be carried out.
//!
//! To add an option, add it here with its check; nothing else decides what is allowed.

use super::fault::Fault;
use super::{Error, Request, Target};
use crate::trust::Trust;
use std::time::Duration;

/// The most connections one load may hold: there are no more ports than this.
const MOST_CONNECTIONS: usize = 65_535;

/// The most requests that may be under way on one connection.
const MOST_PIPELINED: usize = 1024;

/// The most requests a second that an open loop may ask for: one a nanosecond.
const MOST_A_SECOND: f64 = 1e9;

/// The longest timeout; the histograms reach as far.
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a load is. [`Options::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server.
    pub target: Target,
    /// What is sent; more than one is a mix, drawn by weight.
    pub requests: Vec<Part>,
    /// How many connections are held, at least 1, over all threads.
    pub connections: usize,
    /// When the window ends.
    pub stop: Stop,
    /// Requests per second over all connections: an open loop, in which request i is due i / rate after the window
    /// began. None is a closed loop, in which a connection sends its next request when it has its answer.
    pub rate: Option<f64>,
    /// How many requests may be under way on one connection, at least 1: one behind the other in HTTP/1.1, each on a
    /// stream of its own in HTTP/2.
    pub pipeline: usize,
    /// The longest that a connection may take to be made, and a request to be answered; at most an hour.
    pub timeout: Duration,
    /// Whether connections are kept for the next request. Where not, connecting is part of each latency.
    pub keep_alive: bool,
    /// What is spoken.
    pub protocol: Protocol,
    /// Which certificates are believed, where the target speaks TLS.
    pub trust: Trust,
    /// Threads, at most one per connection.
    pub threads: usize,
    /// The processors that the threads are dealt; empty where they may run anywhere.
    pub cpus: Vec<usize>,
    /// How sockets are driven.
    pub engine: Engine,
    /// Whether an open loop waits for the last 100 µs before a request is due without sleeping. It does so only while
    /// there are more processors than threads.
    pub spin: bool,
    /// What the mix is drawn from: the same seed gives each thread the same sequence.
    pub seed: u64,
}

impl Options {
    /// One request in a closed loop, on one connection of one thread, for ten seconds.
    pub fn new(target: Target, request: Request) -> Self {
        Self {
            target,
            requests: vec![Part { name: None, weight: 1.0, request, expect: Expect::default() }],
            connections: 1,
            stop: Stop::Duration(Duration::from_secs(10)),
            rate: None,
            pipeline: 1,
            timeout: Duration::from_secs(10),
            keep_alive: true,
            protocol: Protocol::Http1,
            trust: Trust::System,
            threads: 1,
            cpus: Vec::new(),
            engine: Engine::Auto,
            spin: true,
            seed: 0,
        }
    }
}

/// One request of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name in a mix.
    pub name: Option<String>,
    /// How often it is drawn, relative to the others; above 0.
    pub weight: f64,
    /// What is sent.
    pub request: Request,
    /// Which answers are good.
    pub expect: Expect,
}

/// When the window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this time.
    Duration(Duration),
    /// When this many requests were started and all of them have ended.
    Count(u64),
}

/// What is spoken with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 (RFC 9113): over TLS where the server chooses `h2` by ALPN, else with prior knowledge.
    Http2,
}

impl Protocol {
    /// Its name by ALPN (RFC 7301).
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

/// How sockets are driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The best that the kernel permits: for a closed loop the cheapest, io_uring; for an open one that which sends with the
    /// least delay, epoll.
    Auto,
    /// Readiness by epoll, and a system call for each send and receive.
    Epoll,
    /// Submissions and completions in batches, by `io_uring`.
    IoUring,
}

/// Which answers are good. The default is any with a status of 200 to 299.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// The statuses that are good; none named means 200 to 299.
    pub status: Vec<u16>,
    /// How many bytes the body has, chunk framing not counted.
    pub bytes: Option<u64>,
}

impl Expect {
    /// Whether a whole answer is good.
    pub(super) fn judge(&self, status: u16, got: u64) -> Result<(), Fault> {
        let good = if self.status.is_empty() { (200..300).contains(&status) } else { self.status.contains(&status) };
        match self.bytes {
            _ if !good => Err(Fault::Status(status)),
            Some(expected) if expected != got => Err(Fault::Length { got, expected }),
            _ => Ok(()),
        }
    }
}

impl Options {
    /// Refuses what cannot be carried out.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str, why| Err(Error::Invalid { what: what.to_owned(), why });
        if !(1..=MOST_CONNECTIONS).contains(&self.connections) {
            return refuse("`connections`", "must be 1 to 65535");
        }
        if matches!(self.stop, Stop::Count(0)) {
            return refuse("`count`", "must be at least 1");
        }
        if matches!(self.stop, Stop::Duration(Duration::ZERO)) {
            return refuse("`duration`", "must be longer than nothing");
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= MOST_A_SECOND)) {
            return refuse("`rate`", "must be above 0 and at most a billion");
        }
        if !(1..=MOST_PIPELINED).contains(&self.pipeline) {
            return refuse("`pipeline`", "must be 1 to 1024");
        }
        if self.pipeline > 1 && !self.keep_alive {
            return refuse("`pipeline`", "needs connections that are kept");
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_TIMEOUT {
            return refuse("`timeout`", "must be longer than nothing and at most an hour");
        }
        if !(1..=self.connections).contains(&self.threads) {
            return refuse("`threads`", "must be at least 1 and at most one per connection");
        }
        if self.protocol == Protocol::Http2 && self.engine == Engine::IoUring {
            return refuse("the engine io_uring", "drives HTTP/1.1 alone");
        }
        self.check_requests()
    }

    fn check_requests(&self) -> Result<(), Error> {
        let refuse = |what: &str, why| Err(Error::Invalid { what: what.to_owned(), why });
        if self.requests.is_empty() {
            return refuse("a load", "needs a request");
        }
        for part in &self.requests {
            if !(part.weight.is_finite() && part.weight > 0.0) {
                return refuse("a weight", "must be above 0");
            }
            if part.expect.status.iter().any(|status| !(100..=599).contains(status)) {
                return refuse("an expected status", "must be 100 to 599");
            }
        }
        Ok(())
    }
}
