//! What the log's first line tells a result of a plan.

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::{Axes, AxisValue, Hole, Launch, Order, Plan, Process, Record, SameAnswer, Server, Text};
use crate::event::design::{self as event, Design, Role, Same, Subject, SubjectKind};

/// Says which variables a process gets, with the values that results may hold.
pub type Told<'a> = &'a dyn Fn(Option<&Process>) -> IndexMap<String, Option<String>>;

/// The design of a plan. `environment` says which variables a process gets: values where results may hold them.
pub fn design(plan: &Plan, environment: Told<'_>) -> Design {
    Design {
        name: plan.name.clone(),
        title: plan.title.clone(),
        description: plan.description.clone(),
        caveats: plan.caveats.clone(),
        references: plan.references.clone(),
        subjects: subjects(plan, environment),
        groups: plan.groups.iter().map(group).collect(),
        cells: plan.groups.iter().flat_map(cells).collect(),
        probes: plan.probes.iter().map(probe).collect(),
        checks: plan
            .checks
            .iter()
            .map(|check| event::Check {
                id: check.identity.id.clone(),
                name: check.identity.name.clone(),
                label: check.identity.label.clone(),
                axes: axes(&check.identity.axes),
            })
            .collect(),
        metrics: plan.metrics.clone(),
    }
}

/// Every server and command that is a subject, in file order.
fn subjects(plan: &Plan, environment: Told<'_>) -> Vec<Subject> {
    let measured: std::collections::HashSet<&str> =
        plan.groups.iter().flat_map(|group| &group.cells).map(|cell| cell.subject.as_str()).collect();
    let servers = plan.servers.iter().filter(|server| measured.contains(server.identity.id.as_str())).map(|server| {
        let process = match &server.launch {
            Launch::Process(process) => Some(process.as_ref()),
            Launch::Builtin(_) | Launch::Running(_) => None,
        };
        Subject {
            id: server.identity.id.clone(),
            kind: SubjectKind::Server,
            role: Role::Subject,
            label: server.identity.label.clone(),
            axes: axes(&server.identity.axes),
            command: server_command(server),
            environment: environment(process),
            cpus: match &server.launch {
                Launch::Process(process) => process.cpus.clone(),
                Launch::Builtin(builtin) => builtin.cpus.clone(),
                Launch::Running(_) => Vec::new(),
            },
        }
    });
    let commands = plan.commands.iter().filter(|command| measured.contains(command.identity.id.as_str()));
    let commands = commands.map(|command| Subject {
        id: command.identity.id.clone(),
        kind: SubjectKind::Command,
        role: Role::Subject,
        label: command.identity.label.clone(),
        axes: axes(&command.identity.axes),
        command: shown(&command.process.argv),
        environment: environment(Some(&command.process)),
        cpus: command.process.cpus.clone(),
    });
    servers.chain(commands).collect()
}

fn server_command(server: &Server) -> Vec<String> {
    match &server.launch {
        Launch::Process(process) => shown(&process.argv),
        Launch::Builtin(_) => vec!["builtin".to_owned()],
        Launch::Running(url) => vec![url.clone()],
    }
}

fn shown(argv: &[Text]) -> Vec<String> {
    argv.iter().map(|argument| argument.fill(Hole::to_string)).collect()
}

fn axes(axes: &Axes) -> IndexMap<String, Json> {
    let value = |value: &AxisValue| match value {
        AxisValue::Number(number) => Json::from(*number),
        AxisValue::Word(word) => Json::from(word.as_str()),
    };
    axes.iter().map(|(axis, word)| (axis.clone(), value(word))).collect()
}

fn group(group: &super::Group) -> event::Group {
    let mut shared = axes(&group.measure.axes);
    // Axes of the driver that all cells share.
    if let Some(first) = group.cells.first() {
        for (axis, value) in axes(&first.axes) {
            if group.driver.is_some() && group.cells.iter().all(|cell| axes(&cell.axes).get(&axis) == Some(&value)) {
                shared.entry(axis).or_insert(value);
            }
        }
    }
    event::Group {
        id: group.id.clone(),
        measure: group.measure.id.clone(),
        label: group.measure.label.clone(),
        axes: shared,
        driver: group.driver.as_ref().map(|driver| event::Driver {
            kind: driver.kind,
            id: driver.id.clone(),
            label: driver.label.clone(),
        }),
        baseline: group.baseline.clone(),
        order: match group.order {
            Order::Balanced => event::Order::Balanced,
            Order::Alternating => event::Order::Alternating,
            Order::Shuffled => event::Order::Shuffled,
            Order::Grouped => event::Order::Grouped,
        },
        rounds: group.rounds,
        warmup: group.warmup,
        runs: group.runs,
        report: group.report.clone(),
    }
}

fn cells(group: &super::Group) -> impl Iterator<Item = event::Cell> {
    group.cells.iter().map(|cell| event::Cell {
        id: cell.id.clone(),
        measure: group.measure.id.clone(),
        group: group.id.clone(),
        subject: cell.subject.clone(),
        driver: cell.driver.clone(),
        axes: axes(&cell.axes),
        role: cell.role,
        probes: cell.probes.clone(),
    })
}

fn probe(probe: &super::Probe) -> event::Probe {
    event::Probe {
        id: probe.identity.id.clone(),
        label: probe.identity.label.clone(),
        request: format!("{} {}", probe.request.method, probe.request.path),
        record_headers: probe.record.contains(&Record::Headers),
        record_body: probe.record.contains(&Record::Body),
        same: probe
            .same
            .iter()
            .map(|same| match same {
                SameAnswer::Status => Same::Status,
                SameAnswer::Headers => Same::Headers,
                SameAnswer::Body => Same::Body,
            })
            .collect(),
        known_differences: probe.known_differences.clone(),
    }
}
