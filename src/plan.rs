//! The plan: what will be done, in order, with nothing left to look up.
//!
//! In: a [`Scenario`](crate::scenario::Scenario), by expansion. Out: a [`Plan`], which cannot be wrong: names are
//! resolved, axes multiplied, templates rendered, the order of turns fixed. What only a run knows is a typed hole in a
//! [`Text`]. A plan names no machine, so the same file has the same [`digest`](Plan::digest) everywhere; origins (places in
//! the file) are no part of it.
//! To add something that a run does, add it here, render it in `plan/expand`, and execute it in `run`.

mod design;
mod digest;
mod expand;
pub mod order;
mod show;

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::design::{Told, design};
pub use self::expand::expand;
pub use self::show::show;
use crate::diagnostic::Span;
use crate::event::design::{DriverKind, Reference, Role};
use crate::event::metric::Metric;
use crate::event::{CellId, Phase, TurnId};
pub use crate::scenario::value::{ClaimField, Hole, Piece, Place, ServerField, Text, Value};
pub use crate::scenario::{
    Argv, At, AxisValue, Better, CacheState, JsonPath, Order, Pattern, Pick, Port, Protocol, Record, SameAnswer,
    SameStream, Signal, Stdout,
};
use crate::units::seconds;

/// The version of the plan's JSON.
pub const SCHEMA: &str = "bakeoff.plan/1";

/// Axis names to values, in the order of `each`.
pub type Axes = IndexMap<String, AxisValue>;

/// What will be done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// `bakeoff.plan/1`.
    pub schema: &'static str,
    /// The scenario's name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The seed of every shuffle and mix.
    pub seed: u64,
    /// The vars in force.
    pub vars: IndexMap<String, Value>,
    /// What reaches the environment of the processes.
    pub environment: Environment,
    /// Steps that are run once, in order, before all else.
    pub setup: Vec<Step>,
    /// Commands whose first line is recorded as a fact.
    pub tools: Vec<Tool>,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Every server, whether measured or needed.
    pub servers: Vec<Server>,
    /// Every command.
    pub commands: Vec<Command>,
    /// Every probe.
    pub probes: Vec<Probe>,
    /// Every load.
    pub loads: Vec<Load>,
    /// Every check, in the order of execution.
    pub checks: Vec<Check>,
    /// The groups, in the order of execution.
    pub groups: Vec<Group>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Every metric that a run of this plan can have.
    pub metrics: IndexMap<String, Metric>,
    /// What the machine must be.
    pub machine: Option<Machine>,
    /// Figures quoted from elsewhere.
    pub references: Vec<Reference>,
    /// What was not measured.
    pub caveats: Vec<String>,
    /// Where the keys stand that later versions execute, in the order of the file.
    #[serde(skip)]
    pub places: Places,
}

/// Where keys of the scenario stand that have no other origin in a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `[machine]`.
    pub machine: Option<Span>,
    /// `[[references]]`.
    pub references: Option<Span>,
    /// `caveats`.
    pub caveats: Option<Span>,
}

/// What reaches the environment of the processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Environment {
    /// Variables of the caller that are passed on beside the usual ones; `*` at the end allowed, `-NAME` takes one away.
    pub inherit: Vec<String>,
    /// Variables that are set.
    pub set: IndexMap<String, Text>,
    /// Variables of the caller that are passed on and never written down.
    pub secret: Vec<String>,
}

/// What every entry that is expanded has.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Identity {
    /// Its id: `NAME/value/value`.
    pub id: String,
    /// The name of the entry that it was expanded from.
    pub name: String,
    /// Its axis values.
    pub axes: Axes,
    /// Its name for people.
    pub label: String,
    /// Where the entry's name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// A place in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(pub Span);

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

/// A server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Server {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is started.
    pub launch: Launch,
    /// Where it listens.
    pub port: Port,
    /// Ids of the servers that are started before it, in that order.
    pub needs: Vec<String>,
    /// Steps before it is started.
    pub before: Vec<Step>,
    /// Steps after it is stopped.
    pub after: Vec<Step>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// How it is stopped.
    pub stop: Stop,
    /// TLS.
    pub tls: Option<Tls>,
    /// Values that it tells.
    pub capture: IndexMap<String, ServerCapture>,
    /// Names of the caches it uses.
    pub caches: Vec<String>,
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    /// A process.
    Process(Box<Process>),
    /// The embedded reference server.
    Builtin(Builtin),
    /// A server that runs already, at this URL.
    Running(String),
}

/// The embedded reference server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Builtin {
    /// Every answer is this late, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub delay: Duration,
    /// `/json` answers this many bytes.
    pub body: Option<u64>,
    /// The processors it may run on; empty where any.
    pub cpus: Vec<usize>,
}

/// How a server is known to be ready.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ready {
    /// What shows it.
    pub when: ReadyWhen,
    /// When it is given up, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// How often it is asked, in seconds: also the step of `startup`.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub interval: Duration,
    /// Where it stands; the server's name where it does not.
    #[serde(skip)]
    pub origin: Origin,
}

