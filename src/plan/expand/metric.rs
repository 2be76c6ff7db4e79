//! The metrics that the runs of a measure have: which there are, and whether what refers to them can be computed.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::Expander;
use super::measure::{Pair, Shape};
use super::scope::Known;
use crate::diagnostic::{Code, Diagnostic, Span, Spanned};
use crate::event::metric::{BUILTIN, Metric, Of, of_each_request};
use crate::expr::Kind;
use crate::plan::{Axes, Capture, Derive, Formula, Group, Order, Origin, Plan, Require, Until};
use crate::scenario::{self, Measure};
use crate::stats::fewest_runs;

impl Expander<'_> {
    /// The names of the metrics that the runs of a cell have; each becomes part of the plan's dictionary.
    pub(super) fn metrics_of(
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
        let load =
            pair.driver.filter(|_| shape == Shape::ServersByLoad).and_then(|driver| self.load_of(plan, &driver.id));
        for request in load.into_iter().flat_map(|load| &load.requests).filter_map(|request| request.name.as_ref()) {
            for builtin in BUILTIN.iter().filter(|builtin| of_each_request(builtin.name)) {
                let name = format!("{}[{request}]", builtin.name);
                self.metrics.entry(name.clone()).or_insert_with(|| builtin.metric());
                names.insert(name);
            }
        }
        let server = (shape != Shape::Commands).then(|| self.server_of(plan, &pair.subject.id)).flatten();
        for (name, told) in server.into_iter().flat_map(|server| &server.capture) {
            if let Some(unit) = &told.unit {
                self.define(name, unit, None, told.origin.0);
                self.own_metric(&mut names, name, told.origin.0);
            }
        }
        let command = match shape {
            Shape::Commands => self.command_of(plan, &pair.subject.id),
            Shape::ServersByCommands => pair.driver.and_then(|driver| self.command_of(plan, &driver.id)),
            Shape::ServersAlone | Shape::ServersByLoad => None,
        };
        let captured = command.map(|command| &command.capture);
        for (name, twice) in capture {
            if let Some(first) = captured.and_then(|captured| captured.get(name)) {
                let message = format!("`{name}` is captured by the command already");
                let wrong = Diagnostic::error(Code::Duplicate, twice.origin.0, message);
                self.problems.push(wrong.also(first.origin.0, "the first one"));
            }
        }
        let added = capture.iter().filter(|(name, _)| captured.is_none_or(|captured| !captured.contains_key(*name)));
        for (name, capture) in captured.into_iter().flatten().chain(added) {
            if let Some(unit) = &capture.unit {
                self.define(name, unit, Some(capture), capture.origin.0);
                self.own_metric(&mut names, name, capture.origin.0);
            }
        }
        names
    }

    /// Adds a metric that the scenario takes itself; one that the runs have anyway cannot be taken again.
    fn own_metric(&mut self, names: &mut HashSet<String>, name: &str, span: Span) {
        if !names.insert(name.to_owned()) {
            let message = format!("`{name}` is a metric of these runs already");
            self.problems.push(Diagnostic::error(Code::Duplicate, span, message));
        }
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
    pub(super) fn derived(
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

    pub(super) fn required(&mut self, measure: &Measure, metrics: &HashSet<String>) -> Vec<Require> {
        let mut required = Vec::new();
        for text in measure.require.iter().flatten() {
            if let Some(expr) = self.formula(text, Some(Kind::Truth), &[]) {
                self.check_formula(&expr, text.span, metrics);
                required
                    .push(Require { expr: Formula { text: text.value.clone(), ..expr }, origin: Origin(text.span) });
            }
        }
        required
    }

    /// The names of metrics that a key lists, each once.
    pub(super) fn metric_names(
        &mut self,
        list: Option<&scenario::Field<Vec<Spanned<String>>>>,
        axes: &Axes,
    ) -> Vec<Spanned<String>> {
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut names: Vec<Spanned<String>> = self.reach(axes, Known::default()).list(list);
        names.retain(|name| match seen.entry(name.value.clone()) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(name.span);
                true
            }
            std::collections::hash_map::Entry::Occupied(first) => {
                let twice = Diagnostic::error(Code::Duplicate, name.span, format!("`{}` is listed twice", name.value));
                self.problems.push(twice.also(*first.get(), "the first time"));
                false
            }
        });
        names
    }

    /// A gate that could not tell a difference, whatever is measured, guards nothing.
    pub(super) fn check_gate(&mut self, measure: &Measure, shape: Shape, group: &Group) {
        let noisy = |name: &String| self.metrics.get(name).is_some_and(|metric| !metric.exact);
        let family = group.cells.len().saturating_sub(1) as u64;
        let Some(place) = measure.given.at("gate").filter(|_| family > 0 && group.gate.iter().any(noisy)) else {
            return;
        };
        // Of a single start its runs stand in, and they are not paired.
        let single = shape != Shape::Commands && group.rounds == 1;
        let paired = group.order != Order::Grouped && !single;
        let planned = if single { group.runs } else { group.rounds };
        let most = group.until.as_ref().map_or(planned, |until| until.max_runs.unwrap_or(u64::MAX));
        let needed = fewest_runs(paired, family);
        if planned.max(most) >= needed {
            return;
        }
        let key = if shape == Shape::Commands { "runs" } else { "starts" };
        let what = if single { "runs of one start" } else { key };
        let message = format!(
            "{planned} {what} of each are too few to tell a difference: `gate` would pass whatever is measured"
        );
        let needed = fewest_runs(group.order != Order::Grouped, family);
        let wrong = Diagnostic::error(Code::InvalidValue, measure.given.at(key).unwrap_or(place), message);
        let wrong = if measure.given.has(key) { wrong.also(place, "the gate") } else { wrong };
        let compared = crate::units::show::counted(family, "comparison");
        self.problems.push(wrong.help(format!("write {key} = {needed} or more: the fewest for {compared} at 5 %")));
    }

    pub(super) fn until(&mut self, measure: &Measure, axes: &Axes) -> Option<Until> {
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
    pub(super) fn check_same(&mut self, measure: &Measure, group: &Group, plan: &Plan) {
        let Some(same) = &measure.same else { return };
        let mut known: HashMap<&str, ()> = HashMap::new();
        for cell in &group.cells {
            let command =
                self.command_of(plan, &cell.subject).or_else(|| self.command_of(plan, cell.driver.as_deref()?));
            known.extend(
                cell.capture
                    .keys()
                    .chain(command.into_iter().flat_map(|command| command.capture.keys()))
                    .map(|name| (name.as_str(), ())),
            );
            let server = self.server_of(plan, &cell.subject);
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
