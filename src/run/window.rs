//! A run of a load: the generator is started, watched over and stopped; its figures and those of the server become one run.
//!
//! In: a load of the plan and a server that is up. Out: a [`Run`], and every second what can be seen of it. The CPU time of
//! the server's tree is taken when the window begins (seen within a millisecond) and when it has ended; what is made of it
//! rests on the time between these two looks. `figures` makes metrics and notes of both.

mod figures;

use std::time::{Duration, Instant};

use super::blame::failure;
use super::effects::{Run, Seconds, Trouble};
use super::machine::Busy;
use super::request::Filled;
use super::server::{Fleet, bytes};
use super::site::Site;
use super::{tls, wait};
use crate::diagnostic::Code;
use crate::event::Metrics;
use crate::load::{self, Ending, Outcome, Progress, Running};
use crate::observe::cpu::{CpuSample, ThreadSample};
use crate::plan::{Load, LoadRequest, LoadStop, Protocol, Server};
use crate::trust::Trust;

/// How often the beginning of the window is looked for.
const OPENING: Duration = Duration::from_millis(1);
/// So often a running load is looked at.
const SECOND: Duration = Duration::from_secs(1);

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

/// What was seen at the beginning, or at the end.
struct Look {
    at: Instant,
    cpu: Option<CpuSample>,
    threads: Option<ThreadSample>,
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
        let processors = fleet.processors(self.server).map(|processors| processors.len());
        let outcome = match running.finish() {
            Ok(outcome) => outcome,
            Err(error) => {
                let gone = trouble.or_else(|| fleet.gone_soon(self.site));
                return Run::failed(gone.unwrap_or_else(|| self.failed(&error)));
            }
        };
        for second in &outcome.seconds {
            seconds((second.at + second.length).as_secs_f64(), figures::of_second(second));
        }
        let trouble = trouble.or_else(|| self.suspect(&outcome).then(|| fleet.gone_soon(self.site)).flatten());
        let trouble = trouble.or_else(|| self.nothing_good(&outcome)).or_else(|| self.gave_up(&outcome));
        let mut run = self.figures(&outcome, [&base, &end], processors);
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

    /// A count of which the rest was given up is not what was asked for.
    fn gave_up(&self, outcome: &Outcome) -> Option<Trouble> {
        let (load, server) = (&self.load.identity, &self.server.identity);
        let silence = crate::units::show::span(self.load.timeout.as_secs_f64() * 2.0);
        let message = format!("the load `{}` on `{}` was given up: no answer came for {silence}", load.id, server.id);
        (outcome.ending == Ending::Silent).then(|| failure(Code::LoadFailed, load.origin, message).into())
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
            protocol: match load.protocol {
                Protocol::Http1 => load::Protocol::Http1,
                Protocol::Http2 => load::Protocol::Http2,
            },
            trust: tls::trust(self.server, &names).unwrap_or(Trust::System),
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
    fn watch(&self, fleet: &mut Fleet, running: &Running, seconds: &mut Seconds<'_>) -> (Look, Option<Trouble>) {
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

    fn look(&self, fleet: &mut Fleet, started: Option<u64>) -> Look {
        let at = Instant::now();
        let cpu = fleet.cpu(self.server);
        let threads = fleet.threads(self.server);
        Look { at, cpu, threads, busy: Busy::now(), started }
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
}
