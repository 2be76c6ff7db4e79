//! The order of things: setup, tools, inputs, then the groups with their turns, and what becomes of a cell that fails.
//!
//! In: a plan, and [`Effects`] that bring things about. Out: events. Nothing is known here of processes, sockets or clocks.
//! To add something to a turn, call its effect where its time has come, and extend the journals of the tests.

mod event;
mod served;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use self::event::Sink;
use super::cores::are_shared;
use super::effects::{Down, Effects, Note, Trouble};
use super::{Emit, Ended, Fatal};
use crate::diagnostic::{Diagnostic, Sources};
use crate::event::{CellId, Event, Facts, Metrics, Outcome, TurnEnded, TurnStarted};
use crate::plan::{Cell, Command, Expect, Group, Plan, Turn};

/// Executes a plan.
pub(super) struct Interpreter<'a> {
    plan: &'a Plan,
    effects: &'a mut dyn Effects,
    sink: Sink<'a>,
    /// The cells that failed: their later turns are skipped.
    failed: HashSet<CellId>,
    /// Turns that were begun.
    position: u64,
    /// What was said once and is not said again.
    said: HashSet<(&'static str, String)>,
}

/// The turn that goes on.
#[derive(Clone, Copy)]
struct Now<'a> {
    group: &'a Group,
    cell: &'a Cell,
    turn: &'a Turn,
}

