//! The books of a window: in comes the end of each request, out come counters, latencies, seconds and kept faults.
//!
//! To count another thing, add it to [`Counts`] and to its conservation.

use super::fault::Fault;
use super::latency::{DIGITS, Latency};
use super::response::Excerpt;
use super::schedule::Sample;
use super::series::{SECOND, Series, Share};
use super::{Error, Kind};
use std::sync::Arc;
use std::time::Duration;

/// So many faulty requests of a kind are kept.
pub(super) const KEPT: usize = 10;

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

    /// Adds what another counted.
    pub(super) fn add_all(&mut self, other: &Self) {
        let Self { started, ok, status, body, timeout, connect, reset, protocol, in_flight } = other;
        self.started += started;
        self.ok += ok;
        self.status += status;
        self.body += body;
        self.timeout += timeout;
        self.connect += connect;
        self.reset += reset;
        self.protocol += protocol;
        self.in_flight += in_flight;
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

/// The books of one part of the mix.
pub(super) struct Page {
    pub(super) counts: Counts,
    pub(super) latency: Latency,
}

/// The books of one thread while they are kept. Times are ns of the load's clock.
pub(super) struct Tally {
    from: u64,
    /// Where its seconds go; the opening has none.
    series: Option<Arc<Series>>,
    /// A page for each part of the mix.
    pub(super) pages: Vec<Page>,
    /// How late after they were due requests were sent, in an open loop.
    pub(super) lateness: Option<Latency>,
    /// Requests begun, good answers and others, over all pages.
    pub(super) started: u64,
    pub(super) ok: u64,
    pub(super) errors: u64,
    /// Requests to which at least a whole head came.
    pub(super) answered: u64,
    /// Requests that were over before there was a connection for them.
    pub(super) expired: u64,
    /// Bytes that came.
    pub(super) received: u64,
    /// Connections begun.
    pub(super) connections: u64,
    /// How often something came on a connection without a request.
    pub(super) unasked: u64,
    /// When the last request ended.
    pub(super) last: u64,
    pub(super) kept: Vec<Kept>,
    /// The second that is going on: which it is, and its share.
    second: (u64, Share),
}

impl Tally {
    /// Empty books of a window that begins at `from`. `digits` is how exact its latencies are: those of an opening are
    /// looked at by nobody.
    pub(super) fn new(from: u64, parts: usize, digits: u8, series: Option<Arc<Series>>) -> Self {
        let page = || Page { counts: Counts::default(), latency: Latency::new(digits) };
        Self {
            from,
            series,
            pages: std::iter::repeat_with(page).take(parts).collect(),
            lateness: None,
            started: 0,
            ok: 0,
            errors: 0,
            answered: 0,
            expired: 0,
            received: 0,
            connections: 0,
            unasked: 0,
            last: from,
            kept: Vec::new(),
            second: (0, Share::new()),
        }
    }

    /// A request of a part is begun.
    pub(super) fn begin(&mut self, part: usize) {
        self.pages[part].counts.started += 1;
        self.started += 1;
    }

    /// A request of an open loop is sent.
    pub(super) fn sent(&mut self, sample: Sample) {
        let lateness = self.lateness.get_or_insert_with(|| Latency::new(DIGITS));
        lateness.record(sample.sent.saturating_sub(sample.due));
    }

    /// A good answer, at `now`, after `latency` ns.
    pub(super) fn ok(&mut self, part: usize, now: u64, latency: u64) {
        self.advance(now);
        let page = &mut self.pages[part];
        page.counts.ok += 1;
        page.latency.record(latency);
        self.ok += 1;
        self.second.1.ok += 1;
        self.second.1.latency.record(latency);
    }

    /// A request that ended at `now` and was not ok; `excerpt` makes what was read of its answer.
    pub(super) fn fail(&mut self, part: usize, now: u64, fault: &Fault, excerpt: impl FnOnce() -> Excerpt) {
        self.advance(now);
        let kind = fault.kind();
        self.pages[part].counts.add(kind);
        self.errors += 1;
        self.second.1.errors += 1;
        if self.kept.iter().filter(|kept| kept.kind == kind).count() < KEPT {
            let Excerpt { status, headers, body } = excerpt();
            let at = Duration::from_nanos(self.last - self.from);
            self.kept.push(Kept { kind, reason: fault.to_string(), at, status, headers, body });
        }
    }

    /// The counters of all pages.
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.pages.iter().for_each(|page| all.add_all(&page.counts));
        all
    }

    /// Refuses books that do not balance.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.pages.iter().try_for_each(|page| page.counts.check(page.latency.count()))
    }

    /// Closes the last second of a window that ends at `until`.
    pub(super) fn close(&mut self, until: u64) {
        self.advance(until);
        let length = self.last - self.from - self.second.0 * SECOND;
        if length > 0 {
            self.end_second(length);
        }
    }

    /// Closes the seconds that ended by `now`. A time before the last one counts as that: time does not go back.
    fn advance(&mut self, now: u64) {
        self.last = self.last.max(now);
        while self.last - self.from >= (self.second.0 + 1) * SECOND {
            self.end_second(SECOND);
        }
    }

    /// Closes the second that is going on.
    fn end_second(&mut self, length: u64) {
        let (index, share) = &mut self.second;
        share.length = length;
        if let Some(series) = &self.series {
            series.hand_over(*index, share);
        }
        share.clear();
        *index += 1;
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
        let series = Arc::new(Series::new(1));
        let mut tally = Tally::new(500, 1, DIGITS, Some(Arc::clone(&series)));
        tally.ok(0, 500, 10);
        tally.ok(0, 500 + SECOND - 1, 30);
        tally.fail(0, 500 + SECOND, &Fault::Timeout, nothing);
        tally.ok(0, 500 + 3 * SECOND, 20);
        tally.close(500 + 3 * SECOND + SECOND / 2);
        let seconds = series.finish();
        let rows: Vec<_> =
            seconds.iter().map(|second| (second.at.as_secs(), second.ok, second.errors, second.max)).collect();
        assert_eq!(rows, [(0, 2, 0, Some(30)), (1, 0, 1, None), (2, 0, 0, None), (3, 1, 0, Some(20))]);
        assert_eq!(seconds[3].length, Duration::from_millis(500));
        assert_eq!(seconds[0].p50, Some(10));
    }

    #[test]
    fn a_window_of_whole_seconds_has_no_row_beyond() {
        let series = Arc::new(Series::new(1));
        let mut tally = Tally::new(0, 1, DIGITS, Some(Arc::clone(&series)));
        tally.ok(0, 1, 1);
        tally.close(2 * SECOND);
        assert_eq!(series.finish().len(), 2);
    }

    #[test]
    fn parts_have_pages_of_their_own() {
        let mut tally = Tally::new(0, 2, DIGITS, None);
        tally.begin(0);
        tally.begin(1);
        tally.ok(1, 5, 7);
        tally.fail(0, 6, &Fault::Status(404), nothing);
        tally.check().unwrap();
        assert_eq!((tally.pages[0].counts.status, tally.pages[1].counts.ok), (1, 1));
        assert_eq!(tally.counts(), Counts { started: 2, ok: 1, status: 1, ..Counts::default() });
        tally.begin(0);
        tally.check().unwrap_err();
    }

    #[test]
    fn a_flood_of_one_fault_does_not_hide_another() {
        let mut tally = Tally::new(0, 1, DIGITS, None);
        for _ in 0..100 {
            tally.fail(0, 1, &Fault::Closed, nothing);
        }
        tally.fail(0, 2, &Fault::Status(500), nothing);
        assert_eq!(tally.kept.len(), KEPT + 1);
        assert_eq!(tally.kept[KEPT].kind, Kind::Status);
    }
}
