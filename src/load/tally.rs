//! The books of a window: in comes the end of each request, out come counters, latencies, seconds and kept faults.
//!
//! To count another thing, add it to [`Counts`] and to its conservation.

use super::fault::Fault;
use super::latency::{DIGITS, Latency};
use super::response::Excerpt;
use super::{Error, Kind};
use std::time::Duration;

/// So many faulty requests of a kind are kept.
const KEPT: usize = 10;

/// Significant digits of the latencies of one second.
const SECOND_DIGITS: u8 = 2;

const SECOND: u64 = 1_000_000_000;

/// What became of requests. `started` is the sum of all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests begun: sent, or meant for a connection that could not be made.
    pub started: u64,
    /// Good answers.
    pub ok: u64,
    /// See [`Kind::Status`].
    pub status: u64,
    /// See [`Kind::Body`].
    pub body: u64,
    /// See [`Kind::Timeout`].
    pub timeout: u64,
    /// See [`Kind::Connect`].
    pub connect: u64,
    /// See [`Kind::Reset`].
    pub reset: u64,
    /// See [`Kind::Protocol`].
    pub protocol: u64,
    /// Without an end when the window ended.
    pub in_flight: u64,
}

impl Counts {
    /// How many ended in this way.
    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Status => self.status,
            Kind::Body => self.body,
            Kind::Timeout => self.timeout,
            Kind::Connect => self.connect,
            Kind::Reset => self.reset,
            Kind::Protocol => self.protocol,
        }
    }

    /// How many ended and were not ok.
    pub fn errors(&self) -> u64 {
        Kind::ALL.iter().map(|&kind| self.of(kind)).sum()
    }

    /// Counts one of a kind.
    fn add(&mut self, kind: Kind) {
        let counter = match kind {
            Kind::Status => &mut self.status,
            Kind::Body => &mut self.body,
            Kind::Timeout => &mut self.timeout,
            Kind::Connect => &mut self.connect,
            Kind::Reset => &mut self.reset,
            Kind::Protocol => &mut self.protocol,
        };
        *counter += 1;
    }

    /// Refuses books in which a request has no end, or more than one.
    pub(super) fn check(&self, recorded: u64) -> Result<(), Error> {
        if self.started == self.ok + self.errors() + self.in_flight && recorded == self.ok {
            Ok(())
        } else {
            Err(Error::Conservation { counts: Box::new(*self), recorded })
        }
    }
}

/// A request that was not ok, kept to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// As what it was counted.
    pub kind: Kind,
    /// What was wrong, in words.
    pub reason: String,
    /// When it ended, since the window began.
    pub at: Duration,
    /// The status, where a whole head came.
    pub status: Option<u16>,
    /// The headers, where a whole head came.
    pub headers: Vec<(String, String)>,
    /// The first 1 KiB of the body; without a whole head, of what came.
    pub body: Vec<u8>,
}

/// One second of a window; the last may be shorter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Second {
    /// Its begin, since the window began.
    pub at: Duration,
    /// How long it is.
    pub length: Duration,
    /// Good answers that came in it.
    pub ok: u64,
    /// Requests that ended in it and were not ok.
    pub errors: u64,
    /// The median latency, in ns, to two digits.
    pub p50: Option<u64>,
    /// The 99th percentile of the latencies, in ns, to two digits.
    pub p99: Option<u64>,
    /// The greatest latency, in ns, exact.
    pub max: Option<u64>,
}

/// The books while they are kept. Times are ns of the worker's clock.
pub(super) struct Tally {
    from: u64,
    pub(super) counts: Counts,
    pub(super) latency: Latency,
    /// Requests to which at least a whole head came.
    pub(super) answered: u64,
    /// Bytes that came.
    pub(super) received: u64,
    /// Connections begun.
    pub(super) connections: u64,
    /// When the last request ended.
    pub(super) last: u64,
    pub(super) kept: Vec<Kept>,
    pub(super) seconds: Vec<Second>,
    /// The second that is going on: its begin since `from`, good answers, errors, latencies.
    second: (u64, u64, u64, Latency),
}

impl Tally {
    /// Empty books of a window that begins at `from`.
    pub(super) fn new(from: u64) -> Self {
        Self {
            from,
            counts: Counts::default(),
            latency: Latency::new(DIGITS),
            answered: 0,
            received: 0,
            connections: 0,
            last: from,
            kept: Vec::new(),
            seconds: Vec::new(),
            second: (0, 0, 0, Latency::new(SECOND_DIGITS)),
        }
    }

