//! The metrics that bakeoff itself takes: name, unit, direction and meaning.
//!
//! The one registry: the language checks names against it, results carry its rows, reports read units from there.
//! To add a metric, add a row to [`BUILTIN`] and the place that takes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which direction of a metric is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// What a metric is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its unit: `s`, `B`, `1/s`, `B/s`, `1`, `%` or a free word.
    pub unit: String,
    /// Which direction is good, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The coarsest difference that its clock can show, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// True where no noise is expected.
    #[serde(default)]
    pub exact: bool,
    /// What it is, one phrase.
    pub description: String,
}

/// What a metric is taken of, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// One run of a command.
    CommandRun,
    /// One start of a server.
    ServerStart,
    /// One run of anything against a server: the server's share.
    ServerRun,
    /// One run of a load.
    LoadRun,
    /// One run of anything: the machine's share.
    Machine,
}

/// A metric that bakeoff itself takes.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it is taken of.
    pub of: Of,
    unit: &'static str,
    better: Option<Better>,
    step: Option<f64>,
    description: &'static str,
}

impl Builtin {
    /// The metric as results carry it.
    #[must_use]
    pub fn metric(&self) -> Metric {
        Metric {
            unit: self.unit.to_owned(),
            better: self.better,
            step: self.step,
            exact: false,
            description: self.description.to_owned(),
        }
    }
}

/// Whether a metric of a load is there for each request of a mix too.
#[must_use]
pub fn of_each_request(name: &str) -> bool {
    let family = name.split_once('.').map_or(name, |(family, _)| family);
    ["throughput", "latency", "requests", "errors", "in_flight"].contains(&family)
}

/// Whether a metric of a server rests on what a load sent it: on how much the generator could do, where that was the limit.
/// Apart stand what is taken before the load, what holds for each request whatever their number, and what the machine did.
/// A metric that only the scenario knows may be made of anything, and so rests on the load.
#[must_use]
pub fn rests_on_load(name: &str) -> bool {
    const APART: [&str; 4] = ["startup", "rss.idle", "pss.idle", "cpu.per_request"];
    let whole = name.split_once('[').map_or(name, |(whole, _)| whole);
    !APART.contains(&whole) && !BUILTIN.iter().any(|row| row.name == whole && row.of == Of::Machine)
}

const LOWER: Option<Better> = Some(Better::Lower);
const HIGHER: Option<Better> = Some(Better::Higher);
/// A page of memory, in bytes.
const PAGE: Option<f64> = Some(4096.0);

