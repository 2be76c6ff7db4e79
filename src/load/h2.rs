//! The life of one thread that speaks HTTP/2: like `worker`, with streams in the place of requests in a row.
//!
//! A connection carries up to `pipeline` requests at once, in lanes. A lane has one request under way, from its begin to its
//! end; lane `k` of a connection is used when its lanes before it are, so that requests spread over the connections. In a
//! closed loop each lane is a task that goes round; in an open loop a request that is due takes the lane that has been free
//! for longest, and is a task.
//!
//! Frames, their compression and flow control are the `h2` crate's, sockets and tasks tokio's, on one runtime in each
//! thread. What is counted, and when a window begins and ends, is in `books`, as for every protocol.

mod alarm;
mod answer;
mod form;
mod link;

pub(super) use form::Form;

use super::books::{Books, Pending, Share};
use super::fault::Fault;
use super::outcome::Ending;
use super::schedule::{AWAKE, NEVER};
use super::task::Task;
use super::{Error, Secured, generator};
use alarm::{Alarm, Raised};
use answer::Answer;
use link::{Link, Refusal};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet, LocalSet};
use tokio::time::{Instant, timeout_at};

/// How many connections are begun in the opening before the others have a turn.
const OPENED_AT_ONCE: usize = 16;

/// How often a thread that is ready looks whether the others are, in ns.
const MEETING: u64 = 200_000;

/// How many requests that are due are begun, or ended, before anything else has a turn.
const AT_ONCE: usize = 256;

/// How sockets are driven.
const ENGINE: &str = "epoll";

/// Opens a thread's connections, then measures one window.
pub(super) fn run(
    task: &Arc<Task>,
    thread: usize,
    forms: &Arc<[Form]>,
    secured: Option<&Secured>,
) -> Result<Share, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::System { doing: "making a runtime", source })?;
    let connections = task.connections_of(thread);
    let own = Thread {
        task: Arc::clone(task),
        forms: Arc::clone(forms),
        secured: secured.cloned(),
        ephemeral: task.address.is_ephemeral(),
        books: RefCell::new(Books::new(Arc::clone(task), thread)),
        links: std::iter::repeat_with(Link::new).take(connections).collect(),
        lanes: RefCell::new(vec![None; connections * task.pipeline]),
        line: RefCell::new(VecDeque::new()),
        received: Cell::new(0),
        events: Cell::new(0),
        spins: task.spin && task.rate.is_some() && generator::can_spin(task.threads),
    };
    let own = Rc::new(own);
    let conductor = Conductor { thread: Rc::clone(&own), tasks: JoinSet::new() };
    // What is still under way ends with the set.
    let ending = LocalSet::new().block_on(&runtime, conductor.conduct());
    drop(runtime);
    let outlived = || Error::Panicked("a request outlived its load".to_owned());
    Rc::into_inner(own).ok_or_else(outlived)?.close(ending?)
}

/// What the tasks of one thread share.
struct Thread {
    task: Arc<Task>,
    forms: Arc<[Form]>,
    secured: Option<Secured>,
    /// Whether the kernel could choose the server's port for a client.
    ephemeral: bool,
    books: RefCell<Books>,
    links: Vec<Link>,
    /// The request that each lane has under way.
    lanes: RefCell<Vec<Option<Pending>>>,
    /// The free lanes of an open loop, in the order in which they became free.
    line: RefCell<VecDeque<usize>>,
    /// Bytes that came.
    received: Cell<u64>,
    /// How often something came or ended.
    events: Cell<u64>,
    /// Whether an open loop waits for the next request without sleeping.
    spins: bool,
}

impl Thread {
    /// The link that a lane is on.
    fn link(&self, lane: usize) -> &Link {
        &self.links[lane % self.links.len()]
    }

    /// So many bytes came: the time.
    fn heard(&self, bytes: usize) -> u64 {
        self.received.set(self.received.get() + bytes as u64);
        self.events.set(self.events.get() + 1);
        self.task.clock.now()
    }

    /// Begins a request on a lane.
    fn take_up(&self, lane: usize, part: usize, due: u64, now: u64) {
        let pending = self.books.borrow_mut().begin(part, due, now);
        self.lanes.borrow_mut()[lane] = Some(pending);
    }

