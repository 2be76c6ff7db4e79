//! What is started: processes, steps, tools, commands, checks, and what is expected of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::capture::Capture;
use super::decode::{CaptureName, Decode, Decoder, FileName, Keyed, VariableName, Word, table};
use super::field::Field;
use super::kinds::{Argv, AxisValue, Cpus, LongerThanZero, Pattern, Whole};
use super::node::{Node, NodeValue};
use super::value::{Text, Value};
use super::words::{SameStream, Stdout};
use crate::diagnostic::Spanned;

/// A reference to entries: a name, an id or a glob.
pub type References = Field<Vec<Spanned<String>>>;

table! {
    /// A process: exactly one of `command` and `shell`.
    Process {
        /// An argument vector, no shell: `["prog", "arg"]`.
        command: Field<Argv>,
        /// A line for `/bin/sh -c`, in place of `command`.
        shell: Field<Text>,
        /// The directory it runs in, relative to the scenario's folder, which is the default; with a workspace the workspace.
        cwd: Field<Text>,
        /// Environment variables, beside those of `[environment]`.
        env: Keyed<VariableName, Field<Text>>,
        /// What it reads from standard input: a text, or `{ file = "…" }`. Nothing by default.
        stdin: Stdin,
        /// The user it runs as, when bakeoff is root.
        user: Field<String>,
        /// The processors it may run on, such as `"0-3,6"`.
        cpus: Field<Cpus>,
        /// When it is ended with its whole tree. Default 10m; of tools and checks 60s.
        timeout: Field<LongerThanZero>,
        /// Files written first, into `dir` (of a setup step into its `cwd`): name to text.
        files: Keyed<FileName, Field<Text>>,
    }
}

table! {
    /// How an entry is expanded over axes.
    Expand {
        /// The axes: one of the entry is made for every combination of their values.
        each: Field<Vec<Spanned<String>>>,
        /// Combinations that are left out.
        exclude: Vec<Keyed<Word, Field<AxisValue>>>,
        /// Its name for people. Default: the id.
        label: Field<String>,
    }
}

table! {
    /// What is expected of a process; exit 0 when nothing is said.
    Expect {
        /// The exit code.
        exit: Field<Whole<0, 255>>,
        /// A pattern that stdout must match.
        stdout: Field<Pattern>,
        /// A pattern that stderr must match.
        stderr: Field<Pattern>,
        /// A pattern that stdout must not match.
        stdout_not: Field<Pattern>,
        /// A pattern that stderr must not match.
        stderr_not: Field<Pattern>,
        /// The JSON value that stdout must equal.
        json: Field<Value>,
        /// Files that must be the same after the run as before.
        unchanged: Field<Vec<Text>>,
        /// Files that must exist after the run.
        exists: Field<Vec<Text>>,
    }
}

table! {
    /// The keys of a step that is written as a table.
    StepTable {
        ..process: Process,
        /// The product: where it is there, the step is skipped. Relative to the scenario's folder.
        creates: Field<Text>,
        /// What is expected of it.
        expect: Expect,
    }
}

table! {
    /// A command whose first line is recorded as a fact, such as a version.
    Tool {
        ..process: Process,
        /// What is expected of it: it can pin a version.
        expect: Expect,
    }
}

table! {
    /// A command that is compared.
    Command {
        ..process: Process,
        ..expand: Expand,
        /// Servers that run while the group is measured.
        needs: References,
        /// Caches it uses.
        caches: References,
        /// Steps before every run, not timed.
        before: Vec<Step>,
        /// Steps after every run, not timed.
        after: Vec<Step>,
        /// What is expected of every run.
        expect: Expect,
        /// Values taken out of every run.
        capture: Keyed<CaptureName, Capture>,
        /// Where stdout goes: `"file"` (default) or `"null"`.
        stdout: Field<Stdout>,
    }
}

table! {
    /// A process that passes or fails, and that is data.
    Check {
        ..process: Process,
        ..expand: Expand,
        /// Servers that run meanwhile.
        needs: References,
        /// What it takes to pass.
        expect: Expect,
        /// Failures that are known: a value of one of the check's axes to the failure that is declared for it.
        fails_on: Keyed<super::decode::AxisWord, Expect>,
        /// Streams whose differences over the expansion are reported.
        same: Field<Vec<SameStream>>,
    }
}

/// A step: a bare argument vector, or a table.
#[derive(Debug, Clone)]
pub enum Step {
    /// An argument vector.
    Bare(Field<Argv>),
    /// With more to it.
    Table(Box<StepTable>, crate::diagnostic::Span),
}

impl Decode for Step {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Array(_) => Field::decode(node, decoder).map(Self::Bare),
            NodeValue::Table(_) => {
                StepTable::decode(node, decoder).map(|table| Self::Table(Box::new(table), node.span))
            }
            _ => {
                decoder.expected(node, "a step: an argument vector such as [\"rm\", \"-rf\", \"cache\"], or a table");
                None
            }
        }
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Field<Argv>>(), generator.subschema_for::<StepTable>()] })
    }
}

/// Standard input.
#[derive(Debug, Clone)]
pub enum Stdin {
    /// A text.
    Text(Field<Text>),
    /// A file, relative to the scenario's folder.
    File(StdinFile),
}

table! {
    /// Standard input from a file.
    StdinFile {
        /// The file, relative to the scenario's folder.
        file: Field<Text>,
    }
}

impl Decode for Stdin {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Table(_) => StdinFile::decode(node, decoder).map(Self::File),
            NodeValue::String(_) => Field::decode(node, decoder).map(Self::Text),
            _ => {
                decoder.expected(node, "a text, or { file = \"…\" }");
                None
            }
        }
    }
}

impl JsonSchema for Stdin {
    fn schema_name() -> Cow<'static, str> {
        "Stdin".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<StdinFile>()] })
    }
}
