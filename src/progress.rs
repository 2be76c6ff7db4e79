//! The screen while a run goes on: a reader of the same events as the log.
//!
//! In: each event as it comes. Out, on a sink that the caller gives (stderr): a line for each finished run, warnings and
//! failures; on a terminal also a bar that says what runs now and how long it will take. It draws when an event comes in and
//! at no other time: no thread, no tick, so that nothing happens while a command is timed.
//! To show another event, give it a line in [`Progress::observe`].

mod schedule;

use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::schedule::Schedule;
use crate::event::{self, CheckOutcome, Event, Line, Outcome, RunEnded, Started, TurnEnded};
use crate::units::show;

/// Where progress is shown.
pub enum Screen {
    /// Lines alone: a file, a pipe, a CI log.
    Plain(Box<dyn Write>),
    /// Lines above a bar: a terminal.
    Terminal(ProgressDrawTarget),
}

/// Shows what happens.
pub struct Progress {
    out: Out,
    quiet: bool,
    schedule: Option<Schedule>,
}

enum Out {
    Plain(Box<dyn Write>),
    Bar(ProgressBar),
}

impl Progress {
    /// Progress on a screen. A quiet one shows warnings and what failed, and no bar.
    #[must_use]
    pub fn new(screen: Screen, quiet: bool) -> Self {
        let out = match screen {
            Screen::Plain(sink) => Out::Plain(sink),
            Screen::Terminal(target) => {
                let bar = ProgressBar::with_draw_target(Some(0), target);
                // The template is fixed: a wrong one would show at once, and the default one does no harm.
                let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}");
                Out::Bar(style.map_or(bar.clone(), |style| bar.with_style(style)))
            }
        };
        Self { out, quiet, schedule: None }
    }

    /// Shows an event.
    pub fn observe(&mut self, line: &Line) {
        match &line.event {
            Event::Started(started) => self.started(started),
            Event::Setup(step) => self.say(&format!("setup: {}{}", step.step, setup_end(step))),
            Event::Tool(tool) => {
                self.say(&format!("tool {}: {}", tool.tool, tool.lines.first().map_or("", String::as_str)));
            }
            Event::Check(check) => self.check(check),
            Event::TurnStarted(turn) => self.update(|schedule| schedule.turn_started(line.t, turn)),
            Event::Ready(ready) => self.update(|schedule| schedule.ready(ready)),
            Event::RunStarted(run) => self.update(|schedule| schedule.run_started(run)),
            Event::Sample(sample) => self.update(|schedule| schedule.sampled(sample.at)),
            Event::RunEnded(run) => self.run_ended(run),
            Event::TurnEnded(turn) => self.turn_ended(line.t, turn),
            Event::Warning(warning) => self.warn(warning.turn.as_ref().or(warning.cell.as_ref()), &warning.text),
            Event::Failed(failed) => {
                let rendered = Some(&failed.rendered).filter(|text| !text.is_empty());
                self.shout(&rendered.map_or_else(|| format!("failed: {}", failed.message), Clone::clone));
            }
            Event::Interrupted { signal } => self.shout(&format!("interrupted by {signal}")),
            Event::Finished { .. } => {
                if let Out::Bar(bar) = &self.out {
                    bar.finish_and_clear();
                }
            }
            Event::Machine(_) | Event::Input(_) | Event::Probe(_) | Event::Cleared(_) | Event::Unknown => {}
        }
        self.draw(line.t);
    }

    fn started(&mut self, started: &Started) {
        let schedule = Schedule::of(&started.design);
        let turns = show::counted(schedule.planned(), "turn");
        let cells = show::counted(started.design.cells.len() as u64, "cell");
        if let Out::Bar(bar) = &self.out {
            bar.set_length(schedule.planned());
        }
        self.schedule = Some(schedule);
        self.say(&format!("{}: {cells}, {turns}", started.design.name));
    }

    fn check(&mut self, check: &event::CheckResult) {
        match check.outcome {
            CheckOutcome::Pass => self.say(&format!("check {}: pass", check.check)),
            CheckOutcome::KnownFailure => self.say(&format!("check {}: known failure", check.check)),
            CheckOutcome::Fail => self.shout(&format!("check {}: fail (exit {})", check.check, check.exit)),
            CheckOutcome::UnexpectedPass => {
                self.shout(&format!("check {}: passed, though the scenario declares a failure", check.check));
            }
        }
    }

    fn run_ended(&mut self, run: &RunEnded) {
        if let Some(schedule) = &mut self.schedule
            && let Some(now) = schedule.now(&run.turn)
        {
            now.told |= run.outcome == Outcome::Failed;
            let place = schedule.run_place(run.phase, run.index);
            match run.outcome {
                Outcome::Ok => {
                    let text = format!("{place}: {}", schedule.values(&run.metrics));
                    self.say(&text);
                }
                other => self.shout(&format!("{place}: {}", bad(other, run.reason.as_deref()))),
            }
        }
        for warning in &run.warnings {
            self.warn(Some(&run.turn), &warning.text);
        }
    }

    fn turn_ended(&mut self, t: f64, turn: &TurnEnded) {
        if let Some(schedule) = &mut self.schedule
            && let Some(now) = schedule.now(&turn.turn)
        {
            let (place, told) = (now.place.clone(), now.told);
            let mut metrics = std::mem::take(&mut now.ready);
            metrics.extend(turn.metrics.clone());
            match turn.outcome {
                Outcome::Ok if schedule.has_runs() => {}
                Outcome::Ok => {
                    let text = format!("{place}: {}", schedule.values(&metrics));
                    self.say(&text);
                }
                _ if told => {}
                other => self.shout(&format!("{place}: {}", bad(other, turn.reason.as_deref()))),
            }
        }
        self.update(|schedule| schedule.turn_ended(t, turn));
    }

    fn warn(&mut self, of: Option<&String>, text: &str) {
        let of = of.map(|of| format!("{of}: ")).unwrap_or_default();
        self.shout(&format!("warning: {of}{text}"));
    }

    fn update(&mut self, change: impl FnOnce(&mut Schedule)) {
        if let Some(schedule) = &mut self.schedule {
            change(schedule);
        }
    }

    /// What is not shown when quiet.
    fn say(&mut self, text: &str) {
        if !self.quiet {
            self.shout(text);
        }
    }

    /// Shows lines, control characters escaped. A screen that is gone is no reason to end a run.
    fn shout(&mut self, text: &str) {
        for line in text.lines().map(show::visible) {
            match &mut self.out {
                Out::Plain(sink) => drop(writeln!(sink, "{line}").and_then(|()| sink.flush())),
                Out::Bar(bar) => bar.println(line),
            }
        }
    }

    fn draw(&self, t: f64) {
        let (Out::Bar(bar), Some(schedule), false) = (&self.out, &self.schedule, self.quiet) else { return };
        if bar.is_finished() {
            return;
        }
        if bar.position() != schedule.done() {
            bar.set_position(schedule.done());
        }
        let left = schedule.left(t).map(|left| format!(", about {} left", show::span(left.ceil())));
        bar.set_message(show::visible(&format!("{}{}", schedule.current(), left.unwrap_or_default())));
    }
}

fn setup_end(step: &event::SetupStep) -> String {
    match step.wall {
        _ if step.skipped => " (skipped: what it makes is there)".to_owned(),
        Some(wall) => format!(" ({})", show::span(wall)),
        None => String::new(),
    }
}

fn bad(outcome: Outcome, reason: Option<&str>) -> String {
    let word = if outcome == Outcome::Failed { "failed" } else { "interrupted" };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}
