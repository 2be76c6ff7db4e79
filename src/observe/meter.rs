//! How busy the whole machine was: `/proc/stat` and, where the kernel has it, `/proc/pressure/cpu`. Both files are kept
//! open; a reading takes some 10 µs.
//!
//! `/proc/stat` counts in ticks of 1/100 s for each CPU, so over a window of one second a value is good to about 0.01
//! cores per CPU. Most kernels find by sampling what a CPU was doing: very short bursts may be missed or overstated.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Error, cpu};

const STAT: &str = "/proc/stat";
const PRESSURE: &str = "/proc/pressure/cpu";

/// The open files.
#[derive(Debug)]
pub struct Meter {
    stat: File,
    pressure: Option<File>,
}

impl Meter {
    /// Opens the files.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be opened. Pressure may be missing.
    pub fn open() -> Result<Meter, Error> {
        let stat = File::open(STAT).map_err(|source| Error::Unreadable { path: PathBuf::from(STAT), source })?;
        Ok(Meter { stat, pressure: File::open(PRESSURE).ok() })
    }

    /// Reads how busy the machine was since it started.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read, or not be understood.
    pub fn read(&self) -> Result<Reading, Error> {
        let path = || PathBuf::from(STAT);
        let at = Instant::now();
        // The first line is all that is read; it is shorter than that by far.
        let text = head(&self.stat).map_err(|source| Error::Unreadable { path: path(), source })?;
        let ticks = Ticks::read(&text).ok_or_else(|| Error::Unexpected { path: path() })?;
        // Without PSI in the kernel's configuration the file is missing; switched off at boot, it cannot be read.
        let pressure = self.pressure.as_ref().and_then(|file| stalled(&head(file).ok()?));
        Ok(Reading { at, ticks, pressure })
    }
}

fn head(file: &File) -> io::Result<String> {
    let mut buffer = [0; 512];
    let length = file.read_at(&mut buffer, 0)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// The machine's counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    ticks: Ticks,
    pressure: Option<Duration>,
}

impl Reading {
    /// What happened since an earlier reading. None when no time has passed, or when a counter ran backwards.
    #[must_use]
    pub fn since(&self, earlier: &Reading) -> Option<Window> {
        let elapsed = self.at.checked_duration_since(earlier.at).filter(|time| !time.is_zero())?;
        let cores = |now: u64, then: u64| {
            Some(now.checked_sub(then)? as f64 * cpu::tick().as_secs_f64() / elapsed.as_secs_f64())
        };
        let pressure = match (self.pressure, earlier.pressure) {
            (Some(now), Some(then)) => Some(now.checked_sub(then)?.as_secs_f64() / elapsed.as_secs_f64()),
            _ => None,
        };
        Some(Window {
            elapsed,
            busy: cores(self.ticks.busy, earlier.ticks.busy)?,
            steal: match (self.ticks.steal, earlier.ticks.steal) {
                (Some(now), Some(then)) => Some(cores(now, then)?),
                _ => None,
            },
            pressure,
        })
    }
}

/// How busy the machine was between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The time between them.
    pub elapsed: Duration,
    /// Cores kept busy by anything on this machine: user, nice, system, interrupts; guests included.
    pub busy: f64,
    /// Cores that were wanted but given to other machines by the hypervisor. 0 where there is none.
    pub steal: Option<f64>,
    /// The share of the time (0 to 1) in which at least one thread waited for a CPU (PSI, `some`).
    pub pressure: Option<f64>,
}

impl Window {
    /// Cores kept busy by others, when `own` cores were kept busy by what belongs to the run. The two are counted by
    /// different clocks, so that the difference can come out slightly below zero; that is told as 0.
    #[must_use]
    pub fn other(&self, own: f64) -> f64 {
        (self.busy - own).max(0.0)
    }
}

/// The sums over all CPUs in the first line of `/proc/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    steal: Option<u64>,
}

impl Ticks {
    fn read(text: &str) -> Option<Ticks> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let numbers = line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        // Time of guests is part of user and nice already; idle and iowait are no work.
        let &[user, nice, system, _idle, _iowait, irq, softirq, ref rest @ ..] = numbers.as_slice() else {
            return None;
        };
        Some(Ticks { busy: user + nice + system + irq + softirq, steal: rest.first().copied() })
    }
}

/// The `some` total of a pressure file.
fn stalled(text: &str) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_is_summed() {
        // Fields as in proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice.
        let text = "cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(Ticks::read(text), Some(Ticks { busy: 163, steal: Some(8) }));
        assert_eq!(Ticks::read("cpu 1 2 3 4 5 6 7\n"), Some(Ticks { busy: 19, steal: None }));
        assert_eq!(Ticks::read("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(Ticks::read("cpu 1 2 x 4 5 6 7 8\n"), None);
        assert_eq!(Ticks::read(""), None);
    }

    #[test]
    fn pressure_is_the_total_of_some_in_microseconds() {
        let text =
            "some avg10=0.65 avg60=1.57 avg300=1.37 total=9088172\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(stalled(text), Some(Duration::from_micros(9_088_172)));
        assert_eq!(stalled("full avg10=0.00 total=5\n"), None);
    }

    #[test]
    fn a_window_is_ticks_over_time() {
        let at = Instant::now();
        let then = Reading { at, ticks: Ticks { busy: 1000, steal: Some(10) }, pressure: Some(Duration::from_secs(1)) };
        let now = Reading {
            at: at + Duration::from_secs(2),
            ticks: Ticks { busy: 1300, steal: Some(60) },
            pressure: Some(Duration::from_millis(1500)),
        };
        // 3 s of work and 0.5 s of steal in 2 s, at 100 ticks a second.
        let window = now.since(&then).unwrap();
        assert_eq!((window.busy, window.steal, window.pressure), (1.5, Some(0.25), Some(0.25)));
        assert_eq!((window.other(1.0), window.other(2.0)), (0.5, 0.0));
        assert!(then.since(&now).is_none());
        assert!(now.since(&now).is_none());
    }
}
