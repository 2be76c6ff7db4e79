//! A plan as text for people: what would run, in order.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use super::{Cell, Command, Group, Hole, Launch, LoadStop, Order, Plan, Process, ReadyWhen, Server, Stdin, Step, Text};
use crate::diagnostic::escape_controls;
use crate::plan::{Port, Tls};
use crate::stats::fewest_runs;
use crate::units::show::{self, counted};

/// How many turns of a group are listed.
const TURNS: usize = 24;

/// What is looked up for every group.
struct Index<'a> {
    servers: HashSet<&'a str>,
    loads: HashMap<&'a str, LoadStop>,
}

/// The plan as text.
#[must_use]
pub fn show(plan: &Plan) -> String {
    let mut out = String::new();
    let title = plan.title.as_deref().map(|title| format!(": {title}")).unwrap_or_default();
    line(&mut out, 0, &format!("{}{title}", plan.name));
    line(&mut out, 0, &format!("plan {}  seed {}", &plan.digest()[..16], plan.seed));
    environment(&mut out, plan);
    list(&mut out, "setup", plan.setup.iter().map(step).collect());
    list(
        &mut out,
        "tools",
        plan.tools.iter().map(|tool| format!("{}: {}", tool.name, command_line(&tool.process))).collect(),
    );
    list(
        &mut out,
        "checks",
        plan.checks.iter().map(|check| format!("{}: {}", check.identity.id, command_line(&check.process))).collect(),
    );
    section(&mut out, "servers", &plan.servers, server);
    section(&mut out, "commands", &plan.commands, command);
    section(&mut out, "probes", &plan.probes, |out, probe| {
        line(out, 1, &format!("{}: {} {}", probe.identity.id, probe.request.method, probe.request.path));
    });
    section(&mut out, "loads", &plan.loads, |out, load| {
        let requests: Vec<String> =
            load.requests.iter().map(|one| format!("{} {}", one.request.method, one.request.path)).collect();
        let stop = match load.stop {
            LoadStop::Duration(duration) => format!("for {}", show::span(duration.as_secs_f64())),
            LoadStop::Count(count) => format!("{} requests", show::count(count)),
        };
        line(
            out,
            1,
            &format!(
                "{}: {}, {}, {stop}",
                load.identity.id,
                requests.join(" | "),
                counted(load.connections, "connection")
            ),
        );
    });
    let index = Index {
        servers: plan.servers.iter().map(|server| server.identity.id.as_str()).collect(),
        loads: plan.loads.iter().map(|load| (load.identity.id.as_str(), load.stop)).collect(),
    };
    for part in &plan.groups {
        group(&mut out, part, &index);
    }
    totals(&mut out, plan, &index);
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Nothing that a scenario holds may move the cursor or break the line.
    let text = escape_controls(text).replace('\n', "\\n").replace('\t', "\\t");
    let _ = writeln!(out, "{:indent$}{text}", "", indent = depth * 2);
}

fn section<T>(out: &mut String, title: &str, entries: &[T], show: impl Fn(&mut String, &T)) {
    if !entries.is_empty() {
        line(out, 0, title);
        entries.iter().for_each(|entry| show(out, entry));
    }
}

fn list(out: &mut String, title: &str, lines: Vec<String>) {
    section(out, title, &lines, |out, text| line(out, 1, text));
}

fn environment(out: &mut String, plan: &Plan) {
    let environment = &plan.environment;
    let mut lines: Vec<String> =
        environment.set.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    lines.extend(environment.inherit.iter().map(|name| format!("inherit {name}")));
    lines.extend(environment.secret.iter().map(|name| format!("secret {name}")));
    list(out, "environment", lines);
}

