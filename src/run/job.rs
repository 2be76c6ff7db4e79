//! A process that is run to its end: steps, tools and commands alike, through the launcher.
//!
//! In: a [`Job`]. Out: [`Done`], how it and its tree ended, and where its output is.

use std::time::{Duration, Instant};

use super::blame::{self, Logs, failure, with_output};
use super::effects::{Note, Trouble};
use super::site::{Site, Spot};
use super::{expect, wait};
use crate::diagnostic::Code;
use crate::event::Unmet;
use crate::plan::{Expect, Origin, Process, Stdout, Step};
use crate::process::{Descendant, Ended, Exit};

/// How long a step that cleans up may take once a signal came.
const CLEANING: Duration = Duration::from_secs(10);

/// A process to be run to its end.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    /// What is run.
    pub(super) process: &'a Process,
    /// Where.
    pub(super) spot: Spot<'a>,
    /// What its logs are called.
    pub(super) name: &'a str,
    /// Where its stdout goes.
    pub(super) stdout: Stdout,
    /// Whether it is run after an interruption too.
    pub(super) cleans: bool,
    /// What kind of failure it is that it cannot be started, where its program is there.
    pub(super) code: Code,
}

/// Why a process is no longer waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It has exited.
    Exited,
    /// Its time was over.
    TimedOut,
    /// A signal asked the run to stop.
    Interrupted,
}

/// A process that has ended.
pub(super) struct Done {
    /// How.
    pub(super) ended: Ended,
    /// Why it ended.
    pub(super) cause: Cause,
    /// Its output.
    pub(super) logs: Logs,
}

/// Runs a process to its end.
///
/// # Errors
/// When it cannot be started, or a signal came before.
pub(super) fn run(site: &Site<'_>, job: Job<'_>) -> Result<Done, Trouble> {
    let interrupt = &site.options.interrupt;
    let bearable = if job.cleans { 2 } else { 1 };
    if interrupt.count() >= bearable {
        return Err(Trouble::Interrupted);
    }
    let logs = site.logs(job.name, job.stdout);
    let command = site.command(job.process, job.spot, &logs)?;
    let mut process = site.launcher.launch(&command).map_err(|error| {
        let code = if missing(&error) { Code::ProgramMissing } else { job.code };
        failure(code, job.process.origin, error.to_string())
    })?;
    let mut timeout = job.process.timeout;
    let cause = loop {
        if process.poll_exit().is_err() || matches!(process.poll_exit(), Ok(Some(_))) {
            break Cause::Exited;
        }
        match interrupt.count() {
            0 => {}
            count if count >= bearable => break Cause::Interrupted,
            _ => timeout = Some(timeout.map_or(CLEANING, |time| time.min(CLEANING))),
        }
        let deadline = timeout.and_then(|timeout| process.started().checked_add(timeout));
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            break Cause::TimedOut;
        }
        wait::until(&[process.fd(), interrupt.fd()], deadline);
    };
    let ended = process.end();
    site.settle(&logs);
    Ok(Done { ended, cause, logs })
}

/// Whether a program that could not be started does not exist.
pub(super) fn missing(error: &crate::process::LaunchError) -> bool {
    use crate::process::LaunchError::{NoInterpreter, NotAProgram, NotExecutable, NotFound};
    matches!(error, NotFound(_) | NotExecutable(_) | NoInterpreter(_) | NotAProgram(_))
}

impl Done {
    /// How the main process ended, if that is known.
    pub(super) fn exit(&self) -> Option<&Exit> {
        self.ended.exit.as_ref()
    }

    /// What did not hold, as phrases with their places; a timeout and a lost launcher are among them.
    pub(super) fn unmet(&self, process: &Process, expects: &[&Expect]) -> Vec<(Unmet, Option<Origin>)> {
        let unmet = |expected: String, actual: &str| {
            vec![(Unmet { what: "exit".to_owned(), expected, actual: actual.to_owned() }, None)]
        };
        match (self.cause, self.exit()) {
            (Cause::TimedOut, _) => {
                let timeout = process.timeout.unwrap_or(CLEANING);
                unmet(
                    format!("an end within {}", crate::units::show::span(timeout.as_secs_f64())),
                    "none: it was ended",
                )
            }
            (_, Some(exit)) => expect::unmet(expects, exit.status, &self.logs.read()),
            (_, None) => unmet("an end".to_owned(), "unknown: the process that watched over it was killed"),
        }
    }

    /// What must be known of the end of its tree.
    pub(super) fn notes(&self, name: &str) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.cause == Cause::Exited && !self.ended.left.is_empty() {
            let text = format!("`{name}` left processes behind, which were ended: {}", list(&self.ended.left));
            notes.push(Note::new("left-behind", text));
        }
        if !self.ended.survivors.is_empty() {
            let text = format!("processes of `{name}` could not be ended: {}", list(&self.ended.survivors));
            notes.push(Note::new("survivors", text));
        }
        notes.extend(
            self.ended.log_errors.iter().map(|error| Note::new("log-incomplete", format!("`{name}`: {error}"))),
        );
        notes
    }

    /// The failure of it, if something did not hold.
    pub(super) fn failure(&self, site: &Site<'_>, blamed: Blamed<'_>, expects: &[&Expect]) -> Option<Trouble> {
        if self.cause == Cause::Interrupted {
            return Some(Trouble::Interrupted);
        }
        let unmet = self.unmet(blamed.process, expects);
        let (_, origin) = unmet.first()?;
        let phrases: Vec<String> = unmet.iter().map(|(unmet, _)| expect::phrase(unmet)).collect();
        let message = format!("{} failed: {}", blamed.name, phrases.join("; "));
        let diagnostic = failure(blamed.code, origin.unwrap_or(blamed.process.origin), message);
        Some(with_output(diagnostic, &self.logs, &site.secrets).into())
    }
}

/// What is said of a process that fails.
#[derive(Clone, Copy)]
pub(super) struct Blamed<'a> {
    /// The code.
    pub(super) code: Code,
    /// What it is called, such as `the tool \`node\``.
    pub(super) name: &'a str,
    /// The process.
    pub(super) process: &'a Process,
}

/// Runs a step; gives none where its product was there.
///
/// # Errors
/// When it fails.
pub(super) fn step(
    site: &Site<'_>,
    step: &Step,
    spot: Spot<'_>,
    code: Code,
    cleans: bool,
) -> Result<Option<Done>, Trouble> {
    if let Some(product) = &step.creates
        && spot.names.path(product, &site.scenario_dir).exists()
    {
        return Ok(None);
    }
    let job = Job { process: &step.process, spot, name: &line(&step.process), stdout: Stdout::File, cleans, code };
    let done = run(site, job)?;
    let name = format!("the step `{}`", line(&step.process));
    match done.failure(site, Blamed { code, name: &name, process: &step.process }, &[&step.expect]) {
        Some(trouble) => Err(trouble),
        None => Ok(Some(done)),
    }
}

/// An argument vector as a line for people.
pub(super) fn line(process: &Process) -> String {
    let words: Vec<String> = process.argv.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [shell, option, line] if shell == "/bin/sh" && option == "-c" => line.clone(),
        words => words.join(" "),
    }
}

/// Processes for people.
pub(super) fn list(processes: &[Descendant]) -> String {
    let named: Vec<String> = processes.iter().map(|one| format!("{} ({})", one.comm, one.pid)).collect();
    named.join(", ")
}

/// How the end of a process is told.
pub(super) fn told(ended: &Ended) -> String {
    ended.exit.as_ref().map_or_else(|| "was lost".to_owned(), |exit| blame::ended(exit.status))
}
