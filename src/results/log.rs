//! The lines of a log: text in, events out.
//!
//! A last line without its newline that is no event was torn by a crash and is dropped; any other such line is an error.

use std::io::BufRead;

use serde_json::Value as Json;

use super::fold::FoldError;
use super::format_number;
use crate::event::{self, Line};

/// The events of a log with the numbers of their lines, from 1. After an error there is no more.
pub(super) struct Lines<R> {
    log: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(log: R) -> Self {
        Self { log, number: 0 }
    }

    /// The next event.
    ///
    /// # Errors
    /// What cannot be read, what is no event, and a log of a newer format.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Line)>, FoldError> {
        let mut bytes = Vec::new();
        if self.log.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let parsed = if self.number == 1 { first(&bytes) } else { line(&bytes, self.number) };
        match parsed {
            Ok(line) => Ok(Some((self.number, line))),
            Err(FoldError::Line { .. }) if bytes.last() != Some(&b'\n') => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn line(bytes: &[u8], number: u64) -> Result<Line, FoldError> {
    serde_json::from_slice(bytes).map_err(|error| FoldError::Line { line: number, why: error.to_string() })
}

/// The first line: its format is looked at before its shape, which a newer one may have changed.
fn first(bytes: &[u8]) -> Result<Line, FoldError> {
    let json: Json = serde_json::from_slice(bytes).map_err(|_| FoldError::NoLog)?;
    let found = json["schema"].as_str().and_then(|schema| format_number(schema, event::SCHEMA));
    let (Some("started"), Some(found)) = (json["event"].as_str(), found) else { return Err(FoldError::NoLog) };
    let known = format_number(event::SCHEMA, event::SCHEMA).unwrap_or_default();
    if found > known {
        return Err(FoldError::Newer { found, known });
    }
    serde_json::from_value(json).map_err(|error| FoldError::Started { why: error.to_string() })
}
