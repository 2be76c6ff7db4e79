//! The command line: arguments become options once, exit codes are decided in one place.
//!
//! In: the arguments. Out: an [`ExitCode`]. Here (and in `progress`) something is printed; nowhere else.
//! To add a command, add a variant to `Action` with its arguments and a file under `cli/` that carries it out.

mod check;
mod load;
mod output;
mod report;
mod run;
mod schema;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::event::Program;

pub use schema::Kind as SchemaKind;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    /// Done.
    Done = 0,
    /// Done, but something failed.
    Failed = 1,
    /// Wrong usage, or an invalid scenario.
    Usage = 2,
    /// Stopped before anything was measured, or bakeoff itself cannot go on.
    Stopped = 3,
}

/// The code of what a signal ended, by the convention of shells for SIGINT.
const INTERRUPTED: u8 = 130;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs comparisons from files: servers, commands, probes and loads, measured and reported in a fixed schema.
#[derive(Debug, Parser)]
#[command(name = "bakeoff", version, term_width = 100, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    done, but something failed: a cell, a check, a probe, a server that never got ready, a request of a load
  2    wrong usage, or an invalid scenario
  3    stopped before anything was measured, or bakeoff itself could not go on
  130  interrupted";

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether a scenario is valid; touches nothing but its files
    Validate(check::Validate),
    /// Show what would run, in order; touches nothing but the scenario's files
    Plan(check::Show),
    /// Carry out a scenario and write down what came of it
    Run(run::Run),
    /// Make the report again: from a directory's log, or from a result.json as it stands
    Report(report::Report),
    /// Print a JSON Schema (draft-07)
    Schema(schema::Print),
    /// Put an HTTP server under load: the load generator alone
    Load(load::Generate),
}

/// Which scenario, and in which form.
#[derive(Debug, Args)]
struct ScenarioArguments {
    /// The scenario: a TOML file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Apply a profile of the scenario
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Override a var; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    set: Vec<(String, String)>,
}

/// The seed of shuffles and mixes.
#[derive(Debug, Args)]
struct SeedArguments {
    /// Seed of every shuffle and mix: a whole number, or `random` [default: from the scenario's name]
    #[arg(long, value_name = "N", value_parser = seed)]
    seed: Option<u64>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn seed(text: &str) -> Result<u64, String> {
    if text == "random" {
        // 53 bits, so that JSON readers that know only doubles keep it whole.
        return Ok(rand::random::<u64>() >> 11);
    }
    let seed: u64 = text.parse().map_err(|_| "write a whole number, or `random`".to_owned())?;
    if seed < 1 << 53 { Ok(seed) } else { Err("a seed is below 2^53".to_owned()) }
}

/// This program, as results name it.
fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("BAKEOFF_COMMIT").map(str::to_owned),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

/// Carries out what the arguments of this process ask for.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to stdout, usage errors to stderr; a closed pipe is nobody's fault.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    match arguments.action {
        Action::Validate(validate) => validate.run().into(),
        Action::Plan(show) => show.run().into(),
        Action::Run(run) => run.run(),
        Action::Report(report) => report.run().into(),
        Action::Schema(print) => print.run().into(),
        Action::Load(generate) => generate.run(),
    }
}
