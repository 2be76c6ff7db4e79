//! Journals: what is done and said, in order, without anything being done.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use super::Interpreter;
use crate::diagnostic::Code;
use crate::event::{Event, Outcome, Phase};
use crate::run::effects::fake::Fake;
use crate::run::planned::planned;
use crate::run::{Ended, Fatal};

/// An event in a few words.
fn told(event: &Event) -> Option<String> {
    let phase = |phase: &Phase| if *phase == Phase::Warmup { "warm-up" } else { "run" };
    let ended = |outcome: &Outcome, reason: &Option<String>| match (outcome, reason) {
        (Outcome::Ok, _) => "ok".to_owned(),
        (Outcome::Interrupted, _) => "interrupted".to_owned(),
        (Outcome::Failed, reason) => format!("failed: {}", reason.as_deref().unwrap_or("?")),
    };
    Some(match event {
        Event::TurnStarted(turn) => format!("> turn {} begins, position {}", turn.turn, turn.position),
        Event::TurnEnded(turn) => format!("> turn {} {}", turn.turn, ended(&turn.outcome, &turn.reason)),
        Event::Ready(ready) => format!("> {} ready", ready.server),
        Event::RunStarted(run) => format!("> {} {} begins", phase(&run.phase), run.index),
        Event::RunEnded(run) => format!("> {} {} {}", phase(&run.phase), run.index, ended(&run.outcome, &run.reason)),
        Event::Failed(failed) => {
            format!("> {} of {}", failed.code, failed.cell.as_deref().unwrap_or("the whole run"))
        }
        Event::Interrupted { signal } => format!("> {signal}"),
        Event::Warning(warning) => format!("> warning {}", warning.code),
        _ => return None,
    })
}

fn run(scenario: &str, mut fake: Fake) -> (String, Result<Ended, Fatal>) {
    let folder = tempfile::tempdir().unwrap();
    let (plan, sources) = planned(folder.path(), scenario);
    let journal = Rc::clone(&fake.journal);
    let events = Rc::clone(&journal);
    let mut emit = move |event: Event| -> io::Result<()> {
        events.borrow_mut().extend(told(&event));
        Ok(())
    };
    let ended = Interpreter::new(&plan, &sources, &mut fake, &mut emit).run();
    let text = journal.borrow().join("\n");
    (text, ended)
}

const SERVERS: &str = r#"
[servers]
db.builtin = {}
pool = { builtin = {}, needs = ["db"] }
a = { builtin = {}, needs = ["pool", "db"] }
b.builtin = {}

[probes.json]
request = "GET /json"

[loads.steady]
request = "GET /json"
duration = "10s"
"#;

fn with_servers(measures: &str) -> String {
    format!("{SERVERS}\n{measures}")
}

fn failing(entry: &'static str, code: Code) -> Fake {
    Fake { failing: vec![(entry, code)], ..Fake::default() }
}

#[test]
fn servers_with_needs_probes_and_warm_ups_in_balanced_order() {
    let scenario = r#"
        [[setup]]
        shell = "npm ci"
        [tools.node]
        command = ["node", "--version"]
        [measures.http]
        servers = ["a", "b"]
        load = "steady"
        probes = ["json"]
        warmup = { runs = 1, duration = "1s" }
        runs = 2
        starts = 2
        cooldown = "3s"
    "#;
    let (journal, ended) = run(&with_servers(scenario), Fake::default());
    insta::assert_snapshot!(journal);
    assert_eq!(ended.unwrap(), Ended { failed: false, interrupted: None });
}

const SORTING: &str = r#"
    [commands.sort]
    command = ["sort"]
    before = [["command", "before"]]
    after = [["command", "after"]]
    [measures.sorting]
    commands = ["sort"]
    runs = 1
    workspace = {}
    before = [["measure", "before"]]
    after = [["measure", "after"]]
"#;

#[test]
fn a_command_with_steps_and_a_workspace() {
    insta::assert_snapshot!(run(SORTING, Fake::default()).0);
}

#[test]
fn a_step_that_fails() {
    insta::assert_snapshot!(run(SORTING, failing("step command before", Code::StepFailed)).0);
}

#[test]
fn a_probe_that_fails() {
    let scenario = r#"
        [measures.http]
        servers = ["a", "b"]
        load = "steady"
        probes = ["json"]
        warmup = 0
        starts = 2
    "#;
    let (journal, ended) = run(&with_servers(scenario), failing("probe a json", Code::ProbeFailed));
    insta::assert_snapshot!(journal);
    assert_eq!(ended.unwrap(), Ended { failed: true, interrupted: None });
}

#[test]
fn a_need_that_never_gets_ready() {
    let scenario = r#"
        [measures.starting]
        servers = ["a", "b"]
        starts = 1
    "#;
    insta::assert_snapshot!(run(&with_servers(scenario), failing("start pool", Code::ServerNotReady)).0);
}

#[test]
fn a_signal_in_the_midst_of_a_load() {
    let scenario = r#"
        [measures.http]
        servers = ["a", "b"]
        load = "steady"
        warmup = 0
        starts = 2
    "#;
    let fake = Fake { signal_at: Some("load a steady"), ..Fake::default() };
    let (journal, ended) = run(&with_servers(scenario), fake);
    insta::assert_snapshot!(journal);
    assert_eq!(ended.unwrap().interrupted.as_deref(), Some("SIGTERM"));
}

#[test]
fn what_is_required_of_every_run() {
    let scenario = r#"
        [vars]
        spare = 89
        [measures.http]
        servers = ["b"]
        load = "steady"
        require = ["errors.total == 0"]
        starts = 2
        [measures.memory]
        servers = ["b"]
        load = "steady"
        warmup = 0
        starts = 1
        require = ["errors.total == 3", "rss.peak <= rss.idle + vars.spare"]
    "#;
    insta::assert_snapshot!(run(&with_servers(scenario), Fake::default()).0);
}

#[test]
fn nothing_is_measured_after_a_tool_that_fails() {
    let scenario = r#"
        [tools.node]
        command = ["node", "--version"]
        [measures.starting]
        servers = ["b"]
    "#;
    let (journal, ended) = run(&with_servers(scenario), failing("ask node", Code::ToolFailed));
    assert_eq!(journal, "ask node\n> tool-failed of the whole run");
    assert!(matches!(ended, Err(Fatal::Stopped(diagnostic)) if diagnostic.code == Code::ToolFailed));
}

#[test]
fn a_log_that_cannot_be_written_stops_the_run_in_order() {
    let scenario = "[measures.http]\nservers = [\"b\"]\nload = \"steady\"\n";
    let folder = tempfile::tempdir().unwrap();
    let (plan, sources) = planned(folder.path(), &with_servers(scenario));
    let mut fake = Fake::default();
    let journal = Rc::clone(&fake.journal);
    let left = RefCell::new(8);
    let mut emit = |_| -> io::Result<()> {
        *left.borrow_mut() -= 1;
        if *left.borrow() == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    };
    let ended = Interpreter::new(&plan, &sources, &mut fake, &mut emit).run();
    assert!(matches!(ended, Err(Fatal::Log(_))));
    assert_eq!(*left.borrow(), 0, "nothing is emitted after the error");
    assert_eq!(journal.borrow().last().map(String::as_str), Some("stop b"));
}
