//! The one poll in which the interpreter waits for anything.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until one of the descriptors can be read, at most until a time (for ever where there is none), and says which
/// can.
pub(super) fn until(fds: &[BorrowedFd<'_>], time: Option<Instant>) -> Vec<bool> {
    let left = time.map(|time| time.saturating_duration_since(Instant::now()));
    let timeout = left.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    });
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // A signal that cuts it short is seen on its own descriptor; every caller looks again.
    let _ = poll(&mut fds, timeout.as_ref());
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// The time after so long from now; none where it lies beyond what the clock can show.
pub(super) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}
