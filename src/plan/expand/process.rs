//! Renders what is started: processes, steps, tools, commands, checks, caches.

use std::collections::HashSet;
use std::time::Duration;

use indexmap::IndexMap;

use super::Expander;
use super::scope::{Known, Reach};
use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned, suggest};
use crate::plan::{
    Axes, Cache, Capture, CaptureFrom, Check, Clear, Command, Expect, Origin, Pick, Process, Stdin, Stdout, Step, Text,
    Tool, Value,
};
use crate::scenario::{self, Field, Keyed};
use crate::units;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(60);

/// What a step has of the entry it stands in.
#[derive(Clone, Default)]
pub(super) struct Surroundings {
    env: IndexMap<String, Text>,
    cwd: Option<Text>,
    user: Option<String>,
}

impl From<&Process> for Surroundings {
    fn from(process: &Process) -> Self {
        Self { env: process.env.clone(), cwd: process.cwd.clone(), user: process.user.clone() }
    }
}

/// The members of a table of texts.
pub(super) fn keyed<K>(table: Option<&Keyed<K, Field<Text>>>, reach: &mut Reach<'_>) -> IndexMap<String, Text> {
    let members = table.into_iter().flatten();
    members.filter_map(|entry| Some((entry.name.value.clone(), entry.body.get(reach)?))).collect()
}

/// A rendered process; `span` is the place of the entry, for one that says not what is run.
fn process(process: &scenario::Process, timeout: Option<Duration>, span: Span, reach: &mut Reach<'_>) -> Process {
    let argv = match (&process.command, &process.shell) {
        (Some(command), _) => command.get(reach).map(|argv| argv.0),
        (None, Some(shell)) => shell.get(reach).map(|line| vec![Text::from("/bin/sh"), Text::from("-c"), line]),
        (None, None) => None,
    };
    let origin = process.given.at("command").or_else(|| process.given.at("shell")).unwrap_or(span);
    let origin = process.command.as_ref().map_or(origin, Field::span);
    let stdin = match &process.stdin {
        None => Stdin::Nothing,
        Some(scenario::Stdin::Text(text)) => text.get(reach).map_or(Stdin::Nothing, Stdin::Text),
        Some(scenario::Stdin::File(file)) => reach.opt(file.file.as_ref()).map_or(Stdin::Nothing, Stdin::File),
    };
    Process {
        argv: argv.unwrap_or_default(),
        cwd: reach.opt(process.cwd.as_ref()),
        env: keyed(process.env.as_ref(), reach),
        stdin,
        user: reach.opt(process.user.as_ref()),
        cpus: reach.opt(process.cpus.as_ref()).map(|cpus| cpus.0).unwrap_or_default(),
        timeout: reach.opt(process.timeout.as_ref()).map(|timeout| timeout.0).or(timeout),
        files: keyed(process.files.as_ref(), reach),
        origin: Origin(origin),
        files_origin: process.given.at("files").map(Origin),
        user_origin: process.given.at("user").map(Origin),
    }
}

/// A rendered expectation.
fn expect(expect: Option<&scenario::Expect>, span: Option<Span>, reach: &mut Reach<'_>) -> Expect {
    let Some(expect) = expect else { return Expect::default() };
    let places = ["json", "unchanged", "exists"].into_iter();
    let places = places.filter_map(|key| Some((key, Origin(expect.given.at(key)?))));
    Expect {
        exit: reach.opt(expect.exit.as_ref()).and_then(|exit| i32::try_from(exit.0).ok()),
        stdout: reach.opt(expect.stdout.as_ref()),
        stderr: reach.opt(expect.stderr.as_ref()),
        stdout_not: reach.opt(expect.stdout_not.as_ref()),
        stderr_not: reach.opt(expect.stderr_not.as_ref()),
        json: reach.opt(expect.json.as_ref()),
        unchanged: reach.list(expect.unchanged.as_ref()),
        exists: reach.list(expect.exists.as_ref()),
        origin: span.map(Origin),
        places: places.collect(),
    }
}

