//! What the two sides say: frames of a length and fields, over one stream socket.
//!
//! Down goes one [`Request`], then signals and the end; up comes what became of it. The closing of either end says
//! that its process is gone. To add a field, add it to its type and to the `record!` line; both sides are the same build.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::{Descendant, Ended, Exit, LogError, Status, Stream, User};

/// From bakeoff to a launcher that has its request.
pub(super) enum Down {
    /// This signal, to the main process.
    Signal(i32),
    /// End the tree; what outlives the main process has this long, from its exit, to end by itself.
    End(Duration),
}

/// From a launcher to bakeoff.
pub(super) enum Up {
    Started(Started),
    Failed(Failure),
    Exited(Exit),
    Ended(Ended),
}

/// A [`super::Command`] without what bakeoff itself has opened. Its paths are absolute.
pub(super) struct Request {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    /// `NAME=value` each.
    pub(super) env: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) stdout: Option<PathBuf>,
    pub(super) stderr: Option<PathBuf>,
    pub(super) cpus: Vec<usize>,
    pub(super) user: Option<User>,
}

/// A process that runs.
pub(super) struct Started {
    pub(super) pid: u32,
    /// When it was spawned, on the monotonic clock.
    pub(super) at: Duration,
}

/// A process that could not be started: at which stage, and why.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: Errno,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Launcher,
    Cwd,
    Stdout,
    Stderr,
    Cpus,
    User,
    Exec,
}

impl Stage {
    pub(super) fn fails(self, errno: Errno) -> Failure {
        Failure { stage: self, errno }
    }
}

/// One end of the socket.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
    unread: Vec<u8>,
}

/// What has come.
pub(super) enum Received<T> {
    Message(T),
    Nothing,
    /// The other side is gone, or speaks another language.
    Closed,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Channel { socket, unread: Vec::new() }
    }

    /// Sends a whole message. A peer that is gone is no error here: it is noticed by receiving.
    pub(super) fn send(&self, message: &impl Field) {
        let mut frame = vec![0; 8];
        message.put(&mut frame);
        let length = (frame.len() - 8) as u64;
        frame[..8].copy_from_slice(&length.to_le_bytes());
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// The next message, if all of it is there; never waits, and never takes a byte of the one after it, so that the
    /// descriptor can be read as long as there is one.
    pub(super) fn receive<T: Field>(&mut self) -> Received<T> {
        loop {
            let have = self.unread.len();
            let whole = self.unread.first_chunk::<8>().map(|length| 8 + u64::from_le_bytes(*length) as usize);
            if whole == Some(have) {
                let message = T::take(&mut &self.unread[8..]);
                self.unread.clear();
                return message.map_or(Received::Closed, Received::Message);
            }
            self.unread.resize(whole.unwrap_or(8), 0);
            let outcome = rustix::net::recv(&self.socket, &mut self.unread[have..], RecvFlags::DONTWAIT);
            self.unread.truncate(have + outcome.map_or(0, |(read, _)| read));
            match outcome {
                Ok((0, _)) => return Received::Closed,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::Closed,
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until one of these can be read, or for so long; says which can.
pub(super) fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Vec<bool> {
    let mut fds = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect::<Vec<_>>();
    let timeout = timeout.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
    let _ = poll(&mut fds, timeout.as_ref());
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// What can be written to and read from a frame.
pub(super) trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(*self as u64).to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk::<8>()?;
                *from = rest;
                Some(u64::from_le_bytes(*bytes) as $type)
            }
        }
    )+};
}
integers!(u8, u32, i32, u64, usize);

/// A type that travels as another one.
macro_rules! by_way_of {
    ($type:ty, $other:ty, $put:expr, $take:expr) => {
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let put: fn(&$type) -> $other = $put;
                put(self).put(out);
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let take: fn($other) -> Option<$type> = $take;
                take(<$other>::take(from)?)
            }
        }
    };
}
by_way_of!(bool, u8, |value| u8::from(*value), |number| Some(number != 0));
by_way_of!(Duration, u64, |value| value.as_nanos() as u64, |nanoseconds| Some(Duration::from_nanos(nanoseconds)));
by_way_of!(Errno, i32, |value| value.raw_os_error(), |number| Some(Errno::from_raw_os_error(number)));
by_way_of!(PathBuf, OsString, |value| value.clone().into_os_string(), |text| Some(text.into()));
by_way_of!(String, OsString, |value| value.into(), |text| text.into_string().ok());
by_way_of!(Stream, bool, |value| *value == Stream::Stderr, |err| Some(if err {
    Stream::Stderr
} else {
    Stream::Stdout
}));
by_way_of!(Stage, u8, |value| *value as u8, |number| {
    use Stage::{Cpus, Cwd, Exec, Launcher, Stderr, Stdout, User};
    [Launcher, Cwd, Stdout, Stderr, Cpus, User, Exec].into_iter().find(|stage| *stage as u8 == number)
});

impl Field for OsString {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = usize::take(from)?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        Some(OsString::from_vec(text.to_vec()))
    }
}

impl<T: Field> Field for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|one| one.put(out));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        (0..usize::take(from)?).map(|_| T::take(from)).collect()
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|one| one.put(out));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

macro_rules! record {
    ($type:ident: $($field:ident),+) => {
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some($type { $($field: Field::take(from)?),+ })
            }
        }
    };
}
record!(Request: program, argv, env, cwd, stdout, stderr, cpus, user);
record!(User: uid, gid, groups, name, home);
record!(Started: pid, at);
record!(Failure: stage, errno);
record!(Exit: status, wall, user, system, rss_peak, rss_floor, voluntary_switches, involuntary_switches, major_faults);
record!(Descendant: pid, comm);
record!(LogError: stream, errno);
record!(Ended: exit, killed, left, held_output, survivors, log_errors, lost);

/// An enum whose variants hold one field each, numbered by the byte before it.
macro_rules! choice {
    ($type:ident: $($tag:literal $name:ident($field:ty)),+) => {
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$name(field) => { ($tag as u8).put(out); field.put(out); })+
                }
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                match u8::take(from)? {
                    $($tag => Some($type::$name(<$field>::take(from)?)),)+
                    _ => None,
                }
            }
        }
    };
}
choice!(Status: 0 Code(i32), 1 Signal(i32));
choice!(Down: 0 Signal(i32), 1 End(Duration));
choice!(Up: 0 Started(Started), 1 Failed(Failure), 2 Exited(Exit), 3 Ended(Ended));
