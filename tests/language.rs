//! The rules of the language, one tiny scenario each: accepted, or refused with these codes.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

#[path = "language/entries.rs"]
mod entries;
#[path = "language/expansion.rs"]
mod expansion;
#[path = "language/files.rs"]
mod files;
#[path = "language/hostile.rs"]
mod hostile;
#[path = "language/values.rs"]
mod values;

use std::path::Path;

use bakeoff::diagnostic::{Problems, Sources, render};
use bakeoff::plan::{Plan, expand};
use bakeoff::scenario::{Options, load};

/// What becomes of a scenario: its plan, the codes of what is wrong (sorted, each once), and how that is shown.
struct Outcome {
    plan: Option<Plan>,
    codes: String,
    shown: String,
}

fn outcome_of(options: &Options) -> Outcome {
    let mut sources = Sources::default();
    let mut problems = Problems::default();
    let loaded = load(options, &mut sources, &mut problems);
    let plan = loaded.and_then(|loaded| expand(&loaded, None, &sources, &mut problems));
    let diagnostics = problems.into_sorted();
    let mut codes: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code.name()).collect();
    codes.sort_unstable();
    codes.dedup();
    let codes = codes.join(" ");
    Outcome { plan, codes, shown: render(&diagnostics, &sources, false) }
}

/// A whole file of what a case says: with a format and a name, and something to measure where it measures nothing.
fn whole(case: &str) -> String {
    let mut text = String::from("format = 1\nname = \"case\"\n");
    text.push_str(case);
    if !case.contains("[measures") && !case.contains("[checks") {
        text.push_str("\n[commands.filler]\ncommand = [\"true\"]\n[measures.filler]\ncommands = [\"filler\"]\n");
    }
    text
}

/// The outcome of a file with this text, and of `options` beside.
fn outcome_with(text: &[u8], options: &Options) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.toml");
    std::fs::write(&path, text).unwrap();
    outcome_of(&Options { path, ..options.clone() })
}

fn outcome(case: &str) -> Outcome {
    outcome_with(whole(case).as_bytes(), &Options::default())
}

/// Every case is refused with just these codes; accepted where there are none.
fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(case, codes)| {
            let outcome = outcome(case);
            let planned = outcome.plan.is_some() == codes.is_empty();
            let message = || format!("{case}\n  expected [{codes}], got [{}]\n{}", outcome.codes, outcome.shown);
            (outcome.codes != *codes || !planned).then(message)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The plan of a case that is right.
fn plan(case: &str) -> Plan {
    let outcome = outcome(case);
    outcome.plan.unwrap_or_else(|| panic!("{case}\n{}", outcome.shown))
}

/// The files of a folder, the first of which is loaded.
fn outcome_of_files(files: &[(&str, &str)]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, text).unwrap();
    }
    outcome_of(&Options { path: folder.path().join(files[0].0), ..Options::default() })
}