/// What shows that a server is ready.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyWhen {
    /// It accepts a TCP connection.
    Tcp,
    /// It answers this path with this status.
    Http {
        /// The path.
        path: Text,
        /// The status.
        status: u16,
    },
    /// It prints what matches this.
    Output(Pattern),
    /// This command exits 0.
    Command(Box<Process>),
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stop {
    /// The signal.
    pub signal: Signal,
    /// How long it may take before its whole tree is killed, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub grace: Duration,
}

/// TLS of a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tls {
    /// A file with the certificates to trust.
    pub ca: Option<Text>,
    /// True where no certificate is checked.
    pub insecure: bool,
    /// Where it stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// A value that a server tells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServerCapture {
    /// Where it is found.
    pub from: ServerCaptureFrom,
    /// When the server is asked.
    pub at: At,
    /// Its unit; absent for a fact.
    pub unit: Option<String>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// Where a value is found that a server tells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerCaptureFrom {
    /// In what it prints.
    Output(Pattern),
    /// In the answer to a path.
    Http {
        /// The path.
        path: Text,
        /// Where in the JSON of the answer.
        json: JsonPath,
    },
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

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path.
    pub path: Text,
    /// Headers, in file order.
    pub headers: Vec<(String, Text)>,
    /// The body.
    pub body: Body,
    /// How it is sent in chunks, if it is.
    pub chunked: Option<Chunked>,
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// A text.
    Text(Text),
    /// JSON.
    Json(Value),
    /// A text repeated up to a size.
    Repeat {
        /// The text.
        text: Text,
        /// Bytes of the body.
        size: u64,
    },
}

/// Chunks of a body.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chunked {
    /// Bytes of each.
    pub size: u64,
    /// The delay before each but the first, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub delay: Duration,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AnswerExpect {
    /// The status; absent: any 2xx.
    pub status: Option<u16>,
    /// The length of the body in bytes.
    pub bytes: Option<u64>,
    /// The body as text.
    pub body: Option<Text>,
    /// The JSON value that the body must equal.
    pub json: Option<Value>,
    /// JSON paths and the values that each must find.
    pub json_path: Vec<(JsonPath, Value)>,
    /// A pattern that the body must match.
    pub matches: Option<Pattern>,
    /// Headers and the values that each must have.
    pub headers: Vec<(String, Text)>,
    /// Where it stands; absent where nothing is expected but a 2xx.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

/// A probe.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Probe {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is sent.
    pub request: Request,
    /// What is expected of the answer.
    pub expect: AnswerExpect,
    /// What results keep of each answer.
    pub record: Vec<Record>,
    /// What must be the same over the servers of a group.
    pub same: Vec<SameAnswer>,
    /// What is known to differ; lower case.
    pub known_differences: Vec<String>,
    /// Where the request stands.
    #[serde(skip)]
    pub request_origin: Origin,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is sent; more than one is a mix.
    pub requests: Vec<LoadRequest>,
    /// How many connections are kept busy.
    pub connections: u64,
    /// When a run ends.
    pub stop: LoadStop,
    /// Requests per second over all connections; absent: a closed loop.
    pub rate: Option<f64>,
    /// Requests in flight on one connection.
    pub pipeline: u64,
    /// When a request without an answer is given up, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// False where every request has a connection of its own.
    pub keep_alive: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// Threads of the generator.
    pub threads: u64,
    /// Processors that the generator is bound to; empty where any.
    pub cpus: Vec<usize>,
    /// Where the keys of it stand that later versions execute, by key.
    #[serde(skip)]
    pub places: Vec<(&'static str, Origin)>,
}

/// A request of a load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadRequest {
    /// Its name; absent where the load has one request.
    pub name: Option<String>,
    /// How often it is drawn, relative to the others.
    pub weight: f64,
    /// What is sent.
    pub request: Request,
    /// Which answers are good: status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// Which answers are good: the length of the body in bytes.
    pub bytes: Option<u64>,
}

/// When a run of a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadStop {
    /// After this time, in seconds.
    Duration(
        #[serde(with = "seconds")]
        #[schemars(with = "f64")]
        Duration,
    ),
    /// After so many requests.
    Count(u64),
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

/// Cells that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// Its id: `MEASURE` or `MEASURE:DRIVER`.
    pub id: String,
    /// The measure: id, name, axes, label.
    pub measure: Identity,
    /// What drives the servers, if anything does.
    pub driver: Option<Driver>,
    /// The id of the cell that the others are compared with.
    pub baseline: CellId,
    /// The order of the turns.
    pub order: Order,
    /// Warm-up runs: within each start of a server, or rounds before the measured ones.
    pub warmup: u64,
    /// How long a warm-up run of a load lasts, in seconds, where it is another length.
    #[serde(serialize_with = "optional_seconds")]
    #[schemars(with = "Option<f64>")]
    pub warmup_duration: Option<Duration>,
    /// Measured runs within each start of a server; 1 for commands, 0 for servers that nothing drives.
    pub runs: u64,
    /// Rounds: starts of each server, measured runs of each command.
    pub rounds: u64,
    /// The pause between turns, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub cooldown: Duration,
    /// The workspace of every run.
    pub workspace: Option<Workspace>,
    /// The state of the caches.
    pub caches: Option<CacheState>,
    /// Captured values that must be equal over the runs of a subject.
    pub same_runs: Vec<String>,
    /// Captured values that must be equal over the subjects.
    pub same_subjects: Vec<String>,
    /// The metrics that get columns, headline first.
    pub report: Vec<String>,
    /// The smallest difference that matters, as a share of 1.
    pub margin: Option<f64>,
    /// Whether the baseline is measured once more.
    pub control: bool,
    /// Metrics of which none may be surely worse than the baseline.
    pub gate: Vec<String>,
    /// When rounds end.
    pub until: Option<Until>,
    /// The cells, in file order.
    pub cells: Vec<Cell>,
    /// The turns, in the order of execution.
    pub turns: Vec<Turn>,
    /// Where the keys of it stand that later versions execute, by key.
    #[serde(skip)]
    pub places: Vec<(&'static str, Origin)>,
}

