//! Resident memory, in bytes. The kernel counts in pages and tells kB of 1024 bytes.
//!
//! `VmRSS` and `VmHWM` rest on counters that the kernel keeps per thread or per CPU and adds up late: a value can be off
//! by some dozens of pages for each thread or CPU, on a machine with very many CPUs by more. What [`pss_of`] reads is
//! counted page by page and exact, but takes milliseconds.

use super::{Error, kilobytes, read_of};

/// Resident memory of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// `VmRSS`: resident now, in bytes.
    pub resident: u64,
    /// `VmHWM`: the most that was resident since it executed its program, in bytes.
    pub peak: u64,
}

impl Memory {
    /// Reads `/proc/PID/status`. None when the process is gone, is a zombie, or is a thread of the kernel.
    #[must_use]
    pub fn of(pid: u32) -> Option<Memory> {
        let text = read_of(pid, "status").ok()??;
        Some(Memory { resident: kilobytes(&text, "VmRSS")?, peak: kilobytes(&text, "VmHWM")? })
    }
}

/// The sum of `VmRSS` over these processes, in bytes: pages that they share count for each. Processes that are gone count
/// nothing; none when all are.
#[must_use]
pub fn rss_of(pids: &[u32]) -> Option<u64> {
    pids.iter().filter_map(|&pid| Memory::of(pid)).map(|memory| memory.resident).reduce(|a, b| a + b)
}

/// The sum of `Pss` over these processes, in bytes: a page shared by n processes counts as an n-th for each. Processes
/// that are gone count nothing; none when all are. Up to 6 ms for a process: only to be read at rest.
///
/// # Errors
/// When the pages of a living process may not be looked at (one of another user, or one that changed its user): a sum
/// without it would be wrong.
pub fn pss_of(pids: &[u32]) -> Result<Option<u64>, Error> {
    let mut sum = None;
    for &pid in pids {
        if let Some(text) = read_of(pid, "smaps_rollup")?
            && let Some(pss) = kilobytes(&text, "Pss")
        {
            sum = Some(sum.unwrap_or(0) + pss);
        }
    }
    Ok(sum)
}
