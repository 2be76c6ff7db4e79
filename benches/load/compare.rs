//! CPU, speed, system calls and memory of each generator at 100 connections, as ratios to wrk's of the same round.

use crate::Settings;
use crate::figures::{Rounds, core, cpu, each, median, most, range, ratios, shown, table};
use crate::process::{self, Server, Used};
use crate::tools::{TOOLS, Tool, WRK, find};
use std::time::Duration;

const CONNECTIONS: usize = 100;

/// The aims: the most CPU per request of wrk's, as a median and in any round; that of `io_uring`; the least speed; the most
/// system calls a request; the most memory. A median below the last asks for a second witness: the generator's core.
const CPU: f64 = 0.85;
const CPU_OF_ANY: f64 = 0.90;
const CPU_OF_URING: f64 = 0.80;
const SPEED: f64 = 1.10;
const CALLS: f64 = 2.1;
const MEMORY: f64 = 6e6;
const UNBELIEVABLE: f64 = 0.65;
/// How far the core may be from what the process says of itself.
const AGREEMENT: f64 = 0.1;

/// What one tool did, round by round.
struct Row {
    tool: &'static Tool,
    rounds: Vec<Result<Used, String>>,
    calls: Option<(f64, String)>,
}

/// Runs all tools in turn, each round beginning with another one, and prints what they used.
pub(crate) fn run(settings: &Settings) {
    let server = Server::start();
    let present = |tool: &&Tool| tool.command("", 1, settings.seconds).is_some();
    let mut rows: Vec<Row> =
        TOOLS.iter().filter(present).map(|tool| Row { tool, rounds: Vec::new(), calls: None }).collect();
    let absent: Vec<&str> = TOOLS.iter().filter(|tool| !present(tool)).map(|tool| tool.name).collect();
    println!("{CONNECTIONS} connections, {} rounds of {} s", settings.rounds, settings.seconds.as_secs());
    if !absent.is_empty() {
        println!("not installed: {}", absent.join(", "));
    }
    for round in 0..settings.rounds as usize {
        let count = rows.len();
        for at in 0..count {
            let row = &mut rows[(at + round) % count];
            let command = row.tool.command(&server.url(), CONNECTIONS, settings.seconds).unwrap_or_default();
            row.rounds.push(process::run(&command, &server, settings.seconds));
        }
        println!("{}", of_round(&rows, round));
    }
    rows.iter_mut().for_each(|row| row.calls = calls(row.tool, &server));
    let mut lines = vec![
        [
            "",
            "CPU µs/request",
            "CPU to wrk",
            "(least … most)",
            "core to wrk",
            "requests/s",
            "to wrk",
            "calls/request",
            "peak MB",
        ]
        .map(str::to_owned),
    ];
    lines.extend(rows.iter().map(|row| line(row, &rows)));
    println!("\n{}", table(&lines));
    rows.iter().filter_map(|row| Some((row.tool, row.calls.as_ref()?))).for_each(|(tool, (_, most))| {
        println!("{}: {most}", tool.name);
    });
    judge(&rows);
}

/// The rounds of wrk, against which the others are held.
fn of_wrk(rows: &[Row]) -> &Rounds {
    rows.iter().find(|row| row.tool.name == WRK).map_or(&[], |row| &row.rounds)
}

/// Each tool's CPU per request to wrk's in one round.
fn of_round(rows: &[Row], round: usize) -> String {
    let of = |row: &Row| {
        let at = round..=round;
        let ratio = of_wrk(rows).get(at.clone()).and_then(|wrk| median(ratios(&row.rounds[at], wrk, cpu)));
        let failed = || row.rounds[round].as_ref().err().cloned().unwrap_or_else(|| "no wrk".to_owned());
        let words = ratio.map_or_else(failed, |ratio| format!("{ratio:.3}"));
        format!("{} {words}", row.tool.name)
    };
    let others = rows.iter().filter(|row| row.tool.name != WRK || rows.len() == 1);
    format!("round {}: CPU per request to wrk's: {}", round + 1, others.map(of).collect::<Vec<_>>().join(", "))
}

