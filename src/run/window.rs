//! A run of a load: the generator is started, watched over and stopped; its figures and those of the server become one run.
//!
//! In: a load of the plan and a server that is up. Out: a [`Run`], and every second what can be seen of it. The CPU time of
//! the server's tree is taken when the window begins (seen within a millisecond) and when it has ended; what is made of it
//! rests on the time between these two looks.

use std::time::{Duration, Instant};

use super::blame::failure;
use super::effects::{Note, Run, Seconds, Trouble};
use super::machine::Busy;
use super::request::Filled;
use super::server::{Fleet, bytes};
use super::site::Site;
use super::wait;
use crate::diagnostic::Code;
use crate::event::{BadAnswer, Metrics};
use crate::load::{self, Kept, Kind, Latency, Outcome, Progress, Running};
use crate::observe::cpu::CpuSample;
use crate::plan::{Load, LoadRequest, LoadStop, Server};

/// How often the beginning of the window is looked for.
const OPENING: Duration = Duration::from_millis(1);
/// So often a running load is looked at.
const SECOND: Duration = Duration::from_secs(1);
/// Ages of requests in flight that are kept.
const AGES: usize = 1000;
/// From this share of its core on, a generator may be what limits the figures.
const BOUND: f64 = 0.9;
/// How far throughput times mean latency may be off the number of connections.
const LITTLE: f64 = 0.05;

/// A load and the server it is for.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    /// Where it takes place.
    pub(super) site: &'a Site<'a>,
    /// The server.
    pub(super) server: &'a Server,
    /// The load.
    pub(super) load: &'a Load,
    /// Its length, where that is another than the load's own.
    pub(super) length: Option<Duration>,
}

/// What was seen at the beginning.
struct Base {
    at: Instant,
    cpu: Option<CpuSample>,
    busy: Busy,
    /// Requests of the window that were started before; none where the opening lay behind it.
    started: Option<u64>,
}

/// What was seen at the last tick.
struct Tick {
    at: Instant,
    /// When it was meant to be, so that ticks do not drift.
    due: Instant,
    cpu: Option<CpuSample>,
    progress: Progress,
}