/// Why a run stops before its end.
pub(super) enum Stop {
    /// Before anything was measured.
    Failed(Box<Diagnostic>),
    /// A signal came, or the log cannot be written.
    Interrupted,
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Failed(diagnostic) => Self::Failed(diagnostic),
            Trouble::Interrupted => Self::Interrupted,
        }
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        sources: &'a Sources,
        effects: &'a mut dyn Effects,
        emit: &'a mut Emit<'a>,
    ) -> Self {
        let sink = Sink::new(sources, emit);
        Self { plan, effects, sink, failed: HashSet::new(), position: 0, said: HashSet::new() }
    }

    /// Executes all of it, up to the last event but `Finished`.
    pub(super) fn run(mut self) -> Result<Ended, Fatal> {
        let stopped = self.prepare().and_then(|()| self.groups());
        let mut ended = Ended { failed: !self.failed.is_empty(), interrupted: None };
        let fatal = match stopped {
            Err(Stop::Failed(diagnostic)) => {
                self.sink.failed(&diagnostic, None);
                Some(diagnostic)
            }
            Ok(()) | Err(Stop::Interrupted) => None,
        };
        if let Some(signal) = self.effects.interrupted() {
            self.sink.emit(Event::Interrupted { signal: signal.to_owned() });
            ended.interrupted = Some(signal.to_owned());
        }
        match (self.sink.into_broken(), fatal) {
            (Some(error), _) => Err(Fatal::Log(error)),
            (None, Some(diagnostic)) => Err(Fatal::Stopped(diagnostic)),
            (None, None) => Ok(ended),
        }
    }

    fn prepare(&mut self) -> Result<(), Stop> {
        let plan = self.plan;
        for step in &plan.setup {
            let done = self.effects.setup(step)?;
            self.sink.emit(Event::Setup(done));
            self.go_on()?;
        }
        for tool in &plan.tools {
            let told = self.effects.tool(tool)?;
            self.sink.emit(Event::Tool(told));
            self.go_on()?;
        }
        let (inputs, notes) = self.effects.inputs()?;
        inputs.into_iter().for_each(|input| self.sink.emit(Event::Input(input)));
        self.sink.notes(notes, None);
        let machine = self.effects.machine();
        self.sink.emit(Event::Machine(machine));
        self.go_on()
    }

    fn groups(&mut self) -> Result<(), Stop> {
        let plan = self.plan;
        let mut cells = plan.groups.iter().flat_map(|group| &group.cells);
        if cells.any(|cell| are_shared(plan, cell)) {
            let text = "the load generator and the servers share the processors of this machine";
            self.sink.notes(vec![Note::new("shared-cores", text)], None);
        }
        for group in &plan.groups {
            let mut first = true;
            for turn in &group.turns {
                let Some(cell) = group.cells.get(turn.cell) else { continue };
                if self.failed.contains(&cell.id) {
                    continue;
                }
                self.go_on()?;
                if !first && !group.cooldown.is_zero() {
                    self.effects.pause(group.cooldown)?;
                }
                first = false;
                self.turn(Now { group, cell, turn });
            }
        }
        self.go_on()
    }

    /// Whether nothing asks the run to stop.
    fn go_on(&self) -> Result<(), Stop> {
        if self.sink.is_broken() || self.effects.interrupted().is_some() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    fn turn(&mut self, now: Now<'_>) {
        let Now { cell, turn, .. } = now;
        self.position += 1;
        self.sink.emit(Event::TurnStarted(TurnStarted {
            turn: turn.id.clone(),
            cell: cell.id.clone(),
            round: turn.round,
            phase: turn.phase,
            position: self.position,
        }));
        let plan = self.plan;
        let (metrics, trouble) = match (plan.server(&cell.subject), plan.command(&cell.subject)) {
            (Some(server), _) => self.served(now, server),
            (None, Some(command)) => (Metrics::new(), self.commanded(now, command)),
            // A plan names no subject that it does not have.
            (None, None) => (Metrics::new(), None),
        };
        let (outcome, reason) = match &trouble {
            None => (Outcome::Ok, None),
            Some(Trouble::Interrupted) => (Outcome::Interrupted, None),
            Some(Trouble::Failed(diagnostic)) => {
                self.sink.failed(diagnostic, Some((cell, turn)));
                self.failed.insert(cell.id.clone());
                (Outcome::Failed, Some(diagnostic.message.clone()))
            }
        };
        let turn = turn.id.clone();
        self.sink.emit(Event::TurnEnded(TurnEnded { turn, outcome, reason, metrics, facts: Facts::new() }));
    }

    /// One run of a command, with all that is done around it.
    fn commanded(&mut self, now: Now<'_>, command: &Command) -> Option<Trouble> {
        let Now { group, cell, turn } = now;
        let opened = self.effects.open(command, group.workspace.as_ref());
        let mut trouble = opened.err();
        if trouble.is_none() {
            let before = cell.before.iter().chain(&command.before);
            trouble = before.into_iter().find_map(|step| self.effects.step(step, false).err());
            if trouble.is_none() {
                trouble = self.command_run(now, command, &[&command.expect, &cell.expect]);
            }
            for step in command.after.iter().chain(&cell.after) {
                let after = self.effects.step(step, true).err();
                trouble = trouble.or(after);
            }
        }
        let Down { notes, trouble: closing } = self.effects.close();
        self.sink.notes(notes, Some((cell, turn)));
        trouble.or(closing)
    }

    fn command_run(&mut self, now: Now<'_>, command: &Command, expects: &[&Expect]) -> Option<Trouble> {
        let run = event::Numbered { turn: now.turn, index: 1, phase: now.turn.phase };
        self.sink.run_started(run, None);
        let mut done = self.effects.command(command, expects);
        if done.trouble.is_none() {
            done.trouble = self.required(now.cell, &[&done.metrics], false).map(Trouble::from);
        }
        self.sink.run_ended(run, now.cell, done)
    }

    /// A failure of what the cell requires, from these metrics. Where `later` is set, what has no value yet may come.
    fn required(&self, cell: &Cell, metrics: &[&Metrics], later: bool) -> Option<Diagnostic> {
        let known = |name: &str| metrics.iter().find_map(|metrics| metrics.get(name).copied());
        let lookup = event::lookup(&self.plan.vars, &known);
        cell.require.iter().find_map(|require| event::broken(require, &lookup, &known, later))
    }
}
