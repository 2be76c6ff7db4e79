//! What limited a window: in come its outcome and what is known of the server's CPU, out comes whose figures these are.
//!
//! A generator that was the bottleneck makes a slow server of a fast one. It is told by its own threads' clocks, by what
//! it left unsent while connections were free, and by whether the server had CPU to spare. A thread that waits for a
//! processor is as busy as one that runs, on either side. To add a sign, add it to [`Limit`] with its evidence in words.

use super::Outcome;
use std::fmt;

/// From this share of a core on, a thread is busy.
const BUSY: f64 = 0.9;

/// Below this share of what was due, an open loop did not keep its rate.
const KEPT_UP: f64 = 0.99;

/// How far throughput times mean latency may be off the number of requests under way.
const LITTLE: f64 = 0.05;

/// What the server's processes used inside the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerCpu {
    /// The share of the window in which its busiest thread ran, or waited for a processor to run on, 0 to 1.
    pub runnable: f64,
    /// How many cores all of it kept busy.
    pub cores: f64,
    /// How many cores it may use.
    pub processors: usize,
}

impl ServerCpu {
    /// Whether more could have been had of it: no thread of it was busy all the time, nor all its processors.
    fn has_spare(self) -> bool {
        self.runnable < BUSY && self.cores < BUSY * self.processors as f64
    }
}

/// A sign that the figures of a window are not, or not only, the server's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A thread of the generator was busy while the server had CPU to spare, as far as that is known.
    Busy {
        /// The share of the window in which the thread ran, or waited for a processor.
        share: f64,
        /// What is known of the server.
        server: Option<ServerCpu>,
    },
    /// An open loop sent less than was due while connections were free.
    Unsent {
        /// The share of the due requests that were sent.
        sent: f64,
    },
    /// An open loop sent less than was due because every connection was busy: the server's doing.
    Saturated {
        /// The share of the due requests that were sent.
        sent: f64,
        /// Requests that were due and not sent when the window ended.
        backlog: u64,
    },
    /// In a closed loop, throughput times mean latency is not the number of requests under way.
    Little {
        /// What it is.
        found: f64,
        /// What it should be.
        expected: f64,
    },
}

impl Limit {
    /// A stable word for results.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } | Self::Unsent { .. } => "generator-bound",
            Self::Saturated { .. } => "saturated",
            Self::Little { .. } => "littles-law",
        }
    }
}

/// The words do not hold the figures of one window, so that many windows say the same.
impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = BUSY * 100.0;
        let due = KEPT_UP * 100.0;
        match self {
            Self::Busy { server: Some(_), .. } => {
                write!(formatter, "the generator was busy {busy:.0} % of the time or more, the server was not: ")?;
                formatter.write_str("the figures are the generator's")
            }
            Self::Busy { server: None, .. } => {
                write!(formatter, "the generator was busy {busy:.0} % of the time or more: ")?;
                formatter.write_str("the figures may be the generator's")
            }
            Self::Unsent { .. } => {
                write!(formatter, "less than {due:.0} % of what was due was sent, while connections were free")
            }
            Self::Saturated { .. } => {
                write!(formatter, "less than {due:.0} % of what was due was sent: every connection was busy")
            }
            Self::Little { found, expected } => {
                write!(formatter, "throughput times mean latency is {found:.1}, but ")?;
                write!(formatter, "{expected:.0} requests were under way at a time")
            }
        }
    }
}

impl Outcome {
    /// Every sign that there is. `concurrency` is how many requests a closed loop had under way, where it kept its
    /// connections.
    pub fn limits(&self, concurrency: Option<f64>, server: Option<ServerCpu>) -> Vec<Limit> {
        let mut limits = Vec::new();
        let share = self.generator_occupied();
        if share >= BUSY && server.is_none_or(ServerCpu::has_spare) {
            limits.push(Limit::Busy { share, server });
        }
        if let Some(pace) = &self.pace {
            let sent = pace.sent_share();
            if sent < KEPT_UP && self.was_free {
                limits.push(Limit::Unsent { sent });
            } else if sent < KEPT_UP {
                limits.push(Limit::Saturated { sent, backlog: pace.backlog });
            }
        } else if let (Some(found), Some(expected), 0) = (self.concurrency(), concurrency, self.counts.errors())
            // At its end a window misses up to one latency of each connection: of few requests that is much.
            && self.counts.ok as f64 * LITTLE >= expected
            && (found / expected - 1.0).abs() > LITTLE
        {
            limits.push(Limit::Little { found, expected });
        }
        limits
    }
}