const fn row(
    name: &'static str,
    of: Of,
    (unit, better, step): (&'static str, Option<Better>, Option<f64>),
    description: &'static str,
) -> Builtin {
    Builtin { name, of, unit, better, step, description }
}

/// Every metric that bakeoff itself takes, in the order of the documentation.
pub const BUILTIN: &[Builtin] = &[
    row("wall", Of::CommandRun, ("s", LOWER, None), "time from start to end"),
    row("cpu.user", Of::CommandRun, ("s", LOWER, None), "CPU time in user mode of the command and what it waited for"),
    row(
        "cpu.system",
        Of::CommandRun,
        ("s", LOWER, None),
        "CPU time in the kernel of the command and what it waited for",
    ),
    row("rss.peak", Of::CommandRun, ("B", LOWER, PAGE), "peak resident memory of the largest process of the command"),
    row(
        "rss.floor",
        Of::CommandRun,
        ("B", None, PAGE),
        "resident memory of the launcher, below which rss.peak cannot read",
    ),
    row("ctx.voluntary", Of::CommandRun, ("1", LOWER, None), "context switches by waiting"),
    row("ctx.involuntary", Of::CommandRun, ("1", LOWER, None), "context switches by force"),
    row("faults.major", Of::CommandRun, ("1", LOWER, None), "page faults that read from disk"),
    row("startup", Of::ServerStart, ("s", LOWER, None), "time from start to ready"),
    row(
        "rss.idle",
        Of::ServerStart,
        ("B", LOWER, PAGE),
        "resident memory of the main process when ready, before the probes",
    ),
    row("rss.peak", Of::ServerStart, ("B", LOWER, PAGE), "peak resident memory of the main process after the last run"),
    row(
        "rss.tree.peak",
        Of::ServerStart,
        ("B", LOWER, PAGE),
        "highest sum of resident memory over the process tree, sampled once a second",
    ),
    row("pss.idle", Of::ServerStart, ("B", LOWER, None), "proportional memory of the process tree when ready"),
    row("pss.end", Of::ServerStart, ("B", LOWER, None), "proportional memory of the process tree after the last run"),
    row("cpu.user", Of::ServerRun, ("s", LOWER, None), "CPU time in user mode of the server's process tree"),
    row("cpu.system", Of::ServerRun, ("s", LOWER, None), "CPU time in the kernel of the server's process tree"),
    row("cpu.cores", Of::ServerRun, ("1", None, None), "cores that the server's process tree kept busy"),
    row(
        "cpu.busiest_thread",
        Of::ServerRun,
        ("1", None, None),
        "share of one core that the busiest thread of the server's process tree used",
    ),
    row("cpu.per_request", Of::LoadRun, ("s", LOWER, None), "CPU time of the server's process tree for each request"),
    row("throughput", Of::LoadRun, ("1/s", HIGHER, None), "good answers per second"),
    row("transfer", Of::LoadRun, ("B/s", HIGHER, None), "bytes received per second"),
    row("latency.min", Of::LoadRun, ("s", LOWER, None), "shortest latency"),
    row("latency.p50", Of::LoadRun, ("s", LOWER, None), "latency, 50th percentile"),
    row("latency.p75", Of::LoadRun, ("s", LOWER, None), "latency, 75th percentile"),
    row("latency.p90", Of::LoadRun, ("s", LOWER, None), "latency, 90th percentile"),
    row("latency.p95", Of::LoadRun, ("s", LOWER, None), "latency, 95th percentile"),
    row("latency.p99", Of::LoadRun, ("s", LOWER, None), "latency, 99th percentile"),
    row("latency.p999", Of::LoadRun, ("s", LOWER, None), "latency, 99.9th percentile"),
    row("latency.max", Of::LoadRun, ("s", LOWER, None), "longest latency"),
    row("latency.mean", Of::LoadRun, ("s", LOWER, None), "mean latency"),
    row("latency.stddev", Of::LoadRun, ("s", LOWER, None), "standard deviation of the latency"),
    row("connect.p50", Of::LoadRun, ("s", LOWER, None), "time to connect, 50th percentile"),
    row("connect.max", Of::LoadRun, ("s", LOWER, None), "longest time to connect"),
    row("requests", Of::LoadRun, ("1", None, None), "requests started within the window"),
    row("errors.connect", Of::LoadRun, ("1", LOWER, None), "connections that could not be made"),
    row("errors.timeout", Of::LoadRun, ("1", LOWER, None), "requests without an answer in time"),
    row("errors.reset", Of::LoadRun, ("1", LOWER, None), "requests whose connection was closed without an answer"),
    row("errors.protocol", Of::LoadRun, ("1", LOWER, None), "answers that are no HTTP"),
    row("errors.status", Of::LoadRun, ("1", LOWER, None), "answers with another status than expected"),
    row("errors.body", Of::LoadRun, ("1", LOWER, None), "answers with another body than expected or promised"),
    row("errors.total", Of::LoadRun, ("1", LOWER, None), "all errors"),
    row("in_flight", Of::LoadRun, ("1", None, None), "requests without an answer when the window ended"),
    row("reconnects", Of::LoadRun, ("1", None, None), "connections made anew within the window"),
    row("elapsed", Of::LoadRun, ("s", None, None), "length of the window"),
    row(
        "generator.cpu",
        Of::LoadRun,
        ("1", None, None),
        "share of a core that the busiest thread of the generator needed",
    ),
    row("generator.threads", Of::LoadRun, ("1", None, None), "threads of the generator"),
    row("generator.switches", Of::LoadRun, ("1", LOWER, None), "context switches by force of the generator's threads"),
    row("generator.sent", Of::LoadRun, ("1", HIGHER, None), "share of the due requests that were sent"),
    row("generator.backlog", Of::LoadRun, ("1", LOWER, None), "due requests that were not sent when the window ended"),
    row("generator.lateness.p50", Of::LoadRun, ("s", LOWER, None), "how late requests were sent, 50th percentile"),
    row("generator.lateness.p99", Of::LoadRun, ("s", LOWER, None), "how late requests were sent, 99th percentile"),
    row("machine.steal", Of::Machine, ("1", None, None), "cores that the hypervisor gave to others"),
    row("machine.other", Of::Machine, ("1", None, None), "cores kept busy by what is not part of the run"),
    row(
        "machine.pressure.cpu",
        Of::Machine,
        ("1", None, None),
        "share of the time in which something waited for a CPU",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_generator_at_its_limit_does_not_make() {
        let of_servers = BUILTIN.iter().filter(|row| row.of != Of::CommandRun).map(|row| row.name);
        let apart: Vec<&str> = of_servers.filter(|name| !rests_on_load(name)).collect();
        let right = ["startup", "rss.idle", "pss.idle", "cpu.per_request", "machine.steal", "machine.other"];
        assert_eq!(apart, [&right[..], &["machine.pressure.cpu"]].concat());
        // Of one request of a mix, and of a scenario's own.
        assert!(rests_on_load("latency.p99[json]") && !rests_on_load("cpu.per_request[json]"));
        assert!(rests_on_load("machine.own") && rests_on_load("cost"));
    }
}
