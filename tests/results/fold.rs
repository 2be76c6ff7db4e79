//! What a log means.

use bakeoff::event::{Event, Outcome, Phase};
use bakeoff::results::{CellOutcome, FoldError, ReadError, Results, Status, Verdict, fold};

use crate::log::{self, Log, folded, histogram, program};

const NODE: &str = "throughput:node-http:closed-100";
const BUN: &str = "throughput:bun-serve:closed-100";
const GROUP: &str = "throughput:closed-100";

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

#[test]
fn a_start_counts_as_the_median_of_its_runs() {
    let results = log::servers().fold().results;
    assert_eq!(results.status, Status::Complete);
    assert!(results.cells.iter().all(|cell| cell.outcome == CellOutcome::Ok && cell.reason.is_none()));
    assert_eq!((results.turns.len(), results.runs.len(), results.probes.len()), (6, 18, 12));
    // Of 1000 and 1010, 990 and 1000, 1020 and 1040: 1005, 995, 1030. The warm-ups of 1 are in nothing.
    let node = results.summary(NODE, "throughput").unwrap();
    assert_eq!((node.n, node.min, node.median, node.max), (3, 995.0, 1005.0, 1030.0));
    assert_eq!((node.mean, node.q1, node.q3, node.mad), (1010.0, 1000.0, 1017.5, 10.0));
    assert!(close(node.sd.unwrap(), 325_f64.sqrt()));
    assert_eq!(node.interval, None);
    let bun = results.summary(BUN, "throughput").unwrap();
    assert_eq!((bun.n, bun.min, bun.median, bun.max), (3, 2350.0, 2390.0, 2460.0));
    let row = results.comparison(GROUP, "bun-serve", "throughput").unwrap();
    assert!(close(row.ratio.unwrap(), 2390.0 / 1005.0));
    assert_eq!((row.overlap, row.baseline_n, row.subject_n, row.difference), (Some(false), 3, 3, None));
    assert_eq!(row.baseline, "node-http");
}

#[test]
fn what_is_taken_once_per_start_stands_as_it_is() {
    let results = log::servers().fold().results;
    let peak = results.summary(BUN, "rss.peak").unwrap();
    assert_eq!((peak.n, peak.min, peak.median, peak.max), (3, 51e6, 52e6, 53e6));
    assert_eq!(results.summary(NODE, "startup").unwrap().n, 3);
    assert!(close(results.comparison(GROUP, "bun-serve", "rss.peak").unwrap().ratio.unwrap(), 52.0 / 82.0));
    // Equal on both sides, and the baseline is zero: no ratio, the difference.
    let errors = results.comparison(GROUP, "bun-serve", "errors.reset").unwrap();
    assert_eq!((errors.ratio, errors.difference), (None, Some(0.0)));
}

#[test]
fn a_percentile_is_that_of_runs_with_the_pooled_one_beside_it() {
    let results = log::servers().fold().results;
    let p99 = results.summary(NODE, "latency.p99").unwrap();
    // The medians of two runs each: 0.02 + 1005, 995 and 1030 millionths.
    assert!(close(p99.median, 0.021_005));
    // 99 % of 30,000 pooled requests is the 29,700th: 29,400 took 1 ms. Three digits of a histogram: within 0.1 %.
    assert!((p99.pooled.unwrap() - 0.02).abs() < 0.000_02, "{:?}", p99.pooled);
    assert_eq!(p99.requests, Some(5000));
    // The 15,000th took 1 ms: the histogram's bucket ends above it.
    let p50 = results.summary(NODE, "latency.p50").unwrap().pooled.unwrap();
    assert!((0.001..0.001_001).contains(&p50), "{p50}");
    assert_eq!(results.summary(NODE, "throughput").unwrap().pooled, None);
}

#[test]
fn a_pooled_percentile_stays_within_the_exact_extremes() {
    // The bucket that holds 50,000,000 ns ends at 50,003,967: p99 of these is the longest, which is known exactly.
    let text = log::servers()
        .text()
        .replace(&histogram(&[(1_000_000, 4900), (20_000_000, 99), (50_000_000, 1)]), &histogram(&[(50_000_000, 100)]));
    let results = folded(&text).results;
    let p99 = results.summary(NODE, "latency.p99").unwrap();
    assert_eq!((p99.pooled, p99.requests), (Some(0.05), Some(100)));
    // An empty histogram has no percentile; it does not read 0.
    let empty = log::servers()
        .text()
        .replace(&histogram(&[(1_000_000, 4900), (20_000_000, 99), (50_000_000, 1)]), &histogram(&[]));
    let p99 = folded(&empty).results.summary(NODE, "latency.p99").cloned().unwrap();
    assert_eq!((p99.pooled, p99.requests), (None, Some(0)));
}

