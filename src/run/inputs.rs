//! What takes part in a run: every program, resolved in its own PATH, and every file of the scenario's folder that argument
//! vectors, workspaces and `tls.ca` name. Each once, with its size and digest.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::effects::{Note, Trouble};
use super::site::{Site, missing};
use super::tls;
use crate::event::InputFile;
use crate::plan::{Hole, Launch, Place, Plan, Process, ReadyWhen, Server, Step, Text, Workspace};

/// The most files that are told: a workspace may hold `node_modules`.
const MOST: usize = 2000;

/// Every program and file, in the order in which the plan names them.
pub(super) fn all(site: &Site<'_>) -> (Vec<InputFile>, Vec<Note>) {
    let mut found = Found { site, seen: BTreeSet::new(), files: Vec::new(), cut: false };
    let plan = site.plan;
    found.steps(&plan.setup);
    plan.tools.iter().for_each(|tool| found.process(&tool.process));
    for server in &plan.servers {
        found.steps(&server.before);
        if let Launch::Process(process) = &server.launch {
            found.process(process);
        }
        if let ReadyWhen::Command(process) = &server.ready.when {
            found.process(process);
        }
        found.steps(&server.after);
        if let Some(ca) = server.tls.as_ref().and_then(|tls| tls.ca.as_ref()).filter(|ca| is_known(ca)) {
            found.inside(&site.scenario_dir.join(site.names(&site.run_dir, &[], None).fill(ca)));
        }
    }
    for command in &plan.commands {
        found.steps(&command.before);
        found.process(&command.process);
        found.steps(&command.after);
    }
    for group in &plan.groups {
        group.workspace.iter().for_each(|workspace| found.workspace(workspace));
        for cell in &group.cells {
            found.steps(&cell.before);
            found.steps(&cell.after);
        }
    }
    let cut = format!("more than {MOST} files take part: the digests of the others are not recorded");
    let notes = if found.cut { vec![Note::new("inputs-cut", cut)] } else { Vec::new() };
    (found.files, notes)
}

/// A program, or certificates to believe, that are not there although nothing comes before that could make them: then
/// nothing is measured at all.
///
/// # Errors
/// The first of these, at its place.
pub(super) fn check(site: &Site<'_>) -> Result<(), Trouble> {
    let names = site.names(&site.run_dir, &[], None);
    let cells = || site.plan.groups.iter().flat_map(|group| &group.cells);
    let prepared = |id: &str| cells().any(|cell| cell.subject == id && !cell.before.is_empty());
    let servers = site.plan.servers.iter().filter(|server| server.before.is_empty() && server.needs.is_empty());
    let servers = servers.filter_map(|server| match &server.launch {
        Launch::Process(process) => Some((&server.identity.id, process.as_ref())),
        Launch::Builtin(_) | Launch::Running(_) => None,
    });
    let commands = site.plan.commands.iter().filter(|command| command.before.is_empty());
    let commands = commands.map(|command| (&command.identity.id, &command.process));
    let measured = |id: &str| cells().any(|cell| cell.subject == id);
    for (id, process) in servers.chain(commands) {
        let known = process.argv.first().is_some_and(is_known);
        if known && measured(id) && !prepared(id) {
            site.program(process, &names).map_err(|error| missing(process, &error))?;
        }
    }
    for server in started(site.plan) {
        let made_later = !server.before.is_empty() || !server.needs.is_empty() || prepared(&server.identity.id);
        let ca = server.tls.as_ref().and_then(|tls| tls.ca.as_ref());
        if ca.is_some_and(|ca| made_later || !is_known(ca)) {
            continue;
        }
        if let Some(trust) = tls::trust(server, &names) {
            site.tls(&trust).map_err(|error| tls::unreadable(server, &error))?;
        }
    }
    Ok(())
}

/// The servers that are measured, and those that they need, through others too.
fn started(plan: &Plan) -> Vec<&Server> {
    let cells = plan.groups.iter().flat_map(|group| &group.cells);
    let mut open: Vec<&str> = cells.map(|cell| cell.subject.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if let Some(server) = plan.server(id).filter(|_| seen.insert(id)) {
            open.extend(server.needs.iter().map(String::as_str));
        }
    }
    plan.servers.iter().filter(|server| seen.contains(server.identity.id.as_str())).collect()
}

struct Found<'a> {
    site: &'a Site<'a>,
    seen: BTreeSet<PathBuf>,
    files: Vec<InputFile>,
    cut: bool,
}

impl Found<'_> {
    fn steps<'s>(&mut self, steps: impl IntoIterator<Item = &'s Step>) {
        steps.into_iter().for_each(|step| self.process(&step.process));
    }

    fn process(&mut self, process: &Process) {
        let names = self.site.names(&self.site.run_dir, &[], None);
        if process.argv.first().is_some_and(is_known)
            && let Ok(program) = self.site.program(process, &names)
        {
            self.file(&program);
        }
        let folder = match &process.cwd {
            Some(cwd) if is_known(cwd) => names.path(cwd, &self.site.scenario_dir),
            _ => self.site.scenario_dir.clone(),
        };
        for argument in process.argv.iter().skip(1).filter(|argument| is_known(argument)) {
            let argument = names.fill(argument);
            // `--config=server.conf` names a file too.
            let value = argument.split_once('=').map(|(_, value)| value);
            for name in [Some(argument.as_str()), value].into_iter().flatten().filter(|name| !name.is_empty()) {
                self.inside(&folder.join(name));
            }
        }
    }

    fn workspace(&mut self, workspace: &Workspace) {
        let names = self.site.names(&self.site.run_dir, &[], None);
        let root = self.site.scenario_dir.clone();
        let from = workspace.from.as_ref().map_or(root.clone(), |from| names.path(from, &root));
        for name in &workspace.copy {
            self.below(&names.path(name, &from));
        }
    }

    /// Every file of a folder, or the file itself. Links are not followed.
    fn below(&mut self, path: &Path) {
        let Ok(kind) = fs::symlink_metadata(path) else { return };
        if !kind.is_dir() || self.cut {
            return self.inside(path);
        }
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| self.below(entry));
    }

    /// A file, if it is one and lies in the scenario's folder.
    fn inside(&mut self, path: &Path) {
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&self.site.scenario_dir) && real.is_file());
        if let Some(real) = real {
            self.file(&real);
        }
    }

    fn file(&mut self, path: &Path) {
        if !self.seen.insert(path.to_owned()) {
            return;
        }
        if self.files.len() >= MOST {
            self.cut = true;
            return;
        }
        // A file that cannot be read takes part all the same, and whoever needs it says so.
        if let Ok((size, sha256)) = digest(path) {
            let shown = path.strip_prefix(&self.site.scenario_dir).unwrap_or(path);
            self.files.push(InputFile { path: shown.to_string_lossy().into_owned(), size, sha256 });
        }
    }
}

/// Whether nothing is in it that is known only later.
fn is_known(text: &Text) -> bool {
    text.holes().all(|hole| *hole == Hole::Place(Place::ScenarioDir))
}

fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut size) = (File::open(path)?, Sha256::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..read]);
        size += read as u64;
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((size, sha256))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest is that of `printf abc | sha256sum`.
    #[test]
    fn a_digest_is_of_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&path).unwrap(), (3, expected.to_owned()));
    }
}
