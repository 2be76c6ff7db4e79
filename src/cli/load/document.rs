//! What came of a load, for programs: in comes an outcome, out comes a JSON document whose schema is published.
//!
//! To add a figure, add a field, fill it in, describe it in `docs/load.md`: an addition keeps [`SCHEMA`], anything else
//! raises it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::program;
use crate::event::Program;
use crate::load::{self, Counts, Error, Kind, Limit, Outcome, Pace, Thread};

/// The version of the document.
const SCHEMA: &str = "bakeoff.load/1";

/// What `bakeoff load --json` prints. Times are in seconds, rates per second, sizes in bytes; nothing is rounded.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Document {
    /// `bakeoff.load/1`. Additions keep the number; readers pass over keys they do not know and refuse a newer number.
    schema: &'static str,
    /// The program that measured.
    bakeoff: Program,
    /// The one address that was talked to, or the path of a socket.
    address: String,
    /// How the window ended: `whole` at its time or count, `stopped` by a signal, `silent` where a count was given up
    /// because no answer came for twice the timeout.
    ending: &'static str,
    /// How long the window was.
    elapsed: f64,
    /// Good answers a second.
    throughput: f64,
    /// What became of the window's requests.
    requests: Requests,
    /// What became of the opening's requests, one a connection: they are in no other figure.
    opening: Requests,
    /// How old each request was that had no end when the window ended.
    in_flight: Vec<f64>,
    /// Latencies of the good answers; in an open loop from when a request was due, else from when it was sent.
    latency: Times,
    /// How an open loop kept its times; absent in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pace: Option<Schedule>,
    /// The connections.
    connections: Connections,
    /// Bytes that came inside the window, heads and framing with them.
    received: u64,
    /// How often bytes came on a connection without a request.
    unasked: u64,
    /// What the generator itself did and used.
    generator: Generator,
    /// Signs that the figures are not, or not only, the server's; the generator knows nothing of the server's CPU.
    limits: Vec<Sign>,
    /// The window, second by second.
    seconds: Vec<Second>,
    /// The first ten requests of each kind that were not ok, in the order of their ends.
    kept: Vec<Kept>,
}

/// Counts of requests: `started` is the sum of all others.
#[derive(Debug, Serialize, JsonSchema)]
struct Requests {
    /// Requests begun.
    started: u64,
    /// Good answers.
    ok: u64,
    /// Those that ended and were not ok, by kind.
    errors: Errors,
    /// Without an end when the window ended.
    in_flight: u64,
}

/// Requests that ended and were not ok.
#[derive(Debug, Serialize, JsonSchema)]
struct Errors {
    /// A whole answer of a status that is not good.
    status: u64,
    /// Fewer bytes of the body than were promised, or another number than was expected.
    body: u64,
    /// No whole answer in time.
    timeout: u64,
    /// No connection could be made.
    connect: u64,
    /// The connection ended before the answer did.
    reset: u64,
    /// What came is not HTTP.
    protocol: u64,
}

/// A distribution of times; all but `count`, `sum` and `histogram` are absent where there is none.
#[derive(Debug, Serialize, JsonSchema)]
struct Times {
    /// How many times.
    count: u64,
    /// Their sum.
    sum: f64,
    /// The least, exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    /// The greatest, exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// The mean, exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    /// The standard deviation of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    stddev: Option<f64>,
    /// The median; quantiles have three significant digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p75: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p90: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p999: Option<f64>,
    /// A quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    p9999: Option<f64>,
    /// All of it: HdrHistogram V2, deflated, in base64, of ns.
    histogram: String,
}

/// How an open loop kept its times.
#[derive(Debug, Serialize, JsonSchema)]
struct Schedule {
    /// Requests a second that were asked for.
    rate: f64,
    /// Requests that were due in the window.
    due: u64,
    /// Those that were sent.
    sent: u64,
    /// Those that were neither begun nor expired when the window ended.
    backlog: u64,
    /// Those whose timeout was over before a connection was free.
    expired: u64,
}

/// The connections.
#[derive(Debug, Serialize, JsonSchema)]
struct Connections {
    /// How many were begun inside the window, in place of those that had ended.
    reconnects: u64,
    /// How long they took to be made (with the TLS handshake), those of the opening with them.
    connect: Times,
}

/// What the generator did and used.
#[derive(Debug, Serialize, JsonSchema)]
struct Generator {
    /// What was spoken: `http/1.1` or `h2`.
    protocol: &'static str,
    /// How sockets were driven: `epoll` or `io_uring`.
    engine: &'static str,
    /// What each thread used inside the window.
    threads: Vec<Used>,
    /// How late after they were due requests of an open loop were sent; absent in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Times>,
}

/// What a thread used inside its window.
#[derive(Debug, Serialize, JsonSchema)]
struct Used {
    /// Its CPU time.
    cpu: f64,
    /// How long it waited for a processor.
    waited: f64,
    /// How long it waited awake for the next request.
    spun: f64,
    /// How long its window was.
    elapsed: f64,
    /// The share of a core that it needed, 0 to 1; waiting awake is not counted.
    share: f64,
    /// How often it was made to wait while it could have run.
    involuntary_switches: u64,
}

