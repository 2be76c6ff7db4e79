//! When to send and when to stop: the one place that decides either. Times are ns of the load's [`Clock`].
//!
//! A closed loop sends when a connection is free. An open one has a time for every request: request i of the load is due
//! i / rate after the window began, and of n threads the k-th has every n-th, from the k-th on.

use super::Stop;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A time that does not come.
pub(super) const NEVER: u64 = u64::MAX;

/// How long before a request of an open loop is due a thread that does not sleep until then stops sleeping, in ns: a bit more
/// than the kernel's timers are late.
pub(super) const AWAKE: u64 = 100_000;

const SECOND: f64 = 1e9;

/// In ns.
const CENTURY: u64 = 3_155_760_000_000_000_000;

/// The monotonic clock, read as ns since the load began; all threads read the same.
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

    /// A time as others know it. What is further away than a century is as far.
    pub(super) fn instant(self, time: u64) -> Instant {
        self.0 + Duration::from_nanos(time.min(CENTURY))
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
    /// That of a load: in a closed loop connecting is timed apart where connections are kept.
    pub(super) fn of(open: bool, keep_alive: bool) -> Self {
        if open || !keep_alive { Self::Due } else { Self::Sent }
    }
}

/// The times of one request, in ns: when it was due, and when its first byte was sent, which may not have come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) due: u64,
    pub(super) sent: u64,
}

impl Sample {
    /// One that was not sent yet.
    pub(super) fn due(due: u64) -> Self {
        Self { due, sent: NEVER }
    }

    /// How long it took, or has taken, until `now`.
    pub(super) fn latency(self, origin: Origin, now: u64) -> u64 {
        let from = match origin {
            Origin::Sent if self.sent != NEVER => self.sent,
            _ => self.due,
        };
        now.saturating_sub(from)
    }
}

/// The requests that one thread may still start, and the end of the window.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    /// The begin of the window.
    from: u64,
    /// The end of the window: what ends at this time or later is not in it.
    pub(super) until: u64,
    pace: Pace,
}

#[derive(Debug, Clone)]
enum Pace {
    /// Nothing.
    Nothing,
    /// Whenever a connection is free.
    Free,
    /// The same while some are left; all threads take from the same count.
    Counted(Arc<AtomicU64>),
    /// At their times: the index of the next, the step to the one after it, where they end, and how many a second.
    Timed { next: u64, step: u64, end: u64, rate: f64 },
}

impl Schedule {
    /// One that starts nothing and never ends: for the opening, which starts its own requests.
    pub(super) fn opening() -> Self {
        Self { from: 0, until: NEVER, pace: Pace::Nothing }
    }

    /// A closed loop's that begins at `from`; `left` is the count that all threads share.
    pub(super) fn closed(stop: Stop, from: u64, left: Arc<AtomicU64>) -> Self {
        match stop {
            Stop::Duration(duration) => Self { from, until: from.saturating_add(nanos(duration)), pace: Pace::Free },
            Stop::Count(_) => Self { from, until: NEVER, pace: Pace::Counted(left) },
        }
    }

    /// An open loop's that begins at `from`, for one of `threads`, at `rate` requests a second over all.
    pub(super) fn open(stop: Stop, from: u64, rate: f64, (thread, threads): (usize, usize)) -> Self {
        let (until, end) = match stop {
            Stop::Duration(duration) => {
                let window = nanos(duration);
                // Those due before the end of the window.
                (from.saturating_add(window), before(window, rate))
            }
            Stop::Count(count) => (NEVER, count),
        };
        let pace = Pace::Timed { next: thread as u64, step: threads as u64, end, rate };
        Self { from, until, pace }
    }

    /// Takes leave to start a request of a closed loop.
    pub(super) fn take(&mut self, now: u64) -> bool {
        let within = now < self.until;
        match &self.pace {
            Pace::Nothing | Pace::Timed { .. } => false,
            Pace::Free => within,
            Pace::Counted(left) => within && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok(),
        }
    }

    /// When the next request of an open loop is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        match self.pace {
            Pace::Timed { next, end, rate, .. } if next < end => {
                Some(self.from.saturating_add((next as f64 * SECOND / rate) as u64))
            }
            _ => None,
        }
    }

    /// Takes the next request of an open loop.
    pub(super) fn advance(&mut self) {
        if let Pace::Timed { next, step, .. } = &mut self.pace {
            *next = next.saturating_add(*step);
        }
    }

    /// How many requests of an open loop were due before `now` and not taken.
    pub(super) fn backlog(&self, now: u64) -> u64 {
        let Pace::Timed { next, step, end, rate } = self.pace else { return 0 };
        let due = before(now.saturating_sub(self.from), rate).min(end);
        due.saturating_sub(next).div_ceil(step)
    }

    /// Whether the window has ended, while so many requests are under way.
    pub(super) fn is_over(&self, now: u64, busy: usize) -> bool {
        let exhausted = match &self.pace {
            Pace::Nothing | Pace::Free => false,
            Pace::Counted(left) => left.load(Relaxed) == 0,
            Pace::Timed { .. } => self.until == NEVER && self.next_due().is_none(),
        };
        now >= self.until || (exhausted && busy == 0)
    }
}

