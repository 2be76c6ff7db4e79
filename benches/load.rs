//! What a request costs the load generator, beside the generators that are installed here: `cargo bench --bench load`.
//!
//! In: a minimal server that counts its requests, on a core of its own, and tools on another. Out: tables. Ratios to wrk are
//! taken inside each round, since what else the machine does changes from round to round. `docs/benches.md` says more.

#![expect(clippy::print_stdout, reason = "tables are what it is for")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

#[path = "load/compare.rs"]
mod compare;
#[path = "load/figures.rs"]
mod figures;
#[path = "load/lateness.rs"]
mod lateness;
#[path = "load/minimal.rs"]
mod minimal;
#[path = "load/process.rs"]
mod process;
#[path = "load/scale.rs"]
mod scale;
#[path = "load/tools.rs"]
mod tools;

use std::time::Duration;

use clap::Parser;

/// The word by which this program is started as the server.
const SERVER: &str = "__server";

/// What a request costs the load generator, beside the generators that are installed here
#[derive(Debug, Parser)]
struct Settings {
    /// Rounds of `--compare` and `--scale`
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,

    /// Seconds of each run
    #[arg(long, value_name = "N", default_value = "3", value_parser = seconds)]
    seconds: Duration,

    /// CPU, speed, system calls and memory beside other generators
    #[arg(long)]
    compare: bool,

    /// The lateness of open loops
    #[arg(long)]
    open: bool,

    /// From 1 connection to 10,000
    #[arg(long)]
    scale: bool,

    /// What cargo passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let whole = text.parse().ok().filter(|&seconds: &u64| seconds > 0);
    whole.map(Duration::from_secs).ok_or_else(|| "a whole number above 0".to_owned())
}

fn main() {
    if std::env::args().nth(1).is_some_and(|word| word == SERVER) {
        return minimal::run(0);
    }
    let settings = Settings::parse();
    let all = !(settings.compare || settings.open || settings.scale);
    println!("{}", process::machine());
    if all || settings.compare {
        compare::run(&settings);
    }
    if all || settings.open {
        lateness::run(&settings);
    }
    if all || settings.scale {
        scale::run(&settings);
    }
}
