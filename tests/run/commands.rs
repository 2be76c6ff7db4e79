//! Commands, steps, tools, the environment, and what is not executed yet.

use std::time::Duration;

use bakeoff::diagnostic::Code;
use bakeoff::event::{Event, Outcome, Phase};
use bakeoff::run::refuse;

use super::Stage;
use super::planned::planned;

#[test]
fn a_command_is_measured_alone_in_its_workspace() {
    let stage = Stage::new();
    stage.write("site/data.txt", "b\na\n");
    stage.write("site/deep/er.sh", "cat data.txt | sort > sorted; rm data.txt\n");
    let ran = stage.run(
        r#"
        [commands.sort]
        command = ["sh", "deep/er.sh"]
        before = [{ shell = "test ! -e sorted" }]
        after = [{ shell = "test $(head -c1 sorted) = a -a ! -e data.txt" }]
        [measures.sorting]
        commands = ["sort"]
        workspace = { from = "site", copy = ["data.txt", "deep"] }
        runs = 2
        "#,
    );
    ran.well();
    let runs = ran.runs();
    assert_eq!(runs.iter().map(|run| run.phase).collect::<Vec<_>>(), [Phase::Warmup, Phase::Measured, Phase::Measured]);
    for run in runs {
        assert!(run.metrics["wall"] > 0.0 && run.metrics["wall"] < 10.0);
        assert!(run.metrics["rss.peak"] >= run.metrics["rss.floor"] && run.metrics["rss.floor"] > 0.0);
        assert!(run.metrics["cpu.user"] + run.metrics["cpu.system"] > 0.0);
    }
    assert_eq!(std::fs::read_to_string(stage.path("scenario/site/data.txt")).unwrap(), "b\na\n");
    let inputs: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| if let Event::Input(input) = event { Some(input.path.as_str()) } else { None })
        .collect();
    assert!(inputs.contains(&"site/data.txt") && inputs.contains(&"site/deep/er.sh"), "{inputs:?}");
    assert!(inputs.iter().any(|path| path.starts_with('/')), "{inputs:?}");
    let once: std::collections::BTreeSet<_> = inputs.iter().collect();
    assert_eq!(once.len(), inputs.len());
}

#[test]
fn a_command_that_does_not_do_what_is_expected() {
    let ran = Stage::new().run(
        r#"
        [commands.failing]
        shell = "echo on its way; echo gone wrong >&2; exit 3"
        after = [["true"]]
        [commands.silent]
        command = ["true"]
        expect = { stdout = 'done' }
        [commands.odd]
        shell = "exit 3"
        expect = { exit = 3 }
        [measures.running]
        commands = ["*"]
        runs = 1
        "#,
    );
    let failures = ran.failures();
    let told: Vec<(&str, &str)> =
        failures.iter().map(|failed| (failed.code.as_str(), failed.message.as_str())).collect();
    let expected = [
        ("command-failed", "the command `failing` failed: exit: expected 0, got 3"),
        ("command-failed", "the command `silent` failed: stdout: expected a match of `done`, got no match"),
    ];
    assert_eq!(told, expected);
    assert!(failures[0].rendered.contains("gone wrong"), "{}", failures[0].rendered);
    assert!(failures[1].rendered.contains("expect = {"), "{}", failures[1].rendered);
    let odd: Vec<Outcome> =
        ran.turns().iter().filter(|turn| turn.turn.contains(":odd")).map(|turn| turn.outcome).collect();
    assert_eq!(odd, [Outcome::Ok, Outcome::Ok]);
    assert_eq!(ran.runs()[0].reason.as_deref(), Some(expected[0].1));
    assert!(ran.runs()[0].metrics.contains_key("wall"), "what was measured is kept");
}

