//! One thread's books, from the opening to the end of its window: in come the begin, the sending and the end of each
//! request, out comes the thread's [`Share`].
//!
//! Whatever the protocol, a request is counted here and nowhere else: once when it begins, once when it ends.

use super::fault::Fault;
use super::generator::Thread;
use super::latency::{DIGITS, Latency};
use super::mix::Draws;
use super::outcome::Ending;
use super::response::Excerpt;
use super::schedule::{NEVER, Origin, Sample, Schedule};
use super::tally::Tally;
use super::task::Task;
use super::{Error, Stop};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A request that has no end yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    /// Which part of the mix it is.
    pub(super) part: usize,
    pub(super) sample: Sample,
    /// When it is over without an answer.
    pub(super) deadline: u64,
}

/// What one thread has to say at the end.
pub(super) struct Share {
    pub(super) engine: &'static str,
    pub(super) opening: Tally,
    pub(super) window: Tally,
    pub(super) connect: Latency,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) ending: Ending,
    /// The ages of the requests without an end, in ns.
    pub(super) in_flight: Vec<u64>,
    /// Requests that were due and not begun.
    pub(super) backlog: u64,
    /// Whether a connection was free at the end.
    pub(super) was_free: bool,
    pub(super) thread: Thread,
}

/// The books of one thread while they are kept.
pub(super) struct Books {
    task: Arc<Task>,
    thread: usize,
    draws: Draws,
    pub(super) schedule: Schedule,
    pub(super) tally: Tally,
    /// How long connections took to be made, those of the opening with them.
    pub(super) connect: Latency,
    /// How many requests are under way.
    pub(super) busy: usize,
    /// How long the thread has waited without sleeping, in ns.
    pub(super) spun: u64,
    /// No deadline is set beyond this: the end of the opening.
    latest: u64,
    /// Since when no answer has come, while requests were begun.
    hushed: u64,
    window: Option<Window>,
}

/// What was so when the window began.
struct Window {
    from: u64,
    opening: Tally,
    before: Thread,
}

impl Books {
    /// Empty ones, of an opening that has not begun.
    pub(super) fn new(task: Arc<Task>, thread: usize) -> Self {
        Self {
            thread,
            draws: task.mix.draws(thread),
            schedule: Schedule::opening(),
            tally: Tally::new(task.clock.now(), task.mix.parts().len(), 1, None),
            connect: Latency::new(DIGITS),
            busy: 0,
            spun: 0,
            latest: NEVER,
            hushed: NEVER,
            window: None,
            task,
        }
    }

    /// Begins the opening: all of it ends within a timeout.
    pub(super) fn open(&mut self) {
        self.latest = self.task.clock.now().saturating_add(self.task.timeout);
    }

    /// The opening is over: the other threads may know.
    pub(super) fn opened(&mut self) -> Result<(), Error> {
        self.latest = NEVER;
        self.tally.check()?;
        self.task.opened(self.tally.answered);
        Ok(())
    }

    /// Begins the window, unless not one connection of any thread got an answer.
    pub(super) fn begin_window(&mut self, from: u64) -> Result<(), Error> {
        let series = Some(Arc::clone(&self.task.series));
        let window = Tally::new(from, self.task.mix.parts().len(), DIGITS, series);
        let opening = std::mem::replace(&mut self.tally, window);
        if self.task.gate.answered() == 0 {
            let why = opening.kept.into_iter().next().map_or_else(|| "nothing was sent".to_owned(), |kept| kept.reason);
            return Err(Error::Unanswered { address: self.task.address.clone(), why });
        }
        self.spun = 0;
        self.window = Some(Window { from, opening, before: Thread::now()? });
        self.schedule = self.task.schedule(self.thread, from);
        Ok(())
    }

    /// The part that is sent next.
    pub(super) fn draw(&mut self) -> usize {
        self.draws.next()
    }

    /// A request begins at `now` that was due at a time.
    pub(super) fn begin(&mut self, part: usize, due: u64, now: u64) -> Pending {
        self.busy += 1;
        self.hushed = self.hushed.min(now);
        self.tally.begin(part);
        self.report();
        let deadline = due.saturating_add(self.task.timeout).min(self.latest);
        Pending { part, sample: Sample::due(due), deadline }
    }