fn line(row: &Row, rows: &[Row]) -> [String; 9] {
    let (own, wrk) = (&row.rounds, of_wrk(rows));
    if own.iter().all(Result::is_err) {
        let why = own.iter().find_map(|round| round.as_ref().err().cloned()).unwrap_or_default();
        return [row.tool.name, &why, "", "", "", "", "", "", ""].map(str::to_owned);
    }
    let to_wrk = ratios(own, wrk, cpu);
    [
        row.tool.name.to_owned(),
        shown(median(each(own, cpu)), 2),
        shown(median(to_wrk.clone()), 3),
        range(&to_wrk),
        shown(median(ratios(own, wrk, core)), 3),
        shown(median(each(own, |used| used.rate)), 0),
        shown(median(ratios(own, wrk, |used| used.rate)), 3),
        shown(row.calls.as_ref().map(|(calls, _)| *calls), 2),
        shown(Some(most(each(own, |used| used.peak)) / 1e6), 1),
    ]
}

/// System calls per request in a short run of its own, and the most frequent ones, where strace is installed.
fn calls(tool: &Tool, server: &Server) -> Option<(f64, String)> {
    let window = Duration::from_secs(1);
    let file = std::env::temp_dir().join(format!("bench-load-{}", std::process::id()));
    let strace = find("strace")?.to_string_lossy().into_owned();
    let traced = [&strace, "-f", "-c", "-U", "name,calls", "-o", &file.to_string_lossy()].map(str::to_owned);
    let command = [traced.to_vec(), tool.command(&server.url(), CONNECTIONS, window)?].concat();
    let used = process::run(&command, server, window);
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let rows = text.lines().filter_map(|line| line.split_once(char::is_whitespace).or(None));
    let mut counted: Vec<(u64, &str)> =
        rows.filter_map(|(name, calls)| Some((calls.trim().parse().ok()?, name))).collect();
    counted.retain(|(_, name)| *name != "total");
    counted.sort_unstable_by(|left, right| right.cmp(left));
    let requests = used.ok()?.requests as f64;
    let all: u64 = counted.iter().map(|(calls, _)| calls).sum();
    let most = counted.iter().take(3).map(|(calls, name)| format!("{name} {:.2}", *calls as f64 / requests));
    (requests > 0.0).then(|| (all as f64 / requests, most.collect::<Vec<_>>().join(", ")))
}

/// Says of each aim whether it was met.
fn judge(rows: &[Row]) {
    println!();
    for row in rows.iter().filter(|row| row.tool.name.starts_with("bakeoff") && row.tool.is_comparable()) {
        let (name, own, wrk) = (row.tool.name, &row.rounds, of_wrk(rows));
        let say = |aim: &str, met: bool, figure: String| {
            println!("{name}: {aim}: {}, {figure}", if met { "met" } else { "NOT met" });
        };
        let to_wrk = ratios(own, wrk, cpu);
        if let Some(middle) = median(to_wrk.clone()) {
            let aim = if name.contains("uring") { CPU_OF_URING } else { CPU };
            say(&format!("CPU per request at most {aim:.2} of wrk's"), middle <= aim, format!("{middle:.3}"));
            let worst = most(to_wrk);
            say(&format!("never above {CPU_OF_ANY:.2}"), worst <= CPU_OF_ANY, format!("{worst:.3}"));
            if middle < UNBELIEVABLE {
                let core = median(ratios(own, wrk, core)).unwrap_or_default();
                let agree = (core / middle - 1.0).abs() <= AGREEMENT;
                let verdict = if agree { "says the same" } else { "contradicts it: a fault of this measurement" };
                println!("{name}: a median below {UNBELIEVABLE}; the generator's core, {core:.3} of wrk's, {verdict}");
            }
        }
        if let Some(speed) = median(ratios(own, wrk, |used| used.rate)) {
            say(&format!("at least {SPEED:.2} of wrk's requests/s"), speed >= SPEED, format!("{speed:.3}"));
        }
        if let Some((calls, _)) = &row.calls {
            say(&format!("at most {CALLS} system calls a request"), *calls <= CALLS, format!("{calls:.2}"));
        }
        let peak = most(each(own, |used| used.peak));
        say(&format!("at most {:.0} MB of memory", MEMORY / 1e6), peak <= MEMORY, format!("{:.1} MB", peak / 1e6));
    }
    println!();
}
