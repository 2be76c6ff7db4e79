//! Times and the wish to stop, for a runtime whose own timer knows milliseconds only.

use crate::load::Error;
use crate::load::schedule::{Clock, NEVER};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::future::pending;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel, exact to some 10 µs.
pub(super) struct Alarm {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// One that is not set; made inside a runtime.
    pub(super) fn new(clock: Clock) -> Result<Self, Error> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(Error::system("making a timer"))?;
        Ok(Self { clock, timer: watched(timer)? })
    }

    /// Waits until a time of the load's clock has come.
    pub(super) async fn until(&self, time: u64) -> Result<(), Error> {
        let failed = Error::system("waiting for a timer");
        if time == NEVER {
            return pending().await;
        }
        let gap = time.saturating_sub(self.clock.now());
        if gap == 0 {
            return Ok(());
        }
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(gap) };
        rustix::time::timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once).map_err(&failed)?;
        loop {
            let mut ready = self.timer.readable().await.map_err(asked)?;
            match rustix::io::read(self.timer.get_ref(), &mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

/// Waits until an event is raised, and leaves it so.
pub(super) struct Raised(AsyncFd<OwnedFd>);

impl Raised {
    /// Watches an event.
    pub(super) fn new(event: BorrowedFd<'_>) -> Result<Self, Error> {
        let own = event.try_clone_to_owned();
        Ok(Self(watched(own.map_err(|source| Error::System { doing: "watching an event", source })?)?))
    }

    /// Waits for it.
    pub(super) async fn wait(&self) -> Result<(), Error> {
        self.0.readable().await.map(|mut ready| ready.retain_ready()).map_err(asked)
    }
}

#[expect(unsafe_code, reason = "tokio wants a promise that the descriptor stays open")]
fn watched(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>, Error> {
    // SAFETY: the `AsyncFd` owns the descriptor and hands it out by shared reference only, so it is open, and the same, for
    // as long as it is registered.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    watched.map_err(|error| Error::System { doing: "watching an event", source: error.into() })
}

fn asked(source: std::io::Error) -> Error {
    Error::System { doing: "waiting for an event", source }
}

/// A time in ns as the kernel takes it.
fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
