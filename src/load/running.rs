//! A load that is going on: what a caller can see of it, and how it ends. In goes the worker's work, out its outcome.
//!
//! Nothing here waits without bound: a stop wakes the worker even while the server is silent.

use super::{Error, Outcome};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What [`Shared`] says of a time that has not come.
const NEVER: u64 = u64::MAX;

/// The counters that a worker hands over. They are looked at, never relied on.
#[derive(Debug)]
pub(super) struct Shared {
    base: Instant,
    /// Begin and end of the window, in ns since `base`.
    from: AtomicU64,
    until: AtomicU64,
    pub(super) started: AtomicU64,
    pub(super) ok: AtomicU64,
    pub(super) errors: AtomicU64,
}

impl Shared {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let never = || AtomicU64::new(NEVER);
        Self { base: Instant::now(), from: never(), until: never(), started: zero(), ok: zero(), errors: zero() }
    }

    /// The window begins.
    pub(super) fn begin(&self) {
        self.from.store(super::schedule::nanos(self.base.elapsed()), Relaxed);
    }

    /// The window has ended.
    pub(super) fn end(&self) {
        self.until.store(super::schedule::nanos(self.base.elapsed()), Relaxed);
    }

    fn progress(&self) -> Progress {
        let from = self.from.load(Relaxed);
        let until = self.until.load(Relaxed).min(super::schedule::nanos(self.base.elapsed()));
        Progress {
            opening: from == NEVER,
            elapsed: Duration::from_nanos(until.saturating_sub(from)),
            started: self.started.load(Relaxed),
            ok: self.ok.load(Relaxed),
            errors: self.errors.load(Relaxed),
        }
    }
}

/// How far a load has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Whether the window has yet to begin.
    pub opening: bool,
    /// How long the window has been going on.
    pub elapsed: Duration,
    /// Requests started in the window.
    pub started: u64,
    /// Good answers in the window.
    pub ok: u64,
    /// Requests of the window that ended and were not ok.
    pub errors: u64,
}

/// A load that is going on. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    worker: Option<JoinHandle<Result<Outcome, Error>>>,
    stop: Arc<OwnedFd>,
    done: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

/// Says that the worker has ended, also when it panics.
struct Signal(Arc<OwnedFd>);

impl Drop for Signal {
    fn drop(&mut self) {
        raise(&self.0);
    }
}

impl Running {
    /// Starts `work` on a thread of its own, with the event that stops it and the counters.
    pub(super) fn spawn<Work>(work: Work) -> Result<Self, Error>
    where
        Work: FnOnce(Arc<OwnedFd>, Arc<Shared>) -> Result<Outcome, Error> + Send + 'static,
    {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let stop = event().map_err(Error::system("making an event"))?;
        let done = event().map_err(Error::system("making an event"))?;
        let shared = Arc::new(Shared::new());
        let signal = Signal(Arc::clone(&done));
        let (its_stop, its_shared) = (Arc::clone(&stop), Arc::clone(&shared));
        let worker = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || {
                let _signal = signal;
                work(its_stop, its_shared)
            })
            .map_err(|source| Error::System { doing: "starting a thread", source })?;
        Ok(Self { worker: Some(worker), stop, done, shared })
    }

    /// Readable once the load is done, for a poll beside other things.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        self.shared.progress()
    }

    /// Ends the window now; the outcome says so. Before the window there is none.
    pub fn stop(&self) {
        raise(&self.stop);
    }

    /// Waits for the end of the load and gives its outcome.
    ///
    /// # Errors
    /// [`Error::Unanswered`] if the server gave no connection of the opening an answer, [`Error::Stopped`] if it was
    /// stopped before its window, [`Error::Ports`] and others if the generator could not go on.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.worker.take().map_or(Err(Error::Stopped), join)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            raise(&self.stop);
            // Whoever drops a load does not ask for its outcome.
            let _ = join(worker);
        }
    }
}

/// The worker's outcome; its panic is an error.
fn join(worker: JoinHandle<Result<Outcome, Error>>) -> Result<Outcome, Error> {
    worker.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "it panicked".to_owned())))
    })
}

/// Makes an event readable. It can only fail when the event is raised already.
fn raise(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_worker_that_panics_is_done_and_an_error() {
        let running = Running::spawn(|_, _| panic!("of {}", "fright")).unwrap();
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&running.fd(), PollFlags::IN)], Some(&patience)).unwrap(), 1);
        assert_eq!(running.finish().unwrap_err().to_string(), "the load generator failed: of fright");
    }
}
