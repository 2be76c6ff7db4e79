//! `schema`: the JSON Schemas (draft-07) of everything that bakeoff reads and writes.

use clap::{Args, ValueEnum};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

use super::Exit;
use super::output::print;

/// `bakeoff schema`
#[derive(Debug, Args)]
pub(super) struct Print {
    /// Of what
    #[arg(value_enum)]
    kind: Kind,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A scenario file.
    Scenario,
    /// What `plan --format json` prints.
    Plan,
    /// A line of events.jsonl.
    Event,
    /// A result.json.
    Result,
    /// What `load --json` prints.
    Load,
}

impl Print {
    pub(super) fn run(&self) -> Exit {
        print(&self.kind.text())
    }
}

impl Kind {
    /// The schema as text, ending in a line end.
    #[must_use]
    pub fn text(self) -> String {
        let schema = match self {
            Self::Scenario => of::<crate::scenario::Scenario>(true),
            Self::Plan => of::<crate::plan::Plan>(false),
            Self::Event => of::<crate::event::Line>(false),
            Self::Result => of::<crate::results::Results>(false),
            Self::Load => of::<super::load::Document>(false),
        };
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn of<T: JsonSchema>(toml: bool) -> Schema {
    let mut settings = SchemaSettings::draft07();
    if toml {
        settings = settings.with_transform(RecursiveTransform(without_null)).with_transform(RecursiveTransform(closed));
    }
    settings.into_generator().into_root_schema_for::<T>()
}

/// TOML has no null: a key that may be absent is absent.
fn without_null(schema: &mut Schema) {
    if let Some(serde_json::Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(serde_json::Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    }
}

/// Draft-07 does not know `unevaluatedProperties`: keys of flattened tables are listed with the others.
fn closed(schema: &mut Schema) {
    if let Some(value) = schema.remove("unevaluatedProperties") {
        schema.insert("additionalProperties".to_owned(), value);
    }
}