/// How many requests are due before `time`, at `rate` a second: those whose index / rate is less.
fn before(time: u64, rate: f64) -> u64 {
    (time as f64 * rate / SECOND).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(count: u64) -> Schedule {
        Schedule::closed(Stop::Count(count), 50, Arc::new(AtomicU64::new(count)))
    }

    #[test]
    fn latency_counts_from_its_origin() {
        let sample = Sample { due: 10, sent: 30 };
        assert_eq!(sample.latency(Origin::of(false, false), 100), 90);
        assert_eq!(sample.latency(Origin::of(true, true), 100), 90);
        assert_eq!(sample.latency(Origin::of(false, true), 100), 70);
        assert_eq!(Sample::due(10).latency(Origin::Sent, 100), 90);
    }

    #[test]
    fn a_count_ends_when_all_were_started_and_none_is_under_way() {
        let mut schedule = counted(2);
        assert!(schedule.take(50) && !schedule.is_over(60, 0));
        assert!(schedule.take(NEVER - 1) && !schedule.is_over(60, 1));
        assert!(!schedule.take(70) && schedule.is_over(70, 0));
    }

    #[test]
    fn threads_share_one_count() {
        let mut one = counted(3);
        let mut other = one.clone();
        assert!(one.take(50) && other.take(50) && one.take(50));
        assert!(!one.take(50) && !other.take(50) && other.is_over(50, 0));
    }

    #[test]
    fn a_duration_ends_at_its_time_whatever_is_under_way() {
        let mut schedule = Schedule::closed(Stop::Duration(Duration::from_nanos(100)), 50, Arc::default());
        assert!(schedule.take(149) && !schedule.is_over(149, 0));
        assert!(!schedule.take(150) && schedule.is_over(150, 9));
    }

    #[test]
    fn an_opening_starts_nothing_of_its_own() {
        assert!(!Schedule::opening().take(0));
        assert_eq!(Schedule::opening().next_due(), None);
    }

    /// The times when a thread's requests are due.
    fn dues(mut schedule: Schedule) -> Vec<u64> {
        std::iter::from_fn(|| schedule.next_due().inspect(|_| schedule.advance())).collect()
    }

    #[test]
    fn requests_are_due_at_multiples_of_the_interval() {
        let third = Schedule::open(Stop::Count(4), 100, 3.0, (0, 1));
        assert_eq!(dues(third), [100, 333_333_433, 666_666_766, 1_000_000_100]);
        // Far out there is no drift: the millionth at 3 a second.
        let mut far = Schedule::open(Stop::Count(3_000_001), 0, 3.0, (0, 3_000_000));
        far.advance();
        assert_eq!(far.next_due(), Some(1_000_000 * 1_000_000_000));
    }

    #[test]
    fn a_window_holds_what_is_due_before_its_end() {
        let window = |ms| Stop::Duration(Duration::from_millis(ms));
        assert_eq!(dues(Schedule::open(window(100), 0, 20.0, (0, 1))), [0, 50_000_000]);
        assert_eq!(dues(Schedule::open(window(101), 0, 20.0, (0, 1))), [0, 50_000_000, 100_000_000]);
        assert_eq!(dues(Schedule::open(window(10), 0, 0.5, (0, 1))), [0]);
    }

    #[test]
    fn threads_share_the_times() {
        let of = |thread| dues(Schedule::open(Stop::Count(5), 0, 1e9, (thread, 2)));
        assert_eq!((of(0), of(1)), (vec![0, 2, 4], vec![1, 3]));
    }

    #[test]
    fn what_was_due_and_not_taken_is_the_backlog() {
        let mut schedule = Schedule::open(Stop::Duration(Duration::from_nanos(100)), 0, 1e8, (0, 1));
        assert_eq!(
            (schedule.backlog(0), schedule.backlog(1), schedule.backlog(10), schedule.backlog(11)),
            (0, 1, 1, 2)
        );
        assert_eq!(schedule.backlog(100), 10);
        schedule.advance();
        assert_eq!((schedule.backlog(100), schedule.backlog(500)), (9, 9));
        let other = Schedule::open(Stop::Duration(Duration::from_nanos(100)), 0, 1e8, (1, 3));
        assert_eq!(other.backlog(100), 3);
    }
}
