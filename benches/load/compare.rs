//! CPU, speed, system calls and memory of each generator at 100 connections, as ratios to wrk's of the same round.

use crate::process::{self, Server, Used};
use crate::tools::{TOOLS, Tool, WRK, find};
use crate::{Settings, lateness::table};
use std::time::Duration;

const CONNECTIONS: usize = 100;

/// The aims: the most CPU per request of wrk's, as a median and in any round; that of `io_uring`; the least speed; the most
/// system calls a request; the most memory. Below the last, the measurement is wrong.
const CPU: f64 = 0.85;
const CPU_OF_ANY: f64 = 0.90;
const CPU_OF_URING: f64 = 0.80;
const SPEED: f64 = 1.10;
const CALLS: f64 = 2.1;
const MEMORY: f64 = 6e6;
const UNBELIEVABLE: f64 = 0.65;

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
        ["", "CPU µs/request", "CPU to wrk", "(least … most)", "requests/s", "to wrk", "calls/request", "peak MB"]
            .map(str::to_owned),
    ];
    lines.extend(rows.iter().map(|row| line(row, &rows)));
    println!("\n{}", table(&lines));
    rows.iter().filter_map(|row| Some((row.tool, row.calls.as_ref()?))).for_each(|(tool, (_, most))| {
        println!("{}: {most}", tool.name);
    });
    judge(&rows);
}

fn per_request(used: &Used) -> f64 {
    used.cpu / used.requests as f64 * 1e6
}

/// The ratios of a figure to wrk's, in each round in which both were measured.
fn ratios(row: &Row, rows: &[Row], figure: impl Fn(&Used) -> f64) -> Vec<f64> {
    let Some(wrk) = rows.iter().find(|row| row.tool.name == WRK) else { return Vec::new() };
    let both = row.rounds.iter().zip(&wrk.rounds).filter_map(|(own, wrk)| own.as_ref().ok().zip(wrk.as_ref().ok()));
    both.map(|(own, wrk)| figure(own) / figure(wrk)).collect()
}

fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Each tool's CPU per request to wrk's in one round.
fn of_round(rows: &[Row], round: usize) -> String {
    let of = |row: &Row| {
        let ratio = ratios(row, rows, per_request).get(round).copied();
        let failed = || row.rounds[round].as_ref().err().cloned().unwrap_or_else(|| "wrk failed".to_owned());
        let words = ratio.map_or_else(failed, |ratio| format!("{ratio:.3}"));
        format!("{} {words}", row.tool.name)
    };
    let others = rows.iter().filter(|row| row.tool.name != WRK || rows.len() == 1);
    format!("round {}: CPU per request to wrk's: {}", round + 1, others.map(of).collect::<Vec<_>>().join(", "))
}

fn line(row: &Row, rows: &[Row]) -> [String; 8] {
    let good: Vec<&Used> = row.rounds.iter().filter_map(|round| round.as_ref().ok()).collect();
    let shown = |value: Option<f64>, digits: usize| value.map_or("—".to_owned(), |value| format!("{value:.digits$}"));
    if good.is_empty() {
        let why = row.rounds.iter().find_map(|round| round.as_ref().err().cloned()).unwrap_or_default();
        return [row.tool.name, &why, "", "", "", "", "", ""].map(str::to_owned);
    }
    let cpu = ratios(row, rows, per_request);
    let ends = cpu.iter().copied().reduce(f64::min).zip(cpu.iter().copied().reduce(f64::max));
    [
        row.tool.name.to_owned(),
        shown(median(good.iter().map(|used| per_request(used))), 2),
        shown(median(cpu), 3),
        ends.map_or("—".to_owned(), |(least, most)| format!("({least:.3} … {most:.3})")),
        shown(median(good.iter().map(|used| used.rate)), 0),
        shown(median(ratios(row, rows, |used| used.rate)), 3),
        shown(row.calls.as_ref().map(|(calls, _)| *calls), 2),
        shown(good.iter().map(|used| used.peak / 1e6).reduce(f64::max), 1),
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
        let name = row.tool.name;
        let say = |aim: &str, met: bool, figure: String| {
            println!("{name}: {aim}: {}, {figure}", if met { "met" } else { "NOT met" });
        };
        let cpu = ratios(row, rows, per_request);
        let most = cpu.iter().copied().fold(0.0, f64::max);
        if let Some(middle) = median(cpu) {
            let aim = if name.contains("uring") { CPU_OF_URING } else { CPU };
            say(&format!("CPU per request at most {aim:.2} of wrk's"), middle <= aim, format!("{middle:.3}"));
            say(&format!("never above {CPU_OF_ANY:.2}"), most <= CPU_OF_ANY, format!("{most:.3}"));
            if middle < UNBELIEVABLE {
                println!("{name}: a median below {UNBELIEVABLE} is a fault of this measurement");
            }
        }
        if let Some(speed) = median(ratios(row, rows, |used| used.rate)) {
            say(&format!("at least {SPEED:.2} of wrk's requests/s"), speed >= SPEED, format!("{speed:.3}"));
        }
        if let Some((calls, _)) = &row.calls {
            say(&format!("at most {CALLS} system calls a request"), *calls <= CALLS, format!("{calls:.2}"));
        }
        let peak = row.rounds.iter().flatten().map(|used| used.peak).fold(0.0, f64::max);
        say(&format!("at most {:.0} MB of memory", MEMORY / 1e6), peak <= MEMORY, format!("{:.1} MB", peak / 1e6));
    }
    println!();
}
