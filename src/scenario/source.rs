//! From a path to a scenario: reading, including, merging, profiles, `--set`, defaults.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::decode::{Decode, Decoder};
use super::file::Scenario;
use super::node::{Member, Node, NodeValue, Table, merge, parse, parse_value};
use crate::diagnostic::{Code, Diagnostic, FileId, Problems, Sources, Span, suggest};

const MAX_BYTES: u64 = 1 << 20;
const MAX_FILES: usize = 64;

/// The tables whose members are named entries.
const ENTRIES: [&str; 11] =
    ["vars", "axes", "tools", "caches", "servers", "probes", "commands", "loads", "checks", "measures", "claims"];
/// The kinds that have defaults.
const DEFAULTED: [&str; 4] = ["servers", "commands", "loads", "measures"];
/// Keys of which an entry has one: what the entry says leaves no room for a default of the others.
const EXCLUSIVE: [&[&str]; 3] =
    [&["command", "shell", "builtin", "url"], &["duration", "count"], &["request", "requests"]];
/// What a server that runs already has no use for: a default of these is not for it.
const OF_STARTED: [&str; 12] =
    ["cwd", "env", "stdin", "user", "cpus", "timeout", "files", "before", "after", "stop", "port", "caches"];

/// What the embedded server has no use for.
const OF_COMMANDS: [&str; 6] = ["cwd", "env", "stdin", "user", "files", "timeout"];

/// Which scenario, and in which form.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// A profile to apply.
    pub profile: Option<String>,
    /// Vars to override: name and text.
    pub set: Vec<(String, String)>,
}

/// A scenario and what it was made of.
#[derive(Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// The path that it was read from.
    pub path: PathBuf,
    /// The names of its profiles, in file order.
    pub profiles: Vec<String>,
    /// The axes that the profile replaced.
    pub replaced_axes: Vec<String>,
    /// The first file.
    pub main: FileId,
    /// The places of the keys in `[defaults.measures]`: a measure that has no use for one ignores it.
    pub defaults: HashMap<String, Span>,
}

/// Reads the scenario that `options` name. Everything that is wrong goes to `problems`; the texts that were read go to
/// `sources`. Touches nothing but the files.
pub fn load(options: &Options, sources: &mut Sources, problems: &mut Problems) -> Option<Loaded> {
    let mut reader = Reader { sources, problems, stack: Vec::new(), taken: Vec::new(), whole: true };
    let (main, mut root) = reader.main(&options.path)?;
    let whole = reader.whole;
    check_overrides(&root, problems);
    let profiles = root.get("profiles").and_then(|member| member.node.table());
    let profiles: Vec<String> = profiles.map(|table| table.keys().cloned().collect()).unwrap_or_default();
    let mut replaced_axes = Vec::new();
    if let Some(name) = &options.profile {
        let axes = root.get("profiles").and_then(|member| member.node.find(&[name, "axes"]));
        replaced_axes
            .extend(axes.and_then(|axes| axes.node.table()).into_iter().flatten().map(|(axis, _)| axis.clone()));
        apply_profile(&mut root, name, problems);
    }
    for (name, text) in &options.set {
        apply_set(&mut root, (name, text), sources, problems);
    }
    let defaults = root.get("defaults").and_then(|member| member.node.find(&["measures"]));
    let defaults = defaults.and_then(|member| member.node.table()).into_iter().flatten();
    let defaults = defaults.map(|(key, member)| (key.clone(), member.key)).collect();
    apply_defaults(&mut root);
    let span = Span::new(main, 0..0);
    let node = Node { value: NodeValue::Table(root), span };
    let scenario = Scenario::decode(&node, &mut Decoder { sources, problems })?;
    if scenario.name.is_none() && !scenario.given.has("name") {
        let missing = Diagnostic::error(Code::MissingKey, span, "the scenario has no `name`");
        problems.push(missing.help("give it one below `format`: name = \"my-comparison\""));
    }
    // Names that a file which cannot be read would define are not to be reported as undefined.
    whole.then_some(Loaded { scenario, path: options.path.clone(), profiles, replaced_axes, main, defaults })
}

struct Reader<'a> {
    sources: &'a mut Sources,
    problems: &'a mut Problems,
    /// The files that are being read, with the place that includes each.
    stack: Vec<(PathBuf, Option<Span>)>,
    taken: Vec<PathBuf>,
    /// Whether every file could be read.
    whole: bool,
}

