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

/// ThreadTimes that each thread of a tree has had since it began. Only differences mean something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// By thread id, which is unique over all processes.
    threads: HashMap<u32, ThreadTimes>,
}

/// What a thread had between two samples, or since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a processor.
    pub ran: Duration,
    /// The same and the time that it waited for one although it could have run: a thread that was runnable all the time
    /// had nothing to spare, however little it was given.
    pub runnable: Duration,
}

impl ThreadSample {
    /// Reads the times of every thread of these processes. Those that are gone are not there; none when all are.
    #[must_use]
    pub fn of_tree(pids: &[u32]) -> Option<ThreadSample> {
        let tids = |pid: u32| {
            let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            entries.filter_map(move |entry| Some((pid, entry.file_name().to_str()?.parse().ok()?)))
        };
        let times = pids.iter().flat_map(|&pid| tids(pid)).filter_map(|(pid, tid)| Some((tid, times_of(pid, tid)?)));
        let threads: HashMap<u32, ThreadTimes> = times.collect();
        (!threads.is_empty()).then_some(ThreadSample { threads })
    }

    /// The longest of each time that a thread had since an earlier sample of the same tree. A thread that is new since
    /// then counts from nothing; one that has ended meanwhile is not seen.
    #[must_use]
    pub fn since(&self, earlier: &ThreadSample) -> ThreadTimes {
        let mut longest = ThreadTimes::default();
        for (tid, now) in &self.threads {
            let then = earlier.threads.get(tid).copied().unwrap_or_default();
            // Less than before: the id of a thread that ended was given to a new one.
            let then = if then.ran > now.ran { ThreadTimes::default() } else { then };
            longest.ran = longest.ran.max(now.ran - then.ran);
            longest.runnable = longest.runnable.max(now.runnable.saturating_sub(then.runnable));
        }
        longest
    }
}

fn times_of(pid: u32, tid: u32) -> Option<ThreadTimes> {
    let exact = read_of(pid, &format!("task/{tid}/schedstat")).ok().flatten().and_then(|text| counted(&text));
    exact.or_else(|| {
        let Ticks { user, system, .. } = Ticks::read(&read_of(pid, &format!("task/{tid}/stat")).ok()??)?;
        let ran = duration(user + system);
        Some(ThreadTimes { ran, runnable: ran })
    })
}

/// The times on a processor and waiting for one, where the kernel counts them.
fn counted(schedstat: &str) -> Option<ThreadTimes> {
    let mut numbers = schedstat.split_whitespace().map_while(|number| number.parse().ok().map(Duration::from_nanos));
    let (ran, waited) = (numbers.next()?, numbers.next()?);
    (!ran.is_zero()).then_some(ThreadTimes { ran, runnable: ran + waited })
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

    fn sample(threads: &[(u32, u64, u64)]) -> ThreadSample {
        let times = |ran, waited| ThreadTimes { ran: ms(ran), runnable: ms(ran + waited) };
        ThreadSample { threads: threads.iter().map(|&(tid, ran, waited)| (tid, times(ran, waited))).collect() }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_busiest_is_the_one_that_used_most_since_then() {
        let then = sample(&[(1, 9000, 5), (2, 100, 0), (3, 50, 0)]);
        let times = |ran, runnable| ThreadTimes { ran: ms(ran), runnable: ms(runnable) };
        assert_eq!(sample(&[(1, 9010, 5), (2, 400, 0), (3, 60, 0)]).since(&then), times(300, 300));
        // Another thread ran less, and waited longer for a processor.
        assert_eq!(sample(&[(1, 9200, 505), (2, 400, 0)]).since(&then), times(300, 700));
        // A new one counts from nothing, as does one that was given the id of one that ended.
        assert_eq!(sample(&[(1, 9010, 5), (4, 20, 1)]).since(&then), times(20, 21));
        assert_eq!(sample(&[(1, 40, 2), (2, 110, 0)]).since(&then), times(40, 42));
        assert_eq!(then.since(&then), ThreadTimes::default());
    }

    #[test]
    fn a_kernel_that_does_not_count_is_no_idle_thread() {
        // As in Documentation/scheduler/sched-stats.rst: time on the CPU, time waiting for one, timeslices.
        let (ran, runnable) = (Duration::from_micros(1500), Duration::from_micros(1700));
        assert_eq!(counted("1500000 200000 3\n"), Some(ThreadTimes { ran, runnable }));
        assert_eq!(counted("0 0 0\n"), None);
        assert_eq!(counted(""), None);
    }
}
