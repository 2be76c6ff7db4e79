//! `load`: the load generator alone.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};

use super::Exit;
use super::output::{print, say};
use crate::load::{Body, Kind, Options, Outcome, Request, Stop, Target, start};
use crate::run::Interrupt;
use crate::units::{parse_duration, show};

/// `bakeoff load`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("stop").args(["duration", "count"]))]
pub(super) struct Generate {
    /// Such as http://127.0.0.1:8080/json
    #[arg(value_name = "URL")]
    url: String,

    /// Connections that are kept busy
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    connections: usize,

    /// How long, such as 10s [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// How many requests, in place of a duration
    #[arg(short = 'n', long = "requests", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// When a request without an answer is given up
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,

    /// The method [default: GET]
    #[arg(short, long, value_name = "METHOD", default_value = "GET", hide_default_value = true)]
    method: String,

    /// A header; may be given more than once
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// The body as text
    #[arg(short, long, value_name = "TEXT")]
    body: Option<String>,

    /// A connection of its own for every request
    #[arg(long)]
    no_keep_alive: bool,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Generate {
    pub(super) fn run(&self) -> ExitCode {
        match self.generate() {
            Ok((outcome, interrupted)) => {
                let printed = print(&summary(&outcome));
                match (interrupted, outcome.counts.errors()) {
                    (true, _) => ExitCode::from(130),
                    (false, 0) => printed.into(),
                    (false, _) => printed.max(Exit::Failed).into(),
                }
            }
            Err((exit, message)) => {
                say(&format!("error: {message}\n"));
                exit.into()
            }
        }
    }

    fn generate(&self) -> Result<(Outcome, bool), (Exit, String)> {
        let usage = |error: &dyn std::fmt::Display| (Exit::Usage, error.to_string());
        let stopped = |error: &dyn std::fmt::Display| (Exit::Stopped, error.to_string());
        let (target, path) = Target::parse(&self.url).map_err(|error| usage(&error))?;
        let request = Request {
            method: self.method.clone(),
            path,
            headers: self.header.clone(),
            body: self.body.as_ref().map_or(Body::None, |text| Body::Sized(text.clone().into_bytes())),
        };
        let mut options = Options::new(target, request);
        options.connections = self.connections;
        options.timeout = self.timeout;
        options.keep_alive = !self.no_keep_alive;
        match (self.count, self.duration) {
            (Some(count), _) => options.stop = Stop::Count(count),
            (None, Some(duration)) => options.stop = Stop::Duration(duration),
            (None, None) => {}
        }
        let interrupt = Interrupt::register().map_err(|error| stopped(&error))?;
        let running = start(options).map_err(|error| usage(&error))?;
        let mut fds = [
            PollFd::from_borrowed_fd(running.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(interrupt.fd(), PollFlags::IN),
        ];
        // A signal that is delivered during the poll makes the interrupt readable, so the poll is repeated.
        while matches!(poll(&mut fds, None), Err(rustix::io::Errno::INTR)) {}
        let interrupted = interrupt.count() > 0;
        if interrupted {
            running.stop();
        }
        let outcome = running.finish().map_err(|error| stopped(&error))?;
        Ok((outcome, interrupted))
    }
}

/// The figures for people.
fn summary(outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: String| out.push_str(&format!("{name:<17}{value}\n"));
    let counts = &outcome.counts;
    row("elapsed", show::span(outcome.elapsed.as_secs_f64()));
    row("requests", show::count(counts.started));
    row("throughput", show::value("1/s", outcome.throughput()));
    row("transfer", show::value("B/s", outcome.transfer()));
    let latency = &outcome.latency;
    let seconds = |nanos: f64| show::value("s", nanos / 1e9);
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        if let Some(value) = latency.quantile(q) {
            row(&format!("latency {name}"), seconds(value as f64));
        }
    }
    if let Some(max) = latency.max() {
        row("latency max", seconds(max as f64));
    }
    for kind in Kind::ALL.into_iter().filter(|kind| counts.of(*kind) > 0) {
        row(&format!("errors.{}", kind.name()), show::count(counts.of(kind)));
    }
    if counts.in_flight > 0 {
        row("in flight", show::count(counts.in_flight));
    }
    row("generator", format!("{:.0} % of its core", outcome.generator_share() * 100.0));
    out
}
