//! Every scenario that stands in the documentation is valid.
//!
//! A block of `toml` in the README or under `docs/` is a whole file, with a `name`, or is marked `toml fragment`: then it
//! holds whole entries, and is completed with `format`, `name` and, where it measures nothing, something to measure.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::path::PathBuf;

use bakeoff::diagnostic::{Problems, Sources, render};
use bakeoff::plan::expand;
use bakeoff::scenario::{Options, load};

const FILLER: &str = "\n[commands.filler]\ncommand = [\"true\"]\n\n[measures.filler]\ncommands = [\"filler\"]\n";

/// The `toml` blocks of a page: the line that each begins at, whether it is a fragment, and its text.
fn blocks(page: &str) -> Vec<(usize, bool, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.trim().strip_prefix("```toml") else { continue };
        let body: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
        blocks.push((number + 1, kind.trim() == "fragment", body.join("\n") + "\n"));
    }
    blocks
}

fn completed(fragment: &str) -> String {
    let filler = if fragment.contains("[measures") || fragment.contains("[checks") { "" } else { FILLER };
    format!("format = 1\nname = \"fragment\"\n{fragment}{filler}")
}

fn pages() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.push(root.join("README.md"));
    pages.retain(|path| path.is_file());
    pages.sort();
    pages
}

#[test]
fn scenarios_of_the_documentation_are_valid() {
    let mut seen = 0;
    for page in pages() {
        for (line, fragment, block) in blocks(&std::fs::read_to_string(&page).unwrap()) {
            let named = block.lines().any(|line| line.starts_with("name = "));
            assert!(named || fragment, "{}:{line}: a block without `name` is marked `toml fragment`", page.display());
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("block.toml");
            std::fs::write(&path, if fragment { completed(&block) } else { block }).unwrap();
            let mut sources = Sources::default();
            let mut problems = Problems::default();
            let loaded = load(&Options { path, ..Options::default() }, &mut sources, &mut problems);
            let plan = loaded.and_then(|loaded| expand(&loaded, None, &sources, &mut problems));
            let shown = render(&problems.into_sorted(), &sources, false);
            assert!(plan.is_some() && shown.is_empty(), "{}:{line}\n{shown}", page.display());
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} blocks");
}
