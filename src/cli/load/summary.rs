//! What came of a load, for people: in comes an outcome, out comes text of one screen.

use std::fmt::Write as _;

use crate::load::{Ending, Kept, Kind, Latency, Limit, Outcome, Pace, Thread};
use crate::results::Percentile;
use crate::units::show::{self, Scale};

/// The percentiles that are shown, by the ends of their metrics' names.
const PERCENTILES: [&str; 6] = ["p50", "p75", "p90", "p99", "p999", "p9999"];

/// Rows of the histogram.
const ROWS: usize = 10;

/// The longest bar of the histogram, in characters.
const BAR: f64 = 40.0;

/// How many requests that were not ok are shown of each kind.
const SHOWN: usize = 1;

/// The figures, and the signs that they are not, or not only, the server's.
pub(super) fn text(outcome: &Outcome, signs: &[Limit]) -> String {
    let mut out = String::new();
    window(&mut out, outcome);
    latency(&mut out, "latency", &outcome.latency);
    if let Some(pace) = &outcome.pace {
        open_loop(&mut out, pace);
    }
    histogram(&mut out, &outcome.latency);
    kept(&mut out, &outcome.kept);
    for sign in signs {
        let _ = writeln!(out, "\n{}: {sign}", sign.code());
    }
    match outcome.ending {
        Ending::Whole => {}
        Ending::Stopped => out.push_str("\nThe window was ended early.\n"),
        Ending::Silent => out.push_str("\nGiven up: no answer came for twice the timeout.\n"),
    }
    out
}

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "{name:<16}{value}");
}

fn seconds(ns: f64) -> String {
    show::value("s", ns / 1e9)
}

/// What was asked for, and what became of it.
fn window(out: &mut String, outcome: &Outcome) {
    let counts = &outcome.counts;
    row(out, "server", &outcome.address.to_string());
    row(out, "elapsed", &show::span(outcome.elapsed.as_secs_f64()));
    let mut requests = format!("{} started, {} ok", show::count(counts.started), show::count(counts.ok));
    for kind in Kind::ALL.into_iter().filter(|kind| counts.of(*kind) > 0) {
        let _ = write!(requests, ", {} {}", show::count(counts.of(kind)), kind.name());
    }
    if counts.in_flight > 0 {
        let oldest = outcome.in_flight.iter().max().map_or(0.0, |age| age.as_secs_f64());
        let _ = write!(requests, ", {} in flight", show::count(counts.in_flight));
        let _ = write!(requests, " (the oldest for {})", show::value("s", oldest));
    }
    row(out, "requests", &requests);
    row(out, "throughput", &show::value("1/s", outcome.throughput()));
    row(out, "received", &show::value("B/s", outcome.transfer()));
    let mut connections = format!("{} opened", show::count(outcome.opening.started));
    if outcome.reconnects > 0 {
        let _ = write!(connections, ", {} reconnects", show::count(outcome.reconnects));
    }
    if let Some(median) = outcome.connect.quantile(0.5) {
        let _ = write!(connections, ", connecting took {} (median)", seconds(median as f64));
    }
    row(out, "connections", &connections);
    if outcome.opening.errors() > 0 {
        row(out, "opening", &format!("{} requests of it failed", show::count(outcome.opening.errors())));
    }
    if outcome.unasked > 0 {
        row(out, "unasked", &format!("{} times bytes came without a request", show::count(outcome.unasked)));
    }
    row(out, "generator", &generator(outcome));
}

/// How busy the generator was.
fn generator(outcome: &Outcome) -> String {
    let of = if outcome.threads.len() > 1 { "busiest thread" } else { "thread" };
    let (protocol, engine, share) = (outcome.protocol.name(), outcome.engine, outcome.generator_share() * 100.0);
    let mut text = format!("{protocol} by {engine}, {of} {share:.0} % of a core");
    let cpu: f64 = outcome.threads.iter().map(|thread| net(thread).as_secs_f64()).sum();
    let ended = outcome.counts.started - outcome.counts.in_flight;
    if ended > 0 {
        let _ = write!(text, ", {} per request", show::value("s", cpu / ended as f64));
    }
    text
}

/// The CPU time of a thread without what it spent waiting awake.
fn net(thread: &Thread) -> std::time::Duration {
    thread.cpu.saturating_sub(thread.spun)
}

