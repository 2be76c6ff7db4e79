//! `load`: the load generator alone.
//!
//! In: the arguments, which `options` makes a load of. Out: a line while it goes on (`live`), and at its end a summary for
//! people (`summary`) or a document (`document`). What went wrong is said on stderr, and by the exit code.

mod document;
mod live;
mod options;
mod summary;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::output::{print, say};
use super::{Exit, INTERRUPTED};
use crate::load::{Ending, Error, Outcome, Running, start};
use crate::run::Interrupt;
use crate::units::show::visible;
use live::Live;

pub(super) use document::Document;

/// How often the live line is drawn: as seldom as is bearable, since it costs CPU that the load could use.
const FRAME: Duration = Duration::from_millis(500);

/// `bakeoff load`
#[derive(Debug, Args)]
pub(super) struct Generate {
    #[command(flatten)]
    wishes: options::Wishes,

    /// Print a JSON document in place of the summary (`bakeoff schema load` describes it)
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Show no line while the load goes on
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

/// What ended a load without an outcome.
enum Failure {
    Load(Error),
    /// What cannot be done, and what the system says.
    System(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Load(error)
    }
}

impl Generate {
    pub(super) fn run(&self) -> ExitCode {
        match self.generate() {
            Ok((outcome, interrupted)) => self.conclude(&outcome, interrupted),
            Err(Failure::Load(Error::Stopped)) => {
                say("stopped before the window began\n");
                ExitCode::from(INTERRUPTED)
            }
            Err(Failure::Load(error)) => {
                say(&format!("error: {}\n", visible(&error.to_string())));
                match error {
                    Error::Url { .. } | Error::Invalid { .. } | Error::Trust(_) => Exit::Usage.into(),
                    _ => Exit::Stopped.into(),
                }
            }
            Err(Failure::System(message)) => {
                say(&format!("error: {message}\n"));
                Exit::Stopped.into()
            }
        }
    }

    /// Carries out the load: its outcome, and whether a signal ended it.
    fn generate(&self) -> Result<(Outcome, bool), Failure> {
        let interrupt = Interrupt::register().map_err(|error| Failure::System(format!("signal handlers: {error}")))?;
        let options = self.wishes.options()?;
        let mut live = if self.quiet { Live::hidden() } else { Live::new(&options) };
        let running = start(options)?;
        let interrupted = watch(&running, &interrupt, &mut live);
        live.end();
        Ok((running.finish()?, interrupted))
    }

    /// Prints what came of it, and says how it ended.
    fn conclude(&self, outcome: &Outcome, interrupted: bool) -> ExitCode {
        let signs = self.wishes.limits(outcome);
        let printed = if self.json {
            match Document::new(outcome, &signs) {
                Ok(document) => print(&document.text()),
                Err(error) => {
                    say(&format!("error: {error}\n"));
                    Exit::Stopped
                }
            }
        } else {
            print(&summary::text(outcome, &signs))
        };
        let failed = outcome.counts.errors() > 0 || outcome.ending == Ending::Silent;
        match (printed, interrupted) {
            (Exit::Done, true) => ExitCode::from(INTERRUPTED),
            (Exit::Done, false) if failed => Exit::Failed.into(),
            (printed, _) => printed.into(),
        }
    }
}

/// Waits for the end of the load, which a signal brings about early: whether one did.
fn watch(running: &Running, interrupt: &Interrupt, live: &mut Live) -> bool {
    let frame = Timespec { tv_sec: 0, tv_nsec: i64::from(FRAME.subsec_nanos()) };
    let patience = live.is_shown().then_some(&frame);
    loop {
        if interrupt.count() > 0 {
            running.stop();
            return true;
        }
        let mut fds = [
            PollFd::from_borrowed_fd(running.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(interrupt.fd(), PollFlags::IN),
        ];
        // A signal during the poll makes the interrupt readable: the next poll sees it.
        let _ = poll(&mut fds, patience);
        if fds[0].revents().contains(PollFlags::IN) {
            return false;
        }
        live.draw(&running.progress(), running.second());
    }
}
