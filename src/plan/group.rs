//! What a plan measures: groups, cells, turns.

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Axes, CacheState, Capture, Expect, Identity, Order, Origin, Step, Text, optional_seconds};
use crate::event::design::{DriverKind, Role};
use crate::event::{CellId, Phase, TurnId};
use crate::units::seconds;

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