/// A distribution of times. A percentile with fewer than ten requests beyond it is left out.
fn latency(out: &mut String, name: &str, times: &Latency) {
    let (Some(min), Some(max), Some(mean)) = (times.min(), times.max(), times.mean()) else { return };
    let _ = writeln!(out, "\n{name}");
    let named = |percentile: &&str| Percentile::of(&format!("latency.{percentile}"));
    let shown = |percentile: &Percentile| percentile.is_shown(times.count());
    let mut rows = vec![("min".to_owned(), min as f64), ("mean".to_owned(), mean)];
    rows.extend(times.stddev().map(|stddev| ("stddev".to_owned(), stddev)));
    for (label, percentile) in PERCENTILES.iter().filter_map(|label| Some((label, named(label)?))) {
        let quantile = percentile.numerator as f64 / percentile.denominator as f64;
        if let Some(value) = times.quantile(quantile).filter(|_| shown(&percentile)) {
            let (whole, rest) = label.split_at(3.min(label.len()));
            let point = if rest.is_empty() { "" } else { "." };
            rows.push((format!("{whole}{point}{rest}"), value as f64));
        }
    }
    rows.push(("max".to_owned(), max as f64));
    for (label, value) in rows {
        row(out, &format!("  {label}"), &seconds(value));
    }
}

/// How the times of an open loop were kept.
fn open_loop(out: &mut String, pace: &Pace) {
    let _ = writeln!(out, "\nopen loop");
    row(out, "  rate", &show::value("1/s", pace.rate));
    let sent = pace.lateness.count();
    row(out, "  sent", &format!("{} of {} due", show::count(sent), show::count(pace.due)));
    if pace.backlog > 0 {
        row(out, "  backlog", &format!("{} due and not begun at the end", show::count(pace.backlog)));
    }
    if pace.expired > 0 {
        row(out, "  expired", &format!("{} had no connection within their timeout", show::count(pace.expired)));
    }
    let times = ["p50", "p90", "p99"].into_iter().zip([0.5, 0.9, 0.99]);
    let known = times.filter_map(|(name, q)| Some(format!("{name} {}", seconds(pace.lateness.quantile(q)? as f64))));
    let mut late: Vec<String> = known.collect();
    late.extend(pace.lateness.max().map(|max| format!("max {}", seconds(max as f64))));
    row(out, "  sent late by", &late.join(", "));
}

/// The distribution as bars, from the least time to the 99th percentile; what lies beyond is in the last row.
fn histogram(out: &mut String, times: &Latency) {
    let (Some(min), Some(p99), Some(max)) = (times.min(), times.quantile(0.99), times.max()) else { return };
    if max == min {
        return;
    }
    let top = if p99 > min { p99 } else { max };
    let edge = |row: usize| min + ((top - min) as f64 * row as f64 / ROWS as f64) as u64;
    let mut rows: Vec<(u64, u64)> = Vec::with_capacity(ROWS + 1);
    let mut below = 0;
    for at in 1..=ROWS {
        let reached = times.up_to(edge(at));
        rows.push((edge(at), reached - below));
        below = reached;
    }
    if max > top {
        rows.push((max, times.count() - below));
    }
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1) as f64;
    let scale = Scale::of("s", [top as f64 / 1e9]);
    out.push_str("\nup to\n");
    for (edge, count) in rows {
        let bar = "█".repeat((count as f64 / most * BAR).round() as usize);
        let _ = writeln!(out, "{:>14} {:>12} {bar}", scale.value(edge as f64 / 1e9), show::count(count));
    }
}

/// The first request of each kind that was not ok.
fn kept(out: &mut String, kept: &[Kept]) {
    for kind in Kind::ALL {
        for one in kept.iter().filter(|one| one.kind == kind).take(SHOWN) {
            let at = show::span(one.at.as_secs_f64());
            let _ = writeln!(out, "\nfirst {} (after {at}): {}", kind.name(), show::visible(&one.reason));
            if let Some(status) = one.status {
                let _ = writeln!(out, "  status {status}, {}", show::counted(one.headers.len() as u64, "header"));
            }
            if !one.body.is_empty() {
                let text: String = String::from_utf8_lossy(&one.body).chars().take(200).collect();
                let _ = writeln!(out, "  {}", show::visible(&text));
            }
        }
    }
}