    /// A good answer, at `now`, after `latency` ns.
    pub(super) fn ok(&mut self, now: u64, latency: u64) {
        self.advance(now);
        self.counts.ok += 1;
        self.latency.record(latency);
        self.second.1 += 1;
        self.second.3.record(latency);
    }

    /// A request that ended at `now` and was not ok; `excerpt` makes what was read of its answer.
    pub(super) fn fail(&mut self, now: u64, fault: &Fault, excerpt: impl FnOnce() -> Excerpt) {
        self.advance(now);
        let kind = fault.kind();
        self.counts.add(kind);
        self.second.2 += 1;
        if self.kept.iter().filter(|kept| kept.kind == kind).count() < KEPT {
            let Excerpt { status, headers, body } = excerpt();
            let at = Duration::from_nanos(self.last - self.from);
            self.kept.push(Kept { kind, reason: fault.to_string(), at, status, headers, body });
        }
    }

    /// Closes the last second of a window that ends at `until`.
    pub(super) fn close(&mut self, until: u64) {
        self.advance(until);
        let length = self.last - self.from - self.second.0;
        if length > 0 {
            self.push_second(length);
        }
    }

    /// Closes the seconds that ended by `now`. A time before the last one counts as that: time does not go back.
    fn advance(&mut self, now: u64) {
        self.last = self.last.max(now);
        while self.last - self.from >= self.second.0 + SECOND {
            self.push_second(SECOND);
        }
    }

    /// Closes the second that is going on.
    fn push_second(&mut self, length: u64) {
        let (at, ok, errors, latency) = &mut self.second;
        self.seconds.push(Second {
            at: Duration::from_nanos(*at),
            length: Duration::from_nanos(length),
            ok: *ok,
            errors: *errors,
            p50: latency.quantile(0.5),
            p99: latency.quantile(0.99),
            max: latency.max(),
        });
        (*at, *ok, *errors) = (*at + SECOND, 0, 0);
        latency.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Excerpt {
        Excerpt { status: None, headers: Vec::new(), body: Vec::new() }
    }

    #[test]
    fn books_that_do_not_balance_are_an_error() {
        let sound = Counts {
            started: 7,
            ok: 1,
            status: 1,
            body: 1,
            timeout: 1,
            connect: 1,
            reset: 1,
            protocol: 1,
            in_flight: 0,
        };
        sound.check(1).unwrap();
        let lost = Counts { started: 8, ..sound };
        assert!(matches!(lost.check(1), Err(Error::Conservation { .. })));
        assert!(matches!(sound.check(2), Err(Error::Conservation { .. })));
        Counts { started: 8, in_flight: 1, ..sound }.check(1).unwrap();
    }

    #[test]
    fn each_end_falls_into_its_second() {
        let mut tally = Tally::new(500);
        tally.ok(500, 10);
        tally.ok(500 + SECOND - 1, 30);
        tally.fail(500 + SECOND, &Fault::Timeout, nothing);
        tally.ok(500 + 3 * SECOND, 20);
        tally.close(500 + 3 * SECOND + SECOND / 2);
        let rows: Vec<_> =
            tally.seconds.iter().map(|second| (second.at.as_secs(), second.ok, second.errors, second.max)).collect();
        assert_eq!(rows, [(0, 2, 0, Some(30)), (1, 0, 1, None), (2, 0, 0, None), (3, 1, 0, Some(20))]);
        assert_eq!(tally.seconds[3].length, Duration::from_millis(500));
        assert_eq!(tally.seconds[0].p50, Some(10));
    }

    #[test]
    fn a_window_of_whole_seconds_has_no_row_beyond() {
        let mut tally = Tally::new(0);
        tally.ok(1, 1);
        tally.close(2 * SECOND);
        assert_eq!(tally.seconds.len(), 2);
    }

    #[test]
    fn a_flood_of_one_fault_does_not_hide_another() {
        let mut tally = Tally::new(0);
        for _ in 0..100 {
            tally.fail(1, &Fault::Closed, nothing);
        }
        tally.fail(2, &Fault::Status(500), nothing);
        assert_eq!(tally.kept.len(), KEPT + 1);
        assert_eq!(tally.kept[KEPT].kind, Kind::Status);
    }
}
