//! What a load comes to: the figures of one window, each with its unit. The metrics of results are made of them.

use super::{Counts, Generator, Kept, Latency, Second};
use std::net::SocketAddr;
use std::time::Duration;

/// The figures of a load.
#[derive(Debug)]
pub struct Outcome {
    /// The one address that was talked to; it tells the family too.
    pub address: SocketAddr,
    /// How long the window was, from the first request after the opening to its end.
    pub elapsed: Duration,
    /// Whether [`super::Running::stop`] ended it.
    pub stopped: bool,
    /// What became of the opening's requests, one a connection; they are in nothing else.
    pub opening: Counts,
    /// What became of the window's requests.
    pub counts: Counts,
    /// Latencies of the good answers.
    pub latency: Latency,
    /// How long connections took to be made, the opening's with them.
    pub connect: Latency,
    /// Connections begun inside the window, in place of those that had ended; one for each request without `keep_alive`.
    pub reconnects: u64,
    /// Bytes that came inside the window, heads and framing with them.
    pub received: u64,
    /// How old each request was that had no end when the window ended.
    pub in_flight: Vec<Duration>,
    /// The window, second by second.
    pub seconds: Vec<Second>,
    /// The first ten requests of each kind that were not ok.
    pub kept: Vec<Kept>,
    /// What the generator used inside the window.
    pub generator: Generator,
}

impl Outcome {
    /// Good answers a second, over the time that really went by.
    pub fn throughput(&self) -> f64 {
        self.counts.ok as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes that came, a second.
    pub fn transfer(&self) -> f64 {
        self.received as f64 / self.elapsed.as_secs_f64()
    }

    /// The share of its core that the generator used, 0 to 1.
    pub fn generator_share(&self) -> f64 {
        self.generator.cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// How many requests were under way on average, by Little's law: throughput times mean latency. A closed loop
    /// whose answers were good has as many as connections.
    pub fn concurrency(&self) -> Option<f64> {
        self.latency.mean().map(|mean| self.throughput() * mean / 1e9)
    }
}
