//! Measures: what is compared, under which load, how often and in which order; and claims about the outcome.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::capture::Capture;
use super::decode::{CaptureName, Decode, Decoder, Keyed, Word, table};
use super::field::Field;
use super::kinds::{AxisValue, LongerThanZero, Natural, Positive};
use super::node::{Node, NodeValue};
use super::process::{Expand, Expect, References, Step};
use super::value::Text;
use super::words::{Better, CacheState, Order};
use crate::diagnostic::Spanned;

table! {
    /// A comparison.
    Measure {
        ..expand: Expand,
        /// The servers that are compared: names, ids or globs.
        servers: References,
        /// The commands that are compared; with `servers`, the generators that drive them.
        commands: References,
        /// The load that drives the servers.
        load: Field<Spanned<String>>,
        /// Requests sent to each server when it is ready, and again after its last run.
        probes: References,
        /// Runs that are recorded but in no statistic. Default 1. `{ runs = 1, duration = "10s" }` makes them of another length.
        warmup: Warmup,
        /// Measured runs: of a command 10, within one start of a server 1.
        runs: Field<Positive>,
        /// How many times each server is started anew. Default 6.
        starts: Field<Positive>,
        /// The order of the turns: `"balanced"` (default), `"alternating"`, `"shuffled"` or `"grouped"`.
        order: Field<Order>,
        /// A fresh directory for every run of a command, with copies of these files and folders.
        workspace: Workspace,
        /// The state of the caches: `"cold"` or `"warm"`.
        caches: Field<CacheState>,
        /// Steps before every run, not timed.
        before: Vec<Step>,
        /// Steps after every run, not timed.
        after: Vec<Step>,
        /// The pause between turns. Default none.
        cooldown: Field<Duration>,
        /// Servers that run while the group is measured.
        needs: References,
        /// Values taken out of every run of a command.
        capture: Keyed<CaptureName, Capture>,
        /// What is expected of every run of a command.
        expect: Expect,
        /// Metrics that are computed from others.
        derive: Keyed<Word, Derive>,
        /// Comparisons that must hold in every run, such as `"errors.total == 0"`; else the cell fails.
        require: Vec<Spanned<String>>,
        /// Captured values that must be equal.
        same: SameValues,
        /// The subject that the others are compared with. Default: the first.
        baseline: Field<Spanned<String>>,
        /// The metrics that get columns and verdicts, headline first.
        report: Field<Vec<Spanned<String>>>,
        /// The smallest difference that matters, such as `"1%"`.
        margin: Field<String>,
        /// True where the baseline is measured once more under another name.
        control: Field<bool>,
        /// Metrics of which none may be surely worse than the baseline.
        gate: Field<Vec<Spanned<String>>>,
        /// Rounds go on until an interval is narrow enough.
        until: Until,
    }
}

table! {
    /// A fresh directory with copies.
    Workspace {
        /// The folder that `copy` is relative to. Default: the scenario's folder.
        from: Field<Spanned<Text>>,
        /// Files and folders, relative to `from`.
        copy: Field<Vec<Spanned<Text>>>,
    }
}

table! {
    /// A metric that is computed from others.
    Derive {
        /// An expression over a run's metrics, those of its start, and `vars.NAME`, in base units.
        expr: Spanned<String>,
        /// Its unit.
        unit: Field<String>,
        /// Which direction is good.
        better: Field<Better>,
    }
}

table! {
    /// Captured values that must be equal.
    SameValues {
        /// Over the measured runs of each subject.
        runs: Field<Vec<Spanned<String>>>,
        /// Over the subjects.
        subjects: Field<Vec<Spanned<String>>>,
    }
}

table! {
    /// When rounds end.
    Until {
        /// The width of the interval, such as `"2%"`.
        ci: Field<String>,
        /// The metric whose interval it is.
        metric: Field<Spanned<String>>,
        /// The most runs.
        max_runs: Field<Positive>,
        /// The longest time.
        max_time: Field<LongerThanZero>,
    }
}

table! {
    /// Warm-up runs.
    WarmupTable {
        /// How many. Default 1.
        runs: Field<Natural>,
        /// How long each lasts; loads only.
        duration: Field<LongerThanZero>,
    }
}

/// Warm-up runs: how many, or a table.
#[derive(Debug, Clone)]
pub enum Warmup {
    /// How many.
    Runs(Field<Natural>),
    /// How many and how long.
    Table(WarmupTable),
}

impl Decode for Warmup {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Table(_) => WarmupTable::decode(node, decoder).map(Self::Table),
            _ => Field::decode(node, decoder).map(Self::Runs),
        }
    }
}

impl JsonSchema for Warmup {
    fn schema_name() -> Cow<'static, str> {
        "Warmup".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Field<Natural>>(), generator.subschema_for::<WarmupTable>()] })
    }
}

table! {
    /// A sentence about the outcome, with a number in it.
    Claim {
        /// The measure. May be left out when there is one.
        measure: Field<Spanned<String>>,
        /// Axis values that choose one group of the measure.
        r#where: Keyed<Word, Field<AxisValue>>,
        /// The sentence; `{{ value }}` is the computed value.
        text: Field<Text>,
        /// An expression over summaries, such as `"ratio('rss.peak', 'a', 'b')"`.
        value: Spanned<String>,
        /// Decimals of the printed value. Default 2.
        decimals: Field<super::kinds::Whole<0, 12>>,
        /// What the unrounded value must be, such as `">= 2"`.
        expect: Spanned<String>,
    }
}
