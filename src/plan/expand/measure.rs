//! Joins the entries that measures name to groups and cells.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::Expander;
use super::catalog::{Instance, MAX_CELLS};
use super::process::Surroundings;
use super::scope::Known;
use crate::diagnostic::{Code, Diagnostic, Span, Spanned};
use crate::event::design::{DriverKind, Role};
use crate::plan::order::{Schedule, turns};
use crate::plan::{
    Axes, Cell, Command, Driver, Group, Hole, Identity, Load, Order, Origin, Place, Plan, Port, Server, Text, Workspace,
};
use crate::scenario::{self, Measure, Warmup};

/// Keys of measures that say nothing of groups that later versions execute, but are read here for their places.
const PLACES: [&str; 13] = [
    "caches",
    "needs",
    "capture",
    "expect",
    "derive",
    "same",
    "margin",
    "control",
    "gate",
    "until",
    "commands",
    "workspace",
    "require",
];

/// The most turns of a scenario.
const MAX_TURNS: u64 = 1_000_000;

/// What a measure compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Commands,
    ServersAlone,
    ServersByLoad,
    ServersByCommands,
}

/// One instance of a measure, while it is expanded.
#[derive(Clone, Copy)]
struct Frame<'f> {
    measure: &'f Measure,
    identity: &'f Identity,
    shape: Shape,
    plan: &'f Plan,
}

/// A subject of a measure with one driver, before it is rendered.
pub(super) struct Pair<'a> {
    pub(super) subject: &'a Instance,
    pub(super) driver: Option<&'a Instance>,
    axes: Axes,
}