/// One start of each server, though the log above has three.
fn single_start() -> Log {
    let mut one = Log::default();
    for line in log::servers().lines {
        let mut event = line.event;
        match &mut event {
            Event::Started(started) => started.design.groups[0].rounds = 1,
            Event::TurnStarted(turn) if turn.round == 2 => break,
            _ => {}
        }
        one.add(0.1, event);
    }
    one
}

#[test]
fn the_run_with_the_fewest_requests_decides_whether_a_percentile_is_shown() {
    let usual = histogram(&[(1_000_000, 4900), (20_000_000, 99), (50_000_000, 1)]);
    // Of the warm-up and of the first measured run.
    let text = log::servers().text().replacen(&usual, &histogram(&[(1_000_000, 40)]), 2);
    let results = folded(&text).results;
    assert_eq!(results.summary(NODE, "latency.p99").unwrap().requests, Some(40));
    assert_eq!(results.summary(BUN, "latency.p99").unwrap().requests, Some(5000));
}

#[test]
fn what_is_taken_of_a_warm_up_turn_counts_as_little_as_its_run() {
    let mut log = log::commands();
    for line in &mut log.lines {
        if let Event::TurnEnded(turn) = &mut line.event {
            turn.metrics.insert("site.size".to_owned(), 7.0);
        }
    }
    assert_eq!(log.fold().results.summary("install:npm", "site.size").unwrap().n, 4);
}

#[test]
fn the_runs_of_a_single_start_stand_in_and_that_is_said() {
    let results = single_start().finish().fold().results;
    assert_eq!(results.status, Status::Complete);
    let node = results.summary(NODE, "throughput").unwrap();
    assert_eq!((node.n, node.min, node.max), (2, 1000.0, 1010.0));
    assert_eq!(results.summary(NODE, "rss.peak").unwrap().n, 1);
    assert!(!results.comparisons.is_empty());
    for row in &results.comparisons {
        assert!(row.warnings.contains(&"single-start".to_owned()), "{row:?}");
    }
    assert!(
        log::servers().fold().results.comparisons.iter().all(|row| !row.warnings.contains(&"single-start".to_owned()))
    );
}

#[test]
fn the_whole_runs_of_a_single_start_that_was_stopped_count() {
    let mut log = single_start();
    let first = |line: &bakeoff::event::Line| matches!(&line.event, Event::RunEnded(run) if run.turn.starts_with(BUN) && run.phase == Phase::Measured);
    let end = log.lines.iter().position(first).unwrap();
    log.lines.truncate(end + 1);
    let results = log.fold().results;
    assert_eq!(results.cell(BUN).unwrap().outcome, CellOutcome::Interrupted);
    let bun = results.summary(BUN, "throughput").unwrap();
    assert_eq!((bun.n, bun.median), (1, 2400.0));
    // What is taken at the end of a start was not taken; what was taken when it was ready is that of no whole start.
    assert_eq!((results.summary(BUN, "rss.peak"), results.summary(BUN, "startup")), (None, None));
}

#[test]
fn a_run_of_a_command_counts_for_itself_and_its_warm_up_does_not() {
    let results = log::commands().fold().results;
    let npm = results.summary("install:npm", "wall").unwrap();
    // 2, 2.25, 1.75, 2.5; the warm-up took 99.
    assert_eq!((npm.n, npm.min, npm.median, npm.max, npm.q1, npm.q3), (4, 1.75, 2.125, 2.5, 1.9375, 2.3125));
    let row = results.comparison("install", "bun", "wall").unwrap();
    // 2.125, 1, 1.25, 1.5: the median is 1.375, and 2.125 lies within the other's range.
    assert!(close(row.ratio.unwrap(), 1.375 / 2.125));
    assert_eq!((row.overlap, row.verdict), (Some(true), None));
    assert_eq!(row.warnings, Vec::<String>::new());
    let turns: Vec<Phase> = results.turns.iter().take(3).map(|turn| turn.phase).collect();
    assert_eq!(turns, [Phase::Warmup, Phase::Warmup, Phase::Measured]);
    let peak = results.comparison("install", "bun", "rss.peak").unwrap();
    assert_eq!(peak.warnings, ["below-step", "rss-floor"]);
}

