//! Keys that this version validates and plans, but does not execute: refused by name before anything is started.
//!
//! In: a plan. Out: a diagnostic for each, at its place. When a key is executed, take its line away here.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::event::DriverKind;
use crate::plan::{Cell, Expect, Group, Launch, Origin, Plan, Process, Server, Step};

/// Every key of the plan that is not executed yet, in the order of the files.
#[must_use]
pub fn refuse(plan: &Plan) -> Vec<Diagnostic> {
    let mut refused = Refused { list: Vec::new() };
    refused.top(plan);
    plan.servers.iter().for_each(|server| refused.server(server));
    for command in &plan.commands {
        refused.process(&command.process);
        refused.steps(command.before.iter().chain(&command.after));
        refused.expect(&command.expect, command.identity.origin);
        let origin = command.needs_origin.unwrap_or(command.identity.origin);
        refused.when(!command.needs.is_empty(), "`needs` of a command", origin);
        refused.when(!command.caches.is_empty(), "`caches` of a command", command.identity.origin);
        for capture in command.capture.values() {
            refused.when(true, "`capture` of a command", capture.origin);
        }
    }
    plan.groups.iter().for_each(|group| refused.group(group));
    refused.list.sort_by_key(|diagnostic| diagnostic.primary.as_ref().map(|label| label.span));
    refused.list
}

struct Refused {
    list: Vec<Diagnostic>,
}

impl Refused {
    fn when(&mut self, present: bool, what: &str, origin: Origin) {
        let diagnostic = Diagnostic::error(Code::NotYet, origin.0, format!("not yet: {what}"));
        if present && !self.list.contains(&diagnostic) {
            self.list.push(diagnostic);
        }
    }

    fn place(&mut self, present: bool, what: &str, place: Option<Span>) {
        let message = format!("not yet: {what}");
        match place {
            Some(span) => self.when(present, what, Origin(span)),
            None if present => self.list.push(Diagnostic::bare(Code::NotYet, message)),
            None => {}
        }
    }

    fn top(&mut self, plan: &Plan) {
        self.place(plan.machine.is_some(), "`machine`", plan.places.machine);
        self.place(!plan.references.is_empty(), "`references`", plan.places.references);
        self.place(!plan.caveats.is_empty(), "`caveats`", plan.places.caveats);
        for claim in &plan.claims {
            self.when(true, "`claims`", claim.origin);
        }
        for check in &plan.checks {
            self.when(true, "`checks`", check.identity.origin);
        }
        self.steps(&plan.setup);
        for tool in &plan.tools {
            self.process(&tool.process);
            self.expect(&tool.expect, tool.process.origin);
        }
    }

    fn process(&mut self, process: &Process) {
        self.when(process.user.is_some(), "`user`", process.user_origin.unwrap_or(process.origin));
        self.when(!process.files.is_empty(), "`files`", process.files_origin.unwrap_or(process.origin));
    }

    fn steps<'a>(&mut self, steps: impl IntoIterator<Item = &'a Step>) {
        for step in steps {
            self.process(&step.process);
            self.expect(&step.expect, step.process.origin);
        }
    }

    fn expect(&mut self, expect: &Expect, origin: Origin) {
        let origin = expect.origin.unwrap_or(origin);
        let keys = [
            ("json", expect.json.is_some()),
            ("unchanged", !expect.unchanged.is_empty()),
            ("exists", !expect.exists.is_empty()),
        ];
        for (key, present) in keys {
            self.when(present, &format!("`{key}` of an expectation"), at(&expect.places, key).unwrap_or(origin));
        }
    }

    fn server(&mut self, server: &Server) {
        if let Launch::Process(process) = &server.launch {
            self.process(process);
        }
        if let crate::plan::ReadyWhen::Command(process) = &server.ready.when {
            self.process(process);
        }
        self.steps(server.before.iter().chain(&server.after));
        self.when(!server.caches.is_empty(), "`caches` of a server", server.identity.origin);
        for capture in server.capture.values() {
            self.when(true, "`capture` of a server", capture.origin);
        }
    }

    fn group(&mut self, group: &Group) {
        let driven = group.driver.as_ref().is_some_and(|driver| driver.kind == DriverKind::Command);
        let keys = [
            ("commands", "`commands` together with `servers` of a measure", driven),
            ("caches", "`caches` of a measure", group.caches.is_some()),
            ("same", "`same` of a measure", !group.same_runs.is_empty() || !group.same_subjects.is_empty()),
            ("margin", "`margin` of a measure", group.margin.is_some()),
            ("control", "`control` of a measure", group.control),
            ("gate", "`gate` of a measure", !group.gate.is_empty()),
            ("until", "`until` of a measure", group.until.is_some()),
        ];
        for (key, what, present) in keys {
            self.when(present, what, at(&group.places, key).unwrap_or(group.measure.origin));
        }
        for cell in &group.cells {
            self.cell(group, cell);
        }
    }

    fn cell(&mut self, group: &Group, cell: &Cell) {
        let needs = at(&group.places, "needs").unwrap_or(group.measure.origin);
        self.when(!cell.needs.is_empty(), "`needs` of a measure", needs);
        for capture in cell.capture.values() {
            self.when(true, "`capture` of a measure", capture.origin);
        }
        for derive in cell.derive.values() {
            self.when(true, "`derive` of a measure", derive.origin);
        }
        self.steps(cell.before.iter().chain(&cell.after));
        self.expect(&cell.expect, group.measure.origin);
    }
}

/// Where a key stands, if that is known.
fn at(places: &[(&'static str, Origin)], key: &str) -> Option<Origin> {
    places.iter().find(|(name, _)| *name == key).map(|(_, origin)| *origin)
}
