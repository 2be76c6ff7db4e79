//! What the generator itself used: in comes nothing but the calling thread, out go its CPU time and its switches.

use super::Error;
use crate::units::parse_cpus;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// What one thread used inside its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its CPU time.
    pub cpu: Duration,
    /// How long it waited for a processor although it could have run; zero where the kernel does not count it.
    pub waited: Duration,
    /// How long it waited for the next request without sleeping, whether or not it had the processor meanwhile.
    pub spun: Duration,
    /// How long its window was.
    pub elapsed: Duration,
    /// How often it was made to wait while it could have run.
    pub involuntary_switches: u64,
}

impl Thread {
    /// What the calling thread has used since it began.
    pub(super) fn now() -> Result<Self, Error> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        let zero = Duration::ZERO;
        Ok(Self { cpu, waited: waited(), spun: zero, elapsed: zero, involuntary_switches: involuntary_switches()? })
    }

    /// What was used since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            waited: self.waited.saturating_sub(before.waited),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
            ..self
        }
    }

    /// The share of a core that it needed, 0 to 1: waiting without sleeping is not counted. Where others had the processor
    /// while it waited so, this is the least that it can have been.
    pub fn share(&self) -> f64 {
        self.of_window(self.cpu.saturating_sub(self.spun))
    }

    /// The share of its window in which it had something to do, whether or not it was given a processor for it, 0 to 1.
    pub fn occupied(&self) -> f64 {
        self.of_window((self.cpu + self.waited).saturating_sub(self.spun))
    }

    fn of_window(&self, time: Duration) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 { time.as_secs_f64() / elapsed } else { 0.0 }
    }
}

/// Binds the calling thread to processors, unless none is named, and has its timers fire without slack.
pub(super) fn settle_down(cpus: &[usize]) -> Result<(), Error> {
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
        sched_setaffinity(None, &set).map_err(Error::system("binding a thread to its processors"))?;
    }
    set_current_timer_slack(NonZeroU64::new(1)).map_err(Error::system("setting up timers"))
}

/// Whether so many threads leave a processor of this machine to others while each keeps one busy.
pub(super) fn can_spin(threads: usize) -> bool {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let online = online.and_then(|text| parse_cpus(text.trim()).ok()).map(|cpus| cpus.len());
    threads < online.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1)
}

/// How long the calling thread has waited for a processor: the second number of its schedstat, in ns.
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    nanos.map(Duration::from_nanos).unwrap_or_default()
}

/// The involuntary context switches of the calling thread.
#[expect(unsafe_code, reason = "rustix has no getrusage")]
fn involuntary_switches() -> Result<u64, Error> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`, which lives for the call.
    let outcome = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if outcome != 0 {
        return Err(Error::System {
            doing: "reading the switches of a thread",
            source: std::io::Error::last_os_error(),
        });
    }
    // SAFETY: it was zeroed, which is a value of its type, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    Ok(u64::try_from(usage.ru_nivcsw).unwrap_or(0))
}
