//! What is printed: results on stdout, everything else on stderr.

use std::io::{IsTerminal, Write};

use super::Exit;
use crate::diagnostic::{Diagnostic, Severity, Sources, render};

/// The most diagnostics that are shown at once.
const MOST: usize = 200;

/// Prints on stdout; what cannot be printed stops the program. A reader that went away is nobody's fault.
pub(super) fn print(text: &str) -> Exit {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to standard output: {error}\n"));
            Exit::Stopped
        }
        _ => Exit::Done,
    }
}

/// Prints on stderr.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints diagnostics on stderr, and how many errors there are.
pub(super) fn diagnose(diagnostics: &[Diagnostic], sources: &Sources) {
    let shown = &diagnostics[..diagnostics.len().min(MOST)];
    say(&render(shown, sources, colored(&std::io::stderr())));
    if shown.len() < diagnostics.len() {
        say(&format!("\n… and {} more\n", diagnostics.len() - shown.len()));
    }
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    if errors > 1 {
        say(&format!("\n{errors} errors\n"));
    }
}

/// Whether colours are welcome: on a terminal, unless `NO_COLOR` says otherwise.
pub(super) fn colored(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the terminal knows nothing but lines.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind == "dumb")
}