    /// Carries a request that was taken up to its end.
    async fn exchange(self: Rc<Self>, lane: usize) -> Result<(), Error> {
        let mut answer = Answer::default();
        let end = match self.send(lane, &mut answer).await {
            Ok(()) => Ok(()),
            Err(Refusal::Fault(fault)) => Err(fault),
            Err(Refusal::Fatal(error)) => return Err(error),
        };
        let now = self.task.clock.now();
        if now < self.books.borrow().schedule.until {
            self.end(lane, now, end, answer);
        }
        Ok(())
    }

    /// Sends the request of a lane, and reads its answer.
    async fn send(self: &Rc<Self>, lane: usize, answer: &mut Answer) -> Result<(), Refusal> {
        let (clock, link) = (self.task.clock, self.link(lane));
        let Some(Pending { part, deadline, .. }) = self.lanes.borrow()[lane] else { return Ok(()) };
        let form = &self.forms[part];
        let (halves, line) = link.stream(self, form, deadline).await?;
        let sent = clock.now();
        let deadline = match &mut self.lanes.borrow_mut()[lane] {
            Some(pending) => {
                pending.sample.sent = sent;
                self.books.borrow_mut().sent(pending);
                pending.deadline
            }
            None => return Ok(()),
        };
        let until = Instant::from_std(clock.instant(deadline));
        match timeout_at(until, answer.exchange(form, halves)).await {
            Ok(end) => end.map_err(Refusal::Fault),
            Err(_) => {
                link.timed_out(&line, sent);
                Err(Refusal::Fault(Fault::Timeout))
            }
        }
    }

    /// Ends the request of a lane.
    fn end(&self, lane: usize, now: u64, end: Result<(), Fault>, answer: Answer) {
        let Some(pending) = self.lanes.borrow_mut()[lane].take() else { return };
        self.events.set(self.events.get() + 1);
        self.books.borrow_mut().end(pending, now, (end, answer.so_far()), || answer.excerpt());
    }

    /// Waits until the pause of a lane's link is over.
    async fn rest(&self, lane: usize) {
        let again = self.link(lane).again();
        if again > self.task.clock.now() {
            tokio::time::sleep_until(Instant::from_std(self.task.clock.instant(again))).await;
        }
    }

    /// A lane of a closed loop, until nothing is left to be sent.
    async fn go_round(self: Rc<Self>, lane: usize) -> Result<(), Error> {
        loop {
            self.rest(lane).await;
            let now = self.task.clock.now();
            let part = {
                let mut books = self.books.borrow_mut();
                if !books.schedule.take(now) {
                    return Ok(());
                }
                books.draw()
            };
            self.take_up(lane, part, now, now);
            Rc::clone(&self).exchange(lane).await?;
        }
    }

    /// One request of an open loop, after which its lane is free.
    async fn go_once(self: Rc<Self>, lane: usize) -> Result<(), Error> {
        Rc::clone(&self).exchange(lane).await?;
        self.rest(lane).await;
        self.line.borrow_mut().push_back(lane);
        Ok(())
    }

    /// Whether a lane could carry a request.
    fn is_free(&self, lane: usize, now: u64) -> bool {
        self.lanes.borrow()[lane].is_none() && self.link(lane).again() <= now
    }

    /// Closes the books of a window that ended in this way.
    fn close(self, ending: Ending) -> Result<Share, Error> {
        // What was over before the end of the window is so even when the thread saw it later.
        let last = self.books.borrow().inside();
        let lanes = self.lanes.borrow().len();
        for lane in 0..lanes {
            let over = self.lanes.borrow()[lane].is_some_and(|pending| pending.deadline <= last);
            if over {
                let fault = if self.link(lane).is_dialing() { Fault::ConnectTimeout } else { Fault::Timeout };
                self.end(lane, last, Err(fault), Answer::default());
            }
        }
        let was_free = (0..lanes).any(|lane| self.is_free(lane, last));
        let in_flight: Vec<_> = self.lanes.into_inner().into_iter().flatten().collect();
        let mut books = self.books.into_inner();
        books.tally.received = self.received.get();
        books.close(ENGINE, ending, &in_flight, was_free)
    }
}

/// Begins and ends the tasks of a thread.
struct Conductor {
    thread: Rc<Thread>,
    tasks: JoinSet<Result<(), Error>>,
}

impl Conductor {
    /// From the opening to the end of the window.
    async fn conduct(mut self) -> Result<Ending, Error> {
        let alarm = Alarm::new(self.thread.task.clock)?;
        let stop = Raised::new(std::os::fd::AsFd::as_fd(&self.thread.task.stopping))?;
        tokio::select! {
            biased;
            raised = stop.wait() => raised.and(Err(Error::Stopped)),
            opened = self.open(&alarm) => opened,
        }?;
        tokio::select! {
            biased;
            raised = stop.wait() => raised.map(|()| Ending::Stopped),
            ending = self.window(&alarm) => ending,
        }
    }

