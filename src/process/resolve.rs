//! Which file a program's name means.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// A name that means no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No such file, or none of this name in PATH.
    #[error("there is no program {}", .0.display())]
    NotFound(OsString),
    /// The file is there, but is a directory or must not be executed.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
}

/// The file that a program's name means: with a `/` in it, a path relative to `base`; without, the first executable file
/// of that name in the directories of `path` (the value of a PATH; its relative directories are relative to `base`).
///
/// # Errors
/// When there is no such file, or only files that must not be executed.
pub fn resolve(program: &OsStr, path: &OsStr, base: &Path) -> Result<PathBuf, ResolveError> {
    if program.as_bytes().contains(&b'/') {
        return executable(base.join(program)).unwrap_or_else(|| Err(ResolveError::NotFound(program.to_owned())));
    }
    let mut outcome = Err(ResolveError::NotFound(program.to_owned()));
    if !program.is_empty() {
        for found in split_paths(path).filter_map(|directory| executable(base.join(directory).join(program))) {
            match found {
                Ok(file) => return Ok(file),
                Err(error) if matches!(outcome, Err(ResolveError::NotFound(_))) => outcome = Err(error),
                Err(_) => {}
            }
        }
    }
    outcome
}

fn executable(file: PathBuf) -> Option<Result<PathBuf, ResolveError>> {
    let is_file = fs::metadata(&file).ok()?.is_file();
    Some(match is_file && access(&file, Access::EXEC_OK).is_ok() {
        true => Ok(file),
        false => Err(ResolveError::NotExecutable(file)),
    })
}
