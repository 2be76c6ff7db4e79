//! Servers: their life, and what goes wrong with it.

use std::net::TcpListener;
use std::time::Duration;

use bakeoff::event::{Event, Outcome, Phase, When};

use super::{Stage, below};

/// A port on which nothing listens now.
fn free_port() -> u16 {
    bakeoff::observe::port::free_port().unwrap()
}

#[test]
fn the_builtin_server_is_probed_loaded_and_stopped() {
    let stage = Stage::new();
    let ran = stage.run(
        r#"
        [servers.reference]
        builtin = {}
        [probes.json]
        request = "GET /json"
        expect = { status = 200, bytes = 29, json = { message = "hello", ok = true }, json_path = { "$.ok" = true } }
        [loads.few]
        request = "GET /json"
        connections = 2
        count = 300
        [measures.throughput]
        servers = ["reference"]
        load = "few"
        probes = ["json"]
        starts = 2
        require = ["errors.total == 0", "rss.peak >= rss.idle"]
        "#,
    );
    ran.well();
    let runs = ran.runs();
    let phases: Vec<(Phase, u64)> = runs.iter().map(|run| (run.phase, run.index)).collect();
    assert_eq!(phases, [(Phase::Warmup, 1), (Phase::Measured, 1), (Phase::Warmup, 1), (Phase::Measured, 1)]);
    for run in runs {
        assert_eq!(run.metrics["requests"], 300.0);
        assert_eq!(run.metrics["errors.total"], 0.0);
        assert!(run.metrics["latency.p50"] > 0.0 && run.metrics["latency.p50"] <= run.metrics["latency.max"]);
        assert!(run.metrics["throughput"] * run.metrics["elapsed"] > 299.0);
        assert!(run.histograms.contains_key("latency"));
    }
    let probes: Vec<(When, bool)> = ran
        .events
        .iter()
        .filter_map(|event| if let Event::Probe(probe) = event { Some((probe.when, probe.passed)) } else { None })
        .collect();
    assert_eq!(probes, [(When::Before, true), (When::After, true), (When::Before, true), (When::After, true)]);
    for event in &ran.events {
        if let Event::Ready(ready) = event {
            assert!(ready.metrics["startup"] > 0.0 && ready.metrics["startup"] < 10.0);
            assert!(ready.metrics["rss.idle"] > 100_000.0);
            assert!(ready.port.is_some());
        }
    }
    assert!(ran.turns().iter().all(|turn| turn.metrics["rss.peak"] > 100_000.0));
    let input = |event: &Event| matches!(event, Event::Machine(machine) if machine.threads.is_some());
    assert!(ran.events.iter().any(input));
    assert_eq!(ran.warnings().iter().filter(|warning| warning.code == "server-killed").count(), 0);
}

#[test]
fn a_load_is_sampled_every_second() {
    let ran = Stage::new().run(
        r#"
        [servers.reference]
        builtin = { delay = "1ms" }
        [loads.steady]
        request = "GET /json"
        duration = "2200ms"
        [measures.throughput]
        servers = ["reference"]
        load = "steady"
        warmup = 0
        starts = 1
        "#,
    );
    ran.well();
    let seen = |name: &str| {
        let values = ran.events.iter().filter_map(|event| {
            if let Event::Sample(sample) = event {
                sample.values.get(name).map(|value| (sample.at, *value))
            } else {
                None
            }
        });
        values.collect::<Vec<_>>()
    };
    let memory = seen("rss");
    assert_eq!(memory.len(), 2, "{memory:?}");
    assert!((0.9..1.9).contains(&memory[0].0) && memory[0].1 > 100_000.0, "{memory:?}");
    assert!(seen("latency.p50").iter().all(|(_, latency)| *latency >= 0.001));
    let run = ran.runs()[0];
    assert!(run.metrics["cpu.cores"] > 0.0 && run.metrics["cpu.cores"] < 2.0);
    assert!(run.metrics["cpu.per_request"] > 0.0 && run.metrics["cpu.per_request"] < 0.1);
    assert!(run.metrics.contains_key("machine.other"));
}

