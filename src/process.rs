//! Starts processes through a small launcher, measures exactly that child, bounds its output, and ends its whole tree.
//!
//! In: a [`Command`]. Out: a [`Process`] while it runs, its [`Exit`] (time and rusage of that child alone), and [`Ended`],
//! what was left when its tree had been killed. [`launcher`] is the far side, the same program in a hidden mode: one for
//! every process, parent and child subreaper of all that it starts. The two sides speak `process/protocol.rs`.
//!
//! To add a figure of a child, add it to [`Exit`] and its line in `protocol`, and fill it in `launcher::Watch::reap`. To
//! add something set up before a child's exec, add it to `spawn::child` (in the timed window) or `launcher::begin` (before).

mod drain;
mod floor;
mod handle;
pub mod launcher;
mod log;
mod protocol;
mod resolve;
mod spawn;
mod tree;
mod user;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use handle::{LaunchError, Launcher, Lost, Process, Waited, adopt_orphans, end_orphans};
pub use log::ending;
pub use resolve::{ResolveError, resolve};
pub use rustix::process::Signal;
pub use user::{User, UserError};

/// What to start, and how. Nothing of the caller's own environment, descriptors, signals or terminal reaches the child.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program file, as [`resolve()`] found it.
    pub program: PathBuf,
    /// The argument vector; the first element is the name by which the program is called.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// Where its standard output goes.
    pub stdout: Output,
    /// Where its standard error goes.
    pub stderr: Output,
    /// The processors that it and its descendants may use; empty: all that bakeoff may use.
    pub cpus: Vec<usize>,
    /// Whom it runs as; none: as the caller.
    pub user: Option<User>,
}

/// What a child reads.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// A file, from its beginning.
    File(PathBuf),
    /// This text, of any size.
    Text(Vec<u8>),
}

/// Where a stream of a child goes; never a terminal.
#[derive(Clone, Debug)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Into this file, made anew: the first 1 MiB as it comes, the last 1 MiB when the process has ended, and between them
    /// a line that says how much was left out.
    Log(PathBuf),
}

/// How the measured child ended, and what it used: itself and the children it waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit status.
    pub status: Status,
    /// From right before the spawn to right after the exit was taken, on the monotonic clock.
    pub wall: Duration,
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The highest resident set, in bytes, of the largest process among the child and those it waited for. Never below
    /// `rss_floor`: the kernel starts a child's maximum at the peak of the process that spawned it.
    pub rss_peak: u64,
    /// The peak resident set of the launcher when it spawned, in bytes: of a smaller `rss_peak` nothing can be known. The
    /// kernel counts both in batches per processor, so values within some 64 pages of each other are the same.
    pub rss_floor: u64,
    /// Times it gave up the processor by itself.
    pub voluntary_switches: u64,
    /// Times the processor was taken from it.
    pub involuntary_switches: u64,
    /// Page faults that needed input.
    pub major_faults: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// A process of a child's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// Its process id.
    pub pid: u32,
    /// Its name: at most 15 bytes, as the kernel keeps it.
    pub comm: String,
}

/// The end of a process and of its tree.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// How the main process ended; none when its launcher was lost before it could tell.
    pub exit: Option<Exit>,
    /// The main process was still running and had to be killed.
    pub killed: bool,
    /// Descendants that outlived the main process by more than a moment and had to be killed; at most 64 are named.
    pub left: Vec<Descendant>,
    /// Those of them that kept an output stream of the main process open.
    pub held_output: Vec<Descendant>,
    /// Processes that are still there although they were killed (stuck in the kernel).
    pub survivors: Vec<Descendant>,
    /// Logs that are not whole.
    pub log_errors: Vec<LogError>,
    /// The launcher ended before its time, killed by someone; what it had not told yet is unknown.
    pub lost: bool,
}

/// A log that could not be written to its end. The process was not held up by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log of its {stream} could not be written: {}", std::io::Error::from_raw_os_error(*.errno))]
pub struct LogError {
    /// Which stream.
    pub stream: Stream,
    /// The first error, as the kernel numbers it.
    pub errno: i32,
}

/// One of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Code(code) => write!(f, "exit code {code}"),
            Status::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
