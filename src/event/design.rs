//! What a result must know of the plan: subjects, groups, cells, probes and metrics, as the first line of the log holds them.
//!
//! Made by `plan/design.rs`, read by `results`. A report of last year's result needs no scenario and no plan: all that is
//! printed of them stands here.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::CellId;
use super::metric::Metric;

/// What a result must know of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// The scenario's name.
    pub name: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// Figures quoted from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// What is compared, in file order.
    pub subjects: Vec<Subject>,
    /// The groups, in order of execution. Only cells of one group are compared.
    pub groups: Vec<Group>,
    /// The cells, in the order of the groups and of their subjects.
    pub cells: Vec<Cell>,
    /// The probes that the measures use.
    pub probes: Vec<Probe>,
    /// The checks, in file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Every metric that a run of this plan can have, by name.
    pub metrics: IndexMap<String, Metric>,
}

/// A quoted figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// What it says.
    pub text: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Who said it, where.
    pub source: String,
    /// When: a date.
    pub date: String,
}

/// What kind of thing is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A server.
    Server,
    /// A command.
    Command,
}

/// What a subject is there for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To be compared.
    #[default]
    Subject,
    /// The baseline once more: what it shows against itself.
    Control,
}

/// What is compared: a server or a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Its id.
    pub id: String,
    /// Server or command.
    pub kind: SubjectKind,
    /// What it is there for.
    pub role: Role,
    /// Its name for people.
    pub label: String,
    /// Its axis values.
    pub axes: IndexMap<String, Json>,
    /// Its argument vector as rendered; what only a run knows stands in braces (`{port}`). Of the embedded server
    /// `["builtin"]`, of a server that runs already its URL alone.
    pub command: Vec<String>,
    /// Its environment: values of what the scenario sets and of PATH, LANG, `LC_*` and TZ, else null.
    pub environment: IndexMap<String, Option<String>>,
    /// The processors that it is bound to; empty where it is not.
    pub cpus: Vec<usize>,
}

/// What drives the servers of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// A load of the built-in generator.
    Load,
    /// A command that is a generator.
    Command,
}

/// What drives the servers of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// Load or command.
    pub kind: DriverKind,
    /// Its id, without the axes that only the subjects have.
    pub id: String,
    /// Its name for people.
    pub label: String,
}

/// In which order the turns of a group are executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A B, B A, A B, …
    #[default]
    Balanced,
    /// A B, A B, …
    Alternating,
    /// A permutation a round, from the seed.
    Shuffled,
    /// A A, B B.
    Grouped,
}

/// Cells that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its id: `MEASURE` or `MEASURE:DRIVER`.
    pub id: String,
    /// The measure's id.
    pub measure: String,
    /// The measure's name for people.
    pub label: String,
    /// The measure's axis values and the driver's.
    pub axes: IndexMap<String, Json>,
    /// What drives the servers, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// The cell that the others are compared with.
    pub baseline: CellId,
    /// In which order turns are executed.
    pub order: Order,
    /// Rounds of turns that are planned: starts of servers, measured runs of commands.
    pub rounds: u64,
    /// Warm-up runs: within each start of a server, or rounds before the measured ones.
    pub warmup: u64,
    /// Measured runs within each start of a server; 1 for commands, 0 for servers that nothing drives.
    pub runs: u64,
    /// The metrics that get columns, headline first.
    pub report: Vec<String>,
}

/// One measure of one subject under one driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its id.
    pub id: CellId,
    /// The measure's id.
    pub measure: String,
    /// The group's id.
    pub group: String,
    /// The subject's id.
    pub subject: String,
    /// The driver's full id, if one drives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The axis values of measure, subject and driver together.
    pub axes: IndexMap<String, Json>,
    /// What it is there for.
    pub role: Role,
    /// The probes that are sent to its server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<String>,
}

/// What of a probe's answers is kept and compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// The request, as a line.
    pub request: String,
    /// Whether results hold the headers of each answer.
    pub record_headers: bool,
    /// Whether results hold the first 1,024 bytes of each body.
    pub record_body: bool,
    /// What must be the same over the servers of a group.
    pub same: Vec<Same>,
    /// Headers, or `status` and `body`, whose difference is known: reported as declared. Lower case.
    pub known_differences: Vec<String>,
}

/// What is compared between the answers of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// The status code.
    Status,
    /// The headers, by name, `date` aside.
    Headers,
    /// The body, by its digest.
    Body,
}

/// A check, before it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its id.
    pub id: String,
    /// The name of the entry that it was expanded from.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// Its axis values.
    pub axes: IndexMap<String, Json>,
}