#[test]
fn needs_are_started_first_and_known_by_name() {
    let ran = Stage::new().run(
        r#"
        [servers.db]
        builtin = { body = 64 }
        [servers.pool]
        command = ["BAKEOFF", "__serve", "{{ port }}", "0"]
        needs = ["db"]
        before = [{ shell = "echo $DB > {{ dir }}/db" }]
        after = [{ shell = "test -n \"$(cat {{ dir }}/db)\"" }]
        env = { DB = "{{ servers.db.url }}" }
        ready = { http = "/json" }
        [probes.echo]
        request = { method = "POST", path = "/echo", json = { to = "{{ server.url }}", n = [1, 2.5] }, chunked = { size = 7 } }
        expect = { json_path = { "$.n[0]" = 1.0 }, headers = { "Content-Type" = "application/json" } }
        [measures.starting]
        servers = ["pool"]
        probes = ["echo"]
        starts = 1
        "#,
    );
    ran.well();
    assert_eq!(ran.runs().len(), 0);
}

#[test]
fn every_kind_of_ready_is_waited_for() {
    let ran = Stage::new().run(
        r#"
        [defaults.servers]
        command = ["BAKEOFF", "__serve", "{{ port }}", "0"]
        [servers.prints]
        ready = { output = 'listening on .*:\d+$' }
        [servers.told]
        ready = { command = ["/bin/sh", "-c", "test -e {{ dir }}/there || { touch {{ dir }}/there; false; }"], interval = "200ms" }
        [servers.nowhere]
        port = "none"
        command = ["/bin/sh", "-c", "echo up; exec sleep 30"]
        ready = { output = '^up$' }
        [measures.starting]
        servers = ["*"]
        starts = 1
        "#,
    );
    ran.well();
    let ready: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| if let Event::Ready(ready) = event { Some(ready) } else { None })
        .collect();
    assert_eq!(ready.len(), 3);
    assert!(ready[1].metrics["startup"] >= 0.2);
    assert_eq!(ready[2].port, None);
}

#[test]
fn a_server_that_exits_at_once() {
    let ran = Stage::new().run(
        r#"
        [servers.broken]
        shell = "printf 'no \\033[31mluck\\n' >&2; exit 7"
        [servers.sound]
        builtin = {}
        [measures.starting]
        servers = ["broken", "sound"]
        starts = 2
        "#,
    );
    let failed = ran.failure("server-exited");
    assert!(failed.message.contains("`broken` exited with code 7 before it was ready"), "{}", failed.message);
    assert!(failed.rendered.contains(r"no \x1b[31mluck"), "{}", failed.rendered);
    assert!(failed.place.as_deref().unwrap().ends_with("scenario.toml:5:9"), "{:?}", failed.place);
    let outcomes: Vec<Outcome> = ran.turns().iter().map(|turn| turn.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Ok, Outcome::Ok], "its later turn is skipped, the other goes on");
    assert!(ran.ended.unwrap().failed);
}

#[test]
fn a_server_that_never_gets_ready() {
    let ran = Stage::new().run(
        r#"
        [servers.deaf]
        shell = "echo thinking; exec sleep 60"
        ready = { tcp = true, timeout = "300ms" }
        [measures.starting]
        servers = ["deaf"]
        "#,
    );
    let failed = ran.failure("server-not-ready");
    assert!(failed.rendered.contains("thinking") && failed.rendered.contains("ready = {"), "{}", failed.rendered);
    assert!(ran.took < Duration::from_secs(10));
}

const STEADY: &str = r#"
    [loads.steady]
    request = "GET /json"
    connections = 2
    duration = "20s"
    [measures.throughput]
    servers = ["*"]
    load = "steady"
    starts = 1
    warmup = 0
"#;

#[test]
fn a_server_that_dies_in_the_midst_of_a_load() {
    let server = r#"
        [servers.mortal]
        shell = "BAKEOFF __serve {{ port }} 0 & sleep 1; kill $!; echo out of luck >&2; exit 9"
    "#;
    let ran = Stage::new().run(&format!("{server}\n{STEADY}"));
    let failed = ran.failure("server-exited");
    assert!(failed.message.contains("exited with code 9"), "{}", failed.message);
    assert!(failed.rendered.contains("out of luck"), "{}", failed.rendered);
    let run = ran.runs()[0];
    assert_eq!(run.outcome, Outcome::Failed);
    assert!(run.metrics["requests"] > 0.0, "what was measured is kept");
    assert!(ran.took < Duration::from_secs(12), "the load is stopped at once");
}

