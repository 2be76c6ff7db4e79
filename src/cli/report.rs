//! `report`: a directory is folded anew from its log; a `result.json` is rendered as it stands.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use super::output::{colored, print, say};
use crate::report::{Look, document, terminal, write_all};
use crate::results::{Folded, Results, fold};

/// `bakeoff report`
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A directory of results, whose files are made again from its log; or a result.json, which is only shown
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Report {
    pub(super) fn run(&self) -> Exit {
        let outcome =
            if self.path.is_dir() { remake(&self.path) } else { stored(&self.path).map(|results| show(&results)) };
        outcome.unwrap_or_else(|(exit, message)| {
            say(&format!("error: {message}\n"));
            exit
        })
    }
}

/// Folds the log of `directory`, shows what it says, and writes every file that is made of it.
fn remake(directory: &Path) -> Result<Exit, (Exit, String)> {
    let folded = fold_log(directory)?;
    // On a full disk the report is still to be read.
    let shown = show(&folded.results);
    write_all(directory, &folded).map_err(|error| (Exit::Stopped, error.to_string()))?;
    Ok(shown)
}

/// The results of the log in `directory`.
pub(super) fn fold_log(directory: &Path) -> Result<Folded, (Exit, String)> {
    let log = directory.join("events.jsonl");
    let unreadable = |error: &dyn std::fmt::Display| (Exit::Usage, format!("cannot read {}: {error}", log.display()));
    if !log.metadata().map_err(|error| unreadable(&error))?.is_file() {
        return Err(unreadable(&"it is not a regular file"));
    }
    let file = File::open(&log).map_err(|error| unreadable(&error))?;
    fold(BufReader::new(file), &super::program()).map_err(|error| (Exit::Usage, format!("{}: {error}", log.display())))
}

fn stored(path: &Path) -> Result<Results, (Exit, String)> {
    let wrong = |error: &dyn std::fmt::Display| (Exit::Usage, format!("cannot read {}: {error}", path.display()));
    if !path.metadata().map_err(|error| wrong(&error))?.is_file() {
        return Err(wrong(&"it is not a regular file"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    Results::from_json(&text).map_err(|error| wrong(&error))
}

/// Shows results on stdout.
pub(super) fn show(results: &Results) -> Exit {
    let stdout = std::io::stdout();
    let width = console_width();
    print(&terminal(&document(results), Look { width, colour: colored(&stdout) }))
}

/// Columns of the terminal, where stdout is one.
fn console_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}