#[test]
fn a_failed_cell_keeps_its_runs_and_is_no_number() {
    let results = log::failed().fold().results;
    assert_eq!(results.status, Status::Partial);
    let bun = results.cell(BUN).unwrap();
    assert_eq!(bun.outcome, CellOutcome::Failed);
    assert_eq!(bun.reason.as_deref(), Some("the server exited with 1 while it should serve"));
    assert_eq!(results.runs.iter().filter(|run| run.cell == BUN).count(), 3);
    assert!(results.summaries.iter().all(|summary| summary.cell == NODE));
    assert_eq!(results.comparisons, []);
    assert_eq!(results.failures[0].cell.as_deref(), Some(BUN));
    assert_eq!(results.cell(NODE).unwrap().outcome, CellOutcome::Ok);
    assert_eq!(results.summary(NODE, "throughput").unwrap().n, 3);
}

#[test]
fn a_failure_alone_fails_its_cell() {
    let mut log = log::failed();
    log.lines.retain(|line| !matches!(&line.event, Event::TurnEnded(turn) if turn.outcome == Outcome::Failed));
    let cell = log.fold().results.cell(BUN).cloned().unwrap();
    assert_eq!(cell.outcome, CellOutcome::Failed);
    assert_eq!(cell.reason.as_deref(), Some("the server exited with 1 while it should serve"));
}

#[test]
fn a_cell_of_which_nothing_began_is_skipped() {
    let mut log = log::servers();
    log.lines.retain(|line| !serde_json::to_string(&line).unwrap().contains("bun-serve:closed-100#"));
    let results = log.fold().results;
    assert_eq!(results.status, Status::Partial);
    assert_eq!(results.cell(BUN).unwrap().outcome, CellOutcome::Skipped);
    assert_eq!(results.comparisons, []);
}

/// The text up to where the third turn, the second of bun-serve, is in its first measured run.
fn cut() -> String {
    let text = log::servers().text();
    let marker = format!("{{\"turn\":\"{BUN}#2\",\"index\":1,\"phase\":\"measured\",\"at\"");
    let at = text.find(&marker[1..]).unwrap();
    let end = at + text[at..].find('\n').unwrap() + 1;
    text[..end].to_owned()
}

#[test]
fn a_log_that_stops_is_an_interrupted_run() {
    let results = folded(&cut()).results;
    assert_eq!((results.status, results.finished.as_ref()), (Status::Interrupted, None));
    let turn = results.turns.last().unwrap();
    assert_eq!((turn.id.as_str(), turn.outcome), (format!("{BUN}#2").as_str(), Outcome::Interrupted));
    assert!(turn.reason.is_some());
    let outcomes: Vec<Outcome> = results.runs.iter().filter(|r| r.turn == turn.id).map(|run| run.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Interrupted]);
    // One whole turn each: what it says is there, and how much of it.
    for (cell, median) in [(NODE, 1005.0), (BUN, 2390.0)] {
        assert_eq!(results.cell(cell).unwrap().outcome, CellOutcome::Interrupted);
        let summary = results.summary(cell, "throughput").unwrap();
        assert_eq!((summary.n, summary.median, summary.sd), (1, median, None));
    }
    assert_eq!(results.cell(BUN).unwrap().reason.as_deref(), Some("1 of 3 rounds were measured"));
    assert_eq!(results.comparison(GROUP, "bun-serve", "throughput").unwrap().subject_n, 1);
}

#[test]
fn a_signal_makes_an_interrupted_run_though_its_log_is_whole() {
    let mut log = log::servers();
    let end = log.lines.pop().unwrap();
    log.add(0.0, Event::Interrupted { signal: "SIGINT".to_owned() });
    log.lines.push(end);
    let results = log.fold().results;
    assert_eq!(results.status, Status::Interrupted);
    assert!(results.cells.iter().all(|cell| cell.outcome == CellOutcome::Ok), "they were whole before");
}

