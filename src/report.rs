//! Results for people and for other programs: one document, several faces.
//!
//! In: [`Results`] alone, never a scenario or a plan. Out: text. `compose` and `group` decide what is said, in which
//! order, with which digits and units; [`table`] is what they make; `terminal` and `markdown` only say how that looks. The
//! CSV files hold every value in full.
//! To add a format, add a renderer of a [`table::Document`] as a file here; to say something new, add it to `compose`.

mod compose;
mod csv;
mod group;
mod markdown;
pub mod table;
mod terminal;

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::results::{Folded, NotFinite};

pub use compose::document;
pub use csv::{observations, series};
pub use markdown::markdown;
pub use terminal::{Look, terminal};

#[cfg(doc)]
use crate::results::Results;

/// Why the files of a result are not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A number that no file may hold.
    #[error(transparent)]
    Number(#[from] NotFinite),
    /// A file cannot be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Writes `result.json`, `observations.csv`, `series.csv` and `report.md` into a directory that exists. All are made before
/// the first is written, and each is written beside its place and renamed into it. The same log gives the same bytes.
///
/// # Errors
/// A number that is not finite, and what the file system refuses.
pub fn write_all(dir: &Path, folded: &Folded) -> Result<(), WriteError> {
    let Folded { results, series: seconds } = folded;
    let refused = |name: &str| {
        let path = dir.join(name);
        move |source| WriteError::Io { path, source }
    };
    let files = [
        ("result.json", results.to_json()?),
        ("observations.csv", observations(results).map_err(refused("observations.csv"))?),
        ("series.csv", series(results, seconds).map_err(refused("series.csv"))?),
        ("report.md", markdown(&document(results))),
    ];
    for (name, text) in files {
        write(dir, &dir.join(name), &text).map_err(refused(name))?;
    }
    Ok(())
}

fn write(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    // The mode of a file that anyone makes: the umask takes from it.
    let mode = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".").permissions(mode).tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
