//! `result.json`: the published types, and the pure fold over a log that makes them.
//!
//! In: the lines of `events.jsonl`. Out: [`Results`], flat arrays that refer to each other by id, and the seconds of the
//! loads. The same log gives the same bytes: no clock, no order of a hash. What the fold makes has row types of its own
//! (`rows`); what it passes on unchanged keeps the type of the log, whose format is published under the same rule.
//! To add a key, add a field with a default here or in `rows`, fill it in `fold` or `summarize`, and let the reports show it:
//! an addition keeps [`SCHEMA`], anything else raises it.

mod compare;
mod finite;
mod fold;
mod log;
mod parity;
mod percentile;
mod rows;
mod summarize;

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

use crate::event::design::Group;
use crate::event::metric::Metric;
use crate::event::{Failed, InputFile, MachineFacts, SetupStep, Subject, ToolFact};

pub use compare::BELOW_STEP;
pub use finite::NotFinite;
pub use fold::{FoldError, fold};
pub use percentile::Percentile;
pub use rows::{
    Cell, CellOutcome, Check, Comparison, Interval, Maker, Parity, ProbeAnswer, Run, Scenario, Second, Summary, Turn,
    Verdict, Warning,
};

/// The version of `result.json` that this program writes.
pub const SCHEMA: &str = "bakeoff.result/1";

/// What a log says in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// What becomes `result.json`.
    pub results: Results,
    /// The seconds of the loads: `series.csv`.
    pub series: Vec<Second>,
}

/// Whether all that was planned was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was.
    Complete,
    /// Something failed and was skipped.
    Partial,
    /// The run was stopped or killed before its end.
    Interrupted,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Interrupted => "interrupted",
        })
    }
}

/// All that is known of one run of a scenario. Numbers are in base units and not rounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// `bakeoff.result/1`. Additions keep the number; readers pass over keys they do not know and refuse a newer number.
    pub schema: String,
    /// Whether all that was planned was measured.
    pub status: Status,
    /// The program that measured, and the one that made this file.
    pub bakeoff: Maker,
    /// The scenario.
    pub scenario: Scenario,
    /// SHA-256 of the plan's canonical JSON, in hex.
    pub plan: String,
    /// The seed of every shuffle and mix.
    pub seed: u64,
    /// When the run began: UTC, RFC 3339.
    pub started: String,
    /// When it ended in order: UTC, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// What the machine is.
    pub machine: MachineFacts,
    /// The setup steps.
    pub setup: Vec<SetupStep>,
    /// What the tools said of themselves.
    pub tools: Vec<ToolFact>,
    /// Every program and file that took part.
    pub inputs: Vec<InputFile>,
    /// What every metric is, by name.
    pub metrics: IndexMap<String, Metric>,
    /// What is compared, in file order.
    pub subjects: Vec<Subject>,
    /// Which cells are compared with which, and how they were measured.
    pub groups: Vec<Group>,
    /// One measure of one subject under one driver each.
    pub cells: Vec<Cell>,
    /// One run of a command or one start of a server each, in the order of execution.
    pub turns: Vec<Turn>,
    /// The runs, in the order of execution.
    pub runs: Vec<Run>,
    /// What the probes were answered.
    pub probes: Vec<ProbeAnswer>,
    /// How the checks went.
    pub checks: Vec<Check>,
    /// Statistics of every metric of every cell that did not fail.
    pub summaries: Vec<Summary>,
    /// Every such cell against the baseline of its group, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// Computed statements of the scenario.
    pub claims: Vec<Json>,
    /// What must not be worse than the baseline.
    pub gates: Vec<Json>,
    /// What differed between the answers of subjects that are compared.
    pub parity: Vec<Parity>,
    /// What a reader of the numbers must know.
    pub warnings: Vec<Warning>,
    /// Everything that failed, with its place in the scenario.
    pub failures: Vec<Failed>,
}

/// Why a text is no result that this program can read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is no JSON, or not the JSON of a result.
    #[error("this is no bakeoff result: {0}")]
    Shape(#[from] serde_json::Error),
    /// It has no `schema`, or that of something else.
    #[error("this is no bakeoff result: its `schema` is not `{SCHEMA}`")]
    Schema,
    /// A later version wrote it.
    #[error("this result has format {found}, this program reads formats up to {known}: a newer bakeoff is needed")]
    Newer {
        /// The number in the file.
        found: u64,
        /// The number that this program writes.
        known: u64,
    },
}

impl Results {
    /// The text of `result.json`, a newline at its end.
    ///
    /// # Errors
    /// A number that is NaN or infinite, with its place.
    pub fn to_json(&self) -> Result<String, NotFinite> {
        let json = serde_json::to_value(self).map_err(|error| NotFinite(error.to_string()))?;
        finite::check(&json, "")?;
        Ok(format!("{json:#}\n"))
    }

    /// Reads a stored `result.json`.
    ///
    /// # Errors
    /// What is no result, and one of a newer format.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let json: Json = serde_json::from_str(text)?;
        let found =
            json["schema"].as_str().and_then(|schema| format_number(schema, SCHEMA)).ok_or(ReadError::Schema)?;
        let known = format_number(SCHEMA, SCHEMA).unwrap_or_default();
        if found > known {
            return Err(ReadError::Newer { found, known });
        }
        Ok(serde_json::from_value(json)?)
    }

    /// The subject of that id.
    #[must_use]
    pub fn subject(&self, id: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.id == id)
    }

    /// The cell of that id.
    #[must_use]
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// The summary of a cell's metric.
    #[must_use]
    pub fn summary(&self, cell: &str, metric: &str) -> Option<&Summary> {
        self.summaries.iter().find(|summary| summary.cell == cell && summary.metric == metric)
    }

    /// The comparison of a subject with its group's baseline on a metric.
    #[must_use]
    pub fn comparison(&self, group: &str, subject: &str, metric: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|row| row.group == group && row.subject == subject && row.metric == metric)
    }

    /// The unit of a metric; `1` where the plan does not name it.
    #[must_use]
    pub fn unit(&self, metric: &str) -> &str {
        self.metrics.get(metric).map_or("1", |metric| metric.unit.as_str())
    }
}

/// The number behind the `/` of `schema`, if what stands before it is that of `own`.
fn format_number(schema: &str, own: &str) -> Option<u64> {
    let (name, number) = schema.split_once('/')?;
    (name == own.split_once('/')?.0).then(|| number.parse().ok())?
}
