//! What the generator itself used: in comes nothing but the calling thread, out go its CPU time and its switches.

use super::Error;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What the worker's thread used inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// Its CPU time.
    pub cpu: Duration,
    /// How often it was made to wait while it could have run.
    pub involuntary_switches: u64,
}

impl Generator {
    /// What the calling thread has used since it began.
    pub(super) fn now() -> Result<Self, Error> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        Ok(Self { cpu, involuntary_switches: involuntary_switches()? })
    }

    /// What was used since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
        }
    }
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
