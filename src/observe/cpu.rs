//! CPU time of a tree of processes; `cpu/threads` tells that of its threads and which processors it may use.
//!
//! The rule: the time of a tree is the sum over its processes that are there (zombies are) of their own time, ended
//! threads included, and of the time of all children that they have waited for, with those children's own. A process
//! that ends and is waited for by another of the tree so passes from one summand into another: nothing is lost, nothing
//! counts twice. So the list must hold the process that adopts orphans, and zombies. Children of a process that ignores
//! SIGCHLD are waited for by nobody; the kernel drops their time when they end, and so it is missing here.
//!
//! Sources and their resolution: [`CpuSample::total`] takes living processes from their CPU clock (`clock_getcpuclockid`,
//! nanoseconds, exact up to the last scheduler tick of a thread that runs at this moment, and the source of rusage too)
//! and ended children from `/proc/PID/stat`. `user` and `system` come from `/proc/PID/stat` alone, which counts in ticks
//! of 1/100 s and rounds down each number of each process; the kernel draws the line between the two by sampling. The
//! files named schedstat count in nanoseconds too, but for one thread each, and forget threads that have ended.

mod threads;

use std::time::Duration;

use super::read_of;

pub use threads::{ThreadSample, ThreadTimes, processors};

/// How often a sample is taken again because a process was waited for meanwhile.
const ATTEMPTS: usize = 4;

/// CPU time used since these processes began. Only differences mean something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuSample {
    /// Time in the programs' own code; resolution [`tick`] for every process.
    pub user: Duration,
    /// Time in the kernel for them; resolution [`tick`] for every process.
    pub system: Duration,
    /// Both together, from the finer source: may differ from the sum by two ticks for every process.
    pub total: Duration,
    /// How many processes were there.
    pub processes: u32,
}

impl CpuSample {
    /// Reads the time of these processes. Those that are gone count nothing; none when all are.
    ///
    /// A process that is waited for between the reading of it and of its parent would count twice or not at all: when
    /// that happened the reading is repeated, a few times at most.
    #[must_use]
    pub fn of(pids: &[u32]) -> Option<CpuSample> {
        Self::settled(|| read_all(pids))
    }

    /// As [`of`](Self::of), of a tree whose orphans are waited for by `reaper`: of that process only what it waited for
    /// counts, not its own time, which is no part of the tree's work.
    #[must_use]
    pub fn of_tree(reaper: u32, pids: &[u32]) -> Option<CpuSample> {
        Self::settled(|| {
            let mut times = read_all(pids);
            times.push(times_of(reaper, false));
            times
        })
    }

    fn settled(read: impl Fn() -> Vec<Option<Times>>) -> Option<CpuSample> {
        let mut last = read();
        for _ in 0..ATTEMPTS {
            let next = read();
            let settled = last.iter().zip(&next).all(|(a, b)| a.map(|t| t.waited) == b.map(|t| t.waited));
            last = next;
            if settled {
                break;
            }
        }
        last.into_iter().flatten().map(|times| times.sample).reduce(|a, b| CpuSample {
            user: a.user + b.user,
            system: a.system + b.system,
            total: a.total + b.total,
            processes: a.processes + b.processes,
        })
    }

    /// What was used since an earlier sample of the same tree; the number of processes is that of the later one.
    ///
    /// A child that is waited for passes from its exact clock into its parent's rounded number, so `total` may fall
    /// short by two ticks for every process; if it falls below zero by no more than that, it is zero. None when it falls
    /// further: then the tree lost a process together with its time, and there is no right value.
    #[must_use]
    pub fn since(&self, earlier: &CpuSample) -> Option<CpuSample> {
        let slack = tick() * 2 * self.processes.max(earlier.processes);
        let spent = |now: Duration, then: Duration| Some((now + slack).checked_sub(then)?.saturating_sub(slack));
        Some(CpuSample {
            user: spent(self.user, earlier.user)?,
            system: spent(self.system, earlier.system)?,
            total: spent(self.total, earlier.total)?,
            processes: self.processes,
        })
    }
}

