//! From a scenario to a plan: names resolve, axes multiply, templates are rendered, the order is fixed.
//!
//! Pure: nothing is run, nothing is read. Everything that is wrong goes to [`Problems`]; only without an error there is a
//! plan. `catalog` says which instances there are, `scope` what names mean, `process`, `http` and `server` render entries,
//! `measure` joins them to groups and cells, `claim` checks what is said of the outcome.

mod catalog;
mod claim;
mod formula;
mod http;
mod measure;
mod metric;
mod names;
mod process;
mod scope;
mod server;

use indexmap::IndexMap;

use self::catalog::{Instance, Instances};
use self::names::entry_instances;
use self::scope::{Known, Names, Reach};
use super::{Axes, Environment, Identity, Machine, Origin, Places, Plan, SCHEMA, Value, order};
use crate::diagnostic::{Code, Diagnostic, Problems, Sources, Span, Spanned};
use crate::event::design::Reference;
use crate::event::metric::Metric;
use crate::scenario::{EntryName, Expand, Field, FromValue, KeyKind, Loaded, Scenario};

/// The largest plan, in bytes of its JSON.
const MAX_PLAN: usize = 64 << 20;
/// The most pieces that its JSON is written in, a string being about four: it bounds the memory of many small values.
const MAX_PIECES: usize = 24_000_000;

/// Expands a scenario. `seed` overrides the one that is taken from its name.
pub fn expand(loaded: &Loaded, seed: Option<u64>, sources: &Sources, problems: &mut Problems) -> Option<Plan> {
    let names = names::collect(loaded, problems);
    let catalog = Catalog::new(&loaded.scenario, &names, problems);
    let mut expander = Expander {
        loaded,
        scenario: &loaded.scenario,
        sources,
        names: &names,
        catalog: &catalog,
        problems,
        metrics: IndexMap::new(),
        size: Counter::default(),
        turns: 0,
    };
    let plan = expander.plan(seed);
    (!problems.has_errors()).then_some(plan)
}

/// The instances of every kind of entry that expands.
struct Catalog {
    servers: Instances,
    commands: Instances,
    probes: Instances,
    loads: Instances,
    checks: Instances,
    caches: Instances,
    measures: Instances,
}

impl Catalog {
    fn new(scenario: &Scenario, names: &Names, problems: &mut Problems) -> Self {
        let mut caches = Instances::new("cache");
        for entry in scenario.caches.iter().flatten() {
            caches.add(&entry.name, &[], vec![Axes::new()]);
        }
        Self {
            servers: entry_instances("server", scenario.servers.as_ref(), |body| &body.expand, names, problems),
            commands: entry_instances("command", scenario.commands.as_ref(), |body| &body.expand, names, problems),
            probes: entry_instances("probe", scenario.probes.as_ref(), |body| &body.expand, names, problems),
            loads: entry_instances("load", scenario.loads.as_ref(), |body| &body.expand, names, problems),
            checks: entry_instances("check", scenario.checks.as_ref(), |body| &body.expand, names, problems),
            measures: entry_instances("measure", scenario.measures.as_ref(), |body| &body.expand, names, problems),
            caches,
        }
    }
}

impl Catalog {
    /// Whether references have looked at too much, which was reported.
    fn exhausted(&self) -> bool {
        [&self.servers, &self.commands, &self.probes, &self.loads, &self.caches]
            .into_iter()
            .any(|kind| kind.exhausted())
    }
}

struct Expander<'a> {
    loaded: &'a Loaded,
    scenario: &'a Scenario,
    sources: &'a Sources,
    names: &'a Names,
    catalog: &'a Catalog,
    problems: &'a mut Problems,
    metrics: IndexMap<String, Metric>,
    size: Counter,
    /// How many turns the groups have so far.
    turns: u64,
}

