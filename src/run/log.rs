//! The writer of `events.jsonl`.
//!
//! In: events. Out: one line each, whole, in one write, with the seconds since the first. It is created before anything
//! runs, so that an output that cannot be written stops a run early, and synced when a turn ends and at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use crate::event::{Event, Line};

/// An open log.
#[derive(Debug)]
pub struct Log {
    file: File,
    first: Option<Instant>,
    /// After a write that failed a line may be torn: nothing is written behind it.
    broken: bool,
}

impl Log {
    /// Creates the file.
    ///
    /// # Errors
    /// When it is there already, or cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self { file, first: None, broken: false })
    }

    /// Appends an event and gives the line that it became.
    ///
    /// # Errors
    /// When it cannot be written wholly, or an earlier one could not. All lines before it can be read.
    pub fn write(&mut self, event: Event) -> io::Result<Line> {
        if self.broken {
            return Err(io::Error::other("an earlier line could not be written"));
        }
        let t = self.first.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
        let sync = matches!(event, Event::TurnEnded(_) | Event::Finished { .. });
        let line = Line { t, event };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        self.broken = written.is_err();
        written.map(|()| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut log = Log::create(&path).unwrap();
        let events = [Event::Interrupted { signal: "SIGINT".to_owned() }, Event::Finished { utc: "x\ny".to_owned() }];
        let lines: Vec<Line> = events.map(|event| log.write(event).unwrap()).into();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, lines);
        assert!(lines[0].t < lines[1].t);
        assert_eq!(Log::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_full_disk_is_an_error_and_ends_the_log() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = Log { file, first: None, broken: false };
        let finished = || Event::Finished { utc: String::new() };
        assert_eq!(log.write(finished()).unwrap_err().kind(), io::ErrorKind::StorageFull);
        log.file = OpenOptions::new().write(true).open("/dev/null").unwrap();
        assert!(log.write(finished()).is_err());
    }
}