impl Reader<'_> {
    fn main(&mut self, path: &Path) -> Option<(FileId, Table)> {
        let (text, identity) = match read(path) {
            Ok(read) => read,
            Err(why) => {
                let message = format!("cannot read {}: {why}", path.display());
                self.problems.push(Diagnostic::bare(Code::UnreadableFile, message));
                return None;
            }
        };
        let file = self.sources.add(path.display().to_string(), text);
        self.taken.push(identity.clone());
        self.stack.push((identity, None));
        self.file(file, path).map(|table| (file, table))
    }

    /// The tree of a file with everything it includes merged before it.
    fn file(&mut self, file: FileId, path: &Path) -> Option<Table> {
        let text = self.sources.get(file).text.clone();
        let Some(root) = parse(file, &text, self.problems) else {
            self.stack.pop();
            return None;
        };
        self.check_format(file, &root);
        let mut merged = Table::new();
        let includes = root.find(&["include"]).map(|member| member.node.clone());
        if let Some(Node { value: NodeValue::Array(items), .. }) = &includes {
            for item in items {
                if let NodeValue::String(name) = &item.value {
                    match self.include(path, name, item.span) {
                        Ok(Some(table)) => merge(&mut merged, table, &merge_depth, self.problems),
                        Ok(None) => {}
                        Err(()) => self.whole = false,
                    }
                }
            }
        }
        self.stack.pop();
        let NodeValue::Table(own) = root.value else { return None };
        merge(&mut merged, own, &merge_depth, self.problems);
        Some(merged)
    }

    /// The tree of an included file; `None` where it was taken before, an error where it was reported.
    fn include(&mut self, from: &Path, name: &str, span: Span) -> Result<Option<Table>, ()> {
        let refuse = |reader: &mut Self, message: String| {
            reader.problems.push(Diagnostic::error(Code::UnreadableFile, span, message));
            Err(())
        };
        if Path::new(name).is_absolute() {
            return refuse(self, format!("`{name}` is an absolute path; includes are relative to the file"));
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return refuse(self, format!("`{name}` does not end in .toml"));
        }
        if self.taken.len() >= MAX_FILES {
            return refuse(self, format!("a scenario is made of at most {MAX_FILES} files"));
        }
        let path = from.parent().unwrap_or(Path::new("")).join(name);
        let (text, identity) = match read(&path) {
            Ok(read) => read,
            Err(why) => return refuse(self, format!("cannot read {}: {why}", path.display())),
        };
        if let Some(at) = self.stack.iter().position(|(file, _)| *file == identity) {
            let mut cycle = Diagnostic::error(Code::IncludeCycle, span, "files include each other in a circle")
                .label(format!("`{name}` is being read already"));
            for next in self.stack[at + 1..].iter().filter_map(|(_, span)| *span) {
                cycle = cycle.also(next, "by way of this");
            }
            self.problems.push(cycle);
            return Err(());
        }
        if self.taken.contains(&identity) {
            return Ok(None);
        }
        self.taken.push(identity.clone());
        if !begins_with_format(&text) {
            // Nothing of it is shown: it may be any file of the machine.
            return refuse(self, format!("`{name}` does not begin with `format` and is no scenario file"));
        }
        let file = self.sources.add(path.display().to_string(), text);
        self.stack.push((identity, Some(span)));
        let Some(mut table) = self.file(file, &path) else { return Err(()) };
        // What describes a file is its own: of an included file it is not taken over.
        for key in ["format", "name", "title", "description", "include"] {
            table.shift_remove(key);
        }
        Ok(Some(table))
    }

    fn check_format(&mut self, file: FileId, root: &Node) {
        let help = "the first line of every file is: format = 1";
        let problem = match root.find(&["format"]) {
            None => {
                let message = "the file does not say which version of the language it is written in";
                Diagnostic::error(Code::UnsupportedFormat, Span::new(file, 0..0), message).help(help)
            }
            Some(Member { node: Node { value: NodeValue::Integer(1), .. }, key }) => {
                if begins_with_format(&self.sources.get(file).text) {
                    return;
                }
                Diagnostic::error(Code::UnsupportedFormat, *key, "`format` is not the first key of the file").help(help)
            }
            Some(Member { node: Node { value: NodeValue::Integer(number), span }, .. }) => {
                let message = format!("format {number} is not known to this program, which reads format 1");
                Diagnostic::error(Code::UnsupportedFormat, *span, message)
            }
            Some(Member { node, .. }) => {
                let message = format!("expected a whole number, found {}", node.kind());
                Diagnostic::error(Code::WrongType, node.span, message).help(help)
            }
        };
        self.problems.push(problem);
    }
}

