//! Small logs, written with the types of the events.

use bakeoff::event::design::{Cell, Group, Order, Probe, Same};
use bakeoff::event::{
    Answer, Design, Driver, DriverKind, Event, Facts, Failed, Line, MachineFacts, Metrics, Outcome, Phase, ProbeResult,
    Program, Ready, Role, RunEnded, RunStarted, SCHEMA, Sample, SetupStep, SourceFile, Started, Subject, SubjectKind,
    ToolFact, TurnEnded, TurnStarted, Warning, When, metric,
};
use bakeoff::results::{Folded, fold};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

/// A log as it grows.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) lines: Vec<Line>,
}

impl Log {
    pub(crate) fn add(&mut self, after: f64, event: Event) {
        let t = self.lines.last().map_or(0.0, |line| line.t) + after;
        self.lines.push(Line { t, event });
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
    }

    pub(crate) fn fold(&self) -> Folded {
        folded(&self.text())
    }

    pub(crate) fn finish(mut self) -> Self {
        self.add(1.0, Event::Finished { utc: "2026-01-02T03:14:05Z".to_owned() });
        self
    }
}

pub(crate) fn folded(text: &str) -> Folded {
    fold(text.as_bytes(), &program("0.2.0")).unwrap()
}

pub(crate) fn program(version: &str) -> Program {
    Program { version: version.to_owned(), commit: Some("0123456789abcdef".to_owned()), profile: "release".to_owned() }
}

