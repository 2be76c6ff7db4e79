//! Runs the program, and looks for what it leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The program with these arguments, in the root of the repository.
pub(crate) fn bakeoff(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bakeoff"));
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    bakeoff(arguments).output().unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scenario in a folder of its own.
pub(crate) fn scenario(folder: &Path, text: &str) -> String {
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

pub(crate) fn result(out: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(out.join("result.json")).unwrap()).unwrap()
}

/// The program, running, with what it says thrown away.
pub(crate) fn spawn(arguments: &[&str]) -> Child {
    bakeoff(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Ids of processes that have this variable in their environment, zombies left out.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Waits until `true`, and says whether it came.
pub(crate) fn eventually(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
