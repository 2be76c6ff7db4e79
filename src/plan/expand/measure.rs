//! Joins the entries that measures name to groups and cells.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::Expander;
use super::catalog::{Instance, MAX_CELLS};
use super::process::Surroundings;
use super::scope::Known;
use crate::diagnostic::{Code, Diagnostic, Span, Spanned};
use crate::event::design::{DriverKind, Role};
use crate::event::metric::{BUILTIN, Metric, Of};
use crate::expr::Kind;
use crate::plan::order::{Schedule, turns};
use crate::plan::{
    Axes, Capture, Cell, Derive, Driver, Formula, Group, Identity, Order, Origin, Plan, Require, Until, Workspace,
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

/// What a measure compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
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
struct Pair<'a> {
    subject: &'a Instance,
    driver: Option<&'a Instance>,
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
            if cells > MAX_CELLS {
                let message = format!("the scenario expands to more than {MAX_CELLS} cells");
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
            chosen.extend(selected.into_iter().filter(|index| seen.insert(*index)));
        }
        let mut pairs = Vec::new();
        for subject in chosen.into_iter().map(|index| subjects.get(index)) {
            let axes = joined(&instance.axes, &subject.axes);
            if matches!(shape, Shape::Commands | Shape::ServersAlone) {
                pairs.push(Pair { subject, driver: None, axes });
            } else {
                for reference in driver_references {
                    for driver in drivers.select(reference, &axes, self.problems) {
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
        let mut groups = Vec::new();
        for (driver, pairs) in by_driver {
            let mut cells = Vec::new();
            for pair in &pairs {
                let cell = self.cell(frame, pair);
                if !self.weigh(&cell) {
                    return None;
                }
                cells.push(cell);
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
            Shape::ServersByLoad => frame.plan.load(id).map(|load| load.identity.label.clone()),
            _ => frame.plan.command(id).map(|command| command.identity.label.clone()),
        };
        // Where the subject's axes take part, the label of one of the instances is not the label of all.
        label.filter(|_| id == key).unwrap_or_else(|| key.to_owned())
    }

    fn cell(&mut self, frame: Frame<'_>, pair: &Pair<'_>) -> Cell {
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
            Shape::Commands => plan.command(&subject).map(|command| command.needs.clone()),
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
            Shape::Commands => plan.command(&subject).map(|command| Surroundings::from(&command.process)),
            _ => None,
        };
        let around = around.unwrap_or_default();
        let capture = self.captures(measure.capture.as_ref(), axes, &known);
        let metrics = self.metrics_of(shape, pair, &capture, plan);
        let (derive, metrics) = self.derived(measure, axes, metrics);
        Cell {
            probes: self.probe_ids(measure, axes),
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
        }
    }

    fn probe_ids(&mut self, measure: &Measure, axes: &Axes) -> Vec<String> {
        let references: Vec<Spanned<String>> = self.reach(axes, Known::default()).list(measure.probes.as_ref());
        let catalog = self.catalog;
        let mut ids = Vec::new();
        for reference in &references {
            let before = self.problems.len();
            let selected = catalog.probes.select(reference, axes, self.problems);
            if selected.is_empty() && self.problems.len() == before {
                let message = format!("the join leaves no probe of `{}`", reference.value);
                self.problems.push(Diagnostic::error(Code::EmptyExpansion, reference.span, message));
            }
            ids.extend(selected.into_iter().map(|index| catalog.probes.get(index).id.clone()));
        }
        ids
    }

    /// The names of the metrics that the runs of a cell have; each becomes part of the plan's dictionary.
    fn metrics_of(
        &mut self,
        shape: Shape,
        pair: &Pair<'_>,
        capture: &IndexMap<String, Capture>,
        plan: &Plan,
    ) -> HashSet<String> {
        let taken: &[Of] = match shape {
            Shape::Commands => &[Of::CommandRun, Of::Machine],
            Shape::ServersAlone => &[Of::ServerStart],
            Shape::ServersByLoad => &[Of::ServerStart, Of::ServerRun, Of::LoadRun, Of::Machine],
            Shape::ServersByCommands => &[Of::ServerStart, Of::ServerRun, Of::CommandRun, Of::Machine],
        };
        let mut names: HashSet<String> = HashSet::new();
        for builtin in BUILTIN.iter().filter(|builtin| taken.contains(&builtin.of)) {
            if names.insert(builtin.name.to_owned()) && !self.metrics.contains_key(builtin.name) {
                self.metrics.insert(builtin.name.to_owned(), builtin.metric());
            }
        }
        let load = pair.driver.filter(|_| shape == Shape::ServersByLoad).and_then(|driver| plan.load(&driver.id));
        for request in load.into_iter().flat_map(|load| &load.requests).filter_map(|request| request.name.as_ref()) {
            for builtin in BUILTIN.iter().filter(|builtin| builtin.of == Of::LoadRun) {
                let name = format!("{}[{request}]", builtin.name);
                self.metrics.entry(name.clone()).or_insert_with(|| builtin.metric());
                names.insert(name);
            }
        }
        let server = (shape != Shape::Commands).then(|| plan.server(&pair.subject.id)).flatten();
        for (name, told) in server.into_iter().flat_map(|server| &server.capture) {
            if let Some(unit) = &told.unit {
                self.define(name, unit, None, told.origin.0);
                names.insert(name.clone());
            }
        }
        let command = match shape {
            Shape::Commands => plan.command(&pair.subject.id),
            Shape::ServersByCommands => pair.driver.and_then(|driver| plan.command(&driver.id)),
            Shape::ServersAlone | Shape::ServersByLoad => None,
        };
        let captures = command.into_iter().flat_map(|command| &command.capture).chain(capture);
        for (name, capture) in captures {
            if let Some(unit) = &capture.unit {
                self.define(name, unit, Some(capture), capture.origin.0);
                names.insert(name.clone());
            }
        }
        names
    }

    /// Defines a metric that a scenario names; a unit of another kind than before is a problem.
    fn define(&mut self, name: &str, unit: &str, capture: Option<&Capture>, span: Span) {
        let base = crate::units::base(unit).map_or(unit, |(base, _)| base);
        let better = capture.and_then(|capture| capture.better).map(|better| match better {
            scenario::Better::Lower => crate::event::metric::Better::Lower,
            scenario::Better::Higher => crate::event::metric::Better::Higher,
        });
        let builtin = BUILTIN.iter().find(|builtin| builtin.name == name).map(|builtin| builtin.metric());
        let metric = Metric {
            unit: base.to_owned(),
            better: better.or_else(|| builtin.as_ref().and_then(|builtin| builtin.better)),
            step: capture.and_then(|capture| capture.step),
            exact: capture.is_some_and(|capture| capture.exact),
            description: builtin
                .map_or_else(|| format!("`{name}`, taken by the scenario"), |builtin| builtin.description),
        };
        match self.metrics.get(name) {
            Some(known) if known.unit != metric.unit => {
                let message = format!("`{name}` is measured in `{}` elsewhere, and here in `{unit}`", known.unit);
                self.problems.push(Diagnostic::error(Code::Conflict, span, message));
            }
            Some(_) => {}
            None => {
                self.metrics.insert(name.to_owned(), metric);
            }
        }
    }

    /// Derived metrics; each may use those before it.
    fn derived(
        &mut self,
        measure: &Measure,
        axes: &Axes,
        mut metrics: HashSet<String>,
    ) -> (IndexMap<String, Derive>, HashSet<String>) {
        let mut derived = IndexMap::new();
        for entry in measure.derive.iter().flatten() {
            let Some(expr) = &entry.body.expr else {
                if !entry.body.given.has("expr") {
                    self.missing("expr", "the derived metric", entry.name.span);
                }
                continue;
            };
            let formula = self.formula(expr, Some(Kind::Number), &[]);
            let mut reach = self.reach(axes, Known::default());
            let unit = reach.opt(entry.body.unit.as_ref()).unwrap_or_else(|| "1".to_owned());
            let better = reach.opt(entry.body.better.as_ref());
            if metrics.contains(&entry.name.value) {
                let message = format!("`{}` is a metric of these runs already", entry.name.value);
                self.problems.push(Diagnostic::error(Code::Duplicate, entry.name.span, message));
            }
            if let Some(formula) = &formula {
                self.check_formula(formula, expr.span, &metrics);
            }
            self.metrics.entry(entry.name.value.clone()).or_insert_with(|| Metric {
                unit: unit.clone(),
                better: better.map(|better| match better {
                    scenario::Better::Lower => crate::event::metric::Better::Lower,
                    scenario::Better::Higher => crate::event::metric::Better::Higher,
                }),
                step: None,
                exact: false,
                description: format!("`{}`", expr.value),
            });
            metrics.insert(entry.name.value.clone());
            if let Some(expr) = formula {
                derived.insert(entry.name.value.clone(), Derive { expr, unit, origin: Origin(entry.name.span) });
            }
        }
        (derived, metrics)
    }

    fn required(&mut self, measure: &Measure, metrics: &HashSet<String>) -> Vec<Require> {
        let mut required = Vec::new();
        for text in measure.require.iter().flatten() {
            if let Some(expr) = self.formula(text, Some(Kind::Truth), &[]) {
                self.check_formula(&expr, text.span, metrics);
                required
                    .push(Require { expr: Formula { text: text.value.clone(), ..expr }, origin: Origin(text.span) });
            }
        }
        for list in [measure.report.as_ref(), measure.gate.as_ref()] {
            let names: Vec<Spanned<String>> =
                self.reach(&Axes::new(), Known { all: true, ..Known::default() }).list(list);
            for name in names.iter().filter(|name| !metrics.contains(&name.value)) {
                let mut known: Vec<&str> = metrics.iter().map(String::as_str).collect();
                known.sort_unstable();
                self.unknown_metric(&name.value, name.span, &known);
            }
        }
        required
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
        let expected = ids.len() as u64 * (group.rounds.saturating_add(rounds_of_warmup));
        if expected > 10_000_000 {
            let place = measure.given.at("runs").or_else(|| measure.given.at("starts")).unwrap_or(identity.origin.0);
            self.problems.push(Diagnostic::error(Code::TooLarge, place, "the group has more than 10,000,000 turns"));
            return group;
        }
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
        let before = self.problems.len();
        let chosen = subjects.select(&reference, &identity.axes, self.problems);
        let chosen: HashSet<&str> = chosen.into_iter().map(|index| subjects.get(index).id.as_str()).collect();
        let candidates: Vec<&Cell> = cells.iter().filter(|cell| chosen.contains(cell.subject.as_str())).collect();
        match candidates.as_slice() {
            [one] => return one.id.clone(),
            [] if self.problems.len() > before => {}
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
        Some(Workspace {
            from: reach.opt(workspace.from.as_ref()),
            copy: reach.list(workspace.copy.as_ref()),
            origin: measure.given.at("workspace").map(Origin),
        })
    }

    fn until(&mut self, measure: &Measure, axes: &Axes) -> Option<Until> {
        let until = measure.until.as_ref()?;
        let span = measure.given.at("until")?;
        let ci = self.percentage(until.ci.as_ref(), axes);
        let mut reach = self.reach(axes, Known::default());
        let metric: Option<Spanned<String>> = reach.opt(until.metric.as_ref());
        let max_runs = reach.opt(until.max_runs.as_ref()).map(scenario::Whole::number);
        let max_time = reach.opt(until.max_time.as_ref()).map(|time| time.0);
        for key in ["ci", "metric"] {
            if !until.given.has(key) {
                self.missing(key, "`until`", span);
            }
        }
        if !until.given.has("max_runs") && !until.given.has("max_time") {
            let missing = Diagnostic::error(Code::MissingKey, span, "`until` has no end");
            self.problems.push(missing.help("say max_runs or max_time"));
        }
        let metric = metric?;
        if !self.metrics.contains_key(&metric.value) {
            let metrics = self.metrics.clone();
            let known: Vec<&str> = metrics.keys().map(String::as_str).collect();
            self.unknown_metric(&metric.value, metric.span, &known);
        }
        Some(Until { ci: ci?, metric: metric.value, max_runs, max_time })
    }

    /// The values that must be equal are captured.
    fn check_same(&mut self, measure: &Measure, group: &Group, plan: &Plan) {
        let Some(same) = &measure.same else { return };
        let mut known: HashMap<&str, ()> = HashMap::new();
        for cell in &group.cells {
            let command = plan.command(&cell.subject).or_else(|| plan.command(cell.driver.as_deref()?));
            known.extend(
                cell.capture
                    .keys()
                    .chain(command.into_iter().flat_map(|command| command.capture.keys()))
                    .map(|name| (name.as_str(), ())),
            );
            let server = plan.server(&cell.subject);
            known.extend(server.into_iter().flat_map(|server| server.capture.keys()).map(|name| (name.as_str(), ())));
        }
        for list in [&same.runs, &same.subjects] {
            let names: Vec<Spanned<String>> = self.reach(&group.measure.axes, Known::default()).list(list.as_ref());
            for name in names.iter().filter(|name| !known.contains_key(name.value.as_str())) {
                let known: Vec<&str> = known.keys().copied().collect();
                let message = format!("nothing captures `{}`", name.value);
                let unknown = Diagnostic::error(Code::UnknownMetric, name.span, message);
                self.problems.push(unknown.help(crate::diagnostic::suggest(&name.value, &known)));
            }
        }
    }
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
