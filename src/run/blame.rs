//! Failures as diagnostics: the phrase, the place in the scenario, the end of what the process printed.

use std::fmt::Write as _;
use std::path::Path;

use signal_hook::low_level::signal_name;

use super::environment::Secrets;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::Origin;
use crate::process::{self, Status};

/// How many lines of a process's output are shown.
const LINES: usize = 15;

/// A failure at a place of the scenario.
pub(super) fn failure(code: Code, origin: Origin, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, origin.0, message)
}

/// The failure with the end of what the process printed: of stderr, and of stdout where that says nothing.
pub(super) fn with_output(mut diagnostic: Diagnostic, logs: &Logs, secrets: &Secrets) -> Diagnostic {
    let ending = |path: &Path| process::ending(path, LINES).unwrap_or_default();
    for (stream, path) in [("stderr", Some(&logs.stderr)), ("stdout", logs.stdout.as_ref())] {
        let lines = path.map(|path| ending(path)).unwrap_or_default();
        if lines.iter().any(|line| !line.trim().is_empty()) {
            let mut note = format!("the end of its {stream}:");
            for line in lines {
                let _ = write!(note, "\n  {}", secrets.hide(&line));
            }
            diagnostic = diagnostic.note(note);
            return diagnostic;
        }
    }
    diagnostic.note("it printed nothing")
}

/// Where a process's output went.
#[derive(Debug, Clone, Default)]
pub(super) struct Logs {
    /// Its stdout, unless that went nowhere.
    pub(super) stdout: Option<std::path::PathBuf>,
    /// Its stderr.
    pub(super) stderr: std::path::PathBuf,
}

impl Logs {
    /// What is kept of stdout and stderr.
    pub(super) fn read(&self) -> [Vec<u8>; 2] {
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        [self.stdout.as_deref().map(read).unwrap_or_default(), read(&self.stderr)]
    }
}

/// An exit in words: `0`, `1`, `killed by SIGSEGV`.
pub(super) fn words(status: Status) -> String {
    match status {
        Status::Code(code) => code.to_string(),
        Status::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
    }
}

/// An exit as the end of a sentence: `exited with code 1`, `was killed by SIGSEGV`.
pub(super) fn ended(status: Status) -> String {
    match status {
        Status::Code(code) => format!("exited with code {code}"),
        Status::Signal(_) => format!("was {}", words(status)),
    }
}