    /// The first byte of a request was sent, as its sample says.
    pub(super) fn sent(&mut self, pending: &mut Pending) {
        if self.task.origin == Origin::Sent {
            pending.deadline = pending.sample.sent.saturating_add(self.task.timeout).min(self.latest);
        }
        if self.task.rate.is_some() {
            self.tally.sent(pending.sample);
        }
    }

    /// A request ends at `now`, in this way; `answer` is the status and how many bytes of the body came, where a whole
    /// head did.
    pub(super) fn end(
        &mut self,
        pending: Pending,
        now: u64,
        (end, answer): (Result<(), Fault>, Option<(u16, u64)>),
        excerpt: impl FnOnce() -> Excerpt,
    ) {
        let Pending { part, sample, .. } = pending;
        let expect = &self.task.mix.part(part).expect;
        let end = end.and_then(|()| answer.map_or(Err(Fault::Closed), |(status, got)| expect.judge(status, got)));
        match &end {
            Ok(()) => self.tally.ok(part, now, sample.latency(self.task.origin, now)),
            Err(fault) => self.tally.fail(part, now, fault, excerpt),
        }
        self.busy -= 1;
        if answer.is_some() {
            self.tally.answered += 1;
            self.hushed = if self.busy > 0 { now } else { NEVER };
        }
        self.report();
    }

    /// A request begins and ends for which there was no connection in time.
    pub(super) fn expire(&mut self, now: u64) {
        let part = self.draws.next();
        self.tally.begin(part);
        self.tally.expired += 1;
        self.tally.fail(part, now, &Fault::Expired, Default::default);
        self.report();
    }

    /// When a count is given up: after two timeouts without any answer. Within the first, every request that was under
    /// way has ended; within the second, every one that was begun then.
    pub(super) fn given_up(&self) -> u64 {
        match self.task.stop {
            Stop::Count(_) => self.hushed.saturating_add(self.task.timeout.saturating_mul(2)),
            Stop::Duration(_) => NEVER,
        }
    }

    /// How the window has ended by `now`, if it has.
    pub(super) fn ending(&self, now: u64) -> Option<Ending> {
        if self.schedule.is_over(now, self.busy) {
            Some(Ending::Whole)
        } else if now >= self.given_up() {
            Some(Ending::Silent)
        } else {
            None
        }
    }

    /// The time, or the last of the window if that is over: what was due in it is done even when the thread is late.
    pub(super) fn inside(&self) -> u64 {
        self.task.clock.now().min(self.schedule.until - 1)
    }

    /// Closes the books of a window that ended in this way, with requests in flight.
    pub(super) fn close(
        mut self,
        engine: &'static str,
        ending: Ending,
        in_flight: &[Pending],
        was_free: bool,
    ) -> Result<Share, Error> {
        let Some(Window { from, opening, before }) = self.window else { return Err(Error::Stopped) };
        // A window ends at its time, just after its last request, or now.
        let until = match (ending, self.task.stop) {
            (Ending::Whole, Stop::Duration(_)) => self.schedule.until,
            (Ending::Whole, Stop::Count(_)) => self.tally.last + 1,
            (Ending::Stopped | Ending::Silent, _) => self.task.clock.now().min(self.schedule.until),
        };
        let mut thread = Thread::now()?.since(before);
        thread.spun = Duration::from_nanos(self.spun);
        thread.elapsed = Duration::from_nanos(until - from);
        in_flight.iter().for_each(|pending| self.tally.pages[pending.part].counts.in_flight += 1);
        self.tally.close(until);
        self.tally.check()?;
        Ok(Share {
            engine,
            backlog: self.schedule.backlog(until),
            was_free,
            opening,
            window: self.tally,
            connect: self.connect,
            from,
            until,
            ending,
            in_flight: in_flight.iter().map(|pending| pending.sample.latency(self.task.origin, until)).collect(),
            thread,
        })
    }

    /// Hands over the counters of the window.
    fn report(&self) {
        // The opening is in none of them.
        if self.latest == NEVER {
            let counters = &self.task.counters[self.thread];
            counters.started.store(self.tally.started, Relaxed);
            counters.ok.store(self.tally.ok, Relaxed);
            counters.errors.store(self.tally.errors, Relaxed);
        }
    }
}
