//! Memory that the kernel reads or writes while a ring lives: the shared buffers of receives, and the peer's address.
//!
//! A buffer belongs to the kernel from when it is given to the ring of buffers until a completion names it, and to this
//! side from then until it is given back. The pages are mapped for themselves and unmapped when the owner is dropped,
//! which is after everything in flight has come back; where it has not, `leak` keeps them for ever.

#![expect(unsafe_code, reason = "the kernel shares this memory")]

use crate::load::target::Address;
use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::SocketAddrUnix;
use rustix::net::addr::SocketAddrArg;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering::Release};

/// How many buffers there are; a power of two.
const COUNT: u16 = 256;

/// How large each is, in bytes.
const SIZE: usize = 2048;

/// Anonymous pages.
struct Pages {
    base: NonNull<u8>,
    length: usize,
}

impl Pages {
    fn map(length: usize) -> std::io::Result<Self> {
        // SAFETY: a new anonymous mapping overlaps nothing.
        let base =
            unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, length })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: it was mapped with this length, and nothing refers to it any longer.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        }
    }
}

/// What a receive put into a buffer, as far as it was not taken up.
#[derive(Debug)]
pub(super) struct Piece {
    buffer: u16,
    from: usize,
    until: usize,
}

impl Piece {
    /// That of a completion with this result.
    pub(super) fn new(buffer: u16, result: i32) -> Self {
        Self { buffer, from: 0, until: usize::try_from(result).unwrap_or(0).min(SIZE) }
    }

    /// Whether all of it was taken up.
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.until
    }
}

/// The buffers of receives, and the ring by which they are given to the kernel.
pub(super) struct Buffers {
    entries: Pages,
    bytes: Pages,
    tail: u16,
}

impl Buffers {
    /// Gives the kernel all buffers, as this group.
    pub(super) fn register(submitter: &Submitter<'_>, group: u16) -> std::io::Result<Self> {
        let entries = Pages::map(usize::from(COUNT) * size_of::<BufRingEntry>())?;
        let bytes = Pages::map(usize::from(COUNT) * SIZE)?;
        // SAFETY: the pages hold COUNT entries, are aligned to a page, and live as long as the ring or longer.
        unsafe { submitter.register_buf_ring_with_flags(entries.base.as_ptr() as u64, COUNT, group, 0)? };
        let mut buffers = Self { entries, bytes, tail: 0 };
        (0..COUNT).for_each(|buffer| buffers.give(buffer));
        Ok(buffers)
    }

    /// Copies what it can of a piece, and takes it up.
    pub(super) fn copy(&self, piece: &mut Piece, into: &mut [u8]) -> usize {
        let length = (piece.until - piece.from).min(into.len());
        let offset = usize::from(piece.buffer) * SIZE + piece.from;
        // SAFETY: the piece lies within its buffer, which the kernel has handed over and does not write to.
        let from = unsafe { std::slice::from_raw_parts(self.bytes.base.as_ptr().add(offset), length) };
        into[..length].copy_from_slice(from);
        piece.from += length;
        length
    }

    /// Gives a piece's buffer back to the kernel.
    pub(super) fn give_back(&mut self, piece: Piece) {
        self.give(piece.buffer);
    }

    fn give(&mut self, buffer: u16) {
        let at = usize::from(self.tail % COUNT);
        let base = self.entries.base.as_ptr().cast::<BufRingEntry>();
        // SAFETY: `at` is within the entries; the kernel reads an entry only once the tail is beyond it, and the tail is
        // a 16-bit number that lies, aligned, within the first entry, in a field that setting an entry does not touch.
        unsafe {
            let address = self.bytes.base.as_ptr().add(usize::from(buffer) * SIZE) as u64;
            let entry = &mut *base.add(at);
            entry.set_addr(address);
            entry.set_len(SIZE as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(base).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Release);
        }
    }

    /// Keeps the pages for ever.
    pub(super) fn leak(&mut self) {
        (self.entries.length, self.bytes.length) = (0, 0);
    }
}

/// The address that connections are made to, as the system call takes it.
pub(super) struct Peer {
    bytes: Box<[u8]>,
}

impl Peer {
    pub(super) fn new(address: &Address) -> Result<Self, Errno> {
        Ok(match address {
            Address::Tcp(address) => Self::of(address),
            Address::Unix(path) => Self::of(&SocketAddrUnix::new(path.as_path())?),
        })
    }

    fn of(address: &impl SocketAddrArg) -> Self {
        // SAFETY: the pointer is to so many bytes, which are copied while it is valid.
        let bytes = unsafe {
            address.with_sockaddr(|address, length| {
                std::slice::from_raw_parts(address.cast::<u8>(), length as usize).to_vec()
            })
        };
        // A boxed slice of bytes need not be aligned as an address is; the kernel copies it byte by byte.
        Self { bytes: bytes.into_boxed_slice() }
    }

    /// Where it is, and how long.
    pub(super) fn parts(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        (self.bytes.as_ptr().cast(), self.bytes.len() as libc::socklen_t)
    }

    /// Keeps it for ever.
    pub(super) fn leak(&mut self) {
        Box::leak(std::mem::take(&mut self.bytes));
    }
}
