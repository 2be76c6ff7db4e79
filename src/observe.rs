//! What the kernel tells of processes and of the machine.
//!
//! In: process ids, a port, a directory. Out: numbers in base units and facts; what the kernel does not tell is absent.
//!
//! | module | tells |
//! | --- | --- |
//! | `cpu` | CPU time of the processes of a tree and of its threads, and the processors that it may use |
//! | `machine` | what the machine is |
//! | `memory` | resident memory of a process and of a tree |
//! | `meter` | how busy the whole machine was between two readings |
//! | `port` | a port that is free |
//! | `socket` | who listens on a port |
//!
//! To add a fact, add it to the struct of its module, with its unit and the file that it comes from.

pub mod cpu;
pub mod machine;
pub mod memory;
pub mod meter;
pub mod port;
pub mod socket;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why the kernel did not tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the kernel could not be opened or read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the kernel holds something else than was expected.
    #[error("{} does not read as expected", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
    },
    /// Every port that could be tried is taken.
    #[error("no tcp port is free on this machine")]
    NoPort,
}

/// The whole text of a file; bytes that are not UTF-8 (names of processes may hold some) are replaced.
fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a file of `/proc/PID`; none when the process is gone.
fn read_of(pid: u32, file: &str) -> Result<Option<String>, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    match read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound || is_gone(&error) => Ok(None),
        Err(source) => Err(Error::Unreadable { path, source }),
    }
}

/// A process that ends while its file is open makes the read fail in this way.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// The value of a line `KEY:   N kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_are_read_in_bytes_by_the_whole_key() {
        let text =
            "Name:\tVmRSS: 7 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nPss_Dirty: 3 kB\nPss: 4 kB\nThreads:\t1\n";
        assert_eq!(kilobytes(text, "VmRSS"), Some(1 << 20));
        assert_eq!(kilobytes(text, "VmHWM"), Some(2 << 20));
        assert_eq!(kilobytes(text, "Pss"), Some(4096));
        assert_eq!(kilobytes(text, "Threads"), None);
        assert_eq!(kilobytes(text, "VmSwap"), None);
    }
}
