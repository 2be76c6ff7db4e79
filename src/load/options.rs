//! What a load is asked to do: in come plain values, out goes the certainty that they can be carried out.
//!
//! To add an option, add it here with its check; nothing else decides what is allowed.

use super::fault::Fault;
use super::{Error, Request, Target};
use std::time::Duration;

/// The most connections one load may hold: there are no more ports than this.
const MOST_CONNECTIONS: usize = 65_535;

/// The longest timeout; the histograms reach as far.
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a load is: a closed loop, in which each connection sends its next request when it has its answer.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server.
    pub target: Target,
    /// The one request that is sent.
    pub request: Request,
    /// Which answers are good.
    pub expect: Expect,
    /// How many connections are held, at least 1.
    pub connections: usize,
    /// When the window ends.
    pub stop: Stop,
    /// The longest that a connection may take to be made, and a request to be answered; at most an hour.
    pub timeout: Duration,
    /// Whether connections are kept for the next request. Where not, connecting is part of each latency.
    pub keep_alive: bool,
}

/// When the window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this time.
    Duration(Duration),
    /// When this many requests were started and all of them have ended.
    Count(u64),
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
        if self.timeout.is_zero() || self.timeout > LONGEST_TIMEOUT {
            return refuse("`timeout`", "must be longer than nothing and at most an hour");
        }
        if self.expect.status.iter().any(|status| !(100..=599).contains(status)) {
            return refuse("an expected status", "must be 100 to 599");
        }
        Ok(())
    }
}