impl Expander<'_> {
    fn plan(&mut self, seed: Option<u64>) -> Plan {
        let scenario = self.scenario;
        let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
        let name = text(&scenario.name).unwrap_or_default();
        let seed = seed.unwrap_or_else(|| order::default_seed(&name));
        let mut plan = Plan {
            schema: SCHEMA,
            title: text(&scenario.title),
            description: text(&scenario.description),
            seed,
            vars: self.vars(),
            environment: self.environment(),
            setup: self.setup(),
            tools: self.tools(),
            caches: self.caches(),
            servers: self.servers(),
            commands: self.commands(),
            probes: self.probes(),
            loads: self.loads(),
            checks: self.checks(),
            groups: Vec::new(),
            claims: Vec::new(),
            metrics: IndexMap::new(),
            machine: self.machine(),
            references: self.references(),
            caveats: self.caveats(),
            places: Places {
                machine: scenario.given.at("machine"),
                references: scenario.given.at("references"),
                caveats: scenario.given.at("caveats"),
            },
            name,
        };
        plan.groups = self.groups(&plan);
        plan.claims = self.claims(&plan.groups);
        plan.metrics = std::mem::take(&mut self.metrics);
        self.check_whole(&plan);
        plan
    }

    fn check_whole(&mut self, plan: &Plan) {
        if let Some(name) = &self.scenario.name
            && !EntryName::is(&name.value)
        {
            let wrong = Diagnostic::error(
                Code::InvalidName,
                name.span,
                format!("`{}` cannot be a scenario's name", name.value),
            );
            self.problems.push(wrong.help(EntryName::RULE));
        }
        let scenario = self.scenario;
        let runs = scenario.measures.as_ref().is_some_and(|entries| !entries.names().is_empty())
            || scenario.checks.as_ref().is_some_and(|entries| !entries.names().is_empty())
            || scenario.tools.as_ref().is_some_and(|entries| !entries.names().is_empty())
            || scenario.setup.as_ref().is_some_and(|steps| !steps.is_empty());
        // What is wrong in itself is said already.
        if !runs && !self.problems.has_errors() {
            let nothing =
                Diagnostic::error(Code::NothingToRun, Span::new(self.loaded.main, 0..0), "the scenario runs nothing");
            self.problems
                .push(nothing.help("add a measure: [measures.NAME] with servers = [\"…\"] or commands = [\"…\"]"));
        }
        if self.catalog.exhausted() && !self.problems.has_errors() {
            self.problems.push(Diagnostic::bare(Code::TooLarge, "the references are too many, or choose too much"));
        }
        if !self.problems.has_errors() {
            self.size = Counter::default();
            self.weigh(plan);
        }
    }

    /// Counts what becomes part of the plan; false once it is too large, or too much was looked at.
    fn weigh(&mut self, part: &impl serde::Serialize) -> bool {
        // A counter does not fail, and a plan has only string keys.
        let _ = serde_json::to_writer(&mut self.size, part);
        if self.size.bytes > MAX_PLAN {
            self.problems.push(Diagnostic::bare(Code::TooLarge, "the plan is larger than 64 MiB"));
        } else if self.size.pieces > MAX_PIECES {
            self.problems.push(Diagnostic::bare(Code::TooLarge, "the plan holds more than 6,000,000 values"));
        }
        self.size.bytes <= MAX_PLAN && self.size.pieces <= MAX_PIECES && !self.catalog.exhausted()
    }

    fn reach<'s>(&'s mut self, axes: &'s Axes, known: Known) -> Reach<'s> {
        Reach::new(self.names, axes, known, self.problems)
    }

    fn vars(&mut self) -> IndexMap<String, Value> {
        let axes = Axes::new();
        let names = self.names;
        let mut reach = self.reach(&axes, Known { all: true, ..Known::default() });
        let vars = names.vars.keys().enumerate().filter_map(|(index, name)| Some((name.clone(), reach.var(index)?)));
        vars.collect()
    }

    fn environment(&mut self) -> Environment {
        let Some(environment) = &self.scenario.environment else { return Environment::default() };
        let axes = Axes::new();
        let mut reach = self.reach(&axes, Known::default());
        let inherit: Vec<Spanned<String>> = reach.list(environment.inherit.as_ref());
        let secret: Vec<Spanned<String>> = reach.list(environment.secret.as_ref());
        let set = process::keyed(environment.set.as_ref(), &mut reach);
        for (index, name) in inherit.iter().chain(&secret).enumerate() {
            // What is not passed on is no secret.
            let bare = name.value.strip_prefix('-').filter(|_| index < inherit.len()).unwrap_or(&name.value);
            let star = bare.find('*').is_some_and(|at| at + 1 < bare.len());
            if bare.is_empty() || bare.contains(['=', '\0']) || bare.starts_with('-') || star {
                let message = format!("`{}` is no name of an environment variable", name.value);
                let wrong = Diagnostic::error(Code::InvalidValue, name.span, message);
                self.problems.push(wrong.help("a name, a name that ends in `*`, or `-NAME`"));
            }
        }
        let bare = |names: Vec<Spanned<String>>| names.into_iter().map(|name| name.value).collect();
        Environment { inherit: bare(inherit), set, secret: bare(secret) }
    }

    fn machine(&mut self) -> Option<Machine> {
        let machine = self.scenario.machine.as_ref()?;
        let axes = Axes::new();
        let mut reach = self.reach(&axes, Known::default());
        Some(Machine {
            cores: reach.opt(machine.cores.as_ref()).map(crate::scenario::Whole::number),
            memory: reach.opt(machine.memory.as_ref()).map(|size| size.0),
            hypervisor: reach.opt(machine.hypervisor.as_ref()),
            governor: reach.opt(machine.governor.as_ref()),
            refuse: reach.opt(machine.refuse.as_ref()).unwrap_or_default(),
        })
    }

    fn references(&mut self) -> Vec<Reference> {
        let axes = Axes::new();
        let place = self.scenario.given.at("references");
        let mut references = Vec::new();
        for reference in self.scenario.references.iter().flatten() {
            let mut reach = self.reach(&axes, Known::default());
            references.push(Reference {
                text: reach.opt(reference.text.as_ref()).unwrap_or_default(),
                value: reference.value.as_ref().map_or(0.0, |value| value.value),
                unit: reach.opt(reference.unit.as_ref()),
                source: reach.opt(reference.source.as_ref()).unwrap_or_default(),
                date: reference.date.as_ref().map(|date| date.0.clone()).unwrap_or_default(),
            });
            for key in ["text", "value", "source", "date"] {
                if let (false, Some(place)) = (reference.given.has(key), place) {
                    let span =
                        ["text", "value", "unit", "source", "date"].iter().find_map(|key| reference.given.at(key));
                    self.missing(key, "a reference", span.unwrap_or(place));
                }
            }
        }
        references
    }

    fn caveats(&mut self) -> Vec<String> {
        let axes = Axes::new();
        let scenario = self.scenario;
        let mut reach = self.reach(&axes, Known::default());
        scenario.caveats.iter().flatten().filter_map(|caveat| caveat.get(&mut reach)).collect()
    }

    fn missing(&mut self, key: &str, what: &str, span: Span) {
        self.problems.push(Diagnostic::error(Code::MissingKey, span, format!("{what} lacks `{key}`")));
    }

    fn conflict(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push(Diagnostic::error(Code::Conflict, span, message));
    }

    /// Says that at most one of `keys`, which have these places, may stand.
    fn at_most_one(&mut self, keys: &[(&str, Option<Span>)]) {
        let given: Vec<(&str, Span)> = keys.iter().filter_map(|(key, span)| Some((*key, (*span)?))).collect();
        if let [(first, first_span), (second, second_span), ..] = given.as_slice() {
            let message = format!("`{second}` and `{first}` exclude each other");
            self.problems
                .push(Diagnostic::error(Code::Conflict, *second_span, message).also(*first_span, "the other one"));
        }
    }

    /// Says that exactly one of `keys` must stand in the entry at `span`.
    fn exactly_one(&mut self, keys: &[(&str, Option<Span>)], what: &str, span: Span) {
        if keys.iter().all(|(_, span)| span.is_none()) {
            let names: Vec<String> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
            let message = format!("{what} has none of {}", names.join(", "));
            self.problems
                .push(Diagnostic::error(Code::MissingKey, span, message).help(format!("write {}", names.join(" or "))));
        }
        self.at_most_one(keys);
    }

    fn identity(&mut self, instance: &Instance, name: &Spanned<String>, expand: &Expand) -> Identity {
        let label = self.reach(&instance.axes, Known::default()).opt(expand.label.as_ref());
        Identity {
            id: instance.id.clone(),
            name: name.value.clone(),
            axes: instance.axes.clone(),
            label: label.unwrap_or_else(|| instance.id.clone()),
            origin: Origin(name.span),
        }
    }
}

impl Reach<'_> {
    /// The value of a field, if it is there and right.
    fn opt<T: FromValue>(&mut self, field: Option<&Field<T>>) -> Option<T> {
        field.and_then(|field| field.get(self))
    }

    /// The elements of a field, if it is there.
    fn list<T: FromValue>(&mut self, field: Option<&Field<Vec<T>>>) -> Vec<T> {
        self.opt(field).unwrap_or_default()
    }
}

/// Counts the bytes that are written, and how many times.
#[derive(Default)]
struct Counter {
    bytes: usize,
    pieces: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        self.pieces += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