/// What drives the servers of a group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Driver {
    /// Load or command.
    pub kind: DriverKind,
    /// Its id, without the axes that only the subjects have.
    pub id: String,
    /// Its name for people.
    pub label: String,
}

/// A fresh directory with copies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Workspace {
    /// The folder that `copy` is relative to; absent: the scenario's folder.
    pub from: Option<Text>,
    /// Files and folders, relative to `from`.
    pub copy: Vec<Text>,
    /// Where it stands.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

/// When rounds end.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Until {
    /// The width of the interval, as a share of 1.
    pub ci: f64,
    /// The metric whose interval it is.
    pub metric: String,
    /// The most runs.
    pub max_runs: Option<u64>,
    /// The longest time, in seconds.
    #[serde(serialize_with = "optional_seconds")]
    #[schemars(with = "Option<f64>")]
    pub max_time: Option<Duration>,
}

/// One measure of one subject under one driver.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cell {
    /// Its id: `MEASURE:SUBJECT` or `MEASURE:SUBJECT:DRIVER`.
    pub id: CellId,
    /// The id of the server or command.
    pub subject: String,
    /// The id of the load or command that drives it.
    pub driver: Option<String>,
    /// The axis values of measure, subject and driver together.
    pub axes: Axes,
    /// What it is there for.
    pub role: Role,
    /// Ids of the probes.
    pub probes: Vec<String>,
    /// Steps of the measure before every run.
    pub before: Vec<Step>,
    /// Steps of the measure after every run.
    pub after: Vec<Step>,
    /// Ids of the servers that the measure needs.
    pub needs: Vec<String>,
    /// What the measure expects of every run of a command.
    pub expect: Expect,
    /// Values that the measure takes out of every run of a command.
    pub capture: IndexMap<String, Capture>,
    /// Metrics that are computed from others.
    pub derive: IndexMap<String, Derive>,
    /// What must hold in every run.
    pub require: Vec<Require>,
}

/// A metric that is computed from others.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Derive {
    /// The expression.
    pub expr: Formula,
    /// Its unit.
    pub unit: String,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// What must hold in every run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Require {
    /// A comparison.
    pub expr: Formula,
    /// Where it stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// An expression, its names and types checked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Formula {
    /// As it was written.
    pub text: String,
    /// Parsed.
    #[serde(skip)]
    pub parsed: crate::expr::Expression,
}

/// One run of a command, or one start of a server with all that is done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Turn {
    /// Its id: the cell's id, `#`, and the round (`#w1` for a warm-up round of commands).
    pub id: TurnId,
    /// The index of its cell in the group.
    pub cell: usize,
    /// Whether it counts.
    pub phase: Phase,
    /// Its round within the phase, counted from 1.
    pub round: u64,
}

/// A sentence about the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The group it is about.
    pub group: String,
    /// The sentence.
    pub text: Text,
    /// The value, an expression over summaries.
    pub value: Formula,
    /// Decimals of the printed value.
    pub decimals: u8,
    /// What the value must be.
    pub expect: Option<String>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// What the machine must be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// At least so many cores.
    pub cores: Option<u64>,
    /// At least so many bytes of memory.
    pub memory: Option<u64>,
    /// Whether there is a hypervisor.
    pub hypervisor: Option<bool>,
    /// The frequency governor.
    pub governor: Option<String>,
    /// True where nothing is run on another machine.
    pub refuse: bool,
}

impl Plan {
    /// The server with this id.
    #[must_use]
    pub fn server(&self, id: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.identity.id == id)
    }

    /// The command with this id.
    #[must_use]
    pub fn command(&self, id: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.identity.id == id)
    }

    /// The probe with this id.
    #[must_use]
    pub fn probe(&self, id: &str) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.identity.id == id)
    }

    /// The load with this id.
    #[must_use]
    pub fn load(&self, id: &str) -> Option<&Load> {
        self.loads.iter().find(|load| load.identity.id == id)
    }

    /// SHA-256 of the plan's canonical JSON (no white space, no origins), in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        digest::of(self)
    }
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn optional_seconds<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds::serialize(duration, serializer),
        None => serializer.serialize_none(),
    }
}
