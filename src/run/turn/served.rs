//! One start of a server with all that is done to it: needs, start, idle values, probes, runs, end values, probes, stop.

use super::event::Numbered;
use super::{Interpreter, Now};
use crate::event::metric::{BUILTIN, Of};
use crate::event::{Event, Metrics, Phase, ProbeResult, Ready, Sample, When};
use crate::plan::{Launch, Load, LoadStop, Plan, Server};
use crate::run::effects::{Down, Note, Trouble};

impl Interpreter<'_> {
    /// Gives the metrics of its end, and what went wrong.
    pub(super) fn served(&mut self, now: Now<'_>, server: &Server) -> (Metrics, Option<Trouble>) {
        let mut metrics = Metrics::new();
        let mut started: Vec<&Server> = Vec::new();
        let mut trouble = None;
        for need in order(self.plan, server) {
            started.push(need);
            if let Err(failed) = self.start(now, need, need.identity.id == server.identity.id) {
                trouble = Some(failed);
                break;
            }
        }
        if trouble.is_none() {
            trouble = self.measured(now, server, &mut metrics).err();
        }
        for server in started.into_iter().rev() {
            let Down { notes, trouble: stopping } = self.effects.stop(server);
            self.sink.notes(notes, Some((now.cell, now.turn)));
            trouble = trouble.or(stopping);
        }
        (metrics, trouble)
    }

    fn start(&mut self, now: Now<'_>, server: &Server, is_subject: bool) -> Result<(), Trouble> {
        let up = self.effects.start(server)?;
        if server.tls.as_ref().is_some_and(|tls| tls.insecure) {
            let id = &server.identity.id;
            self.say_once(
                Note::new("tls-insecure", format!("the certificate of `{id}` is not checked (`insecure`)")),
                now,
            );
        }
        self.sink.notes(up.notes, Some((now.cell, now.turn)));
        if is_subject {
            self.sink.idle = up.metrics.clone();
            let (turn, server) = (now.turn.id.clone(), server.identity.id.clone());
            self.sink.emit(Event::Ready(Ready { turn, server, port: up.port, metrics: up.metrics }));
        }
        Ok(())
    }

    /// What is done while the server is up.
    fn measured(&mut self, now: Now<'_>, server: &Server, metrics: &mut Metrics) -> Result<(), Trouble> {
        if let Launch::Running(url) = &server.launch {
            let text = format!("`{}` runs already at {url}: nothing is known of its process", server.identity.id);
            self.say_once(Note::new("no-process-metrics", text), now);
        }
        self.probe(now, server, When::Before)?;
        let mut runs = Vec::new();
        let ran = self.runs(now, server, &mut runs);
        let (rest, notes) = self.effects.rest(server);
        *metrics = rest;
        self.sink.notes(notes, Some((now.cell, now.turn)));
        ran?;
        for run in &runs {
            let known = [run, &self.sink.idle, &*metrics];
            if let Some(broken) = self.required(now.cell, &known, false) {
                return Err(broken.into());
            }
        }
        self.probe(now, server, When::After)
    }

    fn runs(&mut self, now: Now<'_>, server: &Server, done: &mut Vec<Metrics>) -> Result<(), Trouble> {
        let plan = self.plan;
        let Some(load) = now.cell.driver.as_ref().and_then(|driver| plan.load(driver)) else { return Ok(()) };
        let group = now.group;
        for (phase, count) in [(Phase::Warmup, group.warmup), (Phase::Measured, group.runs)] {
            for index in 1..=count {
                let run = Numbered { turn: now.turn, index, phase };
                done.push(self.load_run(now, run, (server, load))?);
            }
        }
        Ok(())
    }

    fn load_run(
        &mut self,
        now: Now<'_>,
        run: Numbered<'_>,
        (server, load): (&Server, &Load),
    ) -> Result<Metrics, Trouble> {
        let length = now.group.warmup_duration.filter(|_| run.phase == Phase::Warmup);
        let expected = match (length, load.stop) {
            (Some(length), _) | (None, LoadStop::Duration(length)) => Some(length.as_secs_f64()),
            (None, LoadStop::Count(_)) => None,
        };
        self.sink.run_started(run, expected);
        let sink = &mut self.sink;
        let mut seconds = |at: f64, values: Metrics| {
            let (turn, index, phase) = (run.turn.id.clone(), run.index, run.phase);
            sink.emit(Event::Sample(Sample { turn, index, phase, at, values }));
            !sink.is_broken()
        };
        let mut done = self.effects.load(server, load, length, &mut seconds);
        if done.trouble.is_none() {
            let known = [&done.metrics, &self.sink.idle];
            done.trouble = self.required(now.cell, &known, true).map(Trouble::from);
        }
        let metrics = done.metrics.clone();
        self.sink.run_ended(run, now.cell, done).map_or(Ok(metrics), Err)
    }

    /// Sends every probe of the cell; the first that fails fails the cell.
    fn probe(&mut self, now: Now<'_>, server: &Server, when: When) -> Result<(), Trouble> {
        let plan = self.plan;
        let mut first = None;
        for probe in now.cell.probes.iter().filter_map(|id| plan.probe(id)) {
            let probed = self.effects.probe(server, probe);
            let passed = probed.answer.is_some() && probed.failures.is_empty();
            self.sink.emit(Event::Probe(ProbeResult {
                turn: now.turn.id.clone(),
                server: server.identity.id.clone(),
                probe: probe.identity.id.clone(),
                when,
                answer: probed.answer,
                error: probed.error,
                passed,
                failures: probed.failures,
            }));
            let interrupted = matches!(probed.trouble, Some(Trouble::Interrupted));
            first = first.or(probed.trouble);
            if interrupted {
                break;
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// What holds for the whole run is said once.
    fn say_once(&mut self, note: Note, now: Now<'_>) {
        if self.said.insert((note.code, note.text.clone())) {
            self.sink.notes(vec![note], Some((now.cell, now.turn)));
        }
    }
}

/// A server and all that it needs, those first that others need; each once. Needs have no cycles in a plan.
fn order<'p>(plan: &'p Plan, server: &'p Server) -> Vec<&'p Server> {
    fn visit<'p>(plan: &'p Plan, server: &'p Server, order: &mut Vec<&'p Server>) {
        for need in server.needs.iter().filter_map(|id| plan.server(id)) {
            if !order.iter().any(|known| known.identity.id == need.identity.id) {
                visit(plan, need, order);
            }
        }
        order.push(server);
    }
    let mut all = Vec::new();
    visit(plan, server, &mut all);
    all
}

/// Whether a metric is known only at the end of a server's turn.
pub(super) fn comes_later(name: &str) -> bool {
    BUILTIN.iter().any(|metric| metric.name == name && metric.of == Of::ServerStart)
}