impl Window<'_> {
    /// Runs it once.
    pub(super) fn run(self, fleet: &mut Fleet, seconds: &mut Seconds<'_>) -> Run {
        let started = self.options(fleet).and_then(|options| {
            let failed = |error: load::Error| self.failed(&error);
            load::start(options).map_err(failed)
        });
        let running = match started {
            Ok(running) => running,
            Err(trouble) => return Run::failed(trouble),
        };
        let (base, trouble) = self.watch(fleet, &running, seconds);
        let end = self.look(fleet, None);
        let outcome = match running.finish() {
            Ok(outcome) => outcome,
            Err(error) => {
                let gone = trouble.or_else(|| fleet.gone_soon(self.site));
                return Run::failed(gone.unwrap_or_else(|| self.failed(&error)));
            }
        };
        for second in &outcome.seconds {
            seconds((second.at + second.length).as_secs_f64(), values(second));
        }
        let trouble = trouble.or_else(|| self.suspect(&outcome).then(|| fleet.gone_soon(self.site)).flatten());
        let trouble = trouble.or_else(|| self.nothing_good(&outcome));
        let mut run = self.figures(&outcome, &base, &end);
        run.trouble = run.trouble.or(trouble);
        run
    }

    /// A load without one good answer measured nothing of what it was sent for.
    fn nothing_good(&self, outcome: &Outcome) -> Option<Trouble> {
        let counts = &outcome.counts;
        if counts.ok > 0 || counts.errors() == 0 {
            return None;
        }
        let kinds = load::Kind::ALL.into_iter().filter(|kind| counts.of(*kind) > 0);
        let kinds: Vec<String> = kinds.map(|kind| format!("{} {}", counts.of(kind), kind.name())).collect();
        let (load, server) = (&self.load.identity, &self.server.identity);
        let message = format!("the load `{}` on `{}` got no good answer: {}", load.id, server.id, kinds.join(", "));
        Some(failure(Code::LoadFailed, load.origin, message).into())
    }

    /// Whether connections broke, as they do when a server ends.
    fn suspect(&self, outcome: &Outcome) -> bool {
        outcome.counts.reset + outcome.counts.connect > 0
    }

    fn options(&self, fleet: &Fleet) -> Result<load::Options, Trouble> {
        let load = self.load;
        let invalid = |what: String| failure(Code::LoadFailed, load.identity.origin, what);
        let address = fleet.address(self.server);
        let url = address.and_then(|address| address.url.as_deref()).ok_or_else(|| {
            invalid(format!("the server `{}` has no port that a load could be sent to", self.server.identity.id))
        })?;
        let (target, _) = load::Target::parse(url).map_err(|error| self.failed(&error))?;
        let dir = address.map_or(self.site.run_dir.as_path(), |address| &address.dir);
        let names = self.site.names(dir, &fleet.addresses, Some(&self.server.identity.id));
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let part = |LoadRequest { name, weight, request, status, bytes }: &LoadRequest| load::Part {
            name: name.clone(),
            weight: *weight,
            request: Filled::new(request, &names).for_load(),
            expect: load::Expect { status: status.clone(), bytes: *bytes },
        };
        Ok(load::Options {
            target,
            requests: load.requests.iter().map(part).collect(),
            connections: whole(load.connections),
            stop: match (self.length, load.stop) {
                (Some(length), _) | (None, LoadStop::Duration(length)) => load::Stop::Duration(length),
                (None, LoadStop::Count(count)) => load::Stop::Count(count),
            },
            rate: load.rate,
            pipeline: whole(load.pipeline),
            timeout: load.timeout,
            keep_alive: load.keep_alive,
            threads: whole(load.threads),
            cpus: load.cpus.clone(),
            engine: load::Engine::Auto,
            spin: true,
            seed: self.site.plan.seed,
        })
    }

    fn failed(&self, error: &load::Error) -> Trouble {
        if matches!(error, load::Error::Stopped) {
            return Trouble::Interrupted;
        }
        let message = format!("the load `{}` on `{}` failed: {error}", self.load.identity.id, self.server.identity.id);
        failure(Code::LoadFailed, self.load.identity.origin, message).note(format!("reason: {}", error.reason())).into()
    }

    /// Waits for the end of the load; stops it when a server exits, a signal comes, or the log cannot be written.
    fn watch(&self, fleet: &mut Fleet, running: &Running, seconds: &mut Seconds<'_>) -> (Base, Option<Trouble>) {
        let interrupt = &self.site.options.interrupt;
        let mut base = self.look(fleet, None);
        let mut tick = Tick { at: base.at, due: base.at, cpu: base.cpu, progress: running.progress() };
        loop {
            let opening = tick.progress.opening;
            let next = if opening { Instant::now() + OPENING } else { tick.due + SECOND };
            let mut fds = vec![running.fd(), interrupt.fd()];
            fds.extend(fleet.fds());
            if wait::until(&fds, Some(next)).first() == Some(&true) {
                return (base, None);
            }
            let mut trouble = if interrupt.count() > 0 { Some(Trouble::Interrupted) } else { fleet.gone(self.site) };
            let progress = running.progress();
            if opening && !progress.opening {
                base = self.look(fleet, Some(progress.started));
                tick = Tick { at: base.at, due: base.at, cpu: base.cpu, progress };
            } else if !opening && Instant::now() >= next {
                let (now, values) = self.tick(fleet, &tick, progress);
                tick = now;
                if !seconds(progress.elapsed.as_secs_f64(), values) {
                    trouble.get_or_insert(Trouble::Interrupted);
                }
            }
            if trouble.is_some() {
                running.stop();
                wait::until(&[running.fd()], None);
                return (base, trouble);
            }
        }
    }

    fn look(&self, fleet: &mut Fleet, started: Option<u64>) -> Base {
        let at = Instant::now();
        let cpu = fleet.cpu(self.server);
        Base { at, cpu, busy: Busy::now(), started }
    }

    fn tick(&self, fleet: &mut Fleet, last: &Tick, progress: Progress) -> (Tick, Metrics) {
        let at = Instant::now();
        let cpu = fleet.cpu(self.server);
        let mut values = Metrics::new();
        values.insert("requests".to_owned(), bytes(progress.started.saturating_sub(last.progress.started)));
        values.insert("errors.total".to_owned(), bytes(progress.errors.saturating_sub(last.progress.errors)));
        if let Some(rss) = fleet.sample_memory(self.server) {
            values.insert("rss".to_owned(), bytes(rss));
        }
        let used = cpu.zip(last.cpu).and_then(|(now, then)| now.since(&then));
        let time = at.saturating_duration_since(last.at).as_secs_f64();
        if let Some(used) = used.filter(|_| time > 0.0) {
            values.insert("cpu.cores".to_owned(), used.total.as_secs_f64() / time);
        }
        (Tick { at, due: last.due + SECOND, cpu, progress }, values)
    }

    fn figures(&self, outcome: &Outcome, base: &Base, end: &Base) -> Run {
        let mut run = Run::default();
        let elapsed = outcome.elapsed.as_secs_f64();
        let mut put = |name: &str, value: Option<f64>| {
            run.metrics.extend(value.filter(|value| value.is_finite()).map(|value| (name.to_owned(), value)));
        };
        put("throughput", (elapsed > 0.0).then(|| outcome.throughput()));
        put("transfer", (elapsed > 0.0).then(|| outcome.transfer()));
        for (name, value) in latencies(&outcome.latency) {
            put(name, value);
        }
        put("connect.p50", outcome.connect.quantile(0.5).map(seconds_of));
        put("connect.max", outcome.connect.max().map(seconds_of));
        put("requests", Some(bytes(outcome.counts.started)));
        for kind in Kind::ALL {
            put(&format!("errors.{}", kind.name()), Some(bytes(outcome.counts.of(kind))));
        }
        put("errors.total", Some(bytes(outcome.counts.errors())));
        put("in_flight", Some(bytes(outcome.counts.in_flight)));
        put("reconnects", Some(bytes(outcome.reconnects)));
        put("elapsed", Some(elapsed));
        let share = (elapsed > 0.0).then(|| outcome.generator_share());
        put("generator.cpu", share);
        let time = end.at.saturating_duration_since(base.at).as_secs_f64();
        let used = end.cpu.zip(base.cpu).and_then(|(now, then)| now.since(&then));
        let cores = used.filter(|_| time > 0.0).map(|used| used.total.as_secs_f64() / time);
        if let Some(used) = used {
            let counts = &outcome.counts;
            let ended = counts.started.saturating_sub(counts.in_flight);
            // A window so short that its beginning was not seen: the opening's requests are in what was used.
            let answered = base.started.map_or(ended + outcome.opening.started, |before| ended.saturating_sub(before));
            put("cpu.user", Some(used.user.as_secs_f64()));
            put("cpu.system", Some(used.system.as_secs_f64()));
            put("cpu.cores", cores);
            put("cpu.per_request", (answered > 0).then(|| used.total.as_secs_f64() / bytes(answered)));
        }
        let own = cores.unwrap_or(0.0) + share.unwrap_or(0.0);
        run.metrics.extend(base.busy.since(own));
        self.histograms(&mut run, outcome);
        run.bad_answers = outcome.kept.iter().map(bad_answer).collect();
        run.in_flight_ages = outcome.in_flight.iter().map(Duration::as_secs_f64).collect();
        run.in_flight_ages.sort_by(|left, right| right.total_cmp(left));
        run.in_flight_ages.truncate(AGES);
        run.notes = self.notes(outcome, share);
        run
    }

    fn histograms(&self, run: &mut Run, outcome: &Outcome) {
        for (stem, latency) in [("latency", &outcome.latency), ("connect", &outcome.connect)] {
            match latency.to_v2_deflate_base64() {
                Ok(_) if latency.count() == 0 => {}
                Ok(text) => drop(run.histograms.insert(stem.to_owned(), text)),
                Err(error) => run.trouble = Some(self.failed(&error)),
            }
        }
    }

    fn notes(&self, outcome: &Outcome, share: Option<f64>) -> Vec<Note> {
        let mut notes = Vec::new();
        // How busy it was stands in `generator.cpu`; the same words for every run are told once.
        if share.is_some_and(|share| share >= BOUND) {
            let text = format!(
                "the generator was busy {:.0} % of the time or more: it may be what limits these figures",
                BOUND * 100.0
            );
            notes.push(Note::new("generator-bound", text));
        }
        let connections = bytes(self.load.connections);
        let concurrency = outcome.concurrency().filter(|_| outcome.counts.errors() == 0 && self.load.keep_alive);
        if let Some(concurrency) = concurrency.filter(|found| (found / connections - 1.0).abs() > LITTLE) {
            let text =
                format!("throughput times mean latency is {concurrency:.1}, but there were {connections} connections");
            notes.push(Note::new("littles-law", text));
        }
        notes
    }
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
fn values(second: &load::Second) -> Metrics {
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
