//! What connections cost: CPU per request and memory of the generator, from 1 connection to 10,000.

use crate::Settings;
use crate::figures::{cpu, each, median, most, range, ratios, shown, table};
use crate::process::{self, Server, Used};
use crate::tools::BAKEOFF;

const CONNECTIONS: [usize; 4] = [1, 100, 1_000, 10_000];

/// Which of them the others are held against.
const BASE: usize = 1;

const ENGINES: [&str; 2] = ["epoll", "io_uring"];

/// What became of an engine with so many connections, round by round.
struct Row {
    engine: &'static str,
    connections: usize,
    rounds: Vec<Result<Used, String>>,
}

/// Runs each engine with each number of connections in turn, round by round, and prints what a connection costs.
pub(crate) fn run(settings: &Settings) {
    let server = Server::start();
    let of = |engine| CONNECTIONS.map(|connections| Row { engine, connections, rounds: Vec::new() });
    let mut all = ENGINES.map(of);
    println!("{} rounds of {} s", settings.rounds, settings.seconds.as_secs());
    for _ in 0..settings.rounds {
        all.iter_mut().flatten().for_each(|row| row.rounds.push(once(settings, &server, row)));
    }
    let head = ["", "connections", "CPU µs/request", "to 100", "(least … most)", "requests/s", "peak MB", "KiB each"];
    let lines = all.iter().flat_map(|rows| rows.iter().map(|row| line(row, &rows[BASE])));
    println!("{}", table(&std::iter::once(head.map(str::to_owned)).chain(lines).collect::<Vec<_>>()));
}

fn once(settings: &Settings, server: &Server, row: &Row) -> Result<Used, String> {
    let Row { engine, connections, .. } = row;
    let options = format!("load -c{connections} -d{}s --quiet --engine {engine}", settings.seconds.as_secs());
    let program = std::iter::once(BAKEOFF).chain(options.split_whitespace()).map(str::to_owned);
    process::run(&program.chain([server.url()]).collect::<Vec<_>>(), server, settings.seconds)
}

fn line(row: &Row, base: &Row) -> [String; 8] {
    let to_base = ratios(&row.rounds, &base.rounds, cpu);
    let peak = |row: &Row| most(each(&row.rounds, |used| used.peak));
    let more = row.connections.checked_sub(base.connections).filter(|&more| more > 0);
    let memory = more.map(|more| (peak(row) - peak(base)) / 1024.0 / more as f64);
    let failed = row.rounds.iter().find_map(|round| round.as_ref().err().cloned());
    [
        row.engine.to_owned(),
        row.connections.to_string(),
        failed.unwrap_or_else(|| shown(median(each(&row.rounds, cpu)), 2)),
        shown(median(to_base.clone()), 3),
        range(&to_base),
        shown(median(each(&row.rounds, |used| used.rate)), 0),
        shown(Some(peak(row) / 1e6), 1),
        shown(memory, 2),
    ]
}
