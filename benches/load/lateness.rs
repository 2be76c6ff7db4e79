//! How late an open loop sends, at 2,000 and 20,000 requests a second, with a core to itself.

use crate::Settings;
use crate::figures::table;
use crate::process::{self, Server};
use crate::tools::BAKEOFF;

const CONNECTIONS: usize = 50;

const RATES: [u32; 2] = [2_000, 20_000];

/// Runs each rate with each engine, with and without the spin before a request is due, and prints the quantiles of the lateness.
pub(crate) fn run(settings: &Settings) {
    let server = Server::start();
    let mut lines = vec![["lateness of sends in µs", "p50", "p90", "p99", "max", "sent"].map(str::to_owned)];
    let ways = ["--engine epoll", "--engine io_uring", "--engine epoll --no-spin", "--engine io_uring --no-spin"];
    for rate in RATES {
        for how in ways {
            let options =
                format!("load -c{CONNECTIONS} -r{rate} -d{}s --quiet --json {how}", settings.seconds.as_secs());
            let program = std::iter::once(BAKEOFF).chain(options.split_whitespace()).map(str::to_owned);
            let command: Vec<String> = program.chain([server.url()]).collect();
            let name = format!("{rate} a second, {}", how.trim_start_matches("--engine "));
            lines.push(match process::run(&command, &server, settings.seconds) {
                Ok(used) => line(name, &used.output),
                Err(why) => [name, why, String::new(), String::new(), String::new(), String::new()],
            });
        }
    }
    println!("{}", table(&lines));
}

fn line(name: String, json: &str) -> [String; 6] {
    let document: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let number = |path: &str| document.pointer(path).and_then(serde_json::Value::as_f64);
    let micros = |quantile: &str| {
        let seconds = number(&format!("/generator/lateness/{quantile}"));
        seconds.map_or("—".to_owned(), |seconds| format!("{:.2}", seconds * 1e6))
    };
    let sent = number("/pace/sent").zip(number("/pace/due")).map(|(sent, due)| format!("{:.2} %", sent / due * 100.0));
    [name, micros("p50"), micros("p90"), micros("p99"), micros("max"), sent.unwrap_or_else(|| "—".to_owned())]
}
