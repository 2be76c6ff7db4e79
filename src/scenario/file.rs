//! A scenario file as it is written: its top level.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{AxisWord, Date, Decode, Decoder, EntryName, Keyed, VariableName, Word, table};
use super::field::{Field, FromValue};
use super::http::{Load, Probe};
use super::kinds::{Argv, AxisValue, Positive, Size};
use super::measure::{Claim, Measure};
use super::node::{Node, NodeValue};
use super::process::{Check, Command, Step, Tool};
use super::server::Server;
use super::value::{Text, Value};
use crate::diagnostic::{Span, Spanned};

table! {
    /// A scenario of bakeoff: servers, commands, probes, caches and measures.
    Scenario {
        /// The version of the language: 1. The first key of every file.
        format: Spanned<i64>,
        /// The scenario's name; required in a file that is run.
        name: Spanned<String>,
        /// Its title.
        title: Spanned<String>,
        /// What it is about; may be paragraphs.
        description: Spanned<String>,
        /// Files that are taken in, relative to this one.
        include: Vec<Spanned<String>>,
        /// Named values for templates; `--set name=value` overrides them.
        vars: Keyed<Word, Field<Value>>,
        /// What reaches the environment of the processes.
        environment: Environment,
        /// Axes that entries expand over: lists of values, or tables whose entries all have the same fields.
        axes: Keyed<Word, Axis>,
        /// Keys that every entry of a kind has unless it sets them itself.
        defaults: Defaults,
        /// Commands whose first line is recorded as a fact.
        tools: Keyed<EntryName, Tool>,
        /// Steps that are run once, in order, before all else.
        setup: Vec<Step>,
        /// Caches: how they are cleared and known to be empty.
        caches: Keyed<EntryName, Cache>,
        /// Servers.
        servers: Keyed<EntryName, Server>,
        /// Requests that show that a server does what is to be measured.
        probes: Keyed<EntryName, Probe>,
        /// Commands.
        commands: Keyed<EntryName, Command>,
        /// Loads of the built-in generator.
        loads: Keyed<EntryName, Load>,
        /// Processes that pass or fail.
        checks: Keyed<EntryName, Check>,
        /// Comparisons.
        measures: Keyed<EntryName, Measure>,
        /// Sentences about the outcome.
        claims: Keyed<EntryName, Claim>,
        /// What the machine must be.
        machine: Machine,
        /// Figures quoted from elsewhere.
        references: Vec<Reference>,
        /// What was not measured.
        caveats: Vec<Field<String>>,
        /// Replacements that `--profile NAME` chooses.
        profiles: Keyed<EntryName, Profile>,
    }
}

table! {
    /// What reaches the environment of the processes.
    Environment {
        /// Variables of the caller that are passed on, `*` at the end allowed; `"-NAME"` takes one away.
        inherit: Field<Vec<Spanned<String>>>,
        /// Variables that are set.
        set: Keyed<VariableName, Field<Text>>,
        /// Variables of the caller that are passed on, their values replaced by `***` in all that is written.
        secret: Field<Vec<Spanned<String>>>,
    }
}

table! {
    /// Keys that every entry of a kind has unless it sets them itself.
    Defaults {
        /// Of servers.
        servers: Server,
        /// Of commands.
        commands: Command,
        /// Of loads.
        loads: Load,
        /// Of measures.
        measures: Measure,
    }
}

table! {
    /// A cache: how it is cleared and known to be empty.
    Cache {
        ..process: super::process::Process,
        /// An argument vector, or `"page-cache"`.
        clear: Clear,
        /// Paths that must be absent or empty after clearing.
        empty: Field<Vec<Text>>,
    }
}

table! {
    /// What the machine must be.
    Machine {
        /// At least so many cores.
        cores: Field<Positive>,
        /// At least so much memory.
        memory: Field<Size>,
        /// Whether there is a hypervisor.
        hypervisor: Field<bool>,
        /// The frequency governor.
        governor: Field<String>,
        /// True where nothing is run on another machine; else every verdict has a warning.
        refuse: Field<bool>,
    }
}

table! {
    /// A figure quoted from elsewhere.
    Reference {
        /// What it says.
        text: Field<String>,
        /// The figure.
        value: Spanned<f64>,
        /// Its unit.
        unit: Field<String>,
        /// Who said it, where.
        source: Field<String>,
        /// When: a TOML date.
        date: Date,
    }
}

table! {
    /// Replacements: `vars.X`, `axes.X`, `loads.X.KEY`, `measures.X.KEY`.
    Profile {
        /// Values of vars.
        vars: Keyed<Word, Field<Value>>,
        /// Whole axes.
        axes: Keyed<Word, Axis>,
        /// Keys of loads.
        loads: Keyed<EntryName, Load>,
        /// Keys of measures.
        measures: Keyed<EntryName, Measure>,
    }
}

/// An axis.
#[derive(Debug, Clone)]
pub enum Axis {
    /// A list of values.
    Values(Field<Vec<Spanned<AxisValue>>>),
    /// Named values with fields.
    Table(Keyed<AxisWord, Keyed<Word, Field<Value>>>, Span),
}

impl Decode for Axis {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Table(_) => Keyed::decode(node, decoder).map(|table| Self::Table(table, node.span)),
            _ => Field::decode(node, decoder).map(Self::Values),
        }
    }
}

impl JsonSchema for Axis {
    fn schema_name() -> Cow<'static, str> {
        "Axis".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = <Vec<AxisValue> as FromValue>::schema(generator);
        let table = generator.subschema_for::<Keyed<AxisWord, Keyed<Word, Field<Value>>>>();
        json_schema!({ "anyOf": [values, { "type": "string", "pattern": "\\{\\{" }, table] })
    }
}

/// How a cache is cleared.
#[derive(Debug, Clone)]
pub enum Clear {
    /// By a command.
    Command(Field<Argv>),
    /// The kernel's page cache: sync, then drop.
    PageCache(Span),
}

impl Decode for Clear {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::String(word) if word == "page-cache" => Some(Self::PageCache(node.span)),
            NodeValue::Array(_) => Field::decode(node, decoder).map(Self::Command),
            _ => {
                decoder.expected(node, "an argument vector, or \"page-cache\"");
                None
            }
        }
    }
}

impl JsonSchema for Clear {
    fn schema_name() -> Cow<'static, str> {
        "Clear".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["page-cache"] }, generator.subschema_for::<Field<Argv>>()] })
    }
}