/// The text of a file, and its canonical path.
fn read(path: &Path) -> Result<(String, PathBuf), String> {
    let metadata = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let identity = path.canonicalize().map_err(|error| reason(&error))?;
    let bytes = std::fs::read(path).map_err(|error| reason(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8")
    })?;
    Ok((text, identity))
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether the first line that is neither blank nor a comment sets `format`.
fn begins_with_format(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.and_then(|line| line.strip_prefix("format")).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// How deep tables are merged: down to what is defined once.
fn merge_depth(path: &[String]) -> usize {
    match (path[0].as_str(), path.get(2).map(String::as_str)) {
        ("defaults" | "environment", _) => 2,
        ("profiles", Some("loads" | "measures")) => 4,
        ("profiles", _) => 3,
        ("setup" | "references" | "caveats" | "machine", _) => 1,
        (kind, _) if ENTRIES.contains(&kind) => 1,
        _ => 0,
    }
}

/// Every profile replaces only what exists.
fn check_overrides(root: &Table, problems: &mut Problems) {
    let profiles = root.get("profiles").and_then(|member| member.node.table());
    for profile in profiles.into_iter().flatten().filter_map(|(_, member)| member.node.table()) {
        for kind in ["vars", "axes", "loads", "measures"] {
            let replaced = profile.get(kind).and_then(|member| member.node.table());
            let defined = root.get(kind).and_then(|member| member.node.table());
            for (name, member) in replaced.into_iter().flatten() {
                if defined.is_none_or(|defined| !defined.contains_key(name)) {
                    let known: Vec<&str> = defined.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                    let message = format!("there is no `{kind}.{name}` to replace");
                    let unknown = Diagnostic::error(Code::UnknownOverride, member.key, message);
                    problems.push(unknown.help(suggest(name, &known)));
                }
            }
        }
    }
}

fn apply_profile(root: &mut Table, name: &str, problems: &mut Problems) {
    let profiles = root.get("profiles").and_then(|member| member.node.table());
    let Some(profile) = profiles.and_then(|profiles| profiles.get(name)).map(|member| member.node.clone()) else {
        let known: Vec<&str> = profiles.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let unknown = Diagnostic::bare(Code::UnknownProfile, format!("there is no profile `{name}`"));
        problems.push(unknown.help(suggest(name, &known)));
        return;
    };
    for (kind, replaced) in profile.table().into_iter().flatten() {
        for (name, member) in replaced.node.table().into_iter().flatten() {
            let Some(target) = root.get_mut(kind).and_then(|kind| kind.node.table_mut()?.get_mut(name)) else {
                continue;
            };
            match (kind.as_str(), target.node.table_mut(), member.node.table()) {
                ("loads" | "measures", Some(entry), Some(keys)) => {
                    for (key, value) in keys {
                        make_room(entry, key);
                        entry.insert(key.clone(), value.clone());
                    }
                }
                ("vars" | "axes", ..) => target.node = member.node.clone(),
                _ => {}
            }
        }
    }
}

/// Takes away what `key` excludes.
fn make_room(entry: &mut Table, key: &str) {
    for others in EXCLUSIVE.into_iter().filter(|group| group.contains(&key)) {
        entry.retain(|other, _| !others.contains(&other.as_str()));
    }
}

fn apply_set(root: &mut Table, (name, text): (&str, &str), sources: &mut Sources, problems: &mut Problems) {
    let vars = root.get_mut("vars").and_then(|member| member.node.table_mut());
    let known: Vec<String> = vars.as_ref().map(|vars| vars.keys().cloned().collect()).unwrap_or_default();
    let Some(var) = vars.and_then(|vars| vars.get_mut(name)) else {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let unknown = Diagnostic::bare(Code::UnknownOverride, format!("--set {name}: there is no var `{name}`"));
        problems.push(unknown.help(suggest(name, &known)));
        return;
    };
    let file = sources.add(format!("--set {name}"), text);
    let span = Span::new(file, 0..text.len());
    // A var keeps its type: what replaces a string is a string, whatever it looks like.
    let node = match var.node.value {
        NodeValue::String(_) => Some(Node { value: NodeValue::String(text.to_owned()), span }),
        _ => parse_value(file, text, problems),
    };
    let Some(mut node) = node else { return };
    if let (NodeValue::Float(_), NodeValue::Integer(number)) = (&var.node.value, &node.value) {
        #[expect(clippy::cast_precision_loss, reason = "a number that is written as a float is given as such")]
        let number = *number as f64;
        node.value = NodeValue::Float(number);
    }
    if node.kind() == var.node.kind() {
        var.node = node;
        return;
    }
    let message = format!("--set {name}: expected {}, found {}", var.node.kind(), node.kind());
    problems.push(Diagnostic::error(Code::WrongType, span, message).also(var.node.span, "defined here"));
}

/// Gives every entry the defaults of its kind that it leaves room for.
fn apply_defaults(root: &mut Table) {
    for kind in DEFAULTED {
        let defaults =
            root.get("defaults").and_then(|member| member.node.find(&[kind])).map(|member| member.node.clone());
        let Some(NodeValue::Table(defaults)) = defaults.map(|node| node.value) else { continue };
        let entries = root.get_mut(kind).and_then(|member| member.node.table_mut());
        for entry in entries.into_iter().flatten().filter_map(|(_, member)| member.node.table_mut()) {
            let own: Vec<String> = entry.keys().cloned().collect();
            for (key, member) in &defaults {
                let excluded = EXCLUSIVE
                    .iter()
                    .any(|group| group.contains(&key.as_str()) && own.iter().any(|own| group.contains(&own.as_str())));
                let is = |what: &str| kind == "servers" && own.iter().any(|own| own == what);
                let pointless = (is("url") && OF_STARTED.contains(&key.as_str()))
                    || (is("builtin") && OF_COMMANDS.contains(&key.as_str()));
                if !excluded && !pointless && !entry.contains_key(key) {
                    entry.insert(key.clone(), member.clone());
                }
            }
        }
    }
}
