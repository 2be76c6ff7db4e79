//! Scenarios of tests: text to a plan.

use std::path::Path;

use bakeoff::diagnostic::{Problems, Sources, render};
use bakeoff::plan::{Plan, expand};
use bakeoff::scenario::{Options, load};

/// Writes `scenario.toml` with this text (its first lines aside) into a folder and expands it.
pub(crate) fn planned(folder: &Path, text: &str) -> (Plan, Sources) {
    let path = folder.join("scenario.toml");
    std::fs::write(&path, format!("format = 1\nname = \"test\"\n{text}")).expect("a test can write its scenario");
    let (mut sources, mut problems) = (Sources::default(), Problems::default());
    let options = Options { path, profile: None, set: Vec::new() };
    let loaded = load(&options, &mut sources, &mut problems);
    let plan = loaded.and_then(|loaded| expand(&loaded, None, &sources, &mut problems));
    match plan {
        Some(plan) => (plan, sources),
        None => panic!("{}", render(&problems.into_sorted(), &sources, false)),
    }
}
