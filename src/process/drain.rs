//! One output stream of a child, from its pipe into a log of bounded size.
//!
//! The head is written through as it comes, so that others can read it while the process runs; what follows turns in a
//! ring, of which the last is written at the end. A log that cannot be written does not stop the draining.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::tree;

/// How much is kept of the beginning, and as much of the end.
const KEPT: usize = 1 << 20;
/// The most that is read of the head at once.
const CHUNK: usize = 64 << 10;
const PIPE: usize = 1 << 20;

pub(super) struct Drain {
    /// Our end; none once all others have closed theirs.
    pipe: Option<OwnedFd>,
    log: File,
    error: Option<Errno>,
    head: usize,
    /// Empty until something comes, so that it is no part of the launcher when it spawns.
    ring: Vec<u8>,
    /// Bytes that came after the head.
    rest: usize,
}

impl Drain {
    /// A log and the writing end of its pipe.
    pub(super) fn open(path: &Path) -> Result<(Self, OwnedFd), Errno> {
        let log = File::create(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        // A user may hold only so many large pipes: a small one does too.
        let _ = rustix::pipe::fcntl_setpipe_size(&ours, PIPE);
        Ok((Drain { pipe: Some(ours), log, error: None, head: 0, ring: Vec::new(), rest: 0 }, theirs))
    }

    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Whether this process keeps the stream open.
    pub(super) fn held_by(&self, pid: u32) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| tree::holds(pid, pipe))
    }

    /// Takes one piece of what is there; says whether there may be more at once.
    pub(super) fn take(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        if self.ring.is_empty() {
            self.ring = vec![0; KEPT];
        }
        let space = match KEPT - self.head {
            0 => self.rest % KEPT..KEPT,
            left => 0..left.min(CHUNK),
        };
        match rustix::io::read(pipe, &mut self.ring[space.clone()]) {
            Ok(0) => self.pipe = None,
            Ok(read) if self.head < KEPT => {
                self.head += read;
                let ring = std::mem::take(&mut self.ring);
                self.write(&ring[..read]);
                self.ring = ring;
            }
            Ok(read) => self.rest += read,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return false,
            Err(_) => self.pipe = None,
        }
        self.pipe.is_some()
    }

    /// Takes what is still in the pipe, writes the tail, and gives the first error of the log.
    pub(super) fn finish(mut self) -> Option<i32> {
        // A writer that outlived all attempts to kill it must not keep us here.
        let most = PIPE / CHUNK + 2;
        let _ = (0..most).all(|_| self.take());
        let ring = std::mem::take(&mut self.ring);
        if self.rest > KEPT {
            let (newest, oldest) = ring.split_at(self.rest % KEPT);
            self.write(format!("\n[… {} bytes left out …]\n", self.rest - KEPT).as_bytes());
            self.write(oldest);
            self.write(newest);
        } else {
            self.write(&ring[..self.rest]);
        }
        self.error.map(Errno::raw_os_error)
    }

    fn write(&mut self, piece: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.log.write_all(piece)
        {
            self.error = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }
}
