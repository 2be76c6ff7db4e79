//! A load that is going on: what a caller can see of it, and how it ends. In goes a task, out comes its outcome.
//!
//! Nothing here waits without bound: a stop wakes every thread even while the server is silent.

use super::books::Share;
use super::files::OpenFiles;
use super::task::Task;
use super::{Error, Outcome, Second};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// The counters that a thread hands over. They are looked at, never relied on.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Counters {
    pub(super) started: AtomicU64,
    pub(super) ok: AtomicU64,
    pub(super) errors: AtomicU64,
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
    task: Arc<Task>,
    threads: Vec<JoinHandle<Result<Share, Error>>>,
    /// Kept for as long as connections are.
    _files: OpenFiles,
}

/// Says that a thread has ended, also when it panics.
struct Signal {
    task: Arc<Task>,
    failed: bool,
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.task.ended(self.failed);
    }
}

impl Running {
    /// Starts `work` on each thread of a task, with the thread's number.
    pub(super) fn spawn<Work>(task: Task, files: OpenFiles, work: Work) -> Result<Self, Error>
    where
        Work: Fn(&Arc<Task>, usize) -> Result<Share, Error> + Clone + Send + 'static,
    {
        let threads = task.threads;
        let mut running = Self { task: Arc::new(task), threads: Vec::with_capacity(threads), _files: files };
        for thread in 0..threads {
            let (task, work) = (Arc::clone(&running.task), work.clone());
            let body = move || {
                let mut signal = Signal { task, failed: true };
                let share = work(&signal.task, thread);
                signal.failed = share.is_err();
                share
            };
            let started = std::thread::Builder::new().name(format!("load-{thread}")).spawn(body);
            match started {
                Ok(handle) => running.threads.push(handle),
                // Those that run already are stopped when `running` is dropped.
                Err(source) => return Err(Error::System { doing: "starting a thread", source }),
            }
        }
        Ok(running)
    }

    /// Readable once the load is done, for a poll beside other things.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.task.done.as_fd()
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let gate = &self.task.gate;
        let now = gate.until().unwrap_or_else(|| self.task.clock.now());
        let from = gate.from().filter(|&from| from <= now);
        let sum = |counter: fn(&Counters) -> &AtomicU64| {
            self.task.counters.iter().map(|counters| counter(counters).load(Relaxed)).sum()
        };
        Progress {
            opening: from.is_none(),
            elapsed: from.map(|from| Duration::from_nanos(now - from)).unwrap_or_default(),
            started: sum(|counters| &counters.started),
            ok: sum(|counters| &counters.ok),
            errors: sum(|counters| &counters.errors),
        }
    }

    /// The last whole second of the window.
    pub fn second(&self) -> Option<Second> {
        self.task.series.last()
    }

    /// Ends the window now; the outcome says so. Before the window there is none.
    pub fn stop(&self) {
        self.task.halt();
    }

    /// Waits for the end of the load and gives its outcome.
    ///
    /// # Errors
    /// [`Error::Unanswered`] if the server gave no connection of the opening an answer, [`Error::Stopped`] if it was
    /// stopped before its window, [`Error::Ports`] and others if the generator could not go on.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        let ends: Vec<_> = self.threads.drain(..).map(join).collect();
        let mut shares = Vec::with_capacity(ends.len());
        let mut failure = None;
        for end in ends {
            match (end, &failure) {
                (Ok(share), _) => shares.push(share),
                // Where one thread fails it stops the others: theirs is not the reason.
                (Err(error), None | Some(Error::Stopped)) => failure = Some(error),
                (Err(_), Some(_)) => {}
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Outcome::merge(&self.task, shares),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.task.halt();
        }
        // Whoever drops a load does not ask for its outcome.
        self.threads.drain(..).for_each(|thread| drop(join(thread)));
    }
}

/// A thread's share; its panic is an error.
fn join(thread: JoinHandle<Result<Share, Error>>) -> Result<Share, Error> {
    thread.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "it panicked".to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::mix::Mix;
    use crate::load::{Options, Request, Target};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_thread_that_panics_ends_the_others_and_is_an_error() {
        let (target, _) = Target::parse("http://127.0.0.1:1").unwrap();
        let address = target.resolve(Duration::from_secs(1)).unwrap();
        let mut options = Options::new(target, Request::get("/"));
        (options.connections, options.threads) = (2, 2);
        let mix = Mix::new(&options);
        let files = OpenFiles::allow(0).unwrap();
        let running = Running::spawn(Task::new(options, mix, address).unwrap(), files, |task, thread| {
            let stopped = || poll(&mut [PollFd::new(&task.stopping, PollFlags::IN)], None).map(|_| Error::Stopped);
            if thread == 0 { Err(stopped().unwrap()) } else { panic!("of {}", "fright") }
        });
        let running = running.unwrap();
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&running.fd(), PollFlags::IN)], Some(&patience)).unwrap(), 1);
        assert_eq!(running.finish().unwrap_err().to_string(), "the load generator failed: of fright");
    }
}
