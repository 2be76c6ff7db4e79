//! What goes wrong in a run is said with a code of its own, at its place in the scenario, with the end of the output.
//!
//! Every file under `tests/scenarios/failing/` is named after the code that running it raises. What is said is a snapshot,
//! in which large numbers (ports, process ids) are `N`, times are `T` the directory of the run is `DIR`, that of the repository `ROOT`.

use std::path::{Path, PathBuf};

use bakeoff::diagnostic::Code;
use regex::Regex;
use serde_json::Value as Json;

use crate::program::{result, root, run, stderr};

/// Codes that no scenario raises alone: of an output that cannot be written (`tests/cli.rs`), and of what other processes
/// do to a server's port (`tests/run/servers.rs`).
const ELSEWHERE: [Code; 3] = [Code::OutputUnwritable, Code::ServerNotOurs, Code::ServerLeftBehind];

fn fixtures() -> Vec<PathBuf> {
    let folder = root().join("tests/scenarios/failing");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// The code that a file is named after: the longest one that its name begins with.
fn code_of(path: &Path) -> Code {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let begins = |code: &&Code| stem == code.name() || stem.starts_with(&format!("{}-", code.name()));
    *Code::ALL.iter().filter(begins).max_by_key(|code| code.name().len()).unwrap_or_else(|| panic!("{stem}"))
}

/// How a run that raises this code ends.
fn exit_of(code: Code) -> i32 {
    match code {
        Code::NotYet => 2,
        Code::SetupFailed | Code::ToolFailed | Code::CertificatesUnreadable => 3,
        _ => 1,
    }
}

/// `text` without what differs from run to run.
fn settled(text: &str, directory: &Path) -> String {
    let text = text.replace(directory.to_str().unwrap(), "DIR").replace(root().to_str().unwrap(), "ROOT");
    let text = Regex::new(r"DIR/runs/[A-Za-z0-9._-]+").unwrap().replace_all(&text, "DIR/runs/RUN").into_owned();
    let text = Regex::new(r"\b\d+(\.\d+)? (s|ms|µs)\b").unwrap().replace_all(&text, "T").into_owned();
    Regex::new(r"\b\d{4,}\b").unwrap().replace_all(&text, "N").into_owned()
}

/// What a run says of its failure.
fn failure(path: &Path) -> (i32, String) {
    let directory = tempfile::tempdir().unwrap();
    let (out, work) = (directory.path().join("out"), directory.path().join("runs"));
    std::fs::create_dir(&work).unwrap();
    let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
    let output = run(&["run", file, "--quiet", "--out", out.to_str().unwrap(), "--work-dir", work.to_str().unwrap()]);
    let exit = output.status.code().unwrap();
    let events = std::fs::read_to_string(out.join("events.jsonl")).unwrap_or_default();
    let events = events.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let failed: Vec<String> = events
        .filter(|event| event["event"] == "failed")
        .map(|event| event["rendered"].as_str().unwrap().to_owned())
        .collect();
    let said = if failed.is_empty() { stderr(&output) } else { failed.join("\n") };
    if exit == 1 {
        assert_eq!(result(&out)["status"], "partial", "{file}");
    }
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "{file}: something is left of the run");
    (exit, settled(&said, directory.path()))
}

#[test]
fn every_failure_has_its_code_and_place() {
    for path in fixtures() {
        let code = code_of(&path);
        let (exit, said) = failure(&path);
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(said.contains(&format!("error[{}]", code.name())), "{name}: {said}");
        let exits = if code == Code::ProgramMissing { vec![1, 3] } else { vec![exit_of(code)] };
        assert!(exits.contains(&exit), "{name} ended with {exit}: {said}");
        insta::assert_snapshot!(name, said);
    }
}

#[test]
fn no_code_of_a_run_is_without_a_file() {
    let have: Vec<Code> = fixtures().iter().map(|path| code_of(path)).collect();
    let lacking: Vec<&Code> =
        Code::ALL.iter().filter(|code| code.at_run() && !have.contains(code) && !ELSEWHERE.contains(code)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
