//! `run`: carries out a plan, and writes down and shows what came of it.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indexmap::IndexMap;
use indicatif::ProgressDrawTarget;
use sha2::{Digest as _, Sha256};

use super::check::Planned;
use super::output::{diagnose, is_dumb, say};
use super::report::{fold_log, show};
use super::{Exit, INTERRUPTED, ScenarioArguments, SeedArguments, program};
use crate::diagnostic::{Code, Diagnostic, Sources};
use crate::event::{Event, SCHEMA, SourceFile, Started};
use crate::plan::{Hole, design};
use crate::progress::{Progress, Screen};
use crate::report::write_all;
use crate::run::{Ended, Fatal, Interrupt, Log, Options, clock, execute, hide, refuse, told};

/// `bakeoff run`
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    scenario: ScenarioArguments,

    #[command(flatten)]
    seed: SeedArguments,

    /// Where the results go; must be absent or empty [default: results/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Where the directory of the run is made [default: TMPDIR]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,

    /// Keep the directory of the run
    #[arg(long)]
    keep: bool,

    /// Show no progress, only what failed
    #[arg(long)]
    quiet: bool,
}

impl Run {
    pub(super) fn run(&self) -> ExitCode {
        let planned = match self.scenario.plan(self.seed.seed) {
            Ok(planned) => planned,
            Err(invalid) => {
                diagnose(&invalid.diagnostics, &invalid.sources);
                return Exit::Usage.into();
            }
        };
        let refused = refuse(&planned.plan);
        if !refused.is_empty() {
            diagnose(&refused, &planned.sources);
            return Exit::Usage.into();
        }
        match self.execute(&planned) {
            Ok(code) => code,
            Err(diagnostic) => {
                diagnose(&[*diagnostic], &planned.sources);
                Exit::Stopped.into()
            }
        }
    }

    /// Carries out the plan; an error is what kept it from being begun, or written down.
    fn execute(&self, planned: &Planned) -> Result<ExitCode, Box<Diagnostic>> {
        let unwritable = |path: &Path, error: &dyn std::fmt::Display| {
            Box::new(Diagnostic::bare(Code::OutputUnwritable, format!("cannot write {}: {error}", path.display())))
        };
        // Handled from the first moment on that something could be left behind.
        let interrupt = Interrupt::register().map_err(|error| unwritable(Path::new("signal handlers"), &error))?;
        let out = self.directory(&planned.plan.name).map_err(|(path, error)| unwritable(&path, &error))?;
        let logs = out.join("logs");
        fs::create_dir(&logs).map_err(|error| unwritable(&logs, &error))?;
        let log_path = out.join("events.jsonl");
        let mut log = Log::create(&log_path).map_err(|error| unwritable(&log_path, &error))?;
        let options = Options {
            scenario_dir: folder(&planned.loaded.path),
            work_dir: self.work_dir.clone().unwrap_or_else(std::env::temp_dir),
            keep: self.keep,
            logs,
            launcher: PathBuf::from("/proc/self/exe"),
            interrupt,
        };
        let mut progress = Progress::new(screen(), self.quiet);
        let mut emit = |event: Event| -> io::Result<()> {
            let line = log.write(event)?;
            progress.observe(&line);
            Ok(())
        };
        let started = hide(&planned.plan, Event::Started(Box::new(self.started(planned))));
        let ended = match emit(started) {
            Ok(()) => execute(&planned.plan, &planned.sources, &options, &mut emit),
            Err(error) => Err(Fatal::Log(error)),
        };
        drop(progress);
        self.conclude(&out, ended, &planned.sources)
    }

    /// Writes and shows what is known, however the run ended.
    fn conclude(
        &self,
        out: &Path,
        ended: Result<Ended, Fatal>,
        sources: &Sources,
    ) -> Result<ExitCode, Box<Diagnostic>> {
        let unwritable = |error: String| Box::new(Diagnostic::bare(Code::OutputUnwritable, error));
        let folded = fold_log(out).map_err(|(_, message)| message);
        let written = folded.and_then(|folded| {
            write_all(out, &folded).map_err(|error| error.to_string())?;
            Ok(folded.results)
        });
        match (ended, written) {
            (Err(fatal), written) => {
                say(&format!("results so far: {}\n", out.display()));
                if let Err(message) = written {
                    say(&format!("they are incomplete: {message}\n"));
                }
                match fatal {
                    // Progress has shown it when it happened.
                    Fatal::Stopped(_) => Ok(Exit::Stopped.into()),
                    Fatal::Log(_) => Err(unwritable(fatal.to_string())),
                    Fatal::Directory { .. } | Fatal::Supervision(_) => {
                        diagnose(&[Diagnostic::bare(Code::OutputUnwritable, fatal.to_string())], sources);
                        Ok(Exit::Stopped.into())
                    }
                }
            }
            (Ok(_), Err(message)) => Err(unwritable(message)),
            (Ok(ended), Ok(results)) => {
                let shown = show(&results);
                say(&format!("results: {}\n", out.display()));
                Ok(match (ended.interrupted, ended.failed) {
                    (Some(_), _) => ExitCode::from(INTERRUPTED),
                    (None, true) => shown.max(Exit::Failed).into(),
                    (None, false) => shown.into(),
                })
            }
        }
    }

    /// Makes the directory of the results: the one that was asked for, or a new one.
    fn directory(&self, name: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
        if let Some(out) = &self.out {
            let failed = |error| (out.clone(), error);
            fs::create_dir_all(out).map_err(failed)?;
            let mut entries = fs::read_dir(out).map_err(failed)?;
            if entries.next().is_some() {
                return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty")));
            }
            return Ok(out.clone());
        }
        let parent = PathBuf::from("results");
        fs::create_dir_all(&parent).map_err(|error| (parent.clone(), error))?;
        let stem = format!("{name}-{}", clock::stamp(clock::now()));
        let mut names = std::iter::once(stem.clone()).chain((2..).map(|number: u32| format!("{stem}-{number}")));
        loop {
            let path = parent.join(names.next().unwrap_or_else(|| stem.clone()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err((path, error)),
            }
        }
    }

    /// The first event.
    fn started(&self, planned: &Planned) -> Started {
        let plan = &planned.plan;
        let hole = &mut |hole: &Hole| hole.to_string();
        let vars: IndexMap<_, _> = plan.vars.iter().map(|(name, value)| (name.clone(), value.json(hole))).collect();
        Started {
            schema: SCHEMA.to_owned(),
            utc: clock::utc(clock::now()),
            bakeoff: program(),
            files: files(&planned.sources),
            vars,
            profile: self.scenario.profile.clone(),
            set: self.scenario.set.iter().cloned().collect(),
            seed: plan.seed,
            plan: plan.digest(),
            design: design(plan, &|process| told(&plan.environment, process)),
        }
    }
}

/// Where progress is shown: a bar on a terminal, plain lines elsewhere.
fn screen() -> Screen {
    match io::stderr().is_terminal() && !is_dumb() {
        true => Screen::Terminal(ProgressDrawTarget::stderr()),
        false => Screen::Plain(Box::new(io::stderr())),
    }
}

/// The folder that a file lies in.
fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The files that a scenario was made of.
fn files(sources: &Sources) -> Vec<SourceFile> {
    let files = sources.iter().filter(|(_, source)| !source.name.starts_with("--set "));
    files
        .map(|(_, source)| SourceFile {
            path: source.name.clone(),
            sha256: Sha256::digest(source.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect(),
            text: source.text.clone(),
        })
        .collect()
}