#[test]
fn a_torn_last_line_is_dropped_and_only_there() {
    let whole = cut();
    let next = format!("{whole}{{\"t\":99.5,\"event\":\"run_en");
    assert_eq!(folded(&next), folded(&whole));
    // A whole event without its newline counts.
    let text = log::servers().text();
    assert_eq!(folded(text.trim_end()), folded(&text));
    // The same garbage with a newline is no torn line, nor is it in the middle.
    let lines = whole.lines().count();
    for rest in ["\n", "\n{\"t\":100,\"event\":\"finished\",\"utc\":\"x\"}\n"] {
        match fold(format!("{next}{rest}").as_bytes(), &program("1")) {
            Err(FoldError::Line { line, .. }) => assert_eq!(line, lines as u64 + 1),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_log_that_was_cut_anywhere_makes_a_result() {
    for log in [log::servers(), log::commands(), log::failed()] {
        let text = log.text();
        let first = text.find('\n').unwrap() + 1;
        // A last event without its newline is a whole one.
        for end in (first..text.trim_end().len()).step_by(1999) {
            let results = fold(&text.as_bytes()[..end], &program("1")).unwrap().results;
            assert_eq!(results.status, Status::Interrupted);
            for summary in &results.summaries {
                assert!(summary.min <= summary.median && summary.median <= summary.max, "{summary:?}");
            }
            assert!(results.to_json().is_ok());
        }
    }
}

#[test]
fn an_event_of_a_later_version_is_passed_over() {
    let text = log::servers().text();
    let at = text.find('\n').unwrap() + 1;
    let event = "{\"t\":0.05,\"event\":\"teleported\",\"where\":{\"x\":[1,null,\"y\"]},\"turn\":7}\n";
    assert_eq!(folded(&format!("{}{event}{}", &text[..at], &text[at..])), folded(&text));
}

#[test]
fn what_is_no_log_of_this_version_is_refused() {
    let text = log::servers().text();
    let newer = text.replacen("bakeoff.events/1", "bakeoff.events/2", 1);
    assert!(matches!(fold(newer.as_bytes(), &program("1")), Err(FoldError::Newer { found: 2, known: 1 })));
    let headless: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    for wrong in ["", "{}\n", "garbage", &headless, &text[..40], &text.replacen("bakeoff.events/1", "other/1", 1)] {
        assert!(matches!(fold(wrong.as_bytes(), &program("1")), Err(FoldError::NoLog)), "{wrong:.60}");
    }
    let orphan = text.replacen("\"event\":\"turn_started\"", "\"event\":\"turn_began\"", 1);
    match fold(orphan.as_bytes(), &program("1")) {
        Err(FoldError::Order { line: 6, why }) => assert!(why.contains("was not started"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_histogram_that_cannot_be_read_is_an_error() {
    let good = histogram(&[(1_000_000, 4900), (20_000_000, 99), (50_000_000, 1)]);
    for bad in ["no base64!", "aGVsbG8="] {
        let text = log::servers().text().replacen(&good, bad, 3);
        let error = fold(text.as_bytes(), &program("1")).unwrap_err();
        assert!(matches!(&error, FoldError::Histogram { name, .. } if name == "latency"), "{error}");
    }
}

#[test]
fn answers_are_compared_with_those_of_the_baseline() {
    let results = log::servers().fold().results;
    let seen: Vec<(&str, bool, usize, usize)> = results
        .parity
        .iter()
        .map(|row| (row.what.as_str(), row.declared, row.differs.len(), row.varies.len()))
        .collect();
    // `date` is not compared; an id that changes with every answer is no difference.
    assert_eq!(
        seen,
        [("header etag", true, 1, 0), ("header keep-alive", false, 1, 0), ("header x-request-id", false, 0, 2)]
    );
    let row = &results.parity[1];
    assert_eq!(row.values["node-http"].as_deref(), Some("timeout=5"));
    assert_eq!((row.values["bun-serve"].as_ref(), row.differs[0].as_str()), (None, "bun-serve"));
    assert!(results.comparisons.iter().all(|row| row.warnings.contains(&"parity".to_owned())));
}

#[test]
fn a_declared_difference_is_no_warning() {
    let mut log = log::servers();
    let Event::Started(started) = &mut log.lines[0].event else { panic!() };
    started.design.probes[0].known_differences.push("keep-alive".to_owned());
    let results = log.fold().results;
    assert!(results.parity[1].declared);
    assert!(results.warnings.iter().all(|warning| warning.code != "parity"));
    assert!(results.comparisons.iter().all(|row| !row.warnings.contains(&"parity".to_owned())));
}

#[test]
fn other_bodies_and_statuses_are_differences_even_when_both_vary() {
    let mut log = log::servers();
    let mut count = 0;
    for line in &mut log.lines {
        if let Event::Probe(probe) = &mut line.event {
            let answer = probe.answer.as_mut().unwrap();
            count += 1;
            answer.sha256 = format!("{count:064}");
            answer.status = if probe.server == "bun-serve" { 201 } else { 200 };
        }
    }
    let results = log.fold().results;
    let row = |what: &str| results.parity.iter().find(|row| row.what == what).unwrap();
    assert_eq!(row("status").values["bun-serve"].as_deref(), Some("201"));
    assert_eq!((row("status").varies.len(), row("status").differs.len()), (0, 1));
    assert_eq!((row("body").varies.len(), row("body").differs.len()), (2, 1));
    assert_eq!(results.parity[0].what, "status");
}

#[test]
fn warnings_of_a_run_stand_beside_the_ratios_of_its_cell() {
    let results = log::servers().fold().results;
    let warning = results.warnings.iter().find(|warning| warning.code == "littles-law").unwrap();
    assert_eq!((warning.cell.as_deref(), warning.turn.as_deref()), (Some(BUN), Some(format!("{BUN}#2").as_str())));
    assert_eq!(warning.phase, Some(Phase::Measured));
    let row = results.comparison(GROUP, "bun-serve", "throughput").unwrap();
    assert_eq!((&row.warnings[..], row.ratio.is_some()), (&["littles-law", "parity"].map(str::to_owned)[..], true));
}

#[test]
fn what_the_generator_limited_is_not_compared() {
    for (baseline, subject) in [("node-http", "bun-serve"), ("bun-serve", "node-http")] {
        let mut log = log::bound(3, (2, Phase::Measured));
        let Event::Started(started) = &mut log.lines[0].event else { panic!() };
        started.design.groups[0].baseline = format!("throughput:{baseline}:closed-100");
        let results = log.fold().results;
        assert_eq!(results.status, Status::Complete);
        let of = |verdict: Option<Verdict>| {
            let rows = results.comparisons.iter().filter(move |row| row.verdict == verdict);
            rows.map(|row| row.metric.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(None), ["startup", "rss.idle", "cpu.per_request", "machine.other"]);
        let invalid = [
            ["rss.peak", "throughput", "latency.min", "latency.p50", "latency.p99", "latency.p999", "latency.max"]
                .as_slice(),
            &["requests", "errors.timeout", "errors.reset", "errors.total"],
        ];
        assert_eq!(of(Some(Verdict::Invalid)), invalid.concat());
        for row in &results.comparisons {
            let numbers = (row.ratio.or(row.difference).is_some(), row.overlap.is_some());
            let compared = row.verdict.is_none();
            assert_eq!((numbers, row.reason.is_none()), ((compared, compared), compared), "{row:?}");
            assert!(row.warnings.contains(&"generator-bound".to_owned()), "{row:?}");
        }
        let per_request = results.comparison(GROUP, subject, "cpu.per_request").unwrap();
        let right = if subject == "bun-serve" { 15.0 / 37.0 } else { 37.0 / 15.0 };
        assert!(close(per_request.ratio.unwrap(), right));
        // The figures themselves stay.
        assert_eq!(results.summary(BUN, "throughput").unwrap().median, 2390.0);
    }
}

#[test]
fn a_generator_that_limited_a_warm_up_limited_no_number() {
    let warm_up = log::bound(3, (1, Phase::Warmup)).fold().results;
    assert!(warm_up.comparisons.iter().all(|row| row.verdict.is_none() && row.overlap.is_some()));
    let codes: Vec<&String> = warm_up.comparisons.iter().flat_map(|row| &row.warnings).collect();
    assert!(codes.iter().all(|code| *code != "generator-bound"), "{codes:?}");
    let warning = warm_up.warnings.iter().find(|warning| warning.code == "generator-bound").unwrap();
    assert_eq!(warning.phase, Some(Phase::Warmup));
}

#[test]
fn a_stored_result_is_read_back_as_it_was() {
    for log in [log::servers(), log::commands(), log::failed(), log::bound(1, (1, Phase::Measured))] {
        let results = log.fold().results;
        let text = results.to_json().unwrap();
        assert_eq!(Results::from_json(&text).unwrap(), results);
        let newer = text.replacen("bakeoff.result/1", "bakeoff.result/2", 1);
        assert!(matches!(Results::from_json(&newer), Err(ReadError::Newer { found: 2, known: 1 })));
        let later = text.replacen("{\n", "{\n  \"verdict_of_2030\": [1, null],\n", 1);
        assert_eq!(Results::from_json(&later).unwrap(), results);
    }
    for wrong in ["{}", "[]", "{\"schema\":\"bakeoff.events/1\"}", "{\"schema\":\"bakeoff.result/x\"}"] {
        assert!(matches!(Results::from_json(wrong), Err(ReadError::Schema)), "{wrong}");
    }
    assert!(matches!(Results::from_json("{\"schema\":\"bakeoff.result/1\"}"), Err(ReadError::Shape(_))));
}

#[test]
fn a_number_that_cannot_be_is_not_written() {
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut results = log::servers().fold().results;
        results.summaries[3].sd = Some(wrong);
        assert_eq!(results.to_json().unwrap_err().0, "summaries[3].sd");
        let mut results = log::servers().fold().results;
        results.runs[1].metrics.insert("throughput".to_owned(), wrong);
        assert_eq!(results.to_json().unwrap_err().0, "runs[1].metrics.throughput");
    }
}
