//! A run of a command: through the launcher, with the figures of that child alone.

use super::effects::{Run, Trouble};
use super::job::{self, Blamed, Job};
use super::machine::Busy;
use super::server::bytes;
use super::site::{Site, Spot};
use crate::diagnostic::Code;
use crate::event::Metrics;
use crate::plan::{Command, Expect};
use crate::process::Exit;

/// Runs it once.
pub(super) fn run(site: &Site<'_>, command: &Command, spot: Spot<'_>, expects: &[&Expect]) -> Run {
    let name = &command.identity.id;
    let busy = Busy::now();
    let job =
        Job { process: &command.process, spot, name, stdout: command.stdout, cleans: false, code: Code::CommandFailed };
    let done = match job::run(site, job) {
        Ok(done) => done,
        Err(trouble) => return Run::failed(trouble),
    };
    let mut run = Run { notes: done.notes(name), ..Run::default() };
    if let Some(exit) = done.exit() {
        run.metrics = metrics(exit);
        let own = (exit.user + exit.system).as_secs_f64() / exit.wall.as_secs_f64().max(f64::MIN_POSITIVE);
        run.metrics.extend(busy.since(own));
    }
    let named = format!("the command `{name}`");
    run.trouble =
        done.failure(site, Blamed { code: Code::CommandFailed, name: &named, process: &command.process }, expects);
    run
}

fn metrics(exit: &Exit) -> Metrics {
    let counts = [
        ("ctx.voluntary", exit.voluntary_switches),
        ("ctx.involuntary", exit.involuntary_switches),
        ("faults.major", exit.major_faults),
    ];
    let figures = [
        ("wall", exit.wall.as_secs_f64()),
        ("cpu.user", exit.user.as_secs_f64()),
        ("cpu.system", exit.system.as_secs_f64()),
        ("rss.peak", bytes(exit.rss_peak)),
        ("rss.floor", bytes(exit.rss_floor)),
    ];
    let counts = counts.into_iter().map(|(name, count)| (name, bytes(count)));
    figures.into_iter().chain(counts).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether trouble is an interruption.
pub(super) fn interrupted(trouble: Option<&Trouble>) -> bool {
    matches!(trouble, Some(Trouble::Interrupted))
}