#[test]
fn where_a_command_runs_and_what_it_reads() {
    let stage = Stage::new();
    stage.write("sub/here", "from the file\n");
    stage
        .run(
            r#"
        [commands.text]
        command = ["cat"]
        stdin = "from {{ scenario_dir }}"
        expect = { stdout = '^from /.*/scenario$' }
        [commands.file]
        command = ["cat"]
        stdin = { file = "sub/here" }
        expect = { stdout = '^from the file$' }
        [commands.nothing]
        command = ["cat", "here"]
        cwd = "sub"
        stdout = "null"
        expect = { stdout_not = '.' }
        [measures.running]
        commands = ["*"]
        warmup = 0
        runs = 1
        "#,
        )
        .well();
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_its_tree() {
    let ran = Stage::new().run(
        r#"
        [commands.slow]
        shell = "sleep 60 & setsid sleep 60 & wait"
        timeout = "300ms"
        [measures.running]
        commands = ["slow"]
        "#,
    );
    let failed = ran.failure("command-failed");
    assert!(failed.message.contains("expected an end within 300 ms"), "{}", failed.message);
    assert!(ran.took < Duration::from_secs(20));
}

#[test]
fn children_that_are_left_behind_are_ended_and_named() {
    let ran = Stage::new().run(
        r#"
        [commands.leaving]
        shell = "setsid sleep 60 >/dev/null 2>&1 & exit 0"
        [measures.running]
        commands = ["leaving"]
        warmup = 0
        runs = 1
        "#,
    );
    ran.well();
    assert!(ran.warned("left-behind").text.contains("sleep"), "{:?}", ran.warnings());
}

#[test]
fn a_program_that_does_not_exist() {
    let ran = Stage::new().run(
        "[commands.absent]\ncommand = [\"no-such-program-at-all\"]\n[measures.running]\ncommands = [\"absent\"]\n",
    );
    let failed = ran.failure("program-missing");
    assert!(failed.message.contains("no-such-program-at-all"), "{}", failed.message);
    assert!(failed.rendered.contains("PATH"), "{}", failed.rendered);
}

#[test]
fn the_environment_is_what_the_scenario_says() {
    let stage = Stage::new();
    let ran = stage.run(
        r#"
        [environment]
        inherit = ["CARGO_PKG_*", "-CARGO_PKG_NAME"]
        set = { WHERE = "{{ run_dir }}" }
        [commands.env]
        command = ["env"]
        env = { EXTRA = "{{ dir }}" }
        [measures.running]
        commands = ["env"]
        warmup = 0
        runs = 1
        "#,
    );
    ran.well();
    let printed = stage.logs();
    let names: Vec<&str> = printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"PATH") && names.contains(&"CARGO_PKG_VERSION"), "{printed}");
    assert!(!names.contains(&"CARGO_PKG_NAME") && !names.contains(&"CARGO_MANIFEST_DIR"), "{printed}");
    let work = stage.path("work").display().to_string();
    let of = |name: &str| printed.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
    assert!(of("WHERE").starts_with(&work) && of("EXTRA").starts_with(of("WHERE")), "{printed}");
}

#[test]
fn secrets_are_passed_on_and_never_written_down() {
    let secret = env!("CARGO_PKG_DESCRIPTION");
    let stage = Stage::new();
    let ran = stage.run(
        r#"
        [environment]
        secret = ["CARGO_PKG_DESCRIPTION"]
        [commands.telling]
        shell = "echo \"it is $CARGO_PKG_DESCRIPTION!\" >&2; exit 1"
        [measures.running]
        commands = ["telling"]
        "#,
    );
    assert!(ran.failure("command-failed").rendered.contains("it is ***!"));
    assert!(stage.logs().contains("it is ***!"));
    let events: String = ran.events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    assert!(!events.contains(secret) && !stage.logs().contains(secret));
}

