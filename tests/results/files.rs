//! The files of a result, byte by byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use bakeoff::event::Phase;
use bakeoff::report::{observations, series, write_all};
use bakeoff::results::Results;

use crate::log;

#[test]
fn result_json() {
    insta::assert_snapshot!("result.json", log::commands().fold().results.to_json().unwrap());
}

#[test]
fn rows_of_servers() {
    let mut results = log::servers().fold().results;
    results.turns.truncate(1);
    results.runs.truncate(2);
    results.runs.remove(0);
    results.runs[0].histograms.values_mut().for_each(|text| text.truncate(12));
    results.probes.truncate(1);
    results.summaries.retain(|row| ["throughput", "latency.p99"].contains(&row.metric.as_str()));
    results.comparisons.retain(|row| ["throughput", "errors.total"].contains(&row.metric.as_str()));
    let rows = serde_json::json!({
        "groups": results.groups, "cells": results.cells, "turns": results.turns, "runs": results.runs,
        "probes": results.probes, "summaries": results.summaries, "comparisons": results.comparisons,
        "parity": results.parity, "warnings": results.warnings,
    });
    insta::assert_snapshot!("rows-of-servers.json", serde_json::to_string_pretty(&rows).unwrap());
}

#[test]
fn a_result_is_what_its_schema_says() {
    let schema = serde_json::to_value(schemars::schema_for!(Results)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for log in [log::servers(), log::commands(), log::failed(), log::bound(1, (1, Phase::Measured))] {
        let json: serde_json::Value = serde_json::from_str(&log.fold().results.to_json().unwrap()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        let mut wrong = json.clone();
        wrong["status"] = "done".into();
        assert!(!validator.is_valid(&wrong));
        wrong = json;
        wrong.as_object_mut().unwrap().remove("cells");
        assert!(!validator.is_valid(&wrong));
    }
}

#[test]
fn the_same_log_gives_the_same_bytes() {
    let files = || {
        let dir = tempfile::tempdir().unwrap();
        write_all(dir.path(), &log::servers().fold()).unwrap();
        let entries = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap());
        let read = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        entries.map(read).collect::<BTreeMap<_, _>>()
    };
    let first = files();
    // Nothing temporary is left.
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    assert_eq!(names, ["observations.csv", "report.md", "result.json", "series.csv"]);
    assert_eq!(first, files());
}

#[test]
fn a_file_that_is_there_is_replaced_and_another_failure_leaves_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("result.json");
    fs::write(&path, "old").unwrap();
    let mut folded = log::commands().fold();
    folded.results.summaries[0].mean = f64::NAN;
    let error = write_all(dir.path(), &folded).unwrap_err().to_string();
    assert_eq!(error, "summaries[0].mean is no finite number and cannot be written");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    write_all(dir.path(), &log::commands().fold()).unwrap();
    assert!(Results::from_json(&fs::read_to_string(&path).unwrap()).is_ok());
    let error = write_all(&dir.path().join("absent"), &log::commands().fold()).unwrap_err().to_string();
    assert!(error.contains("absent/result.json` cannot be written"), "{error}");
}

/// The rows of a CSV text, each by column.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn observations_are_tidy() {
    let results = log::commands().fold().results;
    let text = observations(&results).unwrap();
    insta::assert_snapshot!("observations.csv", text);
    let rows = rows(&text);
    let walls: Vec<f64> = rows
        .iter()
        .filter(|row| row["metric"] == "wall" && row["phase"] == "measured" && row["axis_runtime"] == "npm")
        .map(|row| row["value"].parse().unwrap())
        .collect();
    assert_eq!(walls, [2.0, 2.25, 1.75, 2.5]);
    assert_eq!(rows.iter().filter(|row| row["metric"] == "wall" && row["phase"] == "warmup").count(), 2);
}

#[test]
fn observations_mark_what_failed() {
    let rows = rows(&observations(&log::failed().fold().results).unwrap());
    let of = |row: &&BTreeMap<String, String>| row["subject"] == "bun-serve";
    assert!(rows.iter().filter(of).all(|row| row["cell_outcome"] == "failed"));
    assert!(rows.iter().filter(|row| !of(row)).all(|row| row["cell_outcome"] == "ok" && row["outcome"] == "ok"));
    let bare: Vec<_> = rows.iter().filter(|row| row["outcome"] == "failed").collect();
    assert_eq!((bare.len(), bare[0]["round"].as_str(), bare[0]["value"].as_str()), (1, "2", ""));
    let per_start = rows.iter().find(|row| row["metric"] == "rss.peak").unwrap();
    assert_eq!((per_start["index"].as_str(), per_start["unit"].as_str()), ("", "B"));
}

#[test]
fn observations_carry_the_codes_of_warnings() {
    let rows = rows(&observations(&log::bound(2, (2, Phase::Measured)).fold().results).unwrap());
    let warned: Vec<_> = rows.iter().filter(|row| !row["warnings"].is_empty()).collect();
    assert!(warned.iter().all(|row| row["warnings"] == "littles-law generator-bound"), "{warned:?}");
    let places = warned.iter().map(|row| [&row["subject"], &row["round"], &row["index"], &row["phase"]]);
    assert_eq!(
        places.collect::<BTreeSet<_>>(),
        BTreeSet::from([["bun-serve", "2", "2", "measured"].map(|s| s.to_owned()).each_ref()])
    );
    let value = warned.iter().find(|row| row["metric"] == "throughput").unwrap();
    assert_eq!(value["value"], "2340");
}

#[test]
fn fields_are_quoted_and_run_no_formula() {
    let mut results = log::commands().fold().results;
    results.metrics["wall"].unit = "=1+2,\"x\"\ny".to_owned();
    let text = observations(&results).unwrap();
    assert!(text.contains("\"'=1+2,\"\"x\"\"\ny\""), "{text}");
    assert_eq!(rows(&text)[0]["unit"], "'=1+2,\"x\"\ny");
}

#[test]
fn a_second_of_a_load_is_a_row_for_each_value() {
    let folded = log::servers().fold();
    let text = series(&folded.results, &folded.series).unwrap();
    let start: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(start, @r"
    cell,round,index,phase,at,metric,unit,value
    throughput:node-http:closed-100,1,1,warmup,1,requests,1,500
    throughput:node-http:closed-100,1,1,warmup,1,rss,B,45000000
    throughput:node-http:closed-100,1,1,measured,1,requests,1,500
    throughput:node-http:closed-100,1,1,measured,1,rss,B,45000000
    ");
    assert_eq!(rows(&text).len(), 18 * 2);
}