impl Expander<'_> {
    /// Says that a process is started by exactly one of `command` and `shell`.
    fn check_command(&mut self, process: &scenario::Process, what: &str, span: Span) {
        let keys = ["command", "shell"].map(|key| (key, process.given.at(key)));
        self.exactly_one(&keys, what, span);
        if let Some(scenario::Stdin::File(file)) = &process.stdin
            && !file.given.has("file")
        {
            self.missing("file", "stdin", process.given.at("stdin").unwrap_or(span));
        }
    }

    pub(super) fn server_process(
        &mut self,
        body: &scenario::Process,
        span: Span,
        axes: &Axes,
        known: Known,
    ) -> Process {
        self.check_command(body, "the server", span);
        process(body, None, span, &mut self.reach(axes, known))
    }

    pub(super) fn expect(
        &mut self,
        body: Option<&scenario::Expect>,
        span: Option<Span>,
        axes: &Axes,
        known: Known,
    ) -> Expect {
        expect(body, span, &mut self.reach(axes, known))
    }

    /// Rendered steps, with what they have of the entry they stand in.
    pub(super) fn steps(
        &mut self,
        steps: Option<&Vec<scenario::Step>>,
        around: &Surroundings,
        axes: &Axes,
        known: &Known,
    ) -> Vec<Step> {
        steps.into_iter().flatten().filter_map(|step| self.step(step, around, axes, known)).collect()
    }

    fn step(&mut self, step: &scenario::Step, around: &Surroundings, axes: &Axes, known: &Known) -> Option<Step> {
        let mut rendered = match step {
            scenario::Step::Bare(argv) => {
                let bare = scenario::Process { command: Some(argv.clone()), ..scenario::Process::default() };
                let mut reach = self.reach(axes, known.clone());
                Step {
                    process: process(&bare, Some(LONG), argv.span(), &mut reach),
                    creates: None,
                    expect: Expect::default(),
                }
            }
            scenario::Step::Table(table, span) => {
                // A step may consist of files alone.
                if !table.process.given.has("files") {
                    self.check_command(&table.process, "the step", *span);
                }
                let mut reach = self.reach(axes, known.clone());
                Step {
                    process: process(&table.process, Some(LONG), *span, &mut reach),
                    creates: reach.opt(table.creates.as_ref()),
                    expect: expect(table.expect.as_ref(), table.given.at("expect"), &mut reach),
                }
            }
        };
        let process = &mut rendered.process;
        let mut env = around.env.clone();
        env.extend(std::mem::take(&mut process.env));
        process.env = env;
        process.cwd = process.cwd.take().or_else(|| around.cwd.clone());
        process.user = process.user.take().or_else(|| around.user.clone());
        Some(rendered)
    }

    pub(super) fn setup(&mut self) -> Vec<Step> {
        let scenario = self.scenario;
        self.steps(scenario.setup.as_ref(), &Surroundings::default(), &Axes::new(), &Known::default())
    }

    pub(super) fn tools(&mut self) -> Vec<Tool> {
        let scenario = self.scenario;
        let axes = Axes::new();
        let mut tools = Vec::new();
        for entry in scenario.tools.iter().flatten() {
            let tool = &entry.body;
            self.check_command(&tool.process, "the tool", entry.name.span);
            let mut reach = self.reach(&axes, Known::default());
            tools.push(Tool {
                name: entry.name.value.clone(),
                process: process(&tool.process, Some(SHORT), entry.name.span, &mut reach),
                expect: expect(tool.expect.as_ref(), tool.given.at("expect"), &mut reach),
            });
        }
        tools
    }

    pub(super) fn caches(&mut self) -> Vec<Cache> {
        let scenario = self.scenario;
        let axes = Axes::new();
        let mut caches = Vec::new();
        for entry in scenario.caches.iter().flatten() {
            let cache = &entry.body;
            let place = |key| cache.given.at(key).or_else(|| cache.process.given.at(key));
            if let Some(span) = place("command") {
                self.conflict(span, "a cache has `clear` in place of `command`");
            }
            self.exactly_one(&[("clear", place("clear")), ("shell", place("shell"))], "the cache", entry.name.span);
            if let Some(scenario::Clear::PageCache(_)) = &cache.clear {
                for (key, span) in cache.process.given.all() {
                    self.conflict(span, format!("`{key}` means nothing where the kernel's page cache is dropped"));
                }
            }
            let mut reach = self.reach(&axes, Known::default());
            let mut body = cache.process.clone();
            let clear = match &cache.clear {
                Some(scenario::Clear::PageCache(_)) => Clear::PageCache,
                Some(scenario::Clear::Command(argv)) => {
                    body.command = Some(argv.clone());
                    Clear::Process(Box::new(process(&body, Some(LONG), entry.name.span, &mut reach)))
                }
                None => Clear::Process(Box::new(process(&body, Some(LONG), entry.name.span, &mut reach))),
            };
            let empty = reach.list(cache.empty.as_ref());
            caches.push(Cache { name: entry.name.value.clone(), clear, empty, origin: Origin(entry.name.span) });
        }
        caches
    }

    /// The names of the caches that `references` name.
    pub(super) fn cache_names(&mut self, references: Option<&scenario::References>, axes: &Axes) -> Vec<String> {
        let references: Vec<Spanned<String>> = self.reach(axes, Known::default()).list(references);
        let catalog = self.catalog;
        let chosen = references.iter().filter_map(|reference| catalog.caches.select(reference, axes, self.problems));
        chosen.flatten().map(|index| catalog.caches.get(index).id.clone()).collect()
    }

    pub(super) fn commands(&mut self) -> Vec<Command> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.commands else { return Vec::new() };
        let mut commands = Vec::new();
        let alone = self.run_alone();
        for instance in catalog.commands.list() {
            let Some(entry) = entries.get(catalog.commands.name_of(instance)) else { continue };
            let body = &entry.body;
            let needs = self.needs(body.needs.as_ref(), &instance.axes);
            let server = !alone.contains(&instance.entry);
            let known = Known { dir: true, server, needs: self.reachable(&needs), ..Known::default() };
            self.check_command(&body.process, "the command", entry.name.span);
            let mut reach = self.reach(&instance.axes, known.clone());
            let process = process(&body.process, Some(LONG), entry.name.span, &mut reach);
            let expect = expect(body.expect.as_ref(), body.given.at("expect"), &mut reach);
            let stdout = reach.opt(body.stdout.as_ref()).unwrap_or(Stdout::File);
            let around = Surroundings::from(&process);
            let command = Command {
                identity: self.identity(instance, &entry.name, &body.expand),
                needs,
                needs_origin: body.given.at("needs").map(Origin),
                caches: self.cache_names(body.caches.as_ref(), &instance.axes),
                before: self.steps(body.before.as_ref(), &around, &instance.axes, &known),
                after: self.steps(body.after.as_ref(), &around, &instance.axes, &known),
                expect,
                capture: self.captures(body.capture.as_ref(), &instance.axes, &known),
                stdout,
                process,
            };
            if !self.weigh(&command) {
                break;
            }
            commands.push(command);
        }
        commands
    }

    /// The commands, by their index in the file, that a measure runs without a server: they cannot address one.
    fn run_alone(&mut self) -> HashSet<usize> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let axes = Axes::new();
        let mut alone = HashSet::new();
        // What is wrong with the references is said where the measure is expanded.
        let mut unheard = Problems::default();
        for measure in scenario.measures.iter().flatten().filter(|entry| !entry.body.given.has("servers")) {
            let references: Vec<Spanned<String>> =
                Reach::new(self.names, &axes, Known::default(), &mut unheard).list(measure.body.commands.as_ref());
            alone.extend(references.iter().flat_map(|reference| catalog.commands.named(&reference.value)));
        }
        alone
    }

    pub(super) fn checks(&mut self) -> Vec<Check> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.checks else { return Vec::new() };
        let mut checks = Vec::new();
        for instance in catalog.checks.list() {
            let Some(entry) = entries.get(catalog.checks.name_of(instance)) else { continue };
            let body = &entry.body;
            let needs = self.needs(body.needs.as_ref(), &instance.axes);
            let known = Known { dir: true, needs: self.reachable(&needs), ..Known::default() };
            self.check_command(&body.process, "the check", entry.name.span);
            let mut reach = self.reach(&instance.axes, known);
            let check = Check {
                process: process(&body.process, Some(SHORT), entry.name.span, &mut reach),
                expect: expect(body.expect.as_ref(), body.given.at("expect"), &mut reach),
                same: reach.list(body.same.as_ref()),
                identity: self.identity(instance, &entry.name, &body.expand),
                fails_on: self.fails_on(body, &instance.axes),
                needs,
            };
            if !self.weigh(&check) {
                break;
            }
            checks.push(check);
        }
        checks
    }

    /// The failure that is declared for one of the check's axis values, which must be unique among its axes.
    fn fails_on(&mut self, check: &scenario::Check, axes: &Axes) -> Option<Expect> {
        let names = self.names;
        let each: Vec<Spanned<String>> = self.reach(&Axes::new(), Known::default()).list(check.expand.each.as_ref());
        let mut declared = None;
        for entry in check.fails_on.iter().flatten() {
            let of = |axis: &str| {
                names
                    .axes
                    .get(axis)
                    .is_some_and(|axis| axis.values.iter().any(|value| value.to_string() == entry.name.value))
            };
            match each.iter().filter(|axis| of(&axis.value)).count() {
                1 => {}
                0 if each.iter().any(|axis| names.replaced.contains(&axis.value)) => {}
                0 => {
                    let of = |axis: &Spanned<String>| names.axes.get(&axis.value).map(|axis| &axis.values);
                    let known: Vec<String> = each.iter().filter_map(of).flatten().map(ToString::to_string).collect();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let message = format!("`{}` is no value of an axis that the check expands over", entry.name.value);
                    let unknown = Diagnostic::error(Code::UnknownEntry, entry.name.span, message);
                    self.problems.push(unknown.help(suggest(&entry.name.value, &known)));
                }
                _ => {
                    let message = format!("`{}` is a value of more than one of the check's axes", entry.name.value);
                    let wrong = Diagnostic::error(Code::AmbiguousJoin, entry.name.span, message);
                    self.problems.push(wrong.help("give the values of the axes names that differ"));
                }
            }
            if axes.values().any(|value| value.to_string() == entry.name.value) {
                declared = Some(self.expect(Some(&entry.body), Some(entry.name.span), axes, Known::default()));
            }
        }
        declared
    }

    pub(super) fn captures<K>(
        &mut self,
        captures: Option<&Keyed<K, scenario::Capture>>,
        axes: &Axes,
        known: &Known,
    ) -> IndexMap<String, Capture> {
        let mut rendered = IndexMap::new();
        for entry in captures.into_iter().flatten() {
            if let Some(capture) = self.capture(&entry.body, &entry.name, axes, known) {
                rendered.insert(entry.name.value.clone(), capture);
            }
        }
        rendered
    }

    fn capture(
        &mut self,
        capture: &scenario::Capture,
        name: &Spanned<String>,
        axes: &Axes,
        known: &Known,
    ) -> Option<Capture> {
        let forms = ["stdout", "stderr", "stdout_json", "file", "size", "sha256", "entries"]
            .map(|key| (key, capture.given.at(key)));
        self.exactly_one(&forms, "the capture", name.span);
        let parts = ["regex", "json"].map(|key| (key, capture.given.at(key)));
        match capture.given.at("file") {
            Some(span) => self.exactly_one(&parts, "the capture of a file", span),
            None => {
                for (key, span) in parts.iter().filter_map(|(key, span)| Some((*key, (*span)?))) {
                    self.conflict(span, format!("`{key}` belongs to a capture with `file`"));
                }
            }
        }
        let mut reach = self.reach(axes, known.clone());
        let regex = reach.opt(capture.regex.as_ref());
        let json = reach.opt(capture.json.as_ref());
        let file = reach.opt(capture.file.as_ref());
        let from = None
            .or(reach.opt(capture.stdout.as_ref()).map(CaptureFrom::Stdout))
            .or(reach.opt(capture.stderr.as_ref()).map(CaptureFrom::Stderr))
            .or(reach.opt(capture.stdout_json.as_ref()).map(CaptureFrom::StdoutJson))
            .or(reach.opt(capture.size.as_ref()).map(CaptureFrom::Size))
            .or(reach.opt(capture.sha256.as_ref()).map(CaptureFrom::Sha256))
            .or(reach.opt(capture.entries.as_ref()).map(CaptureFrom::Entries))
            .or(match (file, regex, json) {
                (Some(file), Some(regex), _) => Some(CaptureFrom::FileRegex { file, regex }),
                (Some(file), None, Some(json)) => Some(CaptureFrom::FileJson { file, json }),
                _ => None,
            });
        let pick = reach.opt(capture.pick.as_ref()).unwrap_or(Pick::First);
        let step =
            reach.opt(capture.step.as_ref()).and_then(|step| step_of(&step, capture.step.as_ref()?.span(), &mut reach));
        let mut rendered = Capture {
            pick,
            unit: reach.opt(capture.unit.as_ref()),
            better: reach.opt(capture.better.as_ref()),
            step,
            exact: reach.opt(capture.exact.as_ref()).unwrap_or_default(),
            optional: reach.opt(capture.optional.as_ref()).unwrap_or_default(),
            default: reach.opt(capture.default.as_ref()),
            from: from?,
            origin: Origin(name.span),
        };
        self.check_groups(&mut rendered, capture, name.span);
        self.check_kind(&rendered, capture, name.span);
        Some(rendered)
    }

    /// What is no text has no matches to pick from, a digest is no number, and a metric's default is one.
    fn check_kind(&mut self, capture: &Capture, written: &scenario::Capture, span: Span) {
        let of_text =
            matches!(capture.from, CaptureFrom::Stdout(_) | CaptureFrom::Stderr(_) | CaptureFrom::FileRegex { .. });
        if let (false, Some(place)) = (of_text, written.given.at("pick")) {
            self.conflict(place, "`pick` belongs to a capture by a pattern");
        }
        if let (CaptureFrom::Sha256(_), Some(place)) = (&capture.from, written.given.at("unit")) {
            self.conflict(place, "a digest is no number and has no unit");
        }
        let number = matches!(capture.default, None | Some(Value::Integer(_) | Value::Float(_)));
        if capture.unit.is_some() && !number {
            let place = written.default.as_ref().map_or(span, Field::span);
            let wrong =
                Diagnostic::error(Code::WrongType, place, "the default of a metric is a number, in its base unit");
            self.problems.push(wrong.help("without a unit the value is a fact, and may be a text"));
        }
    }

    /// A pattern needs a group to take, unless matches are counted; a group `unit` says in which units it can be.
    fn check_groups(&mut self, capture: &mut Capture, written: &scenario::Capture, span: Span) {
        let (CaptureFrom::Stdout(pattern)
        | CaptureFrom::Stderr(pattern)
        | CaptureFrom::FileRegex { regex: pattern, .. }) = &capture.from
        else {
            return;
        };
        let place =
            [&written.stdout, &written.stderr, &written.regex].into_iter().flatten().next().map_or(span, Field::span);
        // Compiled for this look alone: a plan of many runs does not hold it as many times.
        let regex = pattern.clone();
        let regex = regex.regex();
        if regex.captures_len() < 2 && capture.pick != Pick::Count {
            let message = "the pattern has no group that could be taken";
            let help = "put what is to be taken into parentheses, or say pick = \"count\"";
            self.problems.push(Diagnostic::error(Code::InvalidPattern, place, message).help(help));
        }
        let has_unit = regex.capture_names().flatten().any(|name| name == "unit");
        match (has_unit, &capture.unit) {
            (true, Some(_)) => {
                let message = "the unit is given twice: by the pattern's group `unit` and by `unit`";
                self.conflict(place, message);
            }
            (true, None) => match units_in(pattern.source()) {
                Some(base) => capture.unit = Some(base.to_owned()),
                None => {
                    let message = "the group `unit` does not list units of one kind";
                    let help = "write it as alternatives, such as (?<unit>us|ms|s)";
                    self.problems.push(Diagnostic::error(Code::InvalidPattern, place, message).help(help));
                }
            },
            (false, _) => {}
        }
        if capture.pick == Pick::Count && capture.unit.is_none() {
            capture.unit = Some("1".to_owned());
        }
    }
}