#[test]
fn setup_and_tools_come_first() {
    let stage = Stage::new();
    stage.write("there", "");
    let scenario = r#"
        [[setup]]
        command = ["touch", "made"]
        creates = "made"
        [[setup]]
        command = ["false"]
        creates = "there"
        [tools.shell]
        shell = "echo; echo version 1; echo second >&2"
        expect = { stdout = '^version 1$' }
        [commands.true]
        command = ["true"]
        [measures.running]
        commands = ["true"]
        warmup = 0
        runs = 1
    "#;
    for skipped in [false, true] {
        let ran = stage.run(scenario);
        ran.well();
        let Event::Setup(first) = &ran.events[0] else { panic!("{:?}", ran.events[0]) };
        let Event::Setup(second) = &ran.events[1] else { panic!("{:?}", ran.events[1]) };
        assert_eq!((first.skipped, first.wall.is_some(), second.skipped), (skipped, !skipped, true));
        let Event::Tool(tool) = &ran.events[2] else { panic!("{:?}", ran.events[2]) };
        assert_eq!((tool.exit, tool.lines.as_slice()), (0, &["version 1".to_owned()][..]));
    }
}

#[test]
fn what_fails_before_anything_is_measured_stops_the_run() {
    let measure = "[commands.true]\ncommand = [\"true\"]\n[measures.running]\ncommands = [\"true\"]\n";
    let cases = [
        ("[[setup]]\nshell = \"echo why >&2; exit 1\"\n", Code::SetupFailed, "why"),
        ("[[setup]]\ncommand = [\"no-such-program-at-all\"]\n", Code::ProgramMissing, "no-such-program-at-all"),
        ("[tools.x]\nshell = \"echo 2\"\nexpect = { stdout = '^1$' }\n", Code::ToolFailed, "^1$"),
        ("[tools.x]\ncommand = [\"./absent\"]\n", Code::ProgramMissing, "absent"),
    ];
    for (first, code, shown) in cases {
        let ran = Stage::new().run(&format!("{first}{measure}"));
        assert_eq!(ran.stopped().code, code);
        assert!(ran.failure(code.name()).rendered.contains(shown));
        assert_eq!(ran.turns().len(), 0);
    }
}

#[test]
fn a_signal_ends_a_command() {
    let scenario = r#"
        [commands.slow]
        command = ["sleep", "60"]
        after = [["touch", "cleaned"]]
        [measures.running]
        commands = ["slow"]
    "#;
    let stage = Stage::new();
    let ran = stage.watched(scenario, |event, interrupt| {
        if matches!(event, Event::RunStarted(_)) {
            let raise = interrupt.raiser().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                raise();
            });
        }
    });
    assert_eq!((ran.runs()[0].outcome, ran.turns()[0].outcome), (Outcome::Interrupted, Outcome::Interrupted));
    assert!(ran.ended.unwrap().interrupted.is_some());
    assert!(stage.path("scenario/cleaned").exists());
}

#[test]
fn a_run_directory_is_kept_on_demand() {
    let stage = Stage { keep: true, ..Stage::new() };
    let scenario =
        "[commands.true]\ncommand = [\"true\"]\n[measures.running]\ncommands = [\"true\"]\nworkspace = {}\nruns = 1\n";
    stage.run(scenario).well();
    let run = std::fs::read_dir(stage.path("work")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_dir(run).unwrap().count(), 2, "one directory for each run");
}

#[test]
fn keys_of_later_versions_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, sources) = planned(
        folder.path(),
        r#"
        caveats = ["only here"]
        [servers.a]
        command = ["true"]
        tls = { insecure = true }
        [servers.there]
        url = "https://127.0.0.1:1"
        [commands.b]
        command = ["true"]
        needs = ["a"]
        files = { x = "y" }
        capture.n = { stdout = '(\d+)' }
        expect = { exists = ["x"] }
        [loads.l]
        request = "GET /"
        count = 10
        connections = 2
        rate = 5
        threads = 2
        [measures.m]
        servers = ["a", "there"]
        load = "l"
        margin = "1%"
        [measures.n]
        commands = ["b"]
        control = true
        "#,
    );
    let refused = refuse(&plan);
    assert!(refused.iter().all(|diagnostic| diagnostic.code == Code::NotYet && diagnostic.primary.is_some()));
    let shown: Vec<String> = refused
        .iter()
        .map(|diagnostic| {
            let place = sources.place(diagnostic.primary.as_ref().unwrap().span);
            format!("{}: {}", place.line, diagnostic.message.trim_start_matches("not yet: "))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}