#[test]
fn a_need_that_dies_fails_the_server_that_needs_it() {
    let servers = r#"
        [servers.db]
        port = "none"
        shell = "echo up; sleep 1; exit 4"
        ready = { output = '^up$' }
        after = [{ shell = "touch after" }]
        [servers.front]
        builtin = {}
        needs = ["db"]
    "#;
    let stage = Stage::new();
    let ran = stage.run(&format!("{servers}\n{}", STEADY.replace("\"*\"", "\"front\"")));
    let failed = ran.failure("server-exited");
    assert!(failed.message.contains("`db` exited with code 4"), "{}", failed.message);
    assert!(ran.took < Duration::from_secs(12), "the load is stopped at once");
    assert!(stage.path("scenario/after").exists());
}

#[test]
fn steps_that_fail() {
    let ran = Stage::new().run(
        r#"
        [defaults.servers]
        builtin = {}
        [servers.before]
        before = [{ shell = "echo no >&2; exit 1" }]
        after = [{ shell = "true" }]
        [servers.after]
        after = [{ shell = "exit 2" }]
        [measures.starting]
        servers = ["*"]
        starts = 1
        "#,
    );
    let messages: Vec<&str> = ran.failures().iter().map(|failed| failed.message.as_str()).collect();
    let expected = [
        "the step `echo no >&2; exit 1` failed: exit: expected 0, got 1",
        "the step `exit 2` failed: exit: expected 0, got 2",
    ];
    assert_eq!(messages, expected);
    assert!(ran.failures().iter().all(|failed| failed.code == "step-failed"));
}

#[test]
fn a_signal_while_a_server_gets_ready() {
    let scenario = "[servers.deaf]\nshell = \"exec sleep 60\"\n[measures.starting]\nservers = [\"deaf\"]\n";
    let ran = Stage::new().watched(scenario, |event, interrupt| {
        if matches!(event, Event::TurnStarted(_)) {
            let raise = interrupt.raiser().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                raise();
            });
        }
    });
    assert_eq!(ran.turns()[0].outcome, Outcome::Interrupted);
    assert!(ran.took < Duration::from_secs(10));
}

#[test]
fn a_server_that_does_not_stop_is_killed() {
    let ran = Stage::new().run(
        r#"
        [servers.stubborn]
        shell = "trap '' TERM; BAKEOFF __serve {{ port }} 0 & wait; wait; sleep 60"
        stop = { grace = "200ms" }
        [measures.starting]
        servers = ["stubborn"]
        starts = 1
        "#,
    );
    ran.well();
    assert!(ran.warned("server-killed").text.contains("`stubborn` did not stop within"));
    assert!(ran.warned("rss-tree").text.contains("2 processes"));
}

#[test]
fn a_port_that_is_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let scenario =
        format!("[servers.late]\nbuiltin = {{}}\nport = {port}\n[measures.starting]\nservers = [\"late\"]\n");
    let ran = Stage::new().run(&scenario);
    let failed = ran.failure("port-taken");
    let me = format!("(pid {})", std::process::id());
    assert!(failed.message.contains(&me), "{}", failed.message);
}

#[test]
fn another_process_that_answers_on_the_port() {
    let port = free_port();
    let scenario = format!(
        "[servers.silent]\nshell = \"exec sleep 60\"\nport = {port}\n[measures.starting]\nservers = [\"silent\"]\n"
    );
    let mut listener = None;
    let stage = Stage::new();
    let folder = stage.path("scenario");
    let (sent, other) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        while below(&folder).iter().all(|line| !line.contains("sleep")) {
            std::thread::sleep(Duration::from_millis(10));
        }
        sent.send(TcpListener::bind(("127.0.0.1", port)).unwrap()).unwrap();
    });
    let ran = stage.watched(&scenario, |_, _| listener = other.try_recv().ok().or(listener.take()));
    thread.join().unwrap();
    let failed = &ran.failures()[0];
    assert_eq!(failed.code, "server-not-ours", "{}", failed.rendered);
    assert!(failed.message.contains(&format!("(pid {})", std::process::id())), "{}", failed.message);
}

