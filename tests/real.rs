//! Real servers from the npm registry: Node, Bun and Express compared by the program, as a user would do it.
//!
//! Where there is no npm, nothing is tested. The packages of the scenario are for x86_64.

#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

const SERVERS: [&str; 5] = ["node-http", "bun-serve", "express/node", "express/bun", "http-on-bun"];
/// A minute is enough, and the packages have to be downloaded.
const PATIENCE: Duration = Duration::from_secs(600);

fn has_npm() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("npm").is_file())
}

/// The processes that run `program`, launchers among them, and those whose TMPDIR is `mark`, all others that it has
/// started: for each the file names among its arguments.
fn left_of(program: &Path, mark: &Path) -> Vec<Vec<String>> {
    let variable = [b"TMPDIR=", mark.as_os_str().as_bytes()].concat();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read(process.path().join(name)).unwrap_or_default();
        let parts = |bytes: &[u8]| bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let is_program = fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == program);
        if is_program || parts(&read("environ")).contains(&variable) {
            let name =
                |argument: &Vec<u8>| Path::new(OsStr::from_bytes(argument)).file_name()?.to_str().map(str::to_owned);
            found.push(parts(&read("cmdline")).iter().filter_map(name).collect());
        }
    }
    found
}

/// Waits for the end of the program and notes which server files were seen running meanwhile.
fn watch(child: &mut Child, program: &Path, mark: &Path) -> (ExitStatus, BTreeSet<String>) {
    let (mut seen, end) = (BTreeSet::new(), Instant::now() + PATIENCE);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, seen);
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end within {PATIENCE:?}");
        }
        seen.extend(left_of(program, mark).into_iter().flatten().filter(|name| name.ends_with(".mjs")));
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn rows<'a>(result: &'a Json, key: &str) -> &'a [Json] {
    result[key].as_array().unwrap()
}

fn median(result: &Json, server: &str, metric: &str) -> f64 {
    let cell = format!("throughput:{server}:closed-100");
    let mut rows = rows(result, "summaries").iter();
    let row = rows.find(|row| row["cell"] == cell.as_str() && row["metric"] == metric);
    row.unwrap_or_else(|| panic!("{metric} of {cell}"))["median"].as_f64().unwrap()
}

#[test]
fn node_bun_and_express_are_compared() {
    if !has_npm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mark, out, said) = (folder.path().join("tmp"), folder.path().join("out"), folder.path().join("said"));
    fs::create_dir(&mark).unwrap();
    // Under a name of its own, so that no other test's processes are taken for its.
    let program = folder.path().join("bakeoff");
    let original = env!("CARGO_BIN_EXE_bakeoff");
    fs::hard_link(original, &program).or_else(|_| fs::copy(original, &program).map(drop)).unwrap();
    let mut child = Command::new(&program)
        .args(["run", "scenarios/bun-vs-node/http.toml", "--profile", "quick", "--out"])
        .arg(&out)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TMPDIR", &mark)
        .stdin(Stdio::null())
        .stdout(File::create(folder.path().join("report")).unwrap())
        .stderr(File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let (status, seen) = watch(&mut child, &program, &mark);
    let said = fs::read_to_string(said).unwrap();

    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(left_of(&program, &mark), [[""; 0]; 0], "no process is left");
    assert!(["http.mjs", "bun-serve.mjs", "express.mjs"].iter().all(|file| seen.contains(*file)), "{seen:?}");
    let remains: Vec<_> = fs::read_dir(&mark).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!remains.iter().any(|name| name.as_bytes().starts_with(b"bakeoff-")), "{remains:?}");
    for file in ["events.jsonl", "observations.csv", "series.csv", "report.md", "logs"] {
        assert!(out.join(file).exists(), "{file}");
    }

    let result: Json = serde_json::from_slice(&fs::read(out.join("result.json")).unwrap()).unwrap();
    assert_eq!((&result["status"], &result["scenario"]["profile"]), (&"complete".into(), &"quick".into()));
    assert_eq!(rows(&result, "failures"), [Json::Null; 0]);
    measured(&result);
    probed(&result);
    compared(&result);
}

/// Five servers, of the versions that the lock pins, each with figures that can be.
fn measured(result: &Json) {
    let first_line =
        |tool: &str| rows(result, "tools").iter().find(|row| row["tool"] == tool).unwrap()["lines"][0].clone();
    assert_eq!(first_line("node"), "v26.12.1");
    assert!(first_line("bun").as_str().unwrap().starts_with("1.4.4"));
    let cells: Vec<_> = rows(result, "cells").iter().map(|cell| [&cell["subject"], &cell["outcome"]]).collect();
    assert_eq!(cells, SERVERS.map(|name| [name, "ok"]));
    for server in SERVERS {
        let of = |metric: &str| median(result, server, metric);
        assert_eq!(of("errors.total"), 0.0, "{server}");
        assert!(of("throughput") > 100.0, "{server}");
        assert!(of("latency.min") <= of("latency.p50") && of("latency.p99") <= of("latency.max"), "{server}");
        assert!(of("startup") > 0.0 && of("cpu.per_request") > 0.0, "{server}");
        assert!(of("rss.idle") > 1e6 && of("rss.idle") <= of("rss.peak"), "{server}");
    }
    // 20 MB to 40 MB against 60 MB to 100 MB.
    assert!(median(result, "bun-serve", "rss.peak") < median(result, "node-http", "rss.peak"));
}

/// Every server was probed before and after, and gave the same 29 bytes.
fn probed(result: &Json) {
    let answers = rows(result, "probes");
    assert_eq!(answers.len(), 2 * SERVERS.len());
    for server in SERVERS {
        let when: Vec<_> =
            answers.iter().filter(|row| row["server"] == server).map(|row| row["when"].clone()).collect();
        assert_eq!(when, ["before", "after"], "{server}");
    }
    for answer in answers {
        assert_eq!(answer["passed"], true, "{answer}");
        assert_eq!((&answer["status"], &answer["bytes"]), (&200.into(), &29.into()), "{answer}");
        assert_eq!(answer["sha256"], answers[0]["sha256"], "{answer}");
    }
}

/// What differs between the answers is what the scenario declares, and nothing else.
fn compared(result: &Json) {
    let parity = rows(result, "parity");
    let differs: Vec<_> = parity.iter().map(|row| (row["what"].as_str().unwrap(), &row["differs"])).collect();
    let (express, bun) = (Json::from(vec!["express/node", "express/bun"]), Json::from(vec!["bun-serve"]));
    let expected = [
        ("header connection", &bun),
        ("header etag", &express),
        ("header keep-alive", &bun),
        ("header x-powered-by", &express),
    ];
    assert_eq!(differs, expected);
    for row in parity {
        assert_eq!((&row["declared"], &row["varies"]), (&true.into(), &Json::Array(Vec::new())), "{row}");
    }
    let etag = &parity[1]["values"];
    assert_eq!(etag["node-http"], Json::Null);
    assert!(etag["express/node"].as_str().unwrap().starts_with("W/\"1d-"), "{etag}");
    assert_eq!(etag["express/node"], etag["express/bun"]);
    assert!(!rows(result, "warnings").iter().any(|warning| warning["code"] == "parity"));
    assert_eq!(
        rows(result, "comparisons").iter().filter(|row| row["metric"] == "throughput").count(),
        SERVERS.len() - 1
    );
}
