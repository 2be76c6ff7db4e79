//! What happened, as data: the vocabulary of `events.jsonl`.
//!
//! In: nothing. Out: the types that the interpreter emits and that progress, results and tests read. A log is a sequence of
//! [`Line`]s; the first event is [`Event::Started`], whose [`Design`] tells a result all it must know of the plan.
//! To add an event, add a variant here and read it in `results/fold.rs`; readers pass over events they do not know, so an
//! addition keeps [`SCHEMA`], anything else raises it. Numbers are in base units: `s`, `B`, `1/s`, `1`.

pub mod design;
pub mod metric;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use design::{Design, Driver, DriverKind, Role, Subject, SubjectKind};

/// The version of the log that this program writes; it stands in the first line.
pub const SCHEMA: &str = "bakeoff.events/1";

/// The id of a cell: `MEASURE:SUBJECT` or `MEASURE:SUBJECT:DRIVER`.
pub type CellId = String;
/// The id of a turn: its cell's id, `#` and the round, counted from 1; a warm-up round of commands is `#w1`, `#w2`, ….
pub type TurnId = String;
/// Metric names to values in base units. A metric that has no value is absent: never 0, never null.
pub type Metrics = IndexMap<String, f64>;
/// Fact names to texts.
pub type Facts = IndexMap<String, String>;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Seconds of the monotonic clock since the first line.
    pub t: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run began. Always the first line.
    Started(Box<Started>),
    /// What the machine is.
    Machine(MachineFacts),
    /// A setup step is done or was skipped because its product is there.
    Setup(SetupStep),
    /// A tool told its version.
    Tool(ToolFact),
    /// A program or file that takes part.
    Input(InputFile),
    /// A check passed or failed.
    Check(CheckResult),
    /// A turn began: one run of a command, or one start of a server with all that is done to it.
    TurnStarted(TurnStarted),
    /// The server of a turn is ready.
    Ready(Ready),
    /// A probe was answered, or was not.
    Probe(ProbeResult),
    /// A cache was cleared.
    Cleared(Cleared),
    /// A run began within a turn.
    RunStarted(RunStarted),
    /// One second of a load.
    Sample(Sample),
    /// A run ended.
    RunEnded(Box<RunEnded>),
    /// A turn ended.
    TurnEnded(TurnEnded),
    /// Something that a reader of the numbers must know.
    Warning(Warning),
    /// Something failed; what else can go on does.
    Failed(Failed),
    /// A signal asked the run to stop.
    Interrupted {
        /// The signal's name, such as `SIGINT`.
        signal: String,
    },
    /// The run ended in order. A log without this line belongs to a run that was killed.
    Finished {
        /// When, UTC, RFC 3339.
        utc: String,
    },
    /// An event of a later version: passed over.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit it was built from, where the build knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
}

/// A file that the scenario was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFile {
    /// Its path as the diagnostics show it.
    pub path: String,
    /// Its SHA-256, in hex.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// `bakeoff.events/1`.
    pub schema: String,
    /// When, UTC, RFC 3339.
    pub utc: String,
    /// The program that measures.
    pub bakeoff: Program,
    /// The scenario's files, the one named on the command line first.
    pub files: Vec<SourceFile>,
    /// The vars in force, rendered.
    pub vars: IndexMap<String, Json>,
    /// The profile, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What `--set` gave, name to text.
    pub set: IndexMap<String, String>,
    /// The seed of every shuffle and mix.
    pub seed: u64,
    /// SHA-256 of the plan's canonical JSON, in hex.
    pub plan: String,
    /// What a result must know of the plan.
    pub design: Design,
}

/// What the machine is. What the kernel does not tell is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The processor's model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Processor packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u64>,
    /// Physical cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Logical processors that are online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The frequency governor of the first processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Whether the clock may rise above its base frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// The kernel's name and release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The hypervisor's name, or `unknown` where there is one that does not say; absent on bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// The control group's CPU limit, in cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_cpus: Option<f64>,
    /// The control group's memory limit, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory: Option<u64>,
    /// The distribution's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// The type of the file system that `run_dir` lies on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_dir_fs: Option<String>,
}

/// A setup step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetupStep {
    /// The step, as a line.
    pub step: String,
    /// True where `creates` was there and nothing was run.
    pub skipped: bool,
    /// Wall time in seconds, where it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<f64>,
}

/// What a tool said of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFact {
    /// The tool's name in the scenario.
    pub tool: String,
    /// Its argument vector.
    pub command: Vec<String>,
    /// Its exit code.
    pub exit: i32,
    /// The first lines that it printed: of stdout, or of stderr where stdout is empty.
    pub lines: Vec<String>,
}

