//! Fresh directories with copies: the workspace of a command's run.
//!
//! In: a folder and names in it. Out: copies in a directory, with the same names and mode bits. Nothing is taken that lies
//! outside the scenario's folder, whatever links stand on the way. A link within a copied folder that leads to something
//! within it is kept; one that leads elsewhere becomes a copy of the file it leads to.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Why a workspace could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A name leads out of the scenario's folder.
    #[error("{} leads out of the scenario's folder", .0.display())]
    Outside(PathBuf),
    /// A link leads to a folder that is not within the one that is copied.
    #[error("the link {} leads to a folder that is not copied with it", .0.display())]
    Link(PathBuf),
    /// Neither a file nor a folder nor a link.
    #[error("{} is neither a file nor a folder", .0.display())]
    Special(PathBuf),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    System {
        /// Of which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

fn system(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::System { path, source }
}

/// Copies `names`, which stand in `from`, into `to`. `root` is the scenario's folder.
pub(super) fn copy(root: &Path, from: &Path, names: &[String], to: &Path) -> Result<(), Error> {
    let root = root.canonicalize().map_err(system(root))?;
    let from = inside(&root, from)?;
    for name in names {
        let name = Path::new(name);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !name.components().all(plain) {
            return Err(Error::Outside(name.to_owned()));
        }
        let source = inside(&root, &from.join(name))?;
        let target = to.join(name);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(system(folder))?;
        }
        Copy { root: &root, top: &source }.entry(&source, &target)?;
    }
    Ok(())
}

/// Where a path really is, if that is inside.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, Error> {
    let real = path.canonicalize().map_err(system(path))?;
    if real.starts_with(root) { Ok(real) } else { Err(Error::Outside(path.to_owned())) }
}

struct Copy<'a> {
    root: &'a Path,
    /// The file or folder that was named.
    top: &'a Path,
}

impl Copy<'_> {
    fn entry(&self, source: &Path, target: &Path) -> Result<(), Error> {
        let kind = fs::symlink_metadata(source).map_err(system(source))?;
        if kind.is_symlink() {
            self.link(source, target)
        } else if kind.is_dir() {
            self.folder(source, target, kind.permissions())
        } else if kind.is_file() {
            fs::copy(source, target).map(drop).map_err(system(source))
        } else {
            Err(Error::Special(source.to_owned()))
        }
    }

    fn folder(&self, source: &Path, target: &Path, mode: Permissions) -> Result<(), Error> {
        fs::create_dir_all(target).map_err(system(target))?;
        for entry in fs::read_dir(source).map_err(system(source))? {
            let name = entry.map_err(system(source))?.file_name();
            self.entry(&source.join(&name), &target.join(&name))?;
        }
        // Last: a folder that must not be written to could not be filled.
        fs::set_permissions(target, mode).map_err(system(target))
    }

    fn link(&self, source: &Path, target: &Path) -> Result<(), Error> {
        let to = fs::read_link(source).map_err(system(source))?;
        match source.canonicalize() {
            Ok(real) if !real.starts_with(self.root) => Err(Error::Outside(source.to_owned())),
            Ok(real) if to.is_relative() && real.starts_with(self.top) => symlink(&to, target).map_err(system(target)),
            Ok(real) if real.is_file() => fs::copy(&real, target).map(drop).map_err(system(&real)),
            Ok(_) => Err(Error::Link(source.to_owned())),
            // It leads nowhere, or in a circle: harmless as long as it cannot lead out.
            Err(_) if to.is_relative() && !to.components().any(|part| part == Component::ParentDir) => {
                symlink(&to, target).map_err(system(target))
            }
            Err(_) => Err(Error::Outside(source.to_owned())),
        }
    }
}

/// Removes a directory with all that is in it, also what must not be written to. Links are removed, never followed.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(directory)?;
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Lets the owner into every folder below.
fn open_up(directory: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(directory)?;
    if !kind.is_dir() {
        return Ok(());
    }
    fs::set_permissions(directory, Permissions::from_mode(kind.permissions().mode() | 0o700))?;
    for entry in fs::read_dir(directory)? {
        open_up(&entry?.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folders {
        _all: tempfile::TempDir,
        root: PathBuf,
        to: PathBuf,
    }

    fn folders() -> Folders {
        let all = tempfile::tempdir().unwrap();
        let (root, to) = (all.path().join("scenario"), all.path().join("to"));
        fs::create_dir_all(root.join("site/src/deep")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(all.path().join("outside"), "secret").unwrap();
        fs::write(root.join("shared"), "shared").unwrap();
        fs::write(root.join("site/package.json"), "{}").unwrap();
        fs::write(root.join("site/src/deep/run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(root.join("site/src/deep/run.sh"), Permissions::from_mode(0o751)).unwrap();
        symlink("deep/run.sh", root.join("site/src/inner")).unwrap();
        symlink("../../shared", root.join("site/src/other")).unwrap();
        Folders { _all: all, root, to }
    }

    fn copied(folders: &Folders, names: &[&str]) -> Result<(), Error> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        copy(&folders.root, &folders.root.join("site"), &names, &folders.to)
    }

    #[test]
    fn names_modes_and_inner_links_are_kept() {
        let folders = folders();
        fs::set_permissions(folders.root.join("site/src/deep"), Permissions::from_mode(0o555)).unwrap();
        copied(&folders, &["package.json", "src"]).unwrap();
        let script = folders.to.join("src/deep/run.sh");
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_link(folders.to.join("src/inner")).unwrap(), Path::new("deep/run.sh"));
        assert!(fs::symlink_metadata(folders.to.join("src/other")).unwrap().is_file());
        assert_eq!(fs::read_to_string(folders.to.join("src/other")).unwrap(), "shared");
        remove(&folders.to).unwrap();
        assert!(!folders.to.exists());
        fs::set_permissions(folders.root.join("site/src/deep"), Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn nothing_outside_is_taken() {
        let folders = folders();
        assert!(matches!(copied(&folders, &["../../outside"]), Err(Error::Outside(_))));
        assert!(matches!(copied(&folders, &["/etc/hostname"]), Err(Error::Outside(_))));
        assert!(matches!(copied(&folders, &["absent"]), Err(Error::System { .. })));
        for (name, to) in [("up", "../../../outside"), ("absolute", "/etc"), ("dangling", "../../../nothing")] {
            let link = folders.root.join("site/src").join(name);
            symlink(to, &link).unwrap();
            assert!(matches!(copied(&folders, &["src"]), Err(Error::Outside(_))), "{name}");
            assert!(copied(&folders, &[&format!("src/{name}")]).is_err(), "{name}");
            fs::remove_file(&link).unwrap();
        }
        let socket = std::os::unix::net::UnixListener::bind(folders.root.join("site/src/socket")).unwrap();
        assert!(matches!(copied(&folders, &["src"]), Err(Error::Special(_))));
        drop(socket);
    }

    #[test]
    fn removal_leaves_what_links_lead_to() {
        let folders = folders();
        let kept = folders.root.join("site");
        symlink(&kept, folders.to.join("link")).unwrap();
        remove(&folders.to).unwrap();
        assert!(kept.join("package.json").exists());
    }
}
