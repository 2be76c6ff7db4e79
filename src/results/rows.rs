//! The rows of `result.json`: types of their own, so that the log and the program may change without the file.
//!
//! A `started` of a row is in seconds since the run's. `null` and an absent key both mean that there is no value.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::event::design::Reference;
use crate::event::{
    CellId, CheckOutcome, Facts, Metrics, Outcome, Phase, Program, Role, SourceFile, TurnId, Unmet, When,
};

/// The program that measured, and the one that made the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Maker {
    /// The version of the program that measured.
    pub version: String,
    /// The commit it was built from, where the build knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// The program that made this file.
    pub folded_by: Program,
    /// Raised whenever the same log would give another figure or verdict.
    pub statistics: u32,
}

/// The scenario that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What was not measured.
    pub caveats: Vec<String>,
    /// Figures quoted from elsewhere.
    pub references: Vec<Reference>,
    /// The files it was made of, the one named on the command line first.
    pub files: Vec<SourceFile>,
    /// The vars in force.
    pub vars: IndexMap<String, Json>,
    /// The profile, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What `--set` gave.
    pub set: IndexMap<String, String>,
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellOutcome {
    /// Every turn of it went well.
    Ok,
    /// A turn of it failed: it has no summary and no comparison.
    Failed,
    /// Nothing of it was started.
    Skipped,
    /// The run ended before it was whole.
    Interrupted,
}

/// One measure of one subject under one driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its id: `MEASURE:SUBJECT` or `MEASURE:SUBJECT:DRIVER`.
    pub id: CellId,
    /// The measure's id.
    pub measure: String,
    /// The group's id.
    pub group: String,
    /// The subject's id.
    pub subject: String,
    /// The id of the load or command that drives it, or null.
    #[serde(default)]
    pub driver: Option<String>,
    /// The axis values of measure, subject and driver together.
    pub axes: IndexMap<String, Json>,
    /// What it is there for.
    pub role: Role,
    /// What became of it.
    pub outcome: CellOutcome,
    /// Why it is not `ok`, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One run of a command, or one start of a server with all that is done to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its cell.
    pub cell: CellId,
    /// Its round, counted from 1 within its phase.
    pub round: u64,
    /// `warmup` for a warm-up round of commands.
    pub phase: Phase,
    /// Its place in the order of execution, counted from 1.
    pub position: u64,
    /// When it began, in seconds.
    pub started: f64,
    /// What is taken once per start.
    pub metrics: Metrics,
    /// Captured texts.
    pub facts: Facts,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not end well, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The codes of its warnings; the texts stand in `warnings`.
    pub warnings: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its cell.
    pub cell: CellId,
    /// Its turn.
    pub turn: TurnId,
    /// Its turn's round.
    pub round: u64,
    /// Its number within turn and phase, counted from 1.
    pub index: u64,
    /// A warm-up is in no statistic.
    pub phase: Phase,
    /// When it began, in seconds.
    pub started: f64,
    /// Its metrics.
    pub metrics: Metrics,
    /// Captured texts.
    pub facts: Facts,
    /// Histograms by metric stem: `HdrHistogram` V2 deflate, base64, values in nanoseconds.
    pub histograms: BTreeMap<String, String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not end well, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The codes of its warnings; the texts stand in `warnings`.
    pub warnings: Vec<String>,
}

/// What a probe was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeAnswer {
    /// The measure.
    pub measure: String,
    /// The cell.
    pub cell: CellId,
    /// The server.
    pub server: String,
    /// The probe.
    pub probe: String,
    /// The turn's round.
    pub round: u64,
    /// Before the runs or after.
    pub when: When,
    /// The status code, where an answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body's length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The body's SHA-256, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The headers, where the probe records them: names in lower case, in the order in which they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<(String, String)>>,
    /// The first 1,024 bytes of the body, where the probe records it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Why nothing came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True where every expectation held.
    pub passed: bool,
    /// The expectations that did not hold.
    pub failures: Vec<Unmet>,
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its id.
    pub check: String,
    /// Its name for people.
    pub label: String,
    /// Its axis values.
    pub axes: IndexMap<String, Json>,
    /// Its outcome.
    pub outcome: CheckOutcome,
    /// Its exit, in words.
    pub exit: String,
    /// The end of its stdout.
    pub stdout: String,
    /// The end of its stderr.
    pub stderr: String,
    /// What was expected and did not hold.
    pub failures: Vec<Unmet>,
}

/// An interval, and how it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Its coverage, 0 to 1.
    pub coverage: f64,
    /// `order statistics`.
    pub method: String,
}

/// The statistics of one metric of one cell. A value is that of one turn: of a command its run, of a server with several
/// starts the median over the measured runs of one start; with one start, those of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The cell.
    pub cell: CellId,
    /// The metric.
    pub metric: String,
    /// How many values.
    pub n: u64,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation with n − 1; one value has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// The first quartile, Hyndman-Fan type 7.
    pub q1: f64,
    /// The third quartile, Hyndman-Fan type 7.
    pub q3: f64,
    /// The median distance from the median, unscaled.
    pub mad: f64,
    /// An interval of the median of at least 95 %; fewer than 6 values have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Of a percentile: that of all requests of all runs taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<f64>,
    /// Of a percentile: the fewest requests that one run's value was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing: the values are not what the subjects can do. There is no ratio, no difference and no overlap.
    Invalid,
}

/// A cell's metric against that of its group's baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The group.
    pub group: String,
    /// The metric.
    pub metric: String,
    /// The subject that is the baseline.
    pub baseline: String,
    /// The subject that is compared with it.
    pub subject: String,
    /// How many values the baseline has.
    pub baseline_n: u64,
    /// How many values the subject has.
    pub subject_n: u64,
    /// The subject's median divided by the baseline's; absent where that is not above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The subject's median minus the baseline's, where there is no ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Whether the ranges of the values share a value; absent where nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<bool>,
    /// What the comparison says. Absent where no statement is made beyond the numbers above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why the verdict is this, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The codes of the warnings that touch this comparison, sorted, each once.
    pub warnings: Vec<String>,
}

/// Something that differed between the answers to one probe of subjects that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parity {
    /// The group.
    pub group: String,
    /// The probe.
    pub probe: String,
    /// `status`, `body`, or `header NAME`.
    pub what: String,
    /// By subject: the value of its first answer, of a body `sha256:` and its digest; null where there was none.
    pub values: IndexMap<String, Option<String>>,
    /// The subjects of which not every answer had the same value.
    pub varies: Vec<String>,
    /// The subjects that differ from the baseline. A header that varies in both is no difference.
    pub differs: Vec<String>,
    /// Whether the scenario names it as known.
    pub declared: bool,
}

/// Something that a reader of the numbers must know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable code in kebab case.
    pub code: String,
    /// What, in words.
    pub text: String,
    /// The group it belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellId>,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The phase of the run or turn, where it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The metric, where it belongs to one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

/// One second of a load. Stands in no `result.json`, but in `series.csv`.
#[derive(Debug, Clone, PartialEq)]
pub struct Second {
    /// The cell.
    pub cell: CellId,
    /// The round.
    pub round: u64,
    /// The run's number within turn and phase.
    pub index: u64,
    /// Whether the run counts.
    pub phase: Phase,
    /// Seconds since the window began, at the end of this second.
    pub at: f64,
    /// What was seen.
    pub values: Metrics,
}
