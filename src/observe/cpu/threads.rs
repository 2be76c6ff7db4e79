//! Whether a tree of processes had CPU to spare: how busy its busiest thread was, and which processors it may use.
//!
//! Two samples, one at a window's beginning and one at its end, tell how much of it each thread ran. A server of one
//! thread is at its limit when that thread fills a core, whatever else is idle. A look costs some 15 µs a thread.
//!
//! Source and resolution: the first number of `/proc/PID/task/TID/schedstat`, nanoseconds; of a thread that runs at this
//! moment up to the kernel's last scheduler tick (1 to 10 ms ago), so over a window of a second a share is good to about
//! 0.01. A kernel that keeps none has zeros there: then the ticks of 10 ms of `/proc/PID/task/TID/stat`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::super::read_of;
use super::{Ticks, duration};

/// CPU time that each thread of a tree has used since it began. Only differences mean something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// By thread id, which is unique over all processes.
    threads: HashMap<u32, Duration>,
}

impl ThreadSample {
    /// Reads the time of every thread of these processes. Those that are gone are not there; none when all are.
    #[must_use]
    pub fn of_tree(pids: &[u32]) -> Option<ThreadSample> {
        let tids = |pid: u32| {
            let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            entries.filter_map(move |entry| Some((pid, entry.file_name().to_str()?.parse().ok()?)))
        };
        let times = pids.iter().flat_map(|&pid| tids(pid)).filter_map(|(pid, tid)| Some((tid, time_of(pid, tid)?)));
        let threads: HashMap<u32, Duration> = times.collect();
        (!threads.is_empty()).then_some(ThreadSample { threads })
    }

    /// The time that the busiest thread used since an earlier sample of the same tree. A thread that is new since then
    /// counts from nothing; one that has ended meanwhile is not seen.
    #[must_use]
    pub fn since(&self, earlier: &ThreadSample) -> Duration {
        let spent = |(tid, now): (&u32, &Duration)| {
            // Less than before: the id of a thread that ended was given to a new one.
            earlier.threads.get(tid).and_then(|then| now.checked_sub(*then)).unwrap_or(*now)
        };
        self.threads.iter().map(spent).max().unwrap_or_default()
    }
}

fn time_of(pid: u32, tid: u32) -> Option<Duration> {
    let exact = read_of(pid, &format!("task/{tid}/schedstat")).ok().flatten().and_then(|text| run_time(&text));
    exact.or_else(|| {
        let Ticks { user, system, .. } = Ticks::read(&read_of(pid, &format!("task/{tid}/stat")).ok()??)?;
        Some(duration(user + system))
    })
}

/// The time on a processor, where the kernel counts it.
fn run_time(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then_some(Duration::from_nanos(nanoseconds))
}

/// The processors that a process may use, ascending: what binds it (affinity and cpuset), not what a control group's quota
/// leaves of them. None when it is gone, and on machines with more than 1,024.
#[must_use]
pub fn processors(pid: u32) -> Option<Vec<usize>> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let set = sched_getaffinity(Some(pid)).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(threads: &[(u32, u64)]) -> ThreadSample {
        ThreadSample { threads: threads.iter().map(|&(tid, ms)| (tid, Duration::from_millis(ms))).collect() }
    }

    #[test]
    fn the_busiest_is_the_one_that_used_most_since_then() {
        let then = sample(&[(1, 9000), (2, 100), (3, 50)]);
        assert_eq!(sample(&[(1, 9010), (2, 400), (3, 60)]).since(&then), Duration::from_millis(300));
        // A new one counts from nothing, as does one that was given the id of one that ended.
        assert_eq!(sample(&[(1, 9010), (4, 20)]).since(&then), Duration::from_millis(20));
        assert_eq!(sample(&[(1, 40), (2, 110)]).since(&then), Duration::from_millis(40));
        assert_eq!(then.since(&then), Duration::ZERO);
    }

    #[test]
    fn a_kernel_that_does_not_count_is_no_idle_thread() {
        // As in Documentation/scheduler/sched-stats.rst: time on the CPU, time waiting for one, timeslices.
        assert_eq!(run_time("1500000 200 3\n"), Some(Duration::from_micros(1500)));
        assert_eq!(run_time("0 0 0\n"), None);
        assert_eq!(run_time(""), None);
    }
}
