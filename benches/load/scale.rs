//! What connections cost: CPU per request and memory of the generator, from 1 connection to 10,000.

use crate::Settings;
use crate::lateness::table;
use crate::process::{self, Server};
use crate::tools::BAKEOFF;

const CONNECTIONS: [usize; 4] = [1, 100, 1_000, 10_000];

/// Runs each number of connections in turn, and prints what one of them costs.
pub(crate) fn run(settings: &Settings) {
    let server = Server::start();
    let mut lines =
        vec![["connections", "CPU µs/request", "requests/s", "peak MB", "KiB/connection over 100"].map(str::to_owned)];
    let mut base = None;
    for connections in CONNECTIONS {
        let options = format!("load -c{connections} -d{}s --quiet", settings.seconds.as_secs());
        let program = std::iter::once(BAKEOFF).chain(options.split_whitespace()).map(str::to_owned);
        let command: Vec<String> = program.chain([server.url()]).collect();
        lines.push(match process::run(&command, &server, settings.seconds) {
            Ok(used) => {
                base = if connections == 100 { Some(used.peak) } else { base };
                let more = base.filter(|_| connections > 100);
                let each = more.map(|base| (used.peak - base) / 1024.0 / (connections - 100) as f64);
                [
                    connections.to_string(),
                    format!("{:.2}", used.cpu / used.requests as f64 * 1e6),
                    format!("{:.0}", used.rate),
                    format!("{:.1}", used.peak / 1e6),
                    each.map_or("—".to_owned(), |each| format!("{each:.2}")),
                ]
            }
            Err(why) => [connections.to_string(), why, String::new(), String::new(), String::new()],
        });
    }
    println!("{}", table(&lines));
}
