//! The fold: events become rows, line by line; at the end of the log, what is open is closed and the rest is computed.

use std::collections::HashMap;
use std::io::{self, BufRead};

use thiserror::Error;

use super::log::Lines;
use super::parity::Answered;
use super::rows::{Cell, CellOutcome, Check, Maker, ProbeAnswer, Run, Scenario, Second, Turn, Warning};
use super::{Folded, Results, SCHEMA, Status, compare, parity, summarize};
use crate::event::{
    self, CheckResult, Design, Event, Failed, MachineFacts, Outcome, Phase, ProbeResult, Program, RunEnded, RunStarted,
    Started, TurnEnded, TurnStarted, design,
};
use crate::stats;

/// Why a log gives no result.
#[derive(Debug, Error)]
pub enum FoldError {
    /// It cannot be read.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is empty, or its first line is not that of a log.
    #[error("this is no log of bakeoff: its first line is no `started` event")]
    NoLog,
    /// A later version wrote it.
    #[error("this log has format {found}, this program reads formats up to {known}: a newer bakeoff is needed")]
    Newer {
        /// The number in the log.
        found: u64,
        /// The number that this program writes.
        known: u64,
    },
    /// The first line is a `started` event that lacks something.
    #[error("line 1 of the log is not whole: {why}")]
    Started {
        /// What is wrong.
        why: String,
    },
    /// A line that is no event.
    #[error("line {line} of the log is no event: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// An event that does not follow from those before it.
    #[error("line {line} of the log: {why}")]
    Order {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A histogram that cannot be read.
    #[error("the histogram `{name}` of run {index} of `{turn}` cannot be read: {why}")]
    Histogram {
        /// The turn.
        turn: String,
        /// The run's number within turn and phase.
        index: u64,
        /// The histogram's name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Numbers that have no statistic.
    #[error("`{metric}` of `{cell}` cannot be summarized: {why}")]
    Numbers {
        /// The cell.
        cell: String,
        /// The metric.
        metric: String,
        /// What is wrong.
        why: stats::Refused,
    },
}

/// Folds a log. `folded_by` is the program that does.
///
/// # Errors
/// A log that cannot be read, is of a newer format, or is broken elsewhere than at its very end.
pub fn fold(log: impl BufRead, folded_by: &Program) -> Result<Folded, FoldError> {
    let mut lines = Lines::new(log);
    let Some((_, event::Line { event: Event::Started(started), .. })) = lines.next()? else {
        return Err(FoldError::NoLog);
    };
    let mut state = State::new(*started, folded_by);
    while let Some((number, line)) = lines.next()? {
        state.take(line.t, line.event).map_err(|why| FoldError::Order { line: number, why })?;
    }
    state.finish()
}

/// What is known so far.
struct State {
    results: Results,
    series: Vec<Second>,
    probes: Vec<design::Probe>,
    checks: Vec<design::Check>,
    answers: Vec<Answered>,
    cells: HashMap<String, usize>,
    stopped: bool,
}

impl State {
    fn new(started: Started, folded_by: &Program) -> Self {
        let Design { name, title, description, caveats, references, subjects, groups, cells, probes, checks, metrics } =
            started.design;
        let program = started.bakeoff;
        let results = Results {
            schema: SCHEMA.to_owned(),
            status: Status::Complete,
            bakeoff: Maker {
                version: program.version,
                commit: program.commit,
                profile: program.profile,
                folded_by: folded_by.clone(),
                statistics: stats::VERSION,
            },
            scenario: Scenario {
                name,
                title,
                description,
                caveats,
                references,
                files: started.files,
                vars: started.vars,
                profile: started.profile,
                set: started.set,
            },
            plan: started.plan,
            seed: started.seed,
            started: started.utc,
            finished: None,
            machine: MachineFacts::default(),
            setup: Vec::new(),
            tools: Vec::new(),
            inputs: Vec::new(),
            metrics,
            subjects,
            groups,
            cells: cells.into_iter().map(planned).collect(),
            turns: Vec::new(),
            runs: Vec::new(),
            probes: Vec::new(),
            checks: Vec::new(),
            summaries: Vec::new(),
            comparisons: Vec::new(),
            claims: Vec::new(),
            gates: Vec::new(),
            parity: Vec::new(),
            warnings: Vec::new(),
            failures: Vec::new(),
        };
        let cells = results.cells.iter().enumerate().map(|(index, cell)| (cell.id.clone(), index)).collect();
        Self { results, series: Vec::new(), probes, checks, answers: Vec::new(), cells, stopped: false }
    }

    fn take(&mut self, t: f64, event: Event) -> Result<(), String> {
        match event {
            Event::Started(_) => return Err("a log has one `started` event".to_owned()),
            Event::Machine(machine) => self.results.machine = machine,
            Event::Setup(step) => self.results.setup.push(step),
            Event::Tool(tool) => self.results.tools.push(tool),
            Event::Input(input) => self.results.inputs.push(input),
            Event::Check(check) => self.check(check),
            Event::TurnStarted(turn) => self.turn_started(t, turn)?,
            Event::Ready(ready) => {
                let turn = self.turn(&ready.turn)?;
                turn.metrics.extend(ready.metrics);
            }
            Event::Probe(probe) => self.probe(probe)?,
            Event::RunStarted(run) => self.run_started(t, &run)?,
            Event::Sample(sample) => {
                let turn = self.turn(&sample.turn)?;
                let (cell, round) = (turn.cell.clone(), turn.round);
                let event::Sample { index, phase, at, values, .. } = sample;
                self.series.push(Second { cell, round, index, phase, at, values });
            }
            Event::RunEnded(run) => self.run_ended(*run)?,
            Event::TurnEnded(turn) => self.turn_ended(turn)?,
            Event::Warning(warning) => self.warning(warning)?,
            Event::Failed(failed) => self.failed(failed)?,
            Event::Interrupted { .. } => self.stopped = true,
            Event::Finished { utc } => self.results.finished = Some(utc),
            Event::Cleared(_) | Event::Unknown => {}
        }
        Ok(())
    }

    fn turn(&mut self, id: &str) -> Result<&mut Turn, String> {
        let found = self.results.turns.iter_mut().rfind(|turn| turn.id == id);
        found.ok_or_else(|| format!("the turn `{id}` was not started"))
    }

    fn check(&mut self, result: CheckResult) {
        let CheckResult { check, outcome, exit, stdout, stderr, failures } = result;
        let planned = self.checks.iter().find(|planned| planned.id == check);
        let label = planned.map_or_else(|| check.clone(), |planned| planned.label.clone());
        let axes = planned.map(|planned| planned.axes.clone()).unwrap_or_default();
        self.results.checks.push(Check { check, label, axes, outcome, exit, stdout, stderr, failures });
    }

    fn turn_started(&mut self, t: f64, turn: TurnStarted) -> Result<(), String> {
        if !self.cells.contains_key(&turn.cell) {
            return Err(format!("the plan has no cell `{}`", turn.cell));
        }
        let TurnStarted { turn: id, cell, round, phase, position } = turn;
        self.results.turns.push(Turn {
            id,
            cell,
            round,
            phase,
            position,
            started: t,
            metrics: event::Metrics::new(),
            facts: event::Facts::new(),
            outcome: Outcome::Interrupted,
            reason: Some(OPEN.to_owned()),
            warnings: Vec::new(),
        });
        Ok(())
    }

    fn turn_ended(&mut self, ended: TurnEnded) -> Result<(), String> {
        let turn = self.turn(&ended.turn)?;
        turn.outcome = ended.outcome;
        turn.reason = ended.reason;
        turn.metrics.extend(ended.metrics);
        turn.facts.extend(ended.facts);
        Ok(())
    }

    fn run_started(&mut self, t: f64, run: &RunStarted) -> Result<(), String> {
        let turn = self.turn(&run.turn)?;
        let row = Run {
            cell: turn.cell.clone(),
            turn: turn.id.clone(),
            round: turn.round,
            index: run.index,
            phase: run.phase,
            started: t,
            metrics: event::Metrics::new(),
            facts: event::Facts::new(),
            histograms: std::collections::BTreeMap::new(),
            outcome: Outcome::Interrupted,
            reason: Some(OPEN.to_owned()),
            warnings: Vec::new(),
        };
        self.results.runs.push(row);
        Ok(())
    }

    fn run_ended(&mut self, ended: RunEnded) -> Result<(), String> {
        let RunEnded { turn, index, phase, outcome, reason, metrics, facts, histograms, warnings, .. } = ended;
        let of = |run: &&mut Run| run.turn == turn && run.index == index && run.phase == phase;
        let run = self.results.runs.iter_mut().rfind(of);
        let run = run.ok_or_else(|| format!("run {index} of the turn `{turn}` was not started"))?;
        run.outcome = outcome;
        run.reason = reason;
        run.metrics = metrics;
        run.facts = facts;
        run.histograms = histograms;
        run.warnings = warnings.iter().map(|warning| warning.code.clone()).collect();
        let cell = run.cell.clone();
        self.results.warnings.extend(warnings.into_iter().map(|warning| Warning {
            code: warning.code,
            text: warning.text,
            cell: Some(cell.clone()),
            turn: Some(turn.clone()),
            phase: Some(phase),
            ..Warning::default()
        }));
        Ok(())
    }

    fn warning(&mut self, warning: event::Warning) -> Result<(), String> {
        let event::Warning { code, text, mut cell, turn } = warning;
        let mut phase = None;
        if let Some(id) = &turn {
            let turn = self.turn(id)?;
            turn.warnings.push(code.clone());
            (cell, phase) = (Some(turn.cell.clone()), Some(turn.phase));
        }
        self.results.warnings.push(Warning { code, text, cell, turn, phase, ..Warning::default() });
        Ok(())
    }

    fn failed(&mut self, mut failed: Failed) -> Result<(), String> {
        if let Some(id) = &failed.turn {
            failed.cell = Some(self.turn(id)?.cell.clone());
        }
        self.results.failures.push(failed);
        Ok(())
    }

    fn probe(&mut self, result: ProbeResult) -> Result<(), String> {
        let turn = self.turn(&result.turn)?;
        let (cell, round) = (turn.cell.clone(), turn.round);
        let planned = self.probes.iter().find(|planned| planned.id == result.probe);
        let records = |records: fn(&design::Probe) -> bool| planned.is_some_and(records);
        let answer = result.answer.as_ref();
        self.results.probes.push(ProbeAnswer {
            measure: self.cells.get(&cell).map(|&index| self.results.cells[index].measure.clone()).unwrap_or_default(),
            cell: cell.clone(),
            server: result.server,
            probe: result.probe.clone(),
            round,
            when: result.when,
            status: answer.map(|answer| answer.status),
            bytes: answer.map(|answer| answer.bytes),
            sha256: answer.map(|answer| answer.sha256.clone()),
            headers: answer.filter(|_| records(|probe| probe.record_headers)).map(|answer| answer.headers.clone()),
            head: answer.filter(|_| records(|probe| probe.record_body)).map(|answer| answer.head.clone()),
            error: result.error,
            passed: result.passed,
            failures: result.failures,
        });
        if let Some(answer) = result.answer {
            self.answers.push(Answered { cell, probe: result.probe, when: result.when, answer });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Folded, FoldError> {
        let results = &mut self.results;
        self.stopped |= results.finished.is_none();
        self.stopped |= results.turns.iter().any(|turn| turn.outcome == Outcome::Interrupted);
        judge(results, self.stopped);
        let failed =
            results.cells.iter().any(|cell| matches!(cell.outcome, CellOutcome::Failed | CellOutcome::Skipped));
        results.status = match (self.stopped, failed || !results.failures.is_empty()) {
            (true, _) => Status::Interrupted,
            (false, true) => Status::Partial,
            (false, false) => Status::Complete,
        };
        parity::compare(results, &self.probes, &self.answers);
        summarize::summarize(results)?;
        compare::compare(results);
        Ok(Folded { results: self.results, series: self.series })
    }
}

/// The reason of a turn or run that the log leaves open.
const OPEN: &str = "it was not ended when the log stops";

fn planned(cell: design::Cell) -> Cell {
    let design::Cell { id, measure, group, subject, driver, axes, role, .. } = cell;
    Cell { id, measure, group, subject, driver, axes, role, outcome: CellOutcome::Ok, reason: None }
}

/// What became of each cell, from its turns, its runs and the failures that name it.
fn judge(results: &mut Results, stopped: bool) {
    let mut failed: HashMap<&str, Option<String>> = HashMap::new();
    let turns = results.turns.iter().map(|turn| (&turn.cell, turn.outcome, &turn.reason));
    let runs = results.runs.iter().map(|run| (&run.cell, run.outcome, &run.reason));
    let bad = turns.chain(runs).filter(|(_, outcome, _)| *outcome == Outcome::Failed);
    let bad = bad.map(|(cell, _, reason)| (cell, reason.clone()));
    let named =
        results.failures.iter().filter_map(|failure| Some((failure.cell.as_ref()?, Some(failure.message.clone()))));
    for (cell, reason) in bad.chain(named) {
        let known = failed.entry(cell).or_default();
        *known = known.take().or(reason);
    }
    let mut whole: HashMap<&str, u64> = HashMap::new();
    for turn in results.turns.iter().filter(|turn| turn.phase == Phase::Measured) {
        *whole.entry(&turn.cell).or_default() += u64::from(turn.outcome == Outcome::Ok);
    }
    let planned: HashMap<&str, u64> = results.groups.iter().map(|group| (group.id.as_str(), group.rounds)).collect();
    for cell in &mut results.cells {
        let done = whole.get(cell.id.as_str()).copied();
        let rounds = planned.get(cell.group.as_str()).copied().unwrap_or_default();
        let reason = failed.remove(cell.id.as_str());
        (cell.outcome, cell.reason) = match (reason, done) {
            (Some(reason), _) => {
                (CellOutcome::Failed, Some(reason.unwrap_or_else(|| "it does not say why".to_owned())))
            }
            (None, done) if stopped && done.unwrap_or_default() < rounds => {
                let done = done.unwrap_or_default();
                (CellOutcome::Interrupted, Some(format!("{done} of {rounds} rounds were measured")))
            }
            (None, None) => (CellOutcome::Skipped, Some("nothing of it was started".to_owned())),
            (None, Some(_)) => (CellOutcome::Ok, None),
        };
    }
}
