//! Every scenario of this repository is valid and can be planned.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::path::{Path, PathBuf};

use bakeoff::diagnostic::{Problems, Sources, render};
use bakeoff::plan::{Plan, expand};
use bakeoff::scenario::{Options, load};

fn plan(path: &Path, profile: Option<&str>) -> (Option<Plan>, String) {
    let mut sources = Sources::default();
    let mut problems = Problems::default();
    let options = Options { path: path.to_owned(), profile: profile.map(str::to_owned), set: Vec::new() };
    let loaded = load(&options, &mut sources, &mut problems);
    let plan = loaded.and_then(|loaded| expand(&loaded, None, &sources, &mut problems));
    (plan, render(&problems.into_sorted(), &sources, false))
}

fn named_scenarios(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("node_modules") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml")
                && std::fs::read_to_string(&path).unwrap().lines().any(|line| line.starts_with("name = "))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_scenario_is_valid_and_planned() {
    let scenarios = [named_scenarios("scenarios"), named_scenarios("tests/scenarios/valid")].concat();
    assert!(scenarios.len() >= 9, "{scenarios:?}");
    for path in scenarios {
        let (planned, problems) = plan(&path, None);
        assert_eq!(problems, "", "{}", path.display());
        let planned = planned.unwrap();
        assert!(!planned.groups.is_empty() || !planned.checks.is_empty(), "{}", path.display());
        let (again, _) = plan(&path, None);
        assert_eq!(planned.digest(), again.unwrap().digest());
    }
}

/// The digest stands in it: the same file has the same one everywhere.
#[test]
fn plans_are_shown_in_order() {
    let shown = |file: &str, profile| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
        bakeoff::plan::show(&plan(&path, profile).0.unwrap())
    };
    insta::assert_snapshot!("quickstart", shown("scenarios/quickstart.toml", None));
    insta::assert_snapshot!("http-quick", shown("scenarios/bun-vs-node/http.toml", Some("quick")));
}

#[test]
fn comments_and_places_are_no_part_of_a_plan() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/quickstart.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let digest = |text: &str| {
        let path = folder.path().join("scenario.toml");
        std::fs::write(&path, text).unwrap();
        plan(&path, None).0.unwrap().digest()
    };
    let commented = format!("# a comment\n\n{}", text.replace("\n[", "\n\n# another\n["));
    assert_eq!(digest(&text), digest(&commented));
    assert_ne!(digest(&text), digest(&text.replace("connections = 16", "connections = 17")));
}
