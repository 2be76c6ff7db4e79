//! Whole runs of the program: what it writes, how it ends, and that nothing is left of it.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

#[path = "cli/failing.rs"]
mod failing;
#[path = "cli/load.rs"]
mod load;
#[path = "support/program.rs"]
mod program;

use std::fs;
use std::time::Duration;

use program::{bakeoff, eventually, marked, result, run, scenario, spawn, stderr};
use serde_json::Value as Json;

/// A server, marked by a variable, with a grandchild that left its session, and a load that goes on for a minute.
fn long_scenario(mark: &str) -> String {
    format!(
        r#"
format = 1
name = "long"

[servers.one]
shell = "setsid sh -c 'sleep 600' & exec python3 -m http.server -b 127.0.0.1 {{{{ port }}}}"
env = {{ MARK = "{mark}" }}
stop = {{ signal = "KILL" }}

[loads.long]
request = "GET /"
duration = "60s"

[measures.m]
servers = ["one"]
load = "long"
warmup = {{ runs = 1, duration = "300ms" }}
"#
    )
}

#[test]
fn quickstart_measures_and_can_be_reported_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = out.to_str().unwrap();
    let output = run(&["run", "scenarios/quickstart.toml", "--out", path, "--nothing"]);
    assert_eq!(output.status.code(), Some(2), "an unknown flag is wrong usage");
    let output = run(&["run", "scenarios/quickstart.toml", "--out", path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = result(&out);
    assert_eq!(result["status"], "complete");
    let median = |cell: &str, metric: &str| {
        let summaries = result["summaries"].as_array().unwrap();
        let found = summaries.iter().find(|summary| summary["cell"] == cell && summary["metric"] == metric);
        found.unwrap_or_else(|| panic!("{cell} {metric}"))["median"].as_f64().unwrap()
    };
    // The server that is 1 ms late cannot answer earlier; the other one does.
    assert!(median("http:late:json", "latency.min") >= 0.001);
    assert!(median("http:late:json", "latency.p50") > median("http:fast:json", "latency.p50"));
    assert!(median("sort:words", "wall") > 0.0);
    let files = ["result.json", "observations.csv", "series.csv", "report.md"];
    let before: Vec<Vec<u8>> = files.iter().map(|file| fs::read(out.join(file)).unwrap()).collect();
    files.iter().for_each(|file| fs::remove_file(out.join(file)).unwrap());
    let again = run(&["report", path]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let after: Vec<Vec<u8>> = files.iter().map(|file| fs::read(out.join(file)).unwrap()).collect();
    assert!(before == after, "the report is made of the log alone, byte for byte");
    let schema: Json = serde_json::from_slice(&run(&["schema", "result"]).stdout).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    assert!(validator.is_valid(&result), "{:?}", validator.iter_errors(&result).next());
    let schema: Json = serde_json::from_slice(&run(&["schema", "event"]).stdout).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    for line in fs::read_to_string(out.join("events.jsonl")).unwrap().lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&line), "{line}: {:?}", validator.iter_errors(&line).next());
    }
}

#[test]
fn after_a_kill_nothing_is_left_and_the_log_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), &long_scenario("bakeoff-test-kill"));
    let out = folder.path().join("out");
    let mut child = spawn(&["run", &file, "--out", out.to_str().unwrap()]);
    let log = out.join("events.jsonl");
    let sampled = || fs::read_to_string(&log).is_ok_and(|text| text.contains("\"event\":\"sample\""));
    assert!(eventually(Duration::from_secs(20), sampled), "the load never began");
    assert!(marked("MARK=bakeoff-test-kill").len() >= 2, "the server and its grandchild run");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        eventually(Duration::from_secs(2), || marked("MARK=bakeoff-test-kill").is_empty()),
        "left: {:?}",
        marked("MARK=bakeoff-test-kill")
    );
    let report = run(&["report", out.to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let result = result(&out);
    assert_eq!(result["status"], "interrupted");
    assert_eq!(result["cells"][0]["outcome"], "interrupted");
}

#[test]
fn a_signal_stops_in_order_and_keeps_what_there_is() {
    for signal in ["INT", "TERM"] {
        let mark = format!("bakeoff-test-{signal}");
        let folder = tempfile::tempdir().unwrap();
        let file = scenario(folder.path(), &long_scenario(&mark));
        let out = folder.path().join("out");
        let mut child = spawn(&["run", &file, "--out", out.to_str().unwrap()]);
        let log = out.join("events.jsonl");
        let sampled = || fs::read_to_string(&log).is_ok_and(|text| text.contains("\"event\":\"sample\""));
        assert!(eventually(Duration::from_secs(20), sampled), "the load never began");
        let kill = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(marked(&format!("MARK={mark}")).is_empty());
        let result = result(&out);
        assert_eq!(result["status"], "interrupted");
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("\"event\":\"interrupted\"") && text.contains("\"event\":\"finished\""));
    }
}

