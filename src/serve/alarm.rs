//! Delays finer than the runtime's timer, which counts whole milliseconds and rounds up: one timerfd for all waiting
//! answers. All delays are equal, so those who wait are due in the order in which they came.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

/// No delay is longer: one that is meant for ever is one day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Rings for everyone who waits, `delay` after they began to.
pub(super) struct Alarm {
    delay: Duration,
    timer: AsyncFd<OwnedFd>,
    waiting: RefCell<VecDeque<(Instant, oneshot::Sender<()>)>>,
}

impl Alarm {
    /// Makes the alarm and the task that rings it, in the current `LocalSet`.
    #[expect(unsafe_code, reason = "tokio wants a promise that the descriptor stays open")]
    pub(super) fn start(delay: Duration) -> io::Result<Rc<Self>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the `AsyncFd` owns the descriptor and hands it out by shared reference only, so it is open, and the
        // same, for as long as it is registered.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        let alarm = Rc::new(Alarm { delay: delay.min(LONGEST), timer, waiting: RefCell::default() });
        tokio::task::spawn_local(Rc::clone(&alarm).ring());
        Ok(alarm)
    }

    /// Ready `delay` from now, never earlier.
    pub(super) async fn wait(&self) {
        let due = Instant::now() + self.delay;
        let (bell, rung) = oneshot::channel();
        let first = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push_back((due, bell));
            waiting.len() == 1
        };
        if first {
            self.set(due);
        }
        // The alarm drops no bell unrung, except when the server ends.
        let _ = rung.await;
    }

    fn set(&self, due: Instant) {
        // A time of zero would switch the timer off.
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // It fails for a descriptor or a time that is none; both are ours.
        let _ = rustix::time::timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once);
    }

    async fn ring(self: Rc<Self>) {
        while let Ok(mut ready) = self.timer.readable().await {
            ready.clear_ready();
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
            let next = {
                let mut waiting = self.waiting.borrow_mut();
                let now = Instant::now();
                while let Some((_, bell)) = waiting.pop_front_if(|(due, _)| *due <= now) {
                    // Whoever has gone away does not hear it.
                    let _ = bell.send(());
                }
                waiting.front().map(|(due, _)| *due)
            };
            if let Some(due) = next {
                self.set(due);
            }
        }
    }
}