    /// Has every connection send one request, until each has its end and the window begins.
    async fn open(&mut self, alarm: &Alarm) -> Result<(), Error> {
        let thread = Rc::clone(&self.thread);
        let task = &thread.task;
        thread.books.borrow_mut().open();
        for lane in 0..thread.links.len() {
            let now = task.clock.now();
            thread.take_up(lane, lane % thread.forms.len(), now, now);
            self.tasks.spawn_local(Rc::clone(&thread).exchange(lane));
            if lane % OPENED_AT_ONCE == OPENED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        while let Some(end) = self.tasks.join_next().await {
            whole(end)?;
        }
        thread.books.borrow_mut().opened()?;
        let from = loop {
            match task.gate.from() {
                Some(from) => break from,
                None => alarm.until(task.clock.now() + MEETING).await?,
            }
        };
        let awake = if task.rate.is_some() { AWAKE } else { 0 };
        alarm.until(from - awake).await?;
        thread.received.set(0);
        thread.books.borrow_mut().begin_window(from)
    }

    /// Keeps the lanes busy until the schedule is over.
    async fn window(&mut self, alarm: &Alarm) -> Result<Ending, Error> {
        let thread = Rc::clone(&self.thread);
        let lanes = thread.lanes.borrow().len();
        if thread.task.rate.is_some() {
            thread.line.borrow_mut().extend(0..lanes);
        } else {
            for lane in 0..lanes {
                self.tasks.spawn_local(Rc::clone(&thread).go_round(lane));
            }
        }
        loop {
            while let Some(end) = self.tasks.try_join_next() {
                whole(end)?;
            }
            let ending = thread.books.borrow().ending(thread.task.clock.now());
            if let Some(ending) = ending {
                return Ok(ending);
            }
            let more = self.dispatch();
            tokio::select! {
                biased;
                Some(end) = self.tasks.join_next() => whole(end)?,
                waited = wait(&thread, alarm, more) => waited?,
            }
        }
    }

    /// Begins the requests of an open loop that are due, as long as lanes are free; ends those that are over. Whether more
    /// may be due already.
    fn dispatch(&mut self) -> bool {
        let thread = &self.thread;
        for _ in 0..AT_ONCE {
            let mut books = thread.books.borrow_mut();
            let now = thread.task.clock.now();
            let due = books.schedule.next_due().filter(|&due| due <= now && now < books.schedule.until);
            let Some(due) = due else { return false };
            if due.saturating_add(thread.task.timeout) <= now {
                books.schedule.advance();
                books.expire(now);
                continue;
            }
            let Some(lane) = thread.line.borrow_mut().pop_front() else { return false };
            books.schedule.advance();
            let part = books.draw();
            drop(books);
            thread.take_up(lane, part, due, now);
            self.tasks.spawn_local(Rc::clone(thread).go_once(lane));
        }
        true
    }
}

/// Waits for the next time at which there is something to do; `now` says that this is now.
async fn wait(thread: &Thread, alarm: &Alarm, now: bool) -> Result<(), Error> {
    let task = &thread.task;
    let (end, due) = {
        let books = thread.books.borrow();
        let due = books.schedule.next_due().unwrap_or(NEVER);
        let is_free = !thread.line.borrow().is_empty();
        let due = if is_free { due } else { due.saturating_add(task.timeout) };
        (books.schedule.until.min(books.given_up()), due)
    };
    if now {
        tokio::task::yield_now().await;
        return Ok(());
    }
    if !thread.spins {
        return alarm.until(end.min(due)).await;
    }
    if due > task.clock.now().saturating_add(AWAKE) {
        return alarm.until(end.min(due - AWAKE)).await;
    }
    let (before, events) = (task.clock.now(), thread.events.get());
    tokio::task::yield_now().await;
    if thread.events.get() == events {
        thread.books.borrow_mut().spun += task.clock.now() - before;
    }
    Ok(())
}

/// What a task came to. One that panicked ends the load.
fn whole(end: Result<Result<(), Error>, JoinError>) -> Result<(), Error> {
    match end.map_err(JoinError::try_into_panic) {
        Ok(end) => end,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => Ok(()),
    }
}
