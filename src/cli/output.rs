//! What is printed: results on stdout, everything else on stderr.

use std::io::{IsTerminal, Write};

use crate::diagnostic::{Diagnostic, Severity, Sources, render};

/// Prints on stdout. A reader that went away is nobody's fault.
pub(super) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints on stderr.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints diagnostics on stderr, and how many errors there are.
pub(super) fn diagnose(diagnostics: &[Diagnostic], sources: &Sources) {
    say(&render(diagnostics, sources, colored(&std::io::stderr())));
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    if errors > 1 {
        say(&format!("\n{errors} errors\n"));
    }
}

/// Whether colours are welcome: on a terminal, unless `NO_COLOR` says otherwise.
pub(super) fn colored(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
