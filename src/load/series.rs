//! A window second by second: in come what each thread counted in a second, out come rows once all have.
//!
//! A thread hands over a second when it has ended, so the lock is taken once a second and thread. The rows are there while
//! the load goes on.

use super::latency::Latency;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Significant digits of the latencies of one second.
const DIGITS: u8 = 2;

/// The length of a second, in ns.
pub(super) const SECOND: u64 = 1_000_000_000;

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

/// What was counted in one second.
pub(super) struct Share {
    pub(super) ok: u64,
    pub(super) errors: u64,
    pub(super) latency: Latency,
    /// How much of the second there was, in ns.
    pub(super) length: u64,
}

impl Share {
    pub(super) fn new() -> Self {
        Self { ok: 0, errors: 0, latency: Latency::new(DIGITS), length: 0 }
    }

    pub(super) fn clear(&mut self) {
        (self.ok, self.errors, self.length) = (0, 0, 0);
        self.latency.reset();
    }

    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.errors += other.errors;
        self.latency.add(&other.latency);
        self.length = self.length.max(other.length);
    }
}

/// The rows of a window, and the seconds that not all threads have handed over.
pub(super) struct Series {
    threads: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    rows: Vec<Second>,
    /// The seconds after the rows, and how many threads each is from.
    open: VecDeque<(usize, Share)>,
}

impl Series {
    /// An empty one for so many threads.
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, inner: Mutex::default() }
    }

    /// Takes a thread's share of a second.
    pub(super) fn hand_over(&self, second: u64, share: &Share) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = usize::try_from(second).ok().and_then(|second| second.checked_sub(inner.rows.len())) else {
            return;
        };
        while inner.open.len() <= at {
            inner.open.push_back((0, Share::new()));
        }
        inner.open[at].0 += 1;
        inner.open[at].1.add(share);
        while inner.open.front().is_some_and(|(from, _)| *from >= self.threads) {
            inner.close();
        }
    }

    /// The last row that is whole.
    pub(super) fn last(&self) -> Option<Second> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).rows.last().cloned()
    }

    /// All rows, those that not every thread has handed over with them.
    pub(super) fn finish(&self) -> Vec<Second> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while !inner.open.is_empty() {
            inner.close();
        }
        std::mem::take(&mut inner.rows)
    }
}

impl Inner {
    /// Makes a row of the first second that is open.
    fn close(&mut self) {
        let Some((_, share)) = self.open.pop_front() else { return };
        self.rows.push(Second {
            at: Duration::from_nanos(self.rows.len() as u64 * SECOND),
            length: Duration::from_nanos(share.length),
            ok: share.ok,
            errors: share.errors,
            p50: share.latency.quantile(0.5),
            p99: share.latency.quantile(0.99),
            max: share.latency.max(),
        });
    }
}

impl std::fmt::Debug for Series {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a series of {} threads", self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(ok: u64, latency: u64) -> Share {
        let mut share = Share { ok, length: SECOND, ..Share::new() };
        (0..ok).for_each(|_| share.latency.record(latency));
        share
    }

    #[test]
    fn a_row_is_there_when_all_threads_have_handed_it_over() {
        let series = Series::new(2);
        series.hand_over(0, &share(1, 10));
        series.hand_over(1, &share(2, 20));
        assert_eq!(series.last(), None);
        series.hand_over(0, &share(3, 30));
        let first = series.last().unwrap();
        assert_eq!((first.at, first.ok, first.p50, first.max), (Duration::ZERO, 4, Some(30), Some(30)));
        // The other thread ended in the first second; its part of the second one is missing.
        let rows = series.finish();
        assert_eq!((rows.len(), rows[1].at.as_secs(), rows[1].ok, rows[1].max), (2, 1, 2, Some(20)));
    }
}
