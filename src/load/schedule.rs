//! When to send and when to stop: the one place that decides either. Times are ns of the worker's [`Clock`].
//!
//! A closed loop sends when a connection is free; an open one would let [`Schedule::take`] say when the next is due.

use super::Stop;
use std::time::{Duration, Instant};

/// The monotonic clock, read as ns since the worker began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time, in ns.
    pub(super) fn now(self) -> u64 {
        nanos(self.0.elapsed())
    }
}

/// A duration in ns; what is beyond 64 bits (584 years) is for ever.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Where latency and timeout of a request count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From when it was due: connecting, or waiting for a connection, is part of it.
    Due,
    /// From when its first byte was sent.
    Sent,
}

impl Origin {
    /// That of a closed loop: connecting is timed apart where connections are kept.
    pub(super) fn closed(keep_alive: bool) -> Self {
        if keep_alive { Self::Sent } else { Self::Due }
    }
}

/// The times of one request: when it was due, sent and done, in ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) due: u64,
    /// The same as `due` until it is sent.
    pub(super) sent: u64,
    pub(super) done: u64,
}

impl Sample {
    /// The same, done at `done`.
    pub(super) fn done_at(self, done: u64) -> Self {
        Self { done, ..self }
    }

    /// How long it took, in ns.
    pub(super) fn latency(self, origin: Origin) -> u64 {
        let from = match origin {
            Origin::Due => self.due,
            Origin::Sent => self.sent,
        };
        self.done.saturating_sub(from)
    }
}

/// The requests that may still be started, and the end of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// The end of the window: what ends at this time or later is not in it.
    pub(super) until: u64,
    /// How many requests may still be started.
    left: u64,
}

impl Schedule {
    /// One that starts nothing and never ends: for the opening, which starts its own requests.
    pub(super) fn opening() -> Self {
        Self { until: u64::MAX, left: 0 }
    }

    /// That of a window that begins at `from`.
    pub(super) fn window(stop: Stop, from: u64) -> Self {
        match stop {
            Stop::Duration(duration) => Self { until: from.saturating_add(nanos(duration)), left: u64::MAX },
            Stop::Count(count) => Self { until: u64::MAX, left: count },
        }
    }

    /// Takes leave to start a request.
    pub(super) fn take(&mut self, now: u64) -> bool {
        let may = self.left > 0 && now < self.until;
        self.left -= u64::from(may);
        may
    }

    /// Whether the window has ended, while so many requests are under way.
    pub(super) fn is_over(&self, now: u64, busy: usize) -> bool {
        now >= self.until || (self.left == 0 && busy == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_its_origin() {
        let sample = Sample { due: 10, sent: 30, done: 0 }.done_at(100);
        assert_eq!(sample.latency(Origin::closed(false)), 90);
        assert_eq!(sample.latency(Origin::closed(true)), 70);
    }

    #[test]
    fn a_count_ends_when_all_were_started_and_none_is_under_way() {
        let mut schedule = Schedule::window(Stop::Count(2), 50);
        assert!(schedule.take(50) && !schedule.is_over(60, 0));
        assert!(schedule.take(u64::MAX - 1) && !schedule.is_over(60, 1));
        assert!(!schedule.take(70) && schedule.is_over(70, 0));
    }

    #[test]
    fn a_duration_ends_at_its_time_whatever_is_under_way() {
        let mut schedule = Schedule::window(Stop::Duration(Duration::from_nanos(100)), 50);
        assert!(schedule.take(149) && !schedule.is_over(149, 0));
        assert!(!schedule.take(150) && schedule.is_over(150, 9));
    }

    #[test]
    fn an_opening_starts_nothing_of_its_own() {
        assert!(!Schedule::opening().take(0));
    }
}
