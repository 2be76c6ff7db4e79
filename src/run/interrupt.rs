//! Signals that ask the run to stop.
//!
//! In: SIGINT, SIGTERM and SIGHUP, or [`Interrupt::raise`]. Out: a descriptor that can be read when another one came, how
//! many there were, and a flag for those who cannot poll. The first asks to stop in order, the second to kill.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];

/// Signals that ask the run to stop.
#[derive(Debug)]
pub struct Interrupt {
    read: UnixStream,
    write: UnixStream,
    flag: Arc<AtomicBool>,
    /// The number of the first signal.
    first: Arc<AtomicUsize>,
    count: Cell<u32>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// One that no signal reaches, only [`raise`](Self::raise).
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let (flag, first) = (Arc::default(), Arc::default());
        Ok(Self { read, write, flag, first, count: Cell::new(0), handlers: Vec::new() })
    }

    /// One that SIGINT, SIGTERM and SIGHUP reach, as long as it lives.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn register() -> io::Result<Self> {
        let mut interrupt = Self::new()?;
        for (signal, _) in SIGNALS {
            let number = usize::try_from(signal).unwrap_or_default();
            interrupt.handlers.push(flag::register(signal, Arc::clone(&interrupt.flag))?);
            interrupt.handlers.push(flag::register_usize(signal, Arc::clone(&interrupt.first), number)?);
            interrupt.handlers.push(low_level::pipe::register(signal, interrupt.write.try_clone()?)?);
        }
        Ok(interrupt)
    }

    /// Does what a signal does.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn raise(&self) -> io::Result<()> {
        self.flag.store(true, Ordering::SeqCst);
        (&self.write).write_all(b"X")
    }

    /// A second handle to what [`raise`](Self::raise) does, for another thread.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn raiser(&self) -> io::Result<impl Fn() + Send + 'static> {
        let (flag, write) = (Arc::clone(&self.flag), self.write.try_clone()?);
        Ok(move || {
            flag.store(true, Ordering::SeqCst);
            // The pipe is full only when signals enough are in it.
            let _ = (&write).write(b"X");
        })
    }

    /// How many have come by now. Afterwards the descriptor can be read only when another one comes.
    #[must_use]
    pub fn count(&self) -> u32 {
        let mut bytes = [0; 64];
        while let Ok(read @ 1..) = (&self.read).read(&mut bytes) {
            self.count.set(self.count.get().saturating_add(u32::try_from(read).unwrap_or(u32::MAX)));
        }
        self.count.get()
    }

    /// The name of the last signal, if one came.
    #[must_use]
    pub fn signal(&self) -> Option<&'static str> {
        if self.count() == 0 {
            return None;
        }
        let number = self.first.load(Ordering::SeqCst);
        let named = SIGNALS.iter().find(|(signal, _)| usize::try_from(*signal) == Ok(number));
        Some(named.map_or("SIGINT", |(_, name)| name))
    }

    /// Set once the first has come.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Can be read when one has come since [`count`](Self::count) was asked.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_counted_and_named() {
        let interrupt = Interrupt::register().unwrap();
        assert_eq!((interrupt.count(), interrupt.signal()), (0, None));
        low_level::raise(SIGHUP).unwrap();
        assert_eq!((interrupt.count(), interrupt.signal()), (1, Some("SIGHUP")));
        assert!(interrupt.flag().load(Ordering::SeqCst));
        interrupt.raise().unwrap();
        assert_eq!(interrupt.count(), 2);
    }
}