impl<'a> Expander<'a> {
    pub(super) fn groups(&mut self, plan: &Plan) -> Vec<Group> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.measures else { return Vec::new() };
        let mut groups = Vec::new();
        let mut cells = 0;
        for instance in catalog.measures.list() {
            let Some(entry) = entries.get(catalog.measures.name_of(instance)) else { continue };
            let Some(shape) = self.shape(&entry.body, entry.name.span) else { continue };
            let pairs = self.pairs(&entry.body, instance, shape, MAX_CELLS.saturating_sub(cells));
            cells += pairs.len();
            if self.catalog.exhausted() {
                break;
            }
            if cells > MAX_CELLS {
                let message = "the scenario expands to more than 100,000 cells";
                self.problems.push(Diagnostic::error(Code::TooLarge, entry.name.span, message));
                break;
            }
            if pairs.is_empty() && !self.problems.has_errors() {
                let message = format!("`{}` is left with nothing to measure", instance.id);
                self.problems.push(Diagnostic::error(Code::EmptyExpansion, entry.name.span, message));
            }
            let measure = self.identity(instance, &entry.name, &entry.body.expand);
            let Some(measured) = self.measured(Frame { measure: &entry.body, identity: &measure, shape, plan }, pairs)
            else {
                break;
            };
            groups.extend(measured);
        }
        groups
    }

    /// What the measure compares, and whether its keys fit.
    fn shape(&mut self, measure: &Measure, span: Span) -> Option<Shape> {
        let at = |key| measure.given.at(key);
        let shape = match (at("servers"), at("commands"), at("load")) {
            (None, None, _) => {
                let missing =
                    Diagnostic::error(Code::MissingKey, span, "the measure has neither `servers` nor `commands`");
                self.problems.push(missing.help("name what is compared: servers = [\"…\"] or commands = [\"…\"]"));
                return None;
            }
            (None, Some(_), Some(load)) => {
                self.conflict(load, "a load drives servers, and this measure has none");
                return None;
            }
            (Some(_), Some(_), Some(load)) => {
                self.conflict(load, "the servers are driven by `commands` already");
                return None;
            }
            (None, Some(_), None) => Shape::Commands,
            (Some(_), None, None) => Shape::ServersAlone,
            (Some(_), None, Some(_)) => Shape::ServersByLoad,
            (Some(_), Some(_), None) => Shape::ServersByCommands,
        };
        let pointless: &[&str] = match shape {
            Shape::Commands => &["starts", "probes"],
            Shape::ServersAlone => &["warmup", "runs", "workspace", "before", "after", "capture", "expect"],
            Shape::ServersByLoad => &["workspace", "capture", "expect"],
            Shape::ServersByCommands => &[],
        };
        for key in pointless {
            // Defaults are for the other measures too.
            let default = self.loaded.defaults.get(*key).copied();
            match at(key) {
                Some(place) if Some(place) != default => {
                    let what = match shape {
                        Shape::Commands => "commands",
                        Shape::ServersAlone => "servers that nothing drives",
                        Shape::ServersByLoad | Shape::ServersByCommands => "servers that a load drives",
                    };
                    self.conflict(place, format!("`{key}` means nothing in a measure of {what}"));
                }
                _ => {}
            }
        }
        Some(shape)
    }

    /// Every subject with every driver, in the order in which the measure names them; at most one more than `most`.
    fn pairs(&mut self, measure: &Measure, instance: &Instance, shape: Shape, most: usize) -> Vec<Pair<'a>> {
        let catalog = self.catalog;
        let mut reach = self.reach(&instance.axes, Known::default());
        let servers: Vec<Spanned<String>> = reach.list(measure.servers.as_ref());
        let commands: Vec<Spanned<String>> = reach.list(measure.commands.as_ref());
        let load: Option<Spanned<String>> = reach.opt(measure.load.as_ref());
        let (subjects, subject_references) = match shape {
            Shape::Commands => (&catalog.commands, commands.as_slice()),
            _ => (&catalog.servers, servers.as_slice()),
        };
        let (drivers, driver_references) = match shape {
            Shape::ServersByLoad => (&catalog.loads, load.as_slice()),
            Shape::ServersByCommands => (&catalog.commands, commands.as_slice()),
            Shape::Commands | Shape::ServersAlone => (&catalog.loads, &[][..]),
        };
        let mut chosen = Vec::new();
        let mut seen = HashSet::new();
        for reference in subject_references {
            let selected = subjects.select(reference, &instance.axes, self.problems);
            chosen.extend(selected.into_iter().flatten().filter(|index| seen.insert(*index)));
        }
        let mut pairs = Vec::new();
        for subject in chosen.into_iter().map(|index| subjects.get(index)) {
            let axes = joined(&instance.axes, &subject.axes);
            if matches!(shape, Shape::Commands | Shape::ServersAlone) {
                pairs.push(Pair { subject, driver: None, axes });
            } else {
                for reference in driver_references {
                    for driver in drivers.select(reference, &axes, self.problems).into_iter().flatten() {
                        let driver = drivers.get(driver);
                        pairs.push(Pair { subject, driver: Some(driver), axes: joined(&axes, &driver.axes) });
                    }
                }
            }
            if pairs.len() > most {
                break;
            }
        }
        pairs
    }

    /// The groups of one instance of a measure; `None` once the plan is too large.
    fn measured(&mut self, frame: Frame<'_>, pairs: Vec<Pair<'_>>) -> Option<Vec<Group>> {
        let mut by_driver: IndexMap<Option<String>, Vec<Pair<'_>>> = IndexMap::new();
        for pair in pairs {
            let key = pair.driver.map(|driver| self.driver_key(driver, &pair, frame));
            by_driver.entry(key).or_default().push(pair);
        }
        let report = self.metric_names(frame.measure.report.as_ref(), &frame.identity.axes);
        let gate = self.metric_names(frame.measure.gate.as_ref(), &frame.identity.axes);
        let mut groups = Vec::new();
        for (driver, pairs) in by_driver {
            let mut cells = Vec::new();
            let mut named: Vec<(&Spanned<String>, usize)> = report.iter().chain(&gate).map(|name| (name, 0)).collect();
            let mut known = HashSet::new();
            for pair in &pairs {
                let (cell, metrics) = self.cell(frame, pair);
                if !self.weigh(&cell) {
                    return None;
                }
                named.iter_mut().for_each(|(name, having)| *having += usize::from(metrics.contains(&name.value)));
                known = metrics;
                cells.push(cell);
            }
            // A column may be empty for some subjects; what is guarded by a gate must be there.
            for (index, (name, having)) in named.into_iter().enumerate() {
                if having == 0 || (index >= report.len() && having < cells.len()) {
                    let mut known: Vec<&str> =
                        known.iter().map(String::as_str).filter(|it| *it != name.value).collect();
                    known.sort_unstable();
                    self.unknown_metric(&name.value, name.span, &known);
                }
            }
            let driver = driver.zip(pairs.first()).map(|(id, pair)| Driver {
                kind: if frame.shape == Shape::ServersByLoad { DriverKind::Load } else { DriverKind::Command },
                label: self.driver_label(pair, &id, frame),
                id,
            });
            groups.push(self.group(frame, driver, cells));
        }
        Some(groups)
    }

    /// The driver's id without the axes that only its subject has.
    fn driver_key(&self, driver: &Instance, pair: &Pair<'_>, frame: Frame<'_>) -> String {
        let drivers = if frame.shape == Shape::ServersByLoad { &self.catalog.loads } else { &self.catalog.commands };
        let mut key = drivers.name_of(driver).to_owned();
        for (axis, value) in &driver.axes {
            if frame.identity.axes.contains_key(axis) || !pair.subject.axes.contains_key(axis) {
                key.push('/');
                key.push_str(&value.to_string());
            }
        }
        key
    }

    fn driver_label(&self, pair: &Pair<'_>, key: &str, frame: Frame<'_>) -> String {
        let id = pair.driver.map(|driver| driver.id.as_str()).unwrap_or_default();
        let label = match frame.shape {
            Shape::ServersByLoad => self.load_of(frame.plan, id).map(|load| load.identity.label.clone()),
            _ => self.command_of(frame.plan, id).map(|command| command.identity.label.clone()),
        };
        // Where the subject's axes take part, the label of one of the instances is not the label of all.
        label.filter(|_| id == key).unwrap_or_else(|| key.to_owned())
    }

    /// The server with this id, which a plan has in the order of the catalog.
    pub(super) fn server_of<'p>(&self, plan: &'p Plan, id: &str) -> Option<&'p Server> {
        self.catalog.servers.index(id).and_then(|index| plan.servers.get(index))
    }

    pub(super) fn command_of<'p>(&self, plan: &'p Plan, id: &str) -> Option<&'p Command> {
        self.catalog.commands.index(id).and_then(|index| plan.commands.get(index))
    }

    pub(super) fn load_of<'p>(&self, plan: &'p Plan, id: &str) -> Option<&'p Load> {
        self.catalog.loads.index(id).and_then(|index| plan.loads.get(index))
    }

    /// A cell, and the names of the metrics that its runs have.
    fn cell(&mut self, frame: Frame<'_>, pair: &Pair<'_>) -> (Cell, HashSet<String>) {
        let Frame { measure, identity, shape, plan } = frame;
        let (subject, axes) = (pair.subject.id.clone(), &pair.axes);
        let mut id = format!("{}:{subject}", identity.id);
        if let Some(driver) = pair.driver {
            id.push(':');
            id.push_str(&driver.id);
        }
        let needs = self.needs(measure.needs.as_ref(), axes);
        let mut all = needs.clone();
        let own = match shape {
            Shape::Commands => self.command_of(plan, &subject).map(|command| command.needs.clone()),
            _ => Some(vec![subject.clone()]),
        };
        all.extend(own.unwrap_or_default());
        let known = Known {
            dir: shape != Shape::ServersByLoad,
            server: shape != Shape::Commands,
            needs: self.reachable(&all),
            ..Known::default()
        };
        let around = match shape {
            Shape::Commands => self.command_of(plan, &subject).map(|command| Surroundings::from(&command.process)),
            _ => None,
        };
        let around = around.unwrap_or_default();
        let capture = self.captures(measure.capture.as_ref(), axes, &known);
        let metrics = self.metrics_of(shape, pair, &capture, plan);
        let (derive, metrics) = self.derived(measure, axes, metrics);
        let probes = self.probe_ids(measure, axes);
        self.check_listens(frame, pair, &probes);
        let cell = Cell {
            probes,
            before: self.steps(measure.before.as_ref(), &around, axes, &known),
            after: self.steps(measure.after.as_ref(), &around, axes, &known),
            expect: self.expect(measure.expect.as_ref(), measure.given.at("expect"), axes, known),
            require: self.required(measure, &metrics),
            driver: pair.driver.map(|driver| driver.id.clone()),
            axes: axes.clone(),
            role: Role::Subject,
            id,
            subject,
            needs,
            capture,
            derive,
        };
        (cell, metrics)
    }

    /// What listens nowhere can be sent nothing.
    fn check_listens(&mut self, Frame { measure, shape, plan, .. }: Frame<'_>, pair: &Pair<'_>, probes: &[String]) {
        let nowhere = |server: &Server| server.port == Port::None;
        if shape == Shape::Commands || !self.server_of(plan, &pair.subject.id).is_some_and(nowhere) {
            return;
        }
        let key = if shape == Shape::ServersByLoad { "load" } else { "probes" };
        if let Some(place) = measure.given.at(key).filter(|_| key == "load" || !probes.is_empty()) {
            let message = format!("`{}` listens nowhere (port = \"none\"): nothing can be sent to it", pair.subject.id);
            self.conflict(place, message);
        }
    }

    fn probe_ids(&mut self, measure: &Measure, axes: &Axes) -> Vec<String> {
        let references: Vec<Spanned<String>> = self.reach(axes, Known::default()).list(measure.probes.as_ref());
        let catalog = self.catalog;
        let mut ids = Vec::new();
        for reference in &references {
            let Some(selected) = catalog.probes.select(reference, axes, self.problems) else { continue };
            if selected.is_empty() {
                self.empty_join("probe", reference, axes);
            }
            ids.extend(selected.into_iter().map(|index| catalog.probes.get(index).id.clone()));
        }
        ids
    }

    fn group(&mut self, frame: Frame<'_>, driver: Option<Driver>, cells: Vec<Cell>) -> Group {
        let Frame { measure, identity, shape, plan } = frame;
        let axes = &identity.axes;
        let id = driver.as_ref().map_or_else(|| identity.id.clone(), |driver| format!("{}:{}", identity.id, driver.id));
        let (warmup, warmup_duration) = self.warmup(measure, shape, axes);
        let baseline = self.baseline(frame, &cells, &id);
        let same = measure.same.as_ref();
        let until = self.until(measure, axes);
        let margin = self.percentage(measure.margin.as_ref(), axes);
        let mut reach = self.reach(axes, Known::default());
        let runs = reach.opt(measure.runs.as_ref()).map(scenario::Whole::number);
        let starts = reach.opt(measure.starts.as_ref()).map_or(6, scenario::Whole::number);
        let (rounds, runs) = match shape {
            Shape::Commands => (runs.unwrap_or(10), 1),
            Shape::ServersAlone => (starts, 0),
            Shape::ServersByLoad | Shape::ServersByCommands => (starts, runs.unwrap_or(1)),
        };
        let bare = |names: Vec<Spanned<String>>| names.into_iter().map(|name| name.value).collect::<Vec<_>>();
        let order = reach.opt(measure.order.as_ref()).unwrap_or(Order::Balanced);
        let report = bare(reach.list(measure.report.as_ref()));
        let mut group = Group {
            warmup,
            warmup_duration,
            runs,
            rounds,
            order,
            cooldown: reach.opt(measure.cooldown.as_ref()).unwrap_or_default(),
            caches: reach.opt(measure.caches.as_ref()),
            same_runs: same.map(|same| bare(reach.list(same.runs.as_ref()))).unwrap_or_default(),
            same_subjects: same.map(|same| bare(reach.list(same.subjects.as_ref()))).unwrap_or_default(),
            report: if report.is_empty() { default_report(shape) } else { report },
            control: reach.opt(measure.control.as_ref()).unwrap_or_default(),
            gate: bare(reach.list(measure.gate.as_ref())),
            workspace: None,
            turns: Vec::new(),
            places: PLACES.into_iter().filter_map(|key| Some((key, Origin(measure.given.at(key)?)))).collect(),
            measure: identity.clone(),
            id,
            driver,
            baseline,
            margin,
            until,
            cells,
        };
        group.workspace = self.workspace(measure, axes);
        self.check_same(measure, &group, plan);
        let ids: Vec<String> = group.cells.iter().map(|cell| cell.id.clone()).collect();
        let rounds_of_warmup = if shape == Shape::Commands { group.warmup } else { 0 };
        let turns_of_group = ids.len() as u64 * (group.rounds.saturating_add(rounds_of_warmup));
        self.turns = self.turns.saturating_add(turns_of_group);
        if self.turns > MAX_TURNS {
            let place = measure.given.at("runs").or_else(|| measure.given.at("starts")).unwrap_or(identity.origin.0);
            self.problems.push(Diagnostic::error(Code::TooLarge, place, "the scenario has more than 1,000,000 turns"));
            return group;
        }
        self.check_gate(measure, shape, &group);
        let schedule =
            Schedule { group: &group.id, order, warmup: rounds_of_warmup, rounds: group.rounds, seed: plan.seed };
        group.turns = turns(&ids, schedule);
        group
    }

    fn warmup(&mut self, measure: &Measure, shape: Shape, axes: &Axes) -> (u64, Option<std::time::Duration>) {
        if shape == Shape::ServersAlone {
            return (0, None);
        }
        let mut reach = self.reach(axes, Known::default());
        match &measure.warmup {
            None => (1, None),
            Some(Warmup::Runs(runs)) => (runs.get(&mut reach).map_or(1, scenario::Whole::number), None),
            Some(Warmup::Table(table)) => {
                let runs = reach.opt(table.runs.as_ref()).map_or(1, scenario::Whole::number);
                let duration = reach.opt(table.duration.as_ref()).map(|duration| duration.0);
                if let (true, Some(span)) = (shape != Shape::ServersByLoad, table.given.at("duration")) {
                    self.conflict(span, "only a load can be made shorter or longer for its warm-up");
                }
                (runs, duration)
            }
        }
    }

    /// The id of the baseline's cell in a group.
    fn baseline(&mut self, frame: Frame<'_>, cells: &[Cell], group: &str) -> String {
        let Frame { measure, identity, shape, .. } = frame;
        let first = cells.first().map(|cell| cell.id.clone()).unwrap_or_default();
        let reference: Option<Spanned<String>> =
            self.reach(&identity.axes, Known::default()).opt(measure.baseline.as_ref());
        let Some(reference) = reference else { return first };
        let catalog = self.catalog;
        let subjects = if shape == Shape::Commands { &catalog.commands } else { &catalog.servers };
        let Some(chosen) = subjects.select(&reference, &identity.axes, self.problems) else { return first };
        let chosen: HashSet<&str> = chosen.into_iter().map(|index| subjects.get(index).id.as_str()).collect();
        let candidates: Vec<&Cell> = cells.iter().filter(|cell| chosen.contains(cell.subject.as_str())).collect();
        match candidates.as_slice() {
            [one] => return one.id.clone(),
            [] => {
                let message = format!("the baseline `{}` is not among the subjects of `{group}`", reference.value);
                self.problems.push(Diagnostic::error(Code::UnknownEntry, reference.span, message));
            }
            [first, second, ..] => {
                let message = format!(
                    "the baseline `{}` is more than one subject of `{group}`: `{}`, `{}`, …",
                    reference.value, first.subject, second.subject
                );
                let help =
                    format!("name one of them, such as `{}`, or put the axis into the measure's `each`", first.subject);
                self.problems.push(Diagnostic::error(Code::AmbiguousJoin, reference.span, message).help(help));
            }
        }
        first
    }

    fn workspace(&mut self, measure: &Measure, axes: &Axes) -> Option<Workspace> {
        let workspace = measure.workspace.as_ref()?;
        let mut reach = self.reach(axes, Known::default());
        let from: Option<Spanned<Text>> = reach.opt(workspace.from.as_ref());
        let copy: Vec<Spanned<Text>> = reach.list(workspace.copy.as_ref());
        for path in from.iter().chain(&copy) {
            if !stays_inside(&path.value) {
                let message = format!("`{}` may lie outside of the scenario's folder", path.value);
                let wrong = Diagnostic::error(Code::InvalidValue, path.span, message);
                self.problems.push(
                    wrong.help("a workspace holds copies of what is named relative to that folder, without `..`"),
                );
            }
        }
        let bare = |path: Spanned<Text>| path.value;
        Some(Workspace {
            from: from.map(bare),
            copy: copy.into_iter().map(bare).collect(),
            origin: measure.given.at("workspace").map(Origin),
        })
    }
}

/// Whether a path is relative and goes nowhere up.
fn stays_inside(path: &Text) -> bool {
    let filled =
        path.fill(|hole| if *hole == Hole::Place(Place::ScenarioDir) { ".".to_owned() } else { "/".to_owned() });
    !filled.starts_with('/') && filled.split('/').all(|part| part != "..")
}

/// The axes of both; where they share one, they agree.
fn joined(a: &Axes, b: &Axes) -> Axes {
    let mut axes = a.clone();
    axes.extend(b.iter().map(|(axis, value)| (axis.clone(), value.clone())));
    axes
}

/// The metrics that get columns where the measure names none.
fn default_report(shape: Shape) -> Vec<String> {
    let names: &[&str] = match shape {
        Shape::Commands => &["wall", "rss.peak"],
        Shape::ServersAlone => &["startup", "rss.idle"],
        Shape::ServersByLoad => &["throughput", "latency.p50", "latency.p99", "cpu.per_request", "rss.peak"],
        Shape::ServersByCommands => &["wall", "cpu.cores", "rss.peak"],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}