/// A program, or a file of the scenario's folder that arguments or workspaces name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputFile {
    /// The path, relative to the scenario's folder where it lies inside.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256, in hex.
    pub sha256: String,
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The check's id.
    pub check: String,
    /// Its outcome.
    pub outcome: CheckOutcome,
    /// Its exit, in words (`0`, `1`, `killed by SIGSEGV`).
    pub exit: String,
    /// The end of its stdout.
    pub stdout: String,
    /// The end of its stderr.
    pub stderr: String,
    /// What was expected and did not hold.
    pub failures: Vec<Unmet>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckOutcome {
    /// What was expected held.
    #[serde(rename = "pass")]
    Pass,
    /// It did not.
    #[serde(rename = "fail")]
    Fail,
    /// It failed in the very way that `fails_on` declares.
    #[serde(rename = "known failure")]
    KnownFailure,
    /// It passed where `fails_on` declares a failure.
    #[serde(rename = "unexpected pass")]
    UnexpectedPass,
}

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmet {
    /// What was looked at, such as `status`, `header etag`, `exit`.
    pub what: String,
    /// What the scenario expects.
    pub expected: String,
    /// What was there.
    pub actual: String,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// The turn.
    pub turn: TurnId,
    /// Its cell.
    pub cell: CellId,
    /// Its round, counted from 1 within its phase.
    pub round: u64,
    /// `warmup` for a warm-up round of commands, else `measured`.
    pub phase: Phase,
    /// Its place in the order of execution over the whole run, counted from 1.
    pub position: u64,
}

/// The server of a turn is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// The turn.
    pub turn: TurnId,
    /// The server's id.
    pub server: String,
    /// The port it listens on, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `startup`, `rss.idle` and what else is known when it is ready.
    pub metrics: Metrics,
}

/// When a probe was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// When the server was ready, before its first run.
    Before,
    /// After its last run.
    After,
}

/// A probe was answered, or was not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// The turn.
    pub turn: TurnId,
    /// The server's id.
    pub server: String,
    /// The probe's id.
    pub probe: String,
    /// Before the runs or after.
    pub when: When,
    /// What came back; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Why nothing came back, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True where an answer came and every expectation held.
    pub passed: bool,
    /// The expectations that did not hold.
    pub failures: Vec<Unmet>,
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names in lower case with their values, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The body's length in bytes.
    pub bytes: u64,
    /// The body's SHA-256, in hex.
    pub sha256: String,
    /// The body's first 1,024 bytes as text; what is no UTF-8 is replaced.
    pub head: String,
}

/// A cache was cleared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cleared {
    /// The turn.
    pub turn: TurnId,
    /// The cache's id.
    pub cache: String,
    /// Whether its paths were looked at and found empty; absent where the scenario names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved: Option<bool>,
}

/// Whether a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is recorded and in no statistic.
    Warmup,
    /// It counts.
    Measured,
}

/// A run began within a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// The turn.
    pub turn: TurnId,
    /// Its number within the turn and phase, counted from 1.
    pub index: u64,
    /// Whether it counts.
    pub phase: Phase,
    /// How long it is meant to take, in seconds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
}

/// One second of a load. A row of `series.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// The turn.
    pub turn: TurnId,
    /// The run's number within the turn and phase.
    pub index: u64,
    /// Whether the run counts.
    pub phase: Phase,
    /// Seconds since the window began, at the end of this sample.
    pub at: f64,
    /// What was seen in this second: `requests`, `errors.total`, `latency.p50`, `latency.p99`, `rss`, `cpu.cores`, ….
    pub values: Metrics,
}

/// How a run or a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should.
    Ok,
    /// Something did not hold; the reason says what.
    Failed,
    /// A signal ended it.
    Interrupted,
}

/// A run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEnded {
    /// The turn.
    pub turn: TurnId,
    /// Its number within the turn and phase, counted from 1.
    pub index: u64,
    /// Whether it counts.
    pub phase: Phase,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its metrics. Those of a failed run are kept, and enter no statistic.
    pub metrics: Metrics,
    /// Its facts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub facts: Facts,
    /// Histograms by metric stem (`latency`, `connect`): `HdrHistogram` V2 deflate, base64, values in nanoseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, String>,
    /// The first answers that were not good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad_answers: Vec<BadAnswer>,
    /// Ages in seconds of the requests that were in flight when the window ended, oldest first, at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight_ages: Vec<f64>,
    /// What a reader of these numbers must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// An answer that was not good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BadAnswer {
    /// Its kind: `status`, `body`, `timeout`, `connect`, `reset` or `protocol`.
    pub kind: String,
    /// Seconds since the window began.
    pub at: f64,
    /// The status code, where a head came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers, where a head came.
    pub headers: Vec<(String, String)>,
    /// The first 1,024 bytes of what came after the head, as text, or the error in words where nothing came.
    pub text: String,
}

/// A turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is taken once per start, at its end: `rss.peak`, …. Together with those of [`Ready`] the turn's metrics.
    pub metrics: Metrics,
    /// Its facts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub facts: Facts,
}

/// The code of the warning that the generator, and not the server, was what limited a run.
pub const GENERATOR_BOUND: &str = "generator-bound";

/// Something that a reader of the numbers must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable code in kebab case.
    pub code: String,
    /// What, in words.
    pub text: String,
    /// The cell it belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellId>,
    /// The turn it belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// A stable code in kebab case.
    pub code: String,
    /// What failed, one phrase.
    pub message: String,
    /// `FILE:LINE:COLUMN` of the key in the scenario that it stems from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The whole diagnostic as it is shown: the line underlined, the end of the process's output, help.
    pub rendered: String,
    /// The cell that fails by it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellId>,
    /// The turn that fails by it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}