#[test]
fn an_output_that_cannot_be_written_stops_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let touched = folder.path().join("touched");
    let text = format!(
        "format = 1\nname = \"x\"\n[[setup]]\ncommand = [\"touch\", \"{}\"]\n[tools.t]\ncommand = [\"true\"]\n",
        touched.display()
    );
    let file = scenario(folder.path(), &text);
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("something"), "").unwrap();
    let blocked = folder.path().join("file");
    fs::write(&blocked, "").unwrap();
    for out in [full, blocked, "/proc/nothing".into()] {
        let output = run(&["run", &file, "--out", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("output-unwritable"), "{}", stderr(&output));
    }
    assert!(!touched.exists());
}

/// A value that reads like a word of the log is taken out of what the command says, not out of the log's own words.
#[test]
fn a_secret_does_not_take_the_log_apart() {
    for secret in ["ok", "e", "run_ended", "hunter2"] {
        let folder = tempfile::tempdir().unwrap();
        let text = "format = 1\nname = \"secret\"\n[environment]\nsecret = [\"TOKEN\"]\n[tools.t]\nshell = 'echo \"<$TOKEN>\"'\n\
                    [commands.c]\ncommand = [\"true\"]\n[measures.m]\ncommands = [\"c\"]\nruns = 1\nwarmup = 0\n";
        let file = scenario(folder.path(), text);
        let out = folder.path().join("out");
        let output = bakeoff(&["run", &file, "--out", out.to_str().unwrap()]).env("TOKEN", secret).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{secret}: {}", stderr(&output));
        let result = result(&out);
        assert_eq!(result["status"], "complete", "{secret}");
        assert_eq!(result["tools"][0]["lines"][0], "<***>", "{secret}");
        assert!(result["subjects"][0]["environment"]["TOKEN"].is_null(), "{secret}");
    }
}

#[test]
fn pipes_and_devices_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = "format = 1\nname = \"pipe\"\n[commands.c]\ncommand = [\"cat\"]\nstdin = { file = \"pipe\" }\n\
                [measures.m]\ncommands = [\"c\"]\nruns = 1\nwarmup = 0\n";
    let file = scenario(folder.path(), text);
    let out = folder.path().join("out");
    let output = run(&["run", &file, "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("not a regular file"), "{}", stderr(&output));
    for path in ["/dev/zero", pipe.to_str().unwrap()] {
        let output = run(&["report", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(stderr(&output).contains("not a regular file"), "{path}");
    }
}

#[test]
fn what_cannot_be_printed_is_said() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = bakeoff(&["schema", "scenario"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
}

#[test]
fn what_is_not_executed_yet_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&["run", "tests/scenarios/valid/postgres-crud.toml", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    for key in ["files", "user", "derive"] {
        assert!(text.contains(&format!("not yet: `{key}`")), "{key}: {text}");
    }
    assert!(!out.exists());
}

#[test]
fn help_says_what_there_is() {
    for command in ["", "validate", "plan", "run", "report", "schema", "load"] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = String::from_utf8(run(&arguments).stdout).unwrap();
        let name = if command.is_empty() { "help".to_owned() } else { format!("help-{command}") };
        insta::assert_snapshot!(name, help);
    }
}

#[test]
fn help_and_usage() {
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    assert_eq!(run(&["run"]).status.code(), Some(2));
    assert_eq!(run(&["validate", "does-not-exist.toml"]).status.code(), Some(2));
    let version = String::from_utf8(run(&["--version"]).stdout).unwrap();
    assert_eq!(version.trim(), format!("bakeoff {}", env!("CARGO_PKG_VERSION")));
    // A reader that goes away is nobody's fault.
    let mut child = bakeoff(&["schema", "scenario"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