/// The base unit of the alternatives in the group `unit` of a pattern, if they are all of one kind.
fn units_in(pattern: &str) -> Option<&'static str> {
    let start = ["(?<unit>", "(?P<unit>"].into_iter().find_map(|open| pattern.find(open).map(|at| at + open.len()))?;
    let alternatives = pattern[start..].split_once(')')?.0;
    let mut bases = alternatives.split('|').map(|unit| units::base(unit).map(|(base, _)| base));
    let first = bases.next()??;
    bases.all(|base| base == Some(first)).then_some(first)
}

/// A clock's step in base units: a duration, a size, or a number.
fn step_of(value: &Value, span: Span, reach: &mut Reach<'_>) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "steps of clocks lie far below 2^53")]
    let step = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(text) => text.plain().and_then(|text| {
            let duration = units::parse_duration(text).ok().map(|duration| duration.as_secs_f64());
            duration.or_else(|| units::parse_size(text).ok().map(|size| size as f64))
        }),
        _ => None,
    };
    match step {
        Some(step) if step > 0.0 => Some(step),
        _ => {
            let message = "a step is a duration such as \"10ms\", a size, or a number above 0";
            crate::scenario::Scope::problems(reach).push(Diagnostic::error(Code::InvalidValue, span, message));
            None
        }
    }
}
