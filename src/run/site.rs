//! Where a run takes place: its directories, the environment of its processes, the launcher.
//!
//! In: a plan and options. Out: a [`Site`] that all effects share: it makes directories and names of logs, and turns a
//! process of the plan into one that can be launched.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;

use super::blame::{Logs, failure};
use super::effects::Trouble;
use super::environment::{self, Secrets, Variables};
use super::fill::{Address, Names};
use super::{Options, workspace};
use crate::diagnostic::{Code, Diagnostic};
use crate::event::Event;
use crate::fetch;
use crate::plan::{Plan, Process, Stdin, Stdout};
use crate::process::{self, Launcher, Output, ResolveError};
use crate::trust::{self, Trust};

/// Where a run takes place.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// What is done.
    pub(super) plan: &'a Plan,
    /// How.
    pub(super) options: &'a Options,
    /// The scenario's folder, absolute.
    pub(super) scenario_dir: PathBuf,
    /// The directory of the run.
    pub(super) run_dir: PathBuf,
    /// What must not be written down.
    pub(super) secrets: Secrets,
    /// Starts processes.
    pub(super) launcher: Launcher,
    inherited: Variables,
    count: Cell<u64>,
    system: OnceCell<Arc<ClientConfig>>,
}

/// Where a process is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    /// What its holes mean.
    pub(super) names: Names<'a>,
    /// Where it runs unless it says otherwise.
    pub(super) cwd: &'a Path,
}

impl<'a> Site<'a> {
    /// Makes the directory of the run.
    ///
    /// # Errors
    /// When the scenario's folder cannot be found or the directory not be made.
    pub(super) fn new(plan: &'a Plan, options: &'a Options) -> io::Result<Self> {
        let scenario_dir = options.scenario_dir.canonicalize()?;
        let run_dir = tempfile::Builder::new().prefix("bakeoff-").tempdir_in(&options.work_dir)?.keep();
        let run_dir = run_dir.canonicalize()?;
        let inherited = environment::inherited(&plan.environment, std::env::vars_os());
        Ok(Self {
            plan,
            options,
            scenario_dir,
            run_dir,
            secrets: Secrets::new(&plan.environment, &inherited),
            launcher: Launcher::new(&options.launcher),
            inherited,
            count: Cell::new(0),
            system: OnceCell::new(),
        })
    }

    /// What holes mean in a process with this directory, while these servers are up.
    pub(super) fn names<'n>(&'n self, dir: &'n Path, servers: &'n [Address], subject: Option<&'n str>) -> Names<'n> {
        Names { scenario_dir: &self.scenario_dir, run_dir: &self.run_dir, dir, servers, subject }
    }

    /// A fresh directory of the run.
    pub(super) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.run_dir.join(self.numbered(name));
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// Where the output of a process goes that is called so.
    pub(super) fn logs(&self, name: &str, stdout: Stdout) -> Logs {
        let name = self.numbered(name);
        let path = |stream: &str| self.options.logs.join(format!("{name}.{stream}"));
        Logs { stdout: (stdout == Stdout::File).then(|| path("stdout")), stderr: path("stderr") }
    }

    /// A name for a file, that comes but once.
    fn numbered(&self, name: &str) -> String {
        let number = self.count.get() + 1;
        self.count.set(number);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        format!("{number:04}-{}", name.chars().map(plain).take(100).collect::<String>())
    }

    /// What requests over TLS are made with. The system's certificates are read once, a file of them each time: a server may
    /// write it when it starts.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn tls(&self, trust: &Trust) -> Result<Arc<ClientConfig>, trust::Error> {
        if let (Trust::System, Some(config)) = (trust, self.system.get()) {
            return Ok(Arc::clone(config));
        }
        let config = trust.config(fetch::ALPN)?;
        Ok(if *trust == Trust::System { Arc::clone(self.system.get_or_init(|| config)) } else { config })
    }

    /// The environment of a process.
    pub(super) fn environment(&self, process: &Process, names: &Names<'_>) -> Variables {
        environment::of(&self.inherited, [&self.plan.environment.set, &process.env], names)
    }

    /// The environment of a process of bakeoff's own.
    pub(super) fn bare_environment(&self) -> Variables {
        self.inherited.clone()
    }

    /// The program that a process's first argument means, in its own PATH.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn program(&self, process: &Process, names: &Names<'_>) -> Result<PathBuf, ResolveError> {
        let path = self.environment(process, names).swap_remove(std::ffi::OsStr::new("PATH")).unwrap_or_default();
        let name = process.argv.first().map(|first| names.fill(first)).unwrap_or_default();
        process::resolve(name.as_ref(), &path, &self.scenario_dir)
    }

    /// A process as it can be launched.
    ///
    /// # Errors
    /// When its program does not exist.
    pub(super) fn command(&self, process: &Process, spot: Spot<'_>, logs: &Logs) -> Result<process::Command, Trouble> {
        let names = &spot.names;
        let program = self.program(process, names).map_err(|error| missing(process, &error))?;
        let cwd = process.cwd.as_ref().map(|cwd| names.path(cwd, &self.scenario_dir));
        Ok(process::Command {
            program,
            argv: process.argv.iter().map(|argument| OsString::from(names.fill(argument))).collect(),
            env: self.environment(process, names).into_iter().collect(),
            cwd: cwd.unwrap_or_else(|| spot.cwd.to_owned()),
            stdin: match &process.stdin {
                Stdin::Nothing => process::Stdin::Null,
                Stdin::Text(text) => process::Stdin::Text(names.fill(text).into_bytes()),
                Stdin::File(path) => process::Stdin::File(names.path(path, &self.scenario_dir)),
            },
            stdout: logs.stdout.clone().map_or(Output::Null, Output::Log),
            stderr: Output::Log(logs.stderr.clone()),
            cpus: process.cpus.clone(),
            user: None,
        })
    }

    /// What must be known of how a process and its tree ended; its logs are cleared of secrets.
    pub(super) fn settle(&self, logs: &Logs) {
        for log in logs.stdout.iter().chain([&logs.stderr]) {
            if self.secrets.hide_in_log(log).is_err() {
                // Rather no log than one with a secret in it.
                let _ = std::fs::remove_file(log);
            }
        }
    }

    /// An event without secrets.
    pub(super) fn hide(&self, event: Event) -> Event {
        self.secrets.hide_in(event)
    }
}

/// Says that a process has no program.
pub(super) fn missing(process: &Process, error: &ResolveError) -> Diagnostic {
    let diagnostic = failure(Code::ProgramMissing, process.origin, error.to_string());
    let searched = matches!(error, ResolveError::NotFound(name) if !name.to_string_lossy().contains('/'));
    diagnostic.maybe_help(searched.then(|| "it was looked for in the PATH that this process gets".to_owned()))
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        if !self.options.keep {
            // What cannot be removed stays: there is nobody left to tell.
            let _ = workspace::remove(&self.run_dir);
        }
    }
}
