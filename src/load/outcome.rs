//! What a load comes to: the figures of one window, each with its unit. The metrics of results are made of them.
//!
//! In come the shares of the threads, out comes one outcome. What the figures say of the generator is in `limits`.

use super::books::Share;
use super::latency::Latency;
use super::target::Address;
use super::task::Task;
use super::{Counts, Error, Kept, Protocol, Second, Thread};
use std::time::Duration;

/// How a window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At its time, or when all requests of its count had ended.
    Whole,
    /// [`super::Running::stop`] ended it.
    Stopped,
    /// No answer at all came to a count for twice the timeout.
    Silent,
}

/// The figures of a load.
#[derive(Debug)]
pub struct Outcome {
    /// The one address that was talked to; it tells the family too.
    pub address: Address,
    /// What was spoken.
    pub protocol: Protocol,
    /// How sockets were driven: `epoll` or `io_uring`.
    pub engine: &'static str,
    /// How long the window was, from its begin after the opening to its end.
    pub elapsed: Duration,
    /// How it ended.
    pub ending: Ending,
    /// What became of the opening's requests, one a connection; they are in nothing else.
    pub opening: Counts,
    /// What became of the window's requests.
    pub counts: Counts,
    /// Latencies of the good answers.
    pub latency: Latency,
    /// The same for each request of a mix; none where there is one request without a name.
    pub requests: Vec<Named>,
    /// How long connections took to be made, the opening's with them.
    pub connect: Latency,
    /// Connections begun inside the window, in place of those that had ended; one for each request without `keep_alive`.
    pub reconnects: u64,
    /// Bytes that came inside the window, heads and framing with them.
    pub received: u64,
    /// How often something came on a connection without a request; in no other count.
    pub unasked: u64,
    /// How old each request was that had no end when the window ended.
    pub in_flight: Vec<Duration>,
    /// Whether a connection could have carried another request when the window ended.
    pub was_free: bool,
    /// How an open loop kept its times.
    pub pace: Option<Pace>,
    /// The window, second by second.
    pub seconds: Vec<Second>,
    /// The first ten requests of each kind that were not ok.
    pub kept: Vec<Kept>,
    /// What each thread of the generator used inside the window.
    pub threads: Vec<Thread>,
}

/// The figures of one request of a mix.
#[derive(Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub counts: Counts,
    /// Latencies of its good answers.
    pub latency: Latency,
}

/// How an open loop kept its times. Every request that was due was sent, is part of the backlog, or had expired.
#[derive(Debug)]
pub struct Pace {
    /// Requests a second that were asked for.
    pub rate: f64,
    /// Requests that were due in the window.
    pub due: u64,
    /// Requests that were due and had neither been taken up nor expired when the window ended.
    pub backlog: u64,
    /// Requests whose timeout was over before a connection was free: counted as started and as timeouts, never sent.
    pub expired: u64,
    /// How late after they were due requests were sent, for want of time or of a connection.
    pub lateness: Latency,
}

impl Pace {
    /// The share of the due requests that were sent, 0 to 1.
    pub fn sent_share(&self) -> f64 {
        let missing = self.backlog + self.expired;
        if self.due == 0 { 1.0 } else { self.due.saturating_sub(missing) as f64 / self.due as f64 }
    }
}

impl Outcome {
    /// Puts the shares of all threads together.
    pub(super) fn merge(task: &Task, shares: Vec<Share>) -> Result<Self, Error> {
        let from = shares.iter().map(|share| share.from).min().unwrap_or(0);
        let until = shares.iter().map(|share| share.until).max().unwrap_or(from);
        let mut all = Self {
            address: task.address.clone(),
            protocol: task.protocol,
            engine: shares.first().map_or("", |share| share.engine),
            elapsed: Duration::from_nanos(until.saturating_sub(from)),
            ending: Ending::Whole,
            opening: Counts::default(),
            counts: Counts::default(),
            latency: Latency::none(),
            requests: named(task),
            connect: Latency::none(),
            reconnects: 0,
            received: 0,
            unasked: 0,
            in_flight: Vec::new(),
            was_free: false,
            pace: task.rate.map(|rate| Pace { rate, due: 0, backlog: 0, expired: 0, lateness: Latency::none() }),
            seconds: task.series.finish(),
            kept: Vec::new(),
            threads: Vec::with_capacity(shares.len()),
        };
        shares.into_iter().for_each(|share| all.add(share));
        all.kept.sort_by_key(|kept| kept.at);
        let mut kinds = Vec::new();
        all.kept.retain(|kept| {
            kinds.push(kept.kind);
            kinds.iter().filter(|&&kind| kind == kept.kind).count() <= super::tally::KEPT
        });
        all.counts.check(all.latency.count())?;
        Ok(all)
    }

    fn add(&mut self, share: Share) {
        let Share { opening, window, .. } = share;
        self.opening.add_all(&opening.counts());
        self.counts.add_all(&window.counts());
        for (at, page) in window.pages.into_iter().enumerate() {
            if let Some(named) = self.requests.get_mut(at) {
                named.counts.add_all(&page.counts);
                named.latency.absorb(page.latency.clone());
            }
            self.latency.absorb(page.latency);
        }
        self.connect.absorb(share.connect);
        self.reconnects += window.connections;
        self.received += window.received;
        self.unasked += window.unasked;
        self.in_flight.extend(share.in_flight.into_iter().map(Duration::from_nanos));
        self.was_free |= share.was_free;
        if share.ending != Ending::Whole {
            self.ending = share.ending;
        }
        if let Some(pace) = &mut self.pace {
            pace.due += window.started + share.backlog;
            pace.backlog += share.backlog;
            pace.expired += window.expired;
            window.lateness.into_iter().for_each(|lateness| pace.lateness.absorb(lateness));
        }
        self.kept.extend(window.kept);
        self.threads.push(share.thread);
    }

    /// Good answers a second, over the time that really went by.
    pub fn throughput(&self) -> f64 {
        self.counts.ok as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes that came, a second.
    pub fn transfer(&self) -> f64 {
        self.received as f64 / self.elapsed.as_secs_f64()
    }

    /// The share of its core that the busiest thread of the generator needed, 0 to 1.
    pub fn generator_share(&self) -> f64 {
        self.threads.iter().map(Thread::share).fold(0.0, f64::max)
    }

    /// The share of the window in which a thread of the generator had something to do, whether or not it was given a
    /// processor for it; the greatest of all threads.
    pub fn generator_occupied(&self) -> f64 {
        self.threads.iter().map(Thread::occupied).fold(0.0, f64::max)
    }

    /// How many requests were under way on average, by Little's law: throughput times mean latency. A closed loop
    /// whose answers were good has as many as connections, times those that each carries.
    pub fn concurrency(&self) -> Option<f64> {
        self.latency.mean().map(|mean| self.throughput() * mean / 1e9)
    }
}

/// Empty figures for each request of a mix.
fn named(task: &Task) -> Vec<Named> {
    let empty = |name: &String| Named { name: name.clone(), counts: Counts::default(), latency: Latency::none() };
    task.mix.parts().iter().filter_map(|part| part.name.as_ref()).map(empty).collect()
}
