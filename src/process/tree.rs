//! Who descends from whom, and the killing of all who do, from procfs.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Pid, Signal};

use super::Descendant;

/// The most processes that are named in a report.
const NAMED: usize = 64;

/// All descendants of a process, parents before their children.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    walk(root, &[], |_| {})
}

/// Kills all descendants of a process but those below `spared` children, each at the moment it is seen. Some may have come
/// into being meanwhile: whoever is their reaper calls again until none is left.
pub(super) fn kill(root: u32, spared: &[u32]) -> Vec<u32> {
    walk(root, spared, |pid| {
        if let Some(pid) = Pid::from_raw(pid as i32) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    })
}

fn walk(root: u32, spared: &[u32], mut visit: impl FnMut(u32)) -> Vec<u32> {
    let mut seen = BTreeSet::from([root]);
    seen.extend(spared);
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        for child in children(parent) {
            if seen.insert(child) {
                visit(child);
                found.push(child);
            }
        }
    }
    found.remove(0);
    found
}

/// The children of all threads of a process.
pub(super) fn children(parent: u32) -> Vec<u32> {
    if !Path::new("/proc/thread-self/children").exists() {
        return by_parent(parent);
    }
    let tasks = format!("/proc/{parent}/task");
    let of_task = |task| fs::read_to_string(format!("{tasks}/{task}/children")).unwrap_or_default();
    let listed = numbers(&tasks).map(of_task).collect::<String>();
    listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The same on a kernel that lists no children.
fn by_parent(parent: u32) -> Vec<u32> {
    numbers("/proc").filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

struct Stat {
    comm: String,
    state: char,
    parent: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (comm, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Stat { comm: comm.to_owned(), state, parent: fields.next()?.parse().ok()? })
}

/// The names of those that are alive, zombies left out.
pub(super) fn name(pids: &[u32]) -> Vec<Descendant> {
    let alive = pids.iter().filter_map(|pid| Some((*pid, stat(*pid).filter(|stat| !matches!(stat.state, 'Z' | 'X'))?)));
    alive.map(|(pid, stat)| Descendant { pid, comm: stat.comm }).take(NAMED).collect()
}

/// Whether a process has the other end of this pipe open.
pub(super) fn holds(pid: u32, pipe: &OwnedFd) -> bool {
    let Ok(pipe) = rustix::fs::fstat(pipe) else { return false };
    let link = format!("pipe:[{}]", pipe.st_ino);
    let descriptors = format!("/proc/{pid}/fd");
    numbers(&descriptors).any(|fd| fs::read_link(format!("{descriptors}/{fd}")).is_ok_and(|to| to == Path::new(&link)))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{by_parent, children, descendants, name};

    #[test]
    fn children_are_found_by_either_way_and_named_while_they_live() {
        let mut shell = Command::new("sh").args(["-c", "echo; sleep 60; :"]).stdout(Stdio::piped()).spawn().unwrap();
        let me = std::process::id();
        assert!(children(me).contains(&shell.id()));
        assert!(by_parent(me).contains(&shell.id()));
        let sleep = loop {
            if let [sleep] = descendants(shell.id())[..]
                && name(&[sleep])[0].comm == "sleep"
            {
                break sleep;
            }
        };
        assert_eq!(by_parent(shell.id()), [sleep]);
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(sleep as i32).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        shell.kill().unwrap();
        while !name(&[shell.id()]).is_empty() {}
        assert!(children(me).contains(&shell.id()), "a zombie is a child, but has no name");
        shell.wait().unwrap();
        assert!(!children(me).contains(&shell.id()));
    }
}
