//! The schemas under `schemas/` are those of this program, and what it reads and writes fits them.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::path::{Path, PathBuf};

use bakeoff::cli::SchemaKind;
use bakeoff::diagnostic::{Problems, Sources};
use bakeoff::plan::expand;
use bakeoff::scenario::{Options, load};
use serde_json::Value as Json;

const KINDS: [(SchemaKind, &str); 5] = [
    (SchemaKind::Scenario, "scenario"),
    (SchemaKind::Plan, "plan"),
    (SchemaKind::Event, "event"),
    (SchemaKind::Result, "result"),
    (SchemaKind::Load, "load"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn validator(kind: SchemaKind) -> jsonschema::Validator {
    jsonschema::draft7::new(&serde_json::from_str(&kind.text()).unwrap()).unwrap()
}

fn assert_fits(validator: &jsonschema::Validator, json: &Json, what: &Path) {
    let errors: Vec<String> =
        validator.iter_errors(json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}: {errors:#?}", what.display());
}

fn scenarios() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["scenarios", "scenarios/bun-vs-node", "tests/scenarios/valid"] {
        let files = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        found.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")));
    }
    assert!(found.len() >= 10, "{found:?}");
    found
}

#[test]
fn the_files_are_up_to_date() {
    for (kind, name) in KINDS {
        let path = root().join(format!("schemas/{name}.schema.json"));
        let stored = std::fs::read_to_string(&path).unwrap();
        assert!(stored == kind.text(), "run: cargo run -- schema {name} > schemas/{name}.schema.json");
    }
}

#[test]
fn they_are_draft_07() {
    for (kind, name) in KINDS {
        let schema: Json = serde_json::from_str(&kind.text()).unwrap();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#", "{name}");
        assert!(jsonschema::draft7::meta::is_valid(&schema), "{name}");
        assert!(!kind.text().contains("unevaluatedProperties"), "{name}: not known to draft-07");
    }
}

#[test]
fn every_scenario_fits() {
    let validator = validator(SchemaKind::Scenario);
    for path in scenarios() {
        let toml: toml::Value = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_fits(&validator, &serde_json::to_value(toml).unwrap(), &path);
    }
}

#[test]
fn what_is_wrong_does_not_fit() {
    let validator = validator(SchemaKind::Scenario);
    for wrong in [
        "format = 1\nservres = {}",
        "format = 1\n[servers.a]\ncomand = ['x']",
        "format = 1\n[servers.a]\nport = 'some'",
        "format = 1\n[loads.a]\nduration = 5",
        "format = 1\n[servers.A]\ncommand = ['x']",
        "format = 1\n[measures.a]\norder = 'random'",
        "format = 1\n[probes.a]\nexpect = { status = 42 }",
    ] {
        let toml: toml::Value = toml::from_str(wrong).unwrap();
        assert!(!validator.is_valid(&serde_json::to_value(toml).unwrap()), "{wrong}");
    }
}

#[test]
fn every_plan_fits() {
    let validator = validator(SchemaKind::Plan);
    for path in scenarios() {
        let (mut sources, mut problems) = (Sources::default(), Problems::default());
        let options = Options { path: path.clone(), ..Options::default() };
        let Some(loaded) = load(&options, &mut sources, &mut problems) else { continue };
        let plan = expand(&loaded, None, &sources, &mut problems);
        if let Some(plan) = plan {
            assert_fits(&validator, &serde_json::to_value(plan).unwrap(), &path);
        }
    }
}
