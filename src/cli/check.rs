//! `validate` and `plan`: read a scenario, expand it, and touch nothing else.

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::output::{diagnose, print};
use super::{Exit, ScenarioArguments, SeedArguments};
use crate::diagnostic::{Diagnostic, Problems, Sources};
use crate::plan::{Plan, expand, show};
use crate::scenario::{Loaded, Options, load};
use crate::units::show::counted;
use crate::units::show::visible;

/// `bakeoff validate`
#[derive(Debug, Args)]
pub(super) struct Validate {
    #[command(flatten)]
    scenario: ScenarioArguments,
}

/// `bakeoff plan`
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    scenario: ScenarioArguments,

    #[command(flatten)]
    seed: SeedArguments,

    /// Text for people, or JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A scenario that is valid, and its plan.
pub(super) struct Planned {
    pub(super) loaded: Loaded,
    pub(super) plan: Plan,
    pub(super) sources: Sources,
}

/// What is wrong with a scenario.
pub(super) struct Invalid {
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) sources: Sources,
}

impl ScenarioArguments {
    fn options(&self) -> Options {
        Options { path: self.file.clone(), profile: self.profile.clone(), set: self.set.clone() }
    }

    /// The plan, or everything that is wrong.
    pub(super) fn plan(&self, seed: Option<u64>) -> Result<Planned, Invalid> {
        plan(&self.options(), seed)
    }
}

fn plan(options: &Options, seed: Option<u64>) -> Result<Planned, Invalid> {
    let mut sources = Sources::default();
    let mut problems = Problems::default();
    let loaded = load(options, &mut sources, &mut problems);
    let planned = loaded.and_then(|loaded| {
        let plan = expand(&loaded, seed, &sources, &mut problems)?;
        Some((loaded, plan))
    });
    match planned {
        Some((loaded, plan)) => Ok(Planned { loaded, plan, sources }),
        None => Err(Invalid { diagnostics: problems.into_sorted(), sources }),
    }
}

impl Validate {
    pub(super) fn run(&self) -> Exit {
        let options = self.scenario.options();
        let planned = match plan(&options, None) {
            Ok(planned) => planned,
            Err(invalid) => {
                diagnose(&invalid.diagnostics, &invalid.sources);
                return Exit::Usage;
            }
        };
        // Without a profile every one is looked at: each is a scenario of its own.
        let profiles = if options.profile.is_none() { planned.loaded.profiles.clone() } else { Vec::new() };
        for profile in profiles {
            let options = Options { profile: Some(profile.clone()), ..options.clone() };
            if let Err(invalid) = plan(&options, None) {
                let blame = |diagnostic: Diagnostic| diagnostic.note(format!("with --profile {profile}"));
                let diagnostics: Vec<Diagnostic> = invalid.diagnostics.into_iter().map(blame).collect();
                diagnose(&diagnostics, &invalid.sources);
                return Exit::Usage;
            }
        }
        let plan = &planned.plan;
        let cells: usize = plan.groups.iter().map(|group| group.cells.len()).sum();
        let turns: usize = plan.groups.iter().map(|group| group.turns.len()).sum();
        let profiles = match planned.loaded.profiles.len() {
            0 => String::new(),
            _ if options.profile.is_some() => String::new(),
            _ => format!("; profiles: {}", planned.loaded.profiles.join(", ")),
        };
        print(&format!(
            "{}: valid: {} in {} and {}{profiles}\n",
            visible(&self.scenario.file.display().to_string()),
            counted(cells as u64, "cell"),
            counted(plan.groups.len() as u64, "group"),
            counted(turns as u64, "turn"),
        ))
    }
}

impl Show {
    pub(super) fn run(&self) -> Exit {
        match self.scenario.plan(self.seed.seed) {
            Ok(planned) => match self.format {
                Format::Text => print(&show(&planned.plan)),
                Format::Json => print(&json(&planned.plan)),
            },
            Err(invalid) => {
                diagnose(&invalid.diagnostics, &invalid.sources);
                Exit::Usage
            }
        }
    }
}

/// The plan as JSON, with its digest before it.
fn json(plan: &Plan) -> String {
    #[derive(Serialize)]
    struct Digested<'a> {
        digest: String,
        #[serde(flatten)]
        plan: &'a Plan,
    }
    let digested = Digested { digest: plan.digest(), plan };
    let mut text = serde_json::to_string_pretty(&digested).unwrap_or_default();
    text.push('\n');
    // JSON escapes the controls of ASCII alone; the others stand only in strings, where they can be escaped too.
    let escape = |c: char| match c {
        '\u{7f}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    };
    if text.is_ascii() { text } else { text.chars().map(escape).collect() }
}
