//! Where events go: what an effect gave becomes an event with its cell and turn, and a failure the text that is shown.

use std::io;

use indexmap::IndexMap;

use super::served::comes_later;
use crate::diagnostic::{Code, Diagnostic, Sources, render};
use crate::event::{Event, Failed, Metrics, Outcome, Phase, RunEnded, RunStarted, Warning};
use crate::expr::expression::{NoValue, Value as Worth};
use crate::plan::{Axes, Cell, Require, Turn, Value};
use crate::run::Emit;
use crate::run::effects::{Note, Run, Trouble};

/// Where events go. Once one could not be taken, no other is offered.
pub(super) struct Sink<'a> {
    sources: &'a Sources,
    emit: &'a mut Emit<'a>,
    broken: Option<io::Error>,
    /// What was taken when the server of this turn was ready.
    pub(super) idle: Metrics,
}

/// A run within a turn.
#[derive(Clone, Copy)]
pub(super) struct Numbered<'a> {
    /// The turn.
    pub(super) turn: &'a Turn,
    /// Its number within the turn and phase.
    pub(super) index: u64,
    /// Whether it counts.
    pub(super) phase: Phase,
}

impl<'a> Sink<'a> {
    pub(super) fn new(sources: &'a Sources, emit: &'a mut Emit<'a>) -> Self {
        Self { sources, emit, broken: None, idle: Metrics::new() }
    }

    pub(super) fn emit(&mut self, event: Event) {
        if self.broken.is_none() {
            self.broken = (self.emit)(event).err();
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    pub(super) fn into_broken(self) -> Option<io::Error> {
        self.broken
    }

    /// Says what must be known, of a turn if it belongs to one.
    pub(super) fn notes(&mut self, notes: Vec<Note>, of: Option<(&Cell, &Turn)>) {
        for note in notes {
            self.emit(Event::Warning(warning(note, of)));
        }
    }

    /// Says that something failed, with the whole diagnostic.
    pub(super) fn failed(&mut self, diagnostic: &Diagnostic, of: Option<(&Cell, &Turn)>) {
        let mut shown = diagnostic.clone();
        if let Some((cell, _)) = of.filter(|(cell, _)| !cell.axes.is_empty()) {
            shown.notes.insert(0, format!("in `{}`, where {}", cell.id, axes(&cell.axes)));
        }
        self.emit(Event::Failed(Failed {
            code: diagnostic.code.name().to_owned(),
            message: diagnostic.message.clone(),
            place: diagnostic.primary.as_ref().map(|label| self.sources.place(label.span).to_string()),
            rendered: render(&[shown], self.sources, false),
            cell: of.map(|(cell, _)| cell.id.clone()),
            turn: of.map(|(_, turn)| turn.id.clone()),
        }));
    }

    pub(super) fn run_started(&mut self, run: Numbered<'_>, expected: Option<f64>) {
        let Numbered { turn, index, phase } = run;
        self.emit(Event::RunStarted(RunStarted { turn: turn.id.clone(), index, phase, expected }));
    }

    /// Says how a run ended and gives back what went wrong with it.
    pub(super) fn run_ended(&mut self, run: Numbered<'_>, cell: &Cell, done: Run) -> Option<Trouble> {
        let Numbered { turn, index, phase } = run;
        let (outcome, reason) = match &done.trouble {
            None => (Outcome::Ok, None),
            Some(Trouble::Interrupted) => (Outcome::Interrupted, None),
            Some(Trouble::Failed(diagnostic)) => (Outcome::Failed, Some(diagnostic.message.clone())),
        };
        self.emit(Event::RunEnded(Box::new(RunEnded {
            turn: turn.id.clone(),
            index,
            phase,
            outcome,
            reason,
            metrics: done.metrics,
            facts: IndexMap::new(),
            histograms: done.histograms,
            bad_answers: done.bad_answers,
            in_flight_ages: done.in_flight_ages,
            warnings: done.notes.into_iter().map(|note| warning(note, Some((cell, turn)))).collect(),
        })));
        done.trouble
    }
}

fn warning(note: Note, of: Option<(&Cell, &Turn)>) -> Warning {
    Warning {
        code: note.code.to_owned(),
        text: note.text,
        cell: of.map(|(cell, _)| cell.id.clone()),
        turn: of.map(|(_, turn)| turn.id.clone()),
    }
}

fn axes(axes: &Axes) -> String {
    let values: Vec<String> = axes.iter().map(|(name, value)| format!("{name} = {}", shown(value))).collect();
    values.join(", ")
}

fn shown(value: &crate::plan::AxisValue) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(json) => json.to_string(),
        Err(_) => String::new(),
    }
}

/// What names in a requirement are worth: metrics by `known`, and vars.
pub(super) fn lookup<'v>(
    vars: &'v IndexMap<String, Value>,
    known: &'v dyn Fn(&str) -> Option<f64>,
) -> impl Fn(&str) -> Option<f64> + 'v {
    move |name| match name.strip_prefix("vars.") {
        Some(var) => match vars.get(var)? {
            #[expect(clippy::cast_precision_loss, reason = "expressions are over floats")]
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        },
        None => known(name),
    }
}

/// The failure of a requirement that does not hold. Where `later` is set, one that has no value yet may get it.
pub(super) fn broken(
    require: &Require,
    lookup: &impl Fn(&str) -> Option<f64>,
    known: &dyn Fn(&str) -> Option<f64>,
    later: bool,
) -> Option<Diagnostic> {
    let text = &require.expr.text;
    let message = match require.expr.parsed.evaluate(lookup) {
        Ok(Worth::Truth(true)) => return None,
        Err(NoValue::Missing(name)) if later && comes_later(&name) => return None,
        Ok(_) => {
            let names = require.expr.parsed.names();
            let mut values: Vec<String> =
                names.iter().filter_map(|(name, _)| Some(format!("{name} is {}", known(name)?))).collect();
            values.dedup();
            let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
            format!("`{text}` does not hold{values}")
        }
        Err(error) => format!("`{text}` cannot be known: {error}"),
    };
    Some(Diagnostic::error(Code::RequireFailed, require.origin.0, message))
}