#[test]
fn a_server_that_leaves_its_process_is_no_server() {
    let ran = Stage::new().run(
        r#"
        [servers.daemon]
        shell = "setsid BAKEOFF __serve {{ port }} 0 & exit 0"
        ready = { http = "/json" }
        [measures.starting]
        servers = ["daemon"]
        "#,
    );
    let failed = ran.failure("server-exited");
    assert!(failed.rendered.contains("run it in the foreground"), "{}", failed.rendered);
}

#[test]
fn a_server_whose_workers_leave_its_session_is_ended_whole() {
    let ran = Stage::new().run(
        r#"
        [servers.master]
        shell = "setsid sh -c 'BAKEOFF __serve {{ port }} 0' & exec sleep 60"
        [measures.starting]
        servers = ["master"]
        starts = 1
        "#,
    );
    ran.well();
    assert!(ran.warned("left-behind").text.contains("`master`"));
}

#[test]
fn a_probe_that_fails_fails_its_cell_alone() {
    let ran = Stage::new().run(
        r#"
        [servers.short]
        builtin = { body = 64 }
        [servers.right]
        builtin = {}
        [probes.json]
        request = "GET /json"
        expect = { bytes = 29, matches = '^\{"message"' }
        [measures.starting]
        servers = ["short", "right"]
        probes = ["json"]
        starts = 1
        "#,
    );
    let failed = ran.failure("probe-failed");
    assert!(failed.message.contains("bytes: expected 29, got 64"), "{}", failed.message);
    assert!(failed.rendered.contains("expect = {"), "{}", failed.rendered);
    assert_eq!(failed.cell.as_deref(), Some("starting:short"));
    assert_eq!(ran.turns()[1].outcome, Outcome::Ok);
}

#[test]
fn a_server_that_runs_already() {
    let port = free_port();
    let mut other = std::process::Command::new(super::BAKEOFF)
        .args(["__serve", &port.to_string(), "0"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let scenario = format!(
        "[servers.there]\nurl = \"http://127.0.0.1:{port}\"\n[loads.few]\nrequest = \"GET /json\"\ncount = 50\n\
         [measures.throughput]\nservers = [\"there\"]\nload = \"few\"\nstarts = 2\nwarmup = 0\n"
    );
    let ran = Stage::new().run(&scenario);
    other.kill().unwrap();
    other.wait().unwrap();
    ran.well();
    assert_eq!(ran.warnings().iter().filter(|warning| warning.code == "no-process-metrics").count(), 1);
    assert_eq!(ran.runs()[1].metrics["requests"], 50.0);
    assert!(!ran.runs()[1].metrics.contains_key("cpu.cores"));
}

#[test]
fn the_first_signal_stops_in_order() {
    let server = "[servers.reference]\nbuiltin = {}\n[servers.other]\nbuiltin = {}\n";
    let mut signalled = false;
    let ran = Stage::new().watched(&format!("{server}{STEADY}"), |event, interrupt| {
        if matches!(event, Event::Sample(_)) && !signalled {
            signalled = true;
            interrupt.raise().unwrap();
        }
    });
    assert_eq!(ran.ended.as_ref().unwrap().interrupted.as_deref(), Some("SIGINT"));
    let (runs, turns) = (ran.runs(), ran.turns());
    assert_eq!((runs.len(), runs[0].outcome), (1, Outcome::Interrupted));
    assert!(runs[0].metrics["throughput"] > 0.0);
    assert_eq!((turns.len(), turns[0].outcome), (1, Outcome::Interrupted));
    assert!(matches!(ran.events[ran.events.len() - 2], Event::Interrupted { .. }));
    assert_eq!(ran.failures().len(), 0);
}

#[test]
fn the_second_signal_kills_at_once() {
    let server = "[servers.stubborn]\nshell = \"trap '' TERM; BAKEOFF __serve {{ port }} 0 & wait\"\nstop = { grace = \"60s\" }\n";
    let mut signalled = false;
    let ran = Stage::new().watched(&format!("{server}{STEADY}"), |event, interrupt| {
        if matches!(event, Event::Sample(_)) && !signalled {
            signalled = true;
            interrupt.raise().unwrap();
            let again = interrupt.raiser().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                again();
            });
        }
    });
    assert!(ran.took < Duration::from_secs(20), "{:?}", ran.took);
    assert!(ran.ended.unwrap().interrupted.is_some());
}