/// The unit of times in `/proc`: 10 ms on every common system.
#[must_use]
pub fn tick() -> Duration {
    Duration::from_secs(1) / u32::try_from(procfs::ticks_per_second()).unwrap_or(100).max(1)
}

/// One process of a sample.
#[derive(Clone, Copy)]
struct Times {
    sample: CpuSample,
    /// Time of children waited for, in ticks: it changes when one more was.
    waited: u64,
}

fn read_all(pids: &[u32]) -> Vec<Option<Times>> {
    pids.iter().map(|&pid| times_of(pid, true)).collect()
}

/// The times of a process: with its own, or only those of the children that it has waited for.
fn times_of(pid: u32, with_own: bool) -> Option<Times> {
    let mut stat = Ticks::read(&read_of(pid, "stat").ok()??)?;
    let own = match with_own {
        true => clock(pid).unwrap_or_else(|| duration(stat.user + stat.system)),
        false => {
            (stat.user, stat.system) = (0, 0);
            Duration::ZERO
        }
    };
    let waited = stat.children_user + stat.children_system;
    let sample = CpuSample {
        user: duration(stat.user + stat.children_user),
        system: duration(stat.system + stat.children_system),
        total: own + duration(waited),
        processes: 1,
    };
    Some(Times { sample, waited })
}

fn duration(ticks: u64) -> Duration {
    Duration::from_nanos(ticks.saturating_mul(u64::try_from(tick().as_nanos()).unwrap_or(u64::MAX)))
}

/// The four times of `/proc/PID/stat`, fields 14 to 17.
#[derive(Debug, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
    children_user: u64,
    children_system: u64,
}

impl Ticks {
    fn read(text: &str) -> Option<Ticks> {
        // The second field is the name in parentheses, which may hold anything, parentheses and spaces too.
        let (_, rest) = text.rsplit_once(')')?;
        let mut times = rest.split_whitespace().skip(11);
        let mut next = || times.next()?.parse().ok();
        Some(Ticks { user: next()?, system: next()?, children_user: next()?, children_system: next()? })
    }
}

/// The CPU clock of a process: all its threads, ended ones too.
#[expect(unsafe_code, reason = "rustix has no CPU clocks of other processes")]
fn clock(pid: u32) -> Option<Duration> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|&pid| pid > 0)?;
    let mut id = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write one value each, to a place of that very type that outlives them.
    let told =
        unsafe { libc::clock_getcpuclockid(pid, &raw mut id) == 0 && libc::clock_gettime(id, &raw mut time) == 0 };
    if !told {
        return None;
    }
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_forgives_rounding_and_nothing_else() {
        let sample = |total, processes| CpuSample {
            user: Duration::from_millis(total),
            total: Duration::from_millis(total),
            processes,
            ..CpuSample::default()
        };
        let total = |now: CpuSample, then: CpuSample| now.since(&then).map(|spent| spent.total.as_millis());
        assert_eq!(total(sample(1300, 2), sample(1000, 2)), Some(300));
        assert_eq!(total(sample(1000, 1), sample(1000, 1)), Some(0));
        let ticks = |n| (tick() * n).as_millis() as u64;
        assert_eq!(total(sample(1000 - ticks(4), 1), sample(1000, 2)), Some(0));
        assert_eq!(total(sample(1000 - ticks(4) - 1, 1), sample(1000, 2)), None);
    }

    #[test]
    fn the_name_of_a_process_does_not_shift_the_fields() {
        // Fields as in proc_pid_stat(5).
        let text = "42 (a) R 1 (b c) S 1 42 42 0 -1 4194560 7 8 9 10 111 222 333 444 20 0 1 0 5 6 7\n";
        let expected = Ticks { user: 111, system: 222, children_user: 333, children_system: 444 };
        assert_eq!(Ticks::read(text), Some(expected));
        assert_eq!(Ticks::read("42 (sh) R 1 2"), None);
        assert_eq!(Ticks::read(""), None);
    }
}