pub(crate) fn metrics(values: &[(&str, f64)]) -> Metrics {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn started(design: Design) -> Event {
    let text = "format = 1\n".to_owned();
    Event::Started(Box::new(Started {
        schema: SCHEMA.to_owned(),
        utc: "2026-01-02T03:04:05Z".to_owned(),
        bakeoff: program("0.1.0"),
        files: vec![SourceFile { path: "bench.toml".to_owned(), sha256: "ab".repeat(32), text }],
        vars: [("node".to_owned(), serde_json::json!("/usr/bin/node"))].into_iter().collect(),
        profile: Some("quick".to_owned()),
        set: [("node".to_owned(), "/usr/bin/node".to_owned())].into_iter().collect(),
        seed: 18_446_744_073_709_551_615,
        plan: "cd".repeat(32),
        design,
    }))
}

fn subject(id: &str, label: &str, kind: SubjectKind) -> Subject {
    Subject {
        id: id.to_owned(),
        kind,
        role: Role::Subject,
        label: label.to_owned(),
        axes: [("runtime".to_owned(), serde_json::json!(id))].into_iter().collect(),
        command: vec![id.to_owned(), "{port}".to_owned()],
        environment: [("PATH".to_owned(), Some("/usr/bin".to_owned())), ("TOKEN".to_owned(), None)].into(),
        cpus: vec![0],
    }
}

fn design(name: &str, title: &str, group: Group, subjects: Vec<Subject>) -> Design {
    let driver = group.driver.as_ref().map(|driver| driver.id.clone());
    let cell = |subject: &Subject| Cell {
        id: cell_id(&group, &subject.id),
        measure: group.measure.clone(),
        group: group.id.clone(),
        subject: subject.id.clone(),
        driver: driver.clone(),
        axes: subject.axes.clone(),
        role: Role::Subject,
        probes: Vec::new(),
    };
    let cells = subjects.iter().map(cell).collect();
    let kind = subjects[0].kind;
    let own = |row: &&metric::Builtin| (kind == SubjectKind::Command) == (row.of == metric::Of::CommandRun);
    let metrics = metric::BUILTIN.iter().filter(own).map(|row| (row.name.to_owned(), row.metric())).collect();
    let (name, title) = (name.to_owned(), Some(title.to_owned()));
    Design { name, title, subjects, groups: vec![group], cells, metrics, ..Design::default() }
}

fn cell_id(group: &Group, subject: &str) -> String {
    let driver = group.driver.as_ref().map(|driver| format!(":{}", driver.id));
    format!("{}:{subject}{}", group.measure, driver.unwrap_or_default())
}

/// Three starts of each of two servers, with one warm-up and two measured runs in each.
pub(crate) fn server_design() -> Design {
    let group = Group {
        id: "throughput:closed-100".to_owned(),
        measure: "throughput".to_owned(),
        label: "Throughput".to_owned(),
        axes: [].into(),
        driver: Some(Driver {
            kind: DriverKind::Load,
            id: "closed-100".to_owned(),
            label: "100 connections".to_owned(),
        }),
        baseline: "throughput:node-http:closed-100".to_owned(),
        order: Order::Balanced,
        rounds: 3,
        warmup: 1,
        runs: 2,
        report: ["throughput", "latency.p50", "latency.p99", "latency.p999", "cpu.per_request", "rss.peak"]
            .map(str::to_owned)
            .to_vec(),
    };
    let subjects = vec![
        subject("node-http", "node:http", SubjectKind::Server),
        subject("bun-serve", "Bun.serve", SubjectKind::Server),
    ];
    let mut design = design("bun-vs-node", "Bun.serve and node:http", group, subjects);
    design.description = Some("Two servers answer\nthe same request.\n\nOn one machine.".to_owned());
    design.caveats = vec!["No TLS.".to_owned()];
    design.probes = vec![Probe {
        id: "json".to_owned(),
        label: "json".to_owned(),
        request: "GET /json".to_owned(),
        record_headers: true,
        record_body: false,
        same: vec![Same::Status, Same::Headers, Same::Body],
        known_differences: vec!["etag".to_owned()],
    }];
    design
}

/// What the two measured runs of each start reach, in requests per second.
pub(crate) const NODE: [[f64; 2]; 3] = [[1000.0, 1010.0], [990.0, 1000.0], [1020.0, 1040.0]];
pub(crate) const BUN: [[f64; 2]; 3] = [[2400.0, 2380.0], [2360.0, 2340.0], [2500.0, 2420.0]];

/// A whole comparison of two servers.
pub(crate) fn servers() -> Log {
    let mut log = Log::default();
    log.add(0.0, started(server_design()));
    preamble(&mut log);
    let (node, bun) = ("node-http", "bun-serve");
    for (position, (round, id)) in [(1, node), (1, bun), (2, bun), (2, node), (3, node), (3, bun)].iter().enumerate() {
        server_turn(&mut log, *round, position as u64 + 1, id);
    }
    log.finish()
}

fn warning(code: &str, text: &str) -> Warning {
    Warning { code: code.to_owned(), text: text.to_owned(), cell: None, turn: None }
}

/// The same, where the generator was the limit of one run of `bun-serve`.
pub(crate) fn bound(round: u64, (index, phase): (u64, Phase)) -> Log {
    let mut log = servers();
    for line in &mut log.lines {
        let Event::RunEnded(run) = &mut line.event else { continue };
        let bun = run.turn.starts_with("throughput:bun-serve");
        run.metrics.insert("cpu.per_request".to_owned(), if bun { 15e-6 } else { 37e-6 });
        run.metrics.insert("machine.other".to_owned(), 0.25);
        if bun && run.turn.ends_with(&format!("#{round}")) && (run.index, run.phase) == (index, phase) {
            run.warnings.push(warning("generator-bound", "the generator was busy, and the server was not"));
        }
    }
    log
}

fn preamble(log: &mut Log) {
    log.add(
        0.1,
        Event::Machine(MachineFacts {
            cpu: Some("Example 3000".to_owned()),
            sockets: Some(1),
            cores: Some(2),
            threads: Some(4),
            memory: Some(8 << 30),
            kernel: Some("Linux 6.12.1".to_owned()),
            ..MachineFacts::default()
        }),
    );
    log.add(0.5, Event::Setup(SetupStep { step: "npm ci".to_owned(), skipped: false, wall: Some(3.25) }));
    log.add(
        0.1,
        Event::Tool(ToolFact {
            tool: "node".to_owned(),
            command: vec!["node".to_owned(), "--version".to_owned()],
            exit: 0,
            lines: vec!["v24.1.0".to_owned()],
        }),
    );
}

pub(crate) fn server_turn(log: &mut Log, round: u64, position: u64, id: &str) {
    let cell = format!("throughput:{id}:closed-100");
    let turn = format!("{cell}#{round}");
    let start = TurnStarted { turn: turn.clone(), cell: cell.clone(), round, phase: Phase::Measured, position };
    log.add(0.1, Event::TurnStarted(start));
    let idle = metrics(&[("startup", 0.04), ("rss.idle", 40_000_000.0)]);
    log.add(0.1, Event::Ready(Ready { turn: turn.clone(), server: id.to_owned(), port: Some(40_000), metrics: idle }));
    probe(log, &turn, id, When::Before);
    let rates = if id == "node-http" { NODE } else { BUN }[usize::try_from(round).unwrap() - 1];
    load(log, &turn, (1, Phase::Warmup), 1.0);
    load(log, &turn, (1, Phase::Measured), rates[0]);
    load(log, &turn, (2, Phase::Measured), rates[1]);
    probe(log, &turn, id, When::After);
    let node = id == "node-http";
    let peak = metrics(&[("rss.peak", if node { 80e6 } else { 50e6 } + 1e6 * round as f64)]);
    log.add(
        0.1,
        Event::TurnEnded(TurnEnded { turn, outcome: Outcome::Ok, reason: None, metrics: peak, facts: Facts::new() }),
    );
}

fn probe(log: &mut Log, turn: &str, id: &str, when: When) {
    let node = id == "node-http";
    let header = |name: &str, value: String| (name.to_owned(), value);
    let mut headers = vec![
        header("content-type", "application/json".to_owned()),
        header("date", format!("at {}", log.lines.len())),
        header("x-request-id", format!("id-{}", log.lines.len())),
    ];
    if node {
        headers.extend([header("keep-alive", "timeout=5".to_owned()), header("etag", "W/\"1d-x|y\"".to_owned())]);
    }
    let answer =
        Answer { status: 200, headers, bytes: 29, sha256: "ef".repeat(32), head: "{\"message\":\"hello\"}".to_owned() };
    let result = ProbeResult {
        turn: turn.to_owned(),
        server: id.to_owned(),
        probe: "json".to_owned(),
        when,
        answer: Some(answer),
        error: None,
        passed: true,
        failures: Vec::new(),
    };
    log.add(0.01, Event::Probe(result));
}

/// One run of a load: 5,000 requests, of which 4,900 took 1 ms, 99 took 20 ms and one 50 ms.
fn load(log: &mut Log, turn: &str, (index, phase): (u64, Phase), rate: f64) {
    let turn = turn.to_owned();
    log.add(0.1, Event::RunStarted(RunStarted { turn: turn.clone(), index, phase, expected: Some(10.0) }));
    let second = metrics(&[("requests", 500.0), ("rss", 45e6)]);
    log.add(1.0, Event::Sample(Sample { turn: turn.clone(), index, phase, at: 1.0, values: second }));
    let mut values = metrics(&[
        ("throughput", rate),
        ("latency.min", 0.001),
        ("latency.p50", 0.001),
        ("latency.p99", 0.02 + rate / 1e6),
        ("latency.p999", 0.02),
        ("latency.max", 0.05),
        ("requests", 5000.0),
        ("errors.timeout", 0.0),
        ("errors.reset", 0.0),
        ("errors.total", 0.0),
    ]);
    let mut warnings = Vec::new();
    if rate == BUN[1][1] {
        values.extend(metrics(&[("errors.timeout", 2.0), ("errors.reset", 1.0), ("errors.total", 3.0)]));
        warnings.push(warning("littles-law", "throughput times mean latency is 88.0, but there were 100 connections"));
    }
    let ended = RunEnded {
        turn,
        index,
        phase,
        outcome: Outcome::Ok,
        reason: None,
        metrics: values,
        facts: Facts::new(),
        histograms: [("latency".to_owned(), histogram(&[(1_000_000, 4900), (20_000_000, 99), (50_000_000, 1)]))].into(),
        bad_answers: Vec::new(),
        in_flight_ages: Vec::new(),
        warnings,
    };
    log.add(9.0, Event::RunEnded(Box::new(ended)));
}

pub(crate) fn histogram(values: &[(u64, u64)]) -> String {
    let mut histogram: Histogram<u64> = Histogram::new(3).unwrap();
    for (value, count) in values {
        histogram.record_n(*value, *count).unwrap();
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The second start of bun-serve dies; node-http goes on.
pub(crate) fn failed() -> Log {
    let mut log = Log::default();
    log.add(0.0, started(server_design()));
    server_turn(&mut log, 1, 1, "node-http");
    server_turn(&mut log, 1, 2, "bun-serve");
    let cell = "throughput:bun-serve:closed-100".to_owned();
    let turn = format!("{cell}#2");
    let phase = Phase::Measured;
    log.add(0.1, Event::TurnStarted(TurnStarted { turn: turn.clone(), cell, round: 2, phase, position: 3 }));
    let failed = Failed {
        code: "server-exited".to_owned(),
        message: "the server exited with 1 while it should serve".to_owned(),
        place: Some("bench.toml:12:1".to_owned()),
        rendered: "error[server-exited]: the server exited with 1\n --> bench.toml:12:1\n\u{1b}[2J".to_owned(),
        cell: None,
        turn: Some(turn.clone()),
    };
    log.add(0.1, Event::Failed(failed));
    let reason = Some("the server exited with 1 while it should serve".to_owned());
    let ended = TurnEnded { turn, outcome: Outcome::Failed, reason, metrics: Metrics::new(), facts: Facts::new() };
    log.add(0.1, Event::TurnEnded(ended));
    server_turn(&mut log, 2, 4, "node-http");
    server_turn(&mut log, 3, 5, "node-http");
    log.finish()
}

/// Four runs of each of two commands after a warm-up round. The second one stays at the launcher's floor.
pub(crate) fn commands() -> Log {
    commands_titled("Two commands")
}

pub(crate) fn commands_titled(title: &str) -> Log {
    let group = Group {
        id: "install".to_owned(),
        measure: "install".to_owned(),
        label: "install".to_owned(),
        axes: [].into(),
        driver: None,
        baseline: "install:npm".to_owned(),
        order: Order::Alternating,
        rounds: 4,
        warmup: 1,
        runs: 1,
        report: vec!["wall".to_owned(), "rss.peak".to_owned()],
    };
    let subjects =
        vec![subject("npm", "npm", SubjectKind::Command), subject("bun", "bun | *fast*", SubjectKind::Command)];
    let mut log = Log::default();
    log.add(0.0, started(design("installs", title, group, subjects)));
    let mut position = 0;
    for round in 0..=4_u64 {
        for (id, wall) in [("npm", [99.0, 2.0, 2.25, 1.75, 2.5]), ("bun", [99.0, 2.125, 1.0, 1.25, 1.5])] {
            position += 1;
            command_turn(&mut log, (round, position), id, wall[usize::try_from(round).unwrap()]);
        }
    }
    log.finish()
}

fn command_turn(log: &mut Log, (round, position): (u64, u64), id: &str, wall: f64) {
    let (phase, round, mark) = if round == 0 { (Phase::Warmup, 1, "w") } else { (Phase::Measured, round, "") };
    let cell = format!("install:{id}");
    let turn = format!("{cell}#{mark}{round}");
    log.add(0.1, Event::TurnStarted(TurnStarted { turn: turn.clone(), cell, round, phase, position }));
    log.add(0.1, Event::RunStarted(RunStarted { turn: turn.clone(), index: 1, phase, expected: None }));
    let ended = RunEnded {
        turn: turn.clone(),
        index: 1,
        phase,
        outcome: Outcome::Ok,
        reason: None,
        metrics: metrics(&[
            ("wall", wall),
            ("rss.peak", 1_900_544.0),
            ("rss.floor", if id == "bun" { 1_900_544.0 } else { 1e6 }),
        ]),
        facts: [("version".to_owned(), "1.0".to_owned())].into_iter().collect(),
        histograms: [].into(),
        bad_answers: Vec::new(),
        in_flight_ages: Vec::new(),
        warnings: Vec::new(),
    };
    log.add(wall, Event::RunEnded(Box::new(ended)));
    let (outcome, facts) = (Outcome::Ok, Facts::new());
    log.add(0.1, Event::TurnEnded(TurnEnded { turn, outcome, reason: None, metrics: Metrics::new(), facts }));
}