/// An argument vector as a shell would read it; what only a run knows stands in braces.
fn command_line(process: &Process) -> String {
    process.argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(text: &Text) -> String {
    let shown = text.fill(Hole::to_string);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,{}~".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

fn step(step: &Step) -> String {
    let creates = step.creates.as_ref().map(|creates| format!("  (unless {creates} is there)")).unwrap_or_default();
    let files = match step.process.files.len() {
        0 => String::new(),
        count => format!("  (writes {count} files)"),
    };
    format!("{}{files}{creates}", command_line(&step.process))
}

fn process_details(out: &mut String, process: &Process) {
    for (name, value) in &process.env {
        line(out, 2, &format!("env {name}={}", quoted(value)));
    }
    if let Some(cwd) = &process.cwd {
        line(out, 2, &format!("cwd {cwd}"));
    }
    match &process.stdin {
        Stdin::Nothing => {}
        Stdin::Text(text) => line(out, 2, &format!("stdin {} bytes", text.len())),
        Stdin::File(file) => line(out, 2, &format!("stdin {file}")),
    }
    if let Some(user) = &process.user {
        line(out, 2, &format!("user {user}"));
    }
    if !process.cpus.is_empty() {
        line(out, 2, &format!("cpus {:?}", process.cpus));
    }
    for (name, text) in &process.files {
        line(out, 2, &format!("file {name}, {} bytes", text.len()));
    }
}

fn server(out: &mut String, server: &Server) {
    let what = match &server.launch {
        Launch::Process(process) => command_line(process),
        Launch::Builtin(builtin) => {
            let delay = if builtin.delay.is_zero() {
                String::new()
            } else {
                format!(", {} late", show::span(builtin.delay.as_secs_f64()))
            };
            let body = builtin.body.map(|body| format!(", {body} bytes")).unwrap_or_default();
            format!("the embedded server{delay}{body}")
        }
        Launch::Running(url) => format!("runs already at {url}"),
    };
    line(out, 1, &format!("{}: {what}", server.identity.id));
    if let Launch::Process(process) = &server.launch {
        process_details(out, process);
    }
    if let Port::Fixed(port) = server.port {
        line(out, 2, &format!("port {port}"));
    }
    if server.is_secure() {
        line(out, 2, &format!("https, {}", trusted(server)));
    }
    if !server.needs.is_empty() {
        line(out, 2, &format!("needs {}", server.needs.join(", ")));
    }
    for (title, steps) in [("before", &server.before), ("after", &server.after)] {
        steps.iter().for_each(|part| line(out, 2, &format!("{title} {}", step(part))));
    }
    let ready = match &server.ready.when {
        ReadyWhen::Tcp => "it accepts a connection".to_owned(),
        ReadyWhen::Http { path, status } => format!("GET {path} answers {status}"),
        ReadyWhen::Output(pattern) => format!("it prints /{}/", pattern.source()),
        ReadyWhen::Command(process) => format!("{} exits 0", command_line(process)),
    };
    line(out, 2, &format!("ready when {ready}"));
}

fn trusted(server: &Server) -> String {
    match &server.tls {
        Some(Tls { insecure: true, .. }) => "any certificate will do".to_owned(),
        Some(Tls { ca: Some(ca), .. }) => format!("with the certificates of {ca}"),
        Some(Tls { ca: None, .. }) | None => "with the certificates of the system".to_owned(),
    }
}

fn command(out: &mut String, command: &Command) {
    line(out, 1, &format!("{}: {}", command.identity.id, command_line(&command.process)));
    process_details(out, &command.process);
    for (title, steps) in [("before", &command.before), ("after", &command.after)] {
        steps.iter().for_each(|part| line(out, 2, &format!("{title} {}", step(part))));
    }
}

fn group(out: &mut String, group: &Group, index: &Index<'_>) {
    line(out, 0, &format!("group {}", group.id));
    for cell in &group.cells {
        let mark = if cell.id == group.baseline { "  (baseline)" } else { "" };
        line(out, 1, &format!("{}{mark}", cell.id));
        for (title, steps) in [("before", &cell.before), ("after", &cell.after)] {
            steps.iter().for_each(|part| line(out, 2, &format!("{title} {}", step(part))));
        }
    }
    let probes: Vec<&str> =
        group.cells.first().map(|cell| cell.probes.iter().map(String::as_str).collect()).unwrap_or_default();
    if !probes.is_empty() {
        line(out, 1, &format!("probes before and after: {}", probes.join(", ")));
    }
    let rounds = group.rounds;
    let of_servers = group.cells.first().is_some_and(|cell| index.servers.contains(cell.subject.as_str()));
    let what = match (of_servers, group.driver.is_some()) {
        (true, true) => {
            format!(
                "{} of each, in each {} and {}",
                counted(rounds, "start"),
                counted(group.warmup, "warm-up"),
                counted(group.runs, "measured run")
            )
        }
        (true, false) => format!("{} of each", counted(rounds, "start")),
        (false, _) => format!("{} and {} of each", counted(group.warmup, "warm-up"), counted(rounds, "measured run")),
    };
    line(out, 1, &what);
    if let Some(seconds) = planned_seconds(group, index) {
        line(out, 1, &format!("loads and cooldowns add up to {}", show::span(seconds)));
    }
    let shown: Vec<&str> = group.turns.iter().take(TURNS).map(|turn| turn.id.as_str()).collect();
    let more = group.turns.len().saturating_sub(TURNS);
    line(out, 1, &format!("{}, {}:", counted(group.turns.len() as u64, "turn"), order_word(group.order)));
    shown.iter().for_each(|turn| line(out, 2, turn));
    if more > 0 {
        line(out, 2, &format!("… and {} more", show::count(more as u64)));
    }
    fewest(out, group);
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Balanced => "balanced",
        Order::Alternating => "alternating",
        Order::Shuffled => "shuffled",
        Order::Grouped => "grouped",
    }
}

/// The fewest rounds that could show a difference, beside those that are planned.
fn fewest(out: &mut String, group: &Group) {
    let family = group.cells.len().saturating_sub(1) as u64;
    if family == 0 {
        return;
    }
    let unpaired = group.order == Order::Grouped;
    let needed = fewest_runs(!unpaired, family);
    let word = if group.runs == 0 || group.driver.is_some() { "starts" } else { "runs" };
    let enough = if group.rounds >= needed { "planned" } else { "planned: too few" };
    line(
        out,
        1,
        &format!("fewest {word} that could show a difference at 5 %: {needed} of each ({} {enough})", group.rounds),
    );
}

/// What the loads and cooldowns of a group take; `None` where there are none.
fn planned_seconds(group: &Group, index: &Index<'_>) -> Option<f64> {
    let mut total = Duration::ZERO;
    let stop = |cell: &Cell| cell.driver.as_deref().and_then(|driver| index.loads.get(driver).copied());
    let stops: Vec<Option<LoadStop>> = group.cells.iter().map(stop).collect();
    for turn in &group.turns {
        if let Some(LoadStop::Duration(duration)) = stops[turn.cell] {
            let count = |runs: u64| u32::try_from(runs).unwrap_or(u32::MAX);
            total = total.saturating_add(duration.saturating_mul(count(group.runs)));
            total = total.saturating_add(group.warmup_duration.unwrap_or(duration).saturating_mul(count(group.warmup)));
        }
    }
    let pauses = u32::try_from(group.turns.len().saturating_sub(1)).unwrap_or(u32::MAX);
    total = total.saturating_add(group.cooldown.saturating_mul(pauses));
    (!total.is_zero()).then_some(total.as_secs_f64())
}

fn totals(out: &mut String, plan: &Plan, index: &Index<'_>) {
    let cells: usize = plan.groups.iter().map(|group| group.cells.len()).sum();
    let turns: usize = plan.groups.iter().map(|group| group.turns.len()).sum();
    let seconds: f64 = plan.groups.iter().filter_map(|group| planned_seconds(group, index)).sum();
    let time =
        if seconds > 0.0 { format!("; loads and cooldowns alone: {}", show::span(seconds)) } else { String::new() };
    let count = |number: usize, thing: &str| counted(number as u64, thing);
    line(
        out,
        0,
        &format!(
            "total: {}, {}, {}{time}",
            count(plan.groups.len(), "group"),
            count(cells, "cell"),
            count(turns, "turn")
        ),
    );
}
