//! What a plan starts: processes, steps, tools, caches, commands, checks, and what is expected of them.

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Better, Identity, JsonPath, Origin, Pattern, Pick, SameStream, Stdout, Text, Value, optional_seconds};

/// A process to be started.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// The argument vector; a `shell` line is `["/bin/sh", "-c", line]`.
    pub argv: Vec<Text>,
    /// The directory it runs in, relative to the scenario's folder. Absent: the workspace if there is one, else that folder.
    pub cwd: Option<Text>,
    /// Environment variables, beside those of the plan's environment.
    pub env: IndexMap<String, Text>,
    /// What it reads from standard input.
    pub stdin: Stdin,
    /// The user it runs as.
    pub user: Option<String>,
    /// The processors it may run on; empty where any.
    pub cpus: Vec<usize>,
    /// When it is ended with its whole tree, in seconds. Absent for servers, which have no end of their own.
    #[serde(serialize_with = "optional_seconds")]
    #[schemars(with = "Option<f64>")]
    pub timeout: Option<Duration>,
    /// Files written first, name to text.
    pub files: IndexMap<String, Text>,
    /// Where its command stands.
    #[serde(skip)]
    pub origin: Origin,
    /// Where `files` stand.
    #[serde(skip)]
    pub files_origin: Option<Origin>,
    /// Where `user` stands.
    #[serde(skip)]
    pub user_origin: Option<Origin>,
}

/// Standard input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing.
    #[default]
    Nothing,
    /// A text.
    Text(Text),
    /// A file, relative to the scenario's folder.
    File(Text),
}

/// What is expected of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Expect {
    /// The exit code. Where none of the expectations of a run names one, it is 0.
    pub exit: Option<i32>,
    /// A pattern that stdout must match.
    pub stdout: Option<Pattern>,
    /// A pattern that stderr must match.
    pub stderr: Option<Pattern>,
    /// A pattern that stdout must not match.
    pub stdout_not: Option<Pattern>,
    /// A pattern that stderr must not match.
    pub stderr_not: Option<Pattern>,
    /// The JSON value that stdout must equal.
    pub json: Option<Value>,
    /// Files that must be the same after the run as before.
    pub unchanged: Vec<Text>,
    /// Files that must exist after the run.
    pub exists: Vec<Text>,
    /// Where it stands.
    #[serde(skip)]
    pub origin: Option<Origin>,
    /// Where the keys of it stand that later versions execute, by key.
    #[serde(skip)]
    pub places: Vec<(&'static str, Origin)>,
}

/// A step: its process has the environment, user and directory of the entry it stands in.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// What is run.
    pub process: Process,
    /// The product: where it is there, the step is skipped.
    pub creates: Option<Text>,
    /// What is expected of it.
    pub expect: Expect,
}

/// A command whose first line is recorded as a fact.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What is run.
    pub process: Process,
    /// What is expected of it.
    pub expect: Expect,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cache {
    /// Its name.
    pub name: String,
    /// How it is cleared.
    pub clear: Clear,
    /// Paths that must be absent or empty after clearing.
    pub empty: Vec<Text>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// How a cache is cleared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clear {
    /// By a process.
    Process(Box<Process>),
    /// The kernel's page cache: sync, then drop.
    PageCache,
}

/// A command that is compared, or that drives servers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Command {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is run.
    pub process: Process,
    /// Ids of the servers that run meanwhile.
    pub needs: Vec<String>,
    /// Where `needs` stands.
    #[serde(skip)]
    pub needs_origin: Option<Origin>,
    /// Names of the caches it uses.
    pub caches: Vec<String>,
    /// Steps before every run.
    pub before: Vec<Step>,
    /// Steps after every run.
    pub after: Vec<Step>,
    /// What is expected of every run.
    pub expect: Expect,
    /// Values taken out of every run.
    pub capture: IndexMap<String, Capture>,
    /// Where stdout goes.
    pub stdout: Stdout,
}

/// A value taken out of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Capture {
    /// Where it is found.
    pub from: CaptureFrom,
    /// Which match counts.
    pub pick: Pick,
    /// Its unit; absent for a fact.
    pub unit: Option<String>,
    /// Which direction is good.
    pub better: Option<Better>,
    /// How coarse its clock is, in base units.
    pub step: Option<f64>,
    /// True where no noise is expected.
    pub exact: bool,
    /// True where a run without it is no failure.
    pub optional: bool,
    /// Its value where nothing is found.
    pub default: Option<Value>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// Where a value is found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureFrom {
    /// In stdout, by a pattern.
    Stdout(Pattern),
    /// In stderr, by a pattern.
    Stderr(Pattern),
    /// In stdout, by a JSON path.
    StdoutJson(JsonPath),
    /// In a file, by a pattern.
    FileRegex {
        /// The file.
        file: Text,
        /// The pattern.
        regex: Pattern,
    },
    /// In a file, by a JSON path.
    FileJson {
        /// The file.
        file: Text,
        /// The path within.
        json: JsonPath,
    },
    /// The size of a file or directory.
    Size(Text),
    /// The SHA-256 of a file.
    Sha256(Text),
    /// The number of entries below a directory.
    Entries(Text),
}

/// A check.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is run.
    pub process: Process,
    /// Ids of the servers that run meanwhile.
    pub needs: Vec<String>,
    /// What it takes to pass.
    pub expect: Expect,
    /// The failure that is known for these axis values.
    pub fails_on: Option<Expect>,
    /// Streams whose differences over the expansion are reported.
    pub same: Vec<SameStream>,
}
