//! What the interpreter asks for, as a trait: the order of effects is one thing, bringing them about another.
//!
//! `turn` knows only [`Effects`]. [`Real`] does what is asked, by the rooms that know how; the fake of the tests writes a
//! journal. To add an effect, add it to the trait, to both makers, and call it where its time has come.

#[cfg(test)]
pub(super) mod fake;
mod real;

use std::collections::BTreeMap;
use std::time::Duration;

pub(super) use real::Real;

use crate::diagnostic::Diagnostic;
use crate::event::{Answer, BadAnswer, InputFile, MachineFacts, Metrics, SetupStep, ToolFact, Unmet};
use crate::plan::{Command, Expect, Load, Probe, Server, Step, Tool, Workspace};

/// Why something did not come about.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It failed.
    Failed(Box<Diagnostic>),
    /// A signal asked the run to stop.
    Interrupted,
}

impl From<Diagnostic> for Trouble {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Failed(Box::new(diagnostic))
    }
}

/// What a reader of the numbers must know, before it is said of which turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// A stable code in kebab case.
    pub(super) code: &'static str,
    /// What, in words.
    pub(super) text: String,
}

impl Note {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// A server that is ready.
#[derive(Debug, Default)]
pub(super) struct Up {
    /// Where it listens, if it does.
    pub(super) port: Option<u16>,
    /// What is taken when it is ready.
    pub(super) metrics: Metrics,
    /// What must be known of it.
    pub(super) notes: Vec<Note>,
}

/// How a server's stop, or a directory's end, went. There is always an end, however it went.
#[derive(Debug, Default)]
pub(super) struct Down {
    /// What must be known of it.
    pub(super) notes: Vec<Note>,
    /// What went wrong.
    pub(super) trouble: Option<Trouble>,
}

/// What came of a probe.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// The answer, if one came.
    pub(super) answer: Option<Answer>,
    /// Why none came.
    pub(super) error: Option<String>,
    /// The expectations that did not hold.
    pub(super) failures: Vec<Unmet>,
    /// What fails the cell by it.
    pub(super) trouble: Option<Trouble>,
}

/// What came of a run, failed or not.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Its metrics.
    pub(super) metrics: Metrics,
    /// Its histograms.
    pub(super) histograms: BTreeMap<String, String>,
    /// Answers that were not good.
    pub(super) bad_answers: Vec<BadAnswer>,
    /// Ages of the requests in flight at the end, in seconds, oldest first.
    pub(super) in_flight_ages: Vec<f64>,
    /// What must be known of it.
    pub(super) notes: Vec<Note>,
    /// What went wrong.
    pub(super) trouble: Option<Trouble>,
}

impl Run {
    pub(super) fn failed(trouble: Trouble) -> Self {
        Self { trouble: Some(trouble), ..Self::default() }
    }
}

/// Takes the values of a second, at its end (seconds since the window began), and says whether the load may go on.
pub(super) type Seconds<'a> = dyn FnMut(f64, Metrics) -> bool + 'a;

/// Everything that a run does to the world.
pub(super) trait Effects {
    /// What the machine is.
    fn machine(&mut self) -> MachineFacts;

    /// The programs and files that take part, each once. A program that is not there is trouble.
    fn inputs(&mut self) -> Result<(Vec<InputFile>, Vec<Note>), Trouble>;

    /// A setup step.
    fn setup(&mut self, step: &Step) -> Result<SetupStep, Trouble>;

    /// Asks a tool.
    fn tool(&mut self, tool: &Tool) -> Result<ToolFact, Trouble>;

    /// Starts a server whose needs are up and waits until it is ready. However it comes out, [`stop`](Self::stop) follows.
    fn start(&mut self, server: &Server) -> Result<Up, Trouble>;

    /// The end values of a server: after its last run, before it is probed again.
    fn rest(&mut self, server: &Server) -> (Metrics, Vec<Note>);

    /// Stops a server, also after an interruption, and after a start that failed.
    fn stop(&mut self, server: &Server) -> Down;

    /// Sends a probe.
    fn probe(&mut self, server: &Server, probe: &Probe) -> Probed;

    /// Runs a load, of another length where one is given.
    fn load(&mut self, server: &Server, load: &Load, length: Option<Duration>, seconds: &mut Seconds<'_>) -> Run;

    /// Makes the directory of a command's run, with its workspace if it has one. However it comes out,
    /// [`close`](Self::close) follows.
    fn open(&mut self, command: &Command, workspace: Option<&Workspace>) -> Result<(), Trouble>;

    /// Runs a step in the directory that is open. A step that cleans up is run after an interruption too.
    fn step(&mut self, step: &Step, cleans: bool) -> Result<(), Trouble>;

    /// Runs a command in the directory that is open.
    fn command(&mut self, command: &Command, expect: &[&Expect]) -> Run;

    /// Removes the directory.
    fn close(&mut self) -> Down;

    /// Does nothing for so long.
    fn pause(&mut self, time: Duration) -> Result<(), Trouble>;

    /// The signal that asks the run to stop, if one came.
    fn interrupted(&self) -> Option<&'static str>;
}
