//! The environment of every process, and what of it must never be written down.
//!
//! In: what the scenario says and the caller's variables. Out: the variables that reach a child, and [`Secrets`], which
//! takes secret values out of events, messages and logs. A log is cleared of them when its process has ended; until then,
//! and where a value stands across the gap of a log that was cut, it is as the process wrote it.
//! To pass another variable on by default, add it to [`USUAL`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::fill::Names;
use crate::event::Event;
use crate::plan::{Environment, Process, Text};

/// The variables of the caller that reach every process; `*` at the end stands for anything.
const USUAL: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Keys of events below which there is text that scenarios, processes and servers wrote.
const FREE: [&str; 25] = [
    "text",
    "reason",
    "message",
    "rendered",
    "lines",
    "command",
    "error",
    "head",
    "headers",
    "expected",
    "actual",
    "stdout",
    "stderr",
    "step",
    "title",
    "description",
    "label",
    "caveats",
    "request",
    "path",
    "vars",
    "set",
    "environment",
    "facts",
    "exit",
];

/// Variables and their values.
pub(super) type Variables = IndexMap<OsString, OsString>;

/// The caller's variables that reach every process.
pub(super) fn inherited(
    environment: &Environment,
    caller: impl IntoIterator<Item = (OsString, OsString)>,
) -> Variables {
    let (removed, added): (Vec<&str>, Vec<&str>) =
        environment.inherit.iter().map(String::as_str).partition(|pattern| pattern.starts_with('-'));
    let passes = |name: &str| {
        let wanted = USUAL.iter().chain(&added).any(|pattern| matches(pattern, name));
        let unwanted = removed.iter().any(|pattern| matches(&pattern[1..], name));
        (wanted && !unwanted) || environment.secret.iter().any(|secret| secret == name)
    };
    let mut variables: Variables = caller.into_iter().filter(|(name, _)| name.to_str().is_some_and(passes)).collect();
    variables.sort_keys();
    variables
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

/// The variables that a process gets, by name, with the values that results may hold: those that the scenario sets, and
/// PATH, LANG, `LC_*` and TZ. What only a run knows stands in braces.
#[must_use]
pub fn told(environment: &Environment, process: Option<&Process>) -> IndexMap<String, Option<String>> {
    const SHOWN: [&str; 4] = ["PATH", "LANG", "LC_*", "TZ"];
    let secret = |name: &str| environment.secret.iter().any(|secret| secret == name);
    let caller = inherited(environment, std::env::vars_os());
    let mut variables: IndexMap<String, Option<String>> = IndexMap::new();
    for (name, value) in &caller {
        let name = name.to_string_lossy().into_owned();
        let shown = SHOWN.iter().any(|pattern| matches(pattern, &name)) && !secret(&name);
        variables.insert(name, shown.then(|| value.to_string_lossy().into_owned()));
    }
    for (name, value) in [Some(&environment.set), process.map(|process| &process.env)].into_iter().flatten().flatten() {
        variables.insert(name.clone(), (!secret(name)).then(|| value.to_string()));
    }
    variables
}

/// The whole environment of a process: what is inherited, what the scenario sets for all, what its entry sets.
pub(super) fn of(inherited: &Variables, set: [&IndexMap<String, Text>; 2], names: &Names<'_>) -> Variables {
    let mut variables = inherited.clone();
    for (name, value) in set.into_iter().flatten() {
        variables.insert(name.into(), names.fill(value).into());
    }
    variables
}

/// The values that must never be written down.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// Those that the scenario names, longest first, so that one within another hides nothing of it. Empty ones hide
    /// nothing.
    pub(super) fn new(environment: &Environment, inherited: &Variables) -> Self {
        let inherited = environment.secret.iter().filter_map(|name| inherited.get(OsStr::new(name)));
        let inherited = inherited.filter_map(|value| value.to_str().map(str::to_owned));
        let set = environment.secret.iter().filter_map(|name| Some(environment.set.get(name)?.plain()?.to_owned()));
        let mut values: Vec<String> = inherited.chain(set).filter(|value| !value.is_empty()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// The text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, HIDDEN))
    }

    /// The event without them, in every field that holds text from outside. Ids, names and words of the log's own are
    /// left as they are: a secret that reads `ok` must not take the log apart.
    pub(super) fn hide_in(&self, event: Event) -> Event {
        if self.values.is_empty() {
            return event;
        }
        let shown = |event: &Event| {
            let mut json = serde_json::to_value(event).ok()?;
            self.walk(&mut json, false);
            serde_json::from_value(json).ok()
        };
        // An event is JSON by its type, and reads back with other texts in it: the log rests on it.
        shown(&event).unwrap_or(Event::Unknown)
    }

    /// Hides them in every string where `free`, and below the keys that hold text from outside.
    fn walk(&self, json: &mut Json, free: bool) {
        match json {
            Json::String(text) if free => *text = self.hide(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.walk(item, free)),
            Json::Object(members) => {
                members.iter_mut().for_each(|(name, value)| self.walk(value, free || FREE.contains(&name.as_str())));
            }
            _ => {}
        }
    }

    /// Takes them out of a log that is complete.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(super) fn hide_in_log(&self, log: &Path) -> io::Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        let mut bytes = fs::read(log)?;
        let before = bytes.len();
        let mut found = false;
        for value in &self.values {
            let (replaced, any) = replace(&bytes, value.as_bytes());
            bytes = replaced;
            found |= any;
        }
        if found || bytes.len() != before { fs::write(log, bytes) } else { Ok(()) }
    }
}

fn replace(bytes: &[u8], value: &[u8]) -> (Vec<u8>, bool) {
    let (mut replaced, mut rest, mut found) = (Vec::with_capacity(bytes.len()), bytes, false);
    while let Some(at) = rest.windows(value.len()).position(|window| window == value) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(HIDDEN.as_bytes());
        rest = &rest[at + value.len()..];
        found = true;
    }
    replaced.extend_from_slice(rest);
    (replaced, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Warning;

    fn caller() -> Vec<(OsString, OsString)> {
        ["PATH=/bin", "LC_ALL=C", "LD_PRELOAD=x.so", "npm_config_a=1", "npm_config_b=2", "TOKEN=s3cret", "TZ=UTC"]
            .iter()
            .map(|line| line.split_once('=').unwrap())
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn environment(inherit: &[&str]) -> Environment {
        Environment {
            inherit: inherit.iter().map(ToString::to_string).collect(),
            secret: vec!["TOKEN".to_owned(), "ABSENT".to_owned()],
            ..Environment::default()
        }
    }

    #[test]
    fn only_what_is_named_is_inherited() {
        let variables = inherited(&environment(&["npm_config_*", "-npm_config_b", "-TZ"]), caller());
        let names: Vec<_> = variables.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["LC_ALL", "PATH", "TOKEN", "npm_config_a"]);
        assert!(!inherited(&Environment::default(), caller()).contains_key(OsStr::new("TOKEN")));
    }

    #[test]
    fn secrets_leave_no_trace() {
        let environment = environment(&[]);
        let secrets = Secrets::new(&environment, &inherited(&environment, caller()));
        let warning = |text: &str| {
            Event::Warning(Warning { code: "x".to_owned(), text: text.to_owned(), cell: None, turn: None })
        };
        assert_eq!(secrets.hide_in(warning("a s3cret b s3crets")), warning("a *** b ***s"));
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, b"\xff s3crets3cret \n").unwrap();
        secrets.hide_in_log(&log).unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"\xff ****** \n");
    }
}
