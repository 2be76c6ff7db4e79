//! The metrics, histograms and notes of one run of a load.
//!
//! In: what the generator tells of its window, and the looks at the server and the machine before and after it. Out: a
//! [`Run`]. To add a metric, name it in `event::metric` and put it here.

use super::{Look, Window};
use crate::event::{BadAnswer, Metrics};
use crate::load::{Counts, Kept, Kind, Latency, Limit, Outcome, Second, ServerCpu};
use crate::run::effects::{Note, Run};
use crate::run::server::bytes;
use std::time::Duration;

/// Ages of requests in flight that are kept.
const AGES: usize = 1000;

/// The metrics of a run while they are collected; what has no value, or none that is a number, is left out.
#[derive(Default)]
struct Collected(Metrics);

impl Collected {
    fn put(&mut self, name: &str, value: Option<f64>) {
        self.0.extend(value.filter(|value| value.is_finite()).map(|value| (name.to_owned(), value)));
    }

    /// What is told of the whole load, and of each request of a mix under its name in brackets.
    fn requests(&mut self, name: Option<&str>, elapsed: f64, counts: &Counts, latency: &Latency) {
        let named = |metric: &str| name.map_or_else(|| metric.to_owned(), |name| format!("{metric}[{name}]"));
        self.put(&named("throughput"), (elapsed > 0.0).then(|| bytes(counts.ok) / elapsed));
        for (metric, value) in latencies(latency) {
            self.put(&named(metric), value);
        }
        self.put(&named("requests"), Some(bytes(counts.started)));
        for kind in Kind::ALL {
            self.put(&named(&format!("errors.{}", kind.name())), Some(bytes(counts.of(kind))));
        }
        self.put(&named("errors.total"), Some(bytes(counts.errors())));
        self.put(&named("in_flight"), Some(bytes(counts.in_flight)));
    }

    fn generator(&mut self, outcome: &Outcome, elapsed: f64) {
        self.put("generator.cpu", (elapsed > 0.0).then(|| outcome.generator_share()));
        self.put("generator.threads", Some(bytes(outcome.threads.len() as u64)));
        let switches = outcome.threads.iter().map(|thread| thread.involuntary_switches).sum();
        self.put("generator.switches", Some(bytes(switches)));
        if let Some(pace) = &outcome.pace {
            self.put("generator.sent", Some(pace.sent_share()));
            self.put("generator.backlog", Some(bytes(pace.backlog)));
            self.put("generator.lateness.p50", pace.lateness.quantile(0.5).map(seconds_of));
            self.put("generator.lateness.p99", pace.lateness.quantile(0.99).map(seconds_of));
        }
    }
}

impl Window<'_> {
    /// Makes a run of what was seen. `processors` is how many the server may use.
    pub(super) fn figures(&self, outcome: &Outcome, [base, end]: [&Look; 2], processors: Option<usize>) -> Run {
        let elapsed = outcome.elapsed.as_secs_f64();
        let mut metrics = Collected::default();
        metrics.requests(None, elapsed, &outcome.counts, &outcome.latency);
        for request in &outcome.requests {
            metrics.requests(Some(&request.name), elapsed, &request.counts, &request.latency);
        }
        metrics.put("transfer", (elapsed > 0.0).then(|| outcome.transfer()));
        metrics.put("connect.p50", outcome.connect.quantile(0.5).map(seconds_of));
        metrics.put("connect.max", outcome.connect.max().map(seconds_of));
        metrics.put("reconnects", Some(bytes(outcome.reconnects)));
        metrics.put("elapsed", Some(elapsed));
        metrics.generator(outcome, elapsed);
        let server = served(outcome, [base, end], processors, &mut metrics);
        let generator: Duration = outcome.threads.iter().map(|thread| thread.cpu).sum();
        let own = metrics.0.get("cpu.cores").copied().unwrap_or(0.0);
        let own = own + if elapsed > 0.0 { generator.as_secs_f64() / elapsed } else { 0.0 };
        metrics.0.extend(base.busy.since(own));
        let mut run = Run { metrics: metrics.0, ..Run::default() };
        self.histograms(&mut run, outcome);
        run.bad_answers = outcome.kept.iter().map(bad_answer).collect();
        run.in_flight_ages = outcome.in_flight.iter().map(Duration::as_secs_f64).collect();
        run.in_flight_ages.sort_by(|left, right| right.total_cmp(left));
        run.in_flight_ages.truncate(AGES);
        run.notes = self.notes(outcome, server);
        run
    }

    fn histograms(&self, run: &mut Run, outcome: &Outcome) {
        let of_each = outcome.requests.iter().map(|request| (format!("latency[{}]", request.name), &request.latency));
        let whole = [("latency", &outcome.latency), ("connect", &outcome.connect)];
        let lateness = outcome.pace.iter().map(|pace| ("generator.lateness".to_owned(), &pace.lateness));
        let whole = whole.map(|(name, latency)| (name.to_owned(), latency));
        for (name, latency) in whole.into_iter().chain(of_each).chain(lateness) {
            match latency.to_v2_deflate_base64() {
                Ok(_) if latency.count() == 0 => {}
                Ok(text) => drop(run.histograms.insert(name, text)),
                Err(error) => run.trouble = Some(self.failed(&error)),
            }
        }
    }

    fn notes(&self, outcome: &Outcome, server: Option<ServerCpu>) -> Vec<Note> {
        let under_way = bytes(self.load.connections.saturating_mul(self.load.pipeline));
        let limits = outcome.limits(self.load.keep_alive.then_some(under_way), server);
        let mut notes: Vec<Note> =
            limits.iter().map(|limit: &Limit| Note::new(limit.code(), limit.to_string())).collect();
        if outcome.unasked > 0 {
            let text = "something came on a connection that had no request under way, which was then closed";
            notes.push(Note::new("unasked", text));
        }
        notes
    }
}