/// A sign that the figures are not, or not only, the server's.
#[derive(Debug, Serialize, JsonSchema)]
struct Sign {
    /// `generator-bound`, `saturated` or `littles-law`.
    code: &'static str,
    /// The same in words.
    text: String,
}

/// One second of the window; the last may be shorter.
#[derive(Debug, Serialize, JsonSchema)]
struct Second {
    /// Its begin, since the window began.
    at: f64,
    /// How long it is.
    length: f64,
    /// Good answers that came in it.
    ok: u64,
    /// Requests that ended in it and were not ok.
    errors: u64,
    /// The median latency, to two digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<f64>,
    /// The 99th percentile, to two digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<f64>,
    /// The greatest, exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
}

/// A request that was not ok.
#[derive(Debug, Serialize, JsonSchema)]
struct Kept {
    /// As what it was counted.
    kind: &'static str,
    /// What was wrong, in words.
    reason: String,
    /// When it ended, since the window began.
    at: f64,
    /// The status, where a whole head came.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The headers, where a whole head came; of a name that came several times, all values.
    headers: IndexMap<String, Vec<String>>,
    /// The first 1 KiB of the body, in base64; without a whole head, of what came.
    body: String,
}

impl Document {
    /// The document of an outcome.
    pub(super) fn new(outcome: &Outcome, signs: &[Limit]) -> Result<Self, Error> {
        Ok(Self {
            schema: SCHEMA,
            bakeoff: program(),
            address: outcome.address.to_string(),
            ending: match outcome.ending {
                load::Ending::Whole => "whole",
                load::Ending::Stopped => "stopped",
                load::Ending::Silent => "silent",
            },
            elapsed: outcome.elapsed.as_secs_f64(),
            throughput: outcome.throughput(),
            requests: Requests::of(&outcome.counts),
            opening: Requests::of(&outcome.opening),
            in_flight: outcome.in_flight.iter().map(Duration::as_secs_f64).collect(),
            latency: Times::of(&outcome.latency)?,
            pace: outcome.pace.as_ref().map(Schedule::of),
            connections: Connections { reconnects: outcome.reconnects, connect: Times::of(&outcome.connect)? },
            received: outcome.received,
            unasked: outcome.unasked,
            generator: Generator {
                protocol: outcome.protocol.name(),
                engine: outcome.engine,
                threads: outcome.threads.iter().map(Used::of).collect(),
                lateness: outcome.pace.as_ref().map(|pace| Times::of(&pace.lateness)).transpose()?,
            },
            limits: signs.iter().map(|sign| Sign { code: sign.code(), text: sign.to_string() }).collect(),
            seconds: outcome.seconds.iter().map(Second::of).collect(),
            kept: outcome.kept.iter().map(Kept::of).collect(),
        })
    }

    /// As text, ending in a line end.
    pub(super) fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Requests {
    fn of(counts: &Counts) -> Self {
        Self {
            started: counts.started,
            ok: counts.ok,
            errors: Errors {
                status: counts.of(Kind::Status),
                body: counts.of(Kind::Body),
                timeout: counts.of(Kind::Timeout),
                connect: counts.of(Kind::Connect),
                reset: counts.of(Kind::Reset),
                protocol: counts.of(Kind::Protocol),
            },
            in_flight: counts.in_flight,
        }
    }
}

impl Times {
    fn of(times: &load::Latency) -> Result<Self, Error> {
        let quantile = |q| times.quantile(q).map(seconds);
        Ok(Self {
            count: times.count(),
            sum: times.sum() as f64 / 1e9,
            min: times.min().map(seconds),
            max: times.max().map(seconds),
            mean: times.mean().map(|ns| ns / 1e9),
            stddev: times.stddev().map(|ns| ns / 1e9),
            p50: quantile(0.5),
            p75: quantile(0.75),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            histogram: times.to_v2_deflate_base64()?,
        })
    }
}

impl Schedule {
    fn of(pace: &Pace) -> Self {
        let Pace { rate, due, backlog, expired, ref lateness } = *pace;
        Self { rate, due, sent: lateness.count(), backlog, expired }
    }
}

impl Used {
    fn of(thread: &Thread) -> Self {
        Self {
            cpu: thread.cpu.as_secs_f64(),
            waited: thread.waited.as_secs_f64(),
            spun: thread.spun.as_secs_f64(),
            elapsed: thread.elapsed.as_secs_f64(),
            share: thread.share(),
            involuntary_switches: thread.involuntary_switches,
        }
    }
}

impl Second {
    fn of(second: &load::Second) -> Self {
        Self {
            at: second.at.as_secs_f64(),
            length: second.length.as_secs_f64(),
            ok: second.ok,
            errors: second.errors,
            p50: second.p50.map(seconds),
            p99: second.p99.map(seconds),
            max: second.max.map(seconds),
        }
    }
}

impl Kept {
    fn of(kept: &load::Kept) -> Self {
        let mut headers: IndexMap<String, Vec<String>> = IndexMap::new();
        for (name, value) in &kept.headers {
            headers.entry(name.clone()).or_default().push(value.clone());
        }
        Self {
            kind: kept.kind.name(),
            reason: kept.reason.clone(),
            at: kept.at.as_secs_f64(),
            status: kept.status,
            headers,
            body: STANDARD.encode(&kept.body),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
