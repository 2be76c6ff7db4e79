//! The interpreter: executes a plan and says what happens, as events.
//!
//! In: a [`Plan`], the [`Sources`] it came from, [`Options`], and a callback that takes [`Event`]s. Out: [`Ended`], or why
//! the run could not go on. It prints nothing. What fails within a turn fails its cell, is an event, and the run goes on.
//!
//! `turn` decides what comes when, through the trait in `effects`; `server`, `command`, `window`, `probe`, `workspace` bring
//! it about on a `site`. To execute another key of a scenario, take it off `not_yet` and give it its place in `turn`.

pub mod clock;
pub mod interrupt;
pub mod log;

mod blame;
mod command;
mod cores;
mod effects;
mod environment;
mod expect;
mod fill;
mod inputs;
mod job;
mod machine;
mod not_yet;
mod probe;
mod request;
mod server;
mod site;
mod tls;
mod turn;
mod wait;
mod window;
mod workspace;

#[cfg(test)]
#[path = "../tests/support/planned.rs"]
mod planned;

use std::io;
use std::path::PathBuf;

pub use environment::told;
pub use interrupt::Interrupt;
pub use log::Log;
pub use not_yet::refuse;
pub use server::builtin::{WORD as SERVE_WORD, builtin_main};

use crate::diagnostic::{Diagnostic, Sources};
use crate::event::Event;
use crate::plan::Plan;

/// Takes an event. An error stops the run in order.
pub type Emit<'a> = dyn FnMut(Event) -> io::Result<()> + 'a;

/// How a plan is executed.
#[derive(Debug)]
pub struct Options {
    /// The folder of the scenario.
    pub scenario_dir: PathBuf,
    /// Where the directory of the run is made.
    pub work_dir: PathBuf,
    /// Whether that directory is kept.
    pub keep: bool,
    /// A directory that is there, for the output of every process.
    pub logs: PathBuf,
    /// The program whose `main` enters [`launcher_main`](crate::process::launcher::launcher_main) and [`builtin_main`]:
    /// `/proc/self/exe` is this one.
    pub launcher: PathBuf,
    /// What asks the run to stop.
    pub interrupt: Interrupt,
}

/// A run that came to its end, or was stopped by a signal in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Whether a cell failed.
    pub failed: bool,
    /// The signal that stopped it, such as `SIGINT`.
    pub interrupted: Option<String>,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// It was stopped before anything was measured.
    #[error("{}", .0.message)]
    Stopped(Box<Diagnostic>),
    /// An event could not be written.
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
    /// The directory of the run could not be made, or the scenario's folder not be found.
    #[error("no directory for the run can be made in {}: {source}", path.display())]
    Directory {
        /// Where it should have been.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to give this process the children of lost launchers.
    #[error("processes cannot be supervised: {0}")]
    Supervision(io::Error),
}

/// An event without the values of the variables that the plan calls secret, for what the caller itself emits.
#[must_use]
pub fn hide(plan: &Plan, event: Event) -> Event {
    let inherited = environment::inherited(&plan.environment, std::env::vars_os());
    environment::Secrets::new(&plan.environment, &inherited).hide_in(event)
}

/// Executes a plan. `Started` is the caller's to emit; all other events, up to `Finished`, come from here. Everything that
/// was started is stopped when this returns, however it comes out.
///
/// # Errors
/// [`Fatal`]. What was emitted before stays true.
pub fn execute(plan: &Plan, sources: &Sources, options: &Options, emit: &mut Emit<'_>) -> Result<Ended, Fatal> {
    crate::process::adopt_orphans().map_err(Fatal::Supervision)?;
    let failed = |source| Fatal::Directory { path: options.work_dir.clone(), source };
    let site = site::Site::new(plan, options).map_err(failed)?;
    let mut hiding = |event| emit(site.hide(event));
    let ended = turn::Interpreter::new(plan, sources, &mut effects::Real::new(&site), &mut hiding).run();
    if !matches!(ended, Err(Fatal::Log(_))) {
        hiding(Event::Finished { utc: clock::utc(clock::now()) }).map_err(Fatal::Log)?;
    }
    ended
}