/// Puts what the server's processes used, and gives what tells whether they had CPU to spare.
fn served(
    outcome: &Outcome,
    [base, end]: [&Look; 2],
    processors: Option<usize>,
    metrics: &mut Collected,
) -> Option<ServerCpu> {
    let time = end.at.saturating_duration_since(base.at).as_secs_f64();
    let used = end.cpu.zip(base.cpu).and_then(|(now, then)| now.since(&then))?;
    let counts = &outcome.counts;
    let ended = counts.started.saturating_sub(counts.in_flight);
    // A window so short that its beginning was not seen: the opening's requests are in what was used.
    let answered = base.started.map_or(ended + outcome.opening.started, |before| ended.saturating_sub(before));
    metrics.put("cpu.user", Some(used.user.as_secs_f64()));
    metrics.put("cpu.system", Some(used.system.as_secs_f64()));
    metrics.put("cpu.per_request", (answered > 0).then(|| used.total.as_secs_f64() / bytes(answered)));
    if time <= 0.0 {
        return None;
    }
    let cores = used.total.as_secs_f64() / time;
    metrics.put("cpu.cores", Some(cores));
    let busiest = end.threads.as_ref().zip(base.threads.as_ref()).map(|(now, then)| now.since(then))?;
    metrics.put("cpu.busiest_thread", Some(busiest.ran.as_secs_f64() / time));
    Some(ServerCpu { runnable: busiest.runnable.as_secs_f64() / time, cores, processors: processors? })
}

fn latencies(latency: &Latency) -> [(&'static str, Option<f64>); 10] {
    let at = |q: f64| latency.quantile(q).map(seconds_of);
    [
        ("latency.min", latency.min().map(seconds_of)),
        ("latency.p50", at(0.5)),
        ("latency.p75", at(0.75)),
        ("latency.p90", at(0.9)),
        ("latency.p95", at(0.95)),
        ("latency.p99", at(0.99)),
        ("latency.p999", at(0.999)),
        ("latency.max", latency.max().map(seconds_of)),
        ("latency.mean", latency.mean().map(|ns| ns / 1e9)),
        ("latency.stddev", latency.stddev().map(|ns| ns / 1e9)),
    ]
}

/// Nanoseconds in seconds.
fn seconds_of(ns: u64) -> f64 {
    bytes(ns) / 1e9
}

/// What the generator tells of a second, once its window is over.
pub(super) fn of_second(second: &Second) -> Metrics {
    let length = second.length.as_secs_f64();
    let figures = [
        ("throughput", (length > 0.0).then(|| bytes(second.ok) / length)),
        ("latency.p50", second.p50.map(seconds_of)),
        ("latency.p99", second.p99.map(seconds_of)),
        ("latency.max", second.max.map(seconds_of)),
    ];
    figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn bad_answer(kept: &Kept) -> BadAnswer {
    let text =
        if kept.body.is_empty() { kept.reason.clone() } else { String::from_utf8_lossy(&kept.body).into_owned() };
    BadAnswer {
        kind: kept.kind.name().to_owned(),
        at: kept.at.as_secs_f64(),
        status: kept.status,
        headers: kept.headers.clone(),
        text,
    }
}
