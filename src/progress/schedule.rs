//! Which turn is on, how many are left, and how long they will take.
//!
//! A turn is expected to take as long as those of its group took; before one has ended, as long as its runs are meant to;
//! before one has begun, as long as the turns of all groups took.

use indexmap::IndexMap;

use crate::event::design::Group;
use crate::event::metric::Metric;
use crate::event::{
    CellId, Design, Metrics, Outcome, Phase, Ready, RunStarted, SubjectKind, TurnEnded, TurnId, TurnStarted,
};
use crate::units::show;

pub(super) struct Schedule {
    groups: Vec<Pace>,
    cells: IndexMap<CellId, Left>,
    metrics: IndexMap<String, Metric>,
    planned: u64,
    now: Option<Now>,
}

/// How long the turns of a group take.
struct Pace {
    group: Group,
    kind: SubjectKind,
    seconds: f64,
    turns: u32,
    expected: Option<f64>,
}

struct Left {
    group: usize,
    turns: u64,
}

/// The turn that is on.
pub(super) struct Now {
    turn: TurnId,
    cell: CellId,
    group: usize,
    started: f64,
    run: Option<String>,
    expected: Option<f64>,
    /// What runs, such as `throughput:bun-serve:closed-100 start 3/6`.
    pub(super) place: String,
    /// What was known when its server was ready.
    pub(super) ready: Metrics,
    /// Whether a run of it was already said to have failed.
    pub(super) told: bool,
}

impl Schedule {
    pub(super) fn of(design: &Design) -> Self {
        let kind = |group: &Group| {
            let cell = design.cells.iter().find(|cell| cell.id == group.baseline);
            let subject = cell.and_then(|cell| design.subjects.iter().find(|subject| subject.id == cell.subject));
            subject.map_or(SubjectKind::Command, |subject| subject.kind)
        };
        let pace =
            |group: &Group| Pace { kind: kind(group), group: group.clone(), seconds: 0.0, turns: 0, expected: None };
        let groups: Vec<Pace> = design.groups.iter().map(pace).collect();
        let left = |cell: &crate::event::design::Cell| {
            let group = groups.iter().position(|pace| pace.group.id == cell.group)?;
            let Pace { group: Group { rounds, warmup, .. }, kind, .. } = &groups[group];
            let turns = if *kind == SubjectKind::Command { rounds + warmup } else { *rounds };
            Some((cell.id.clone(), Left { group, turns }))
        };
        let cells: IndexMap<CellId, Left> = design.cells.iter().filter_map(left).collect();
        let planned = cells.values().map(|left| left.turns).sum();
        Self { groups, cells, metrics: design.metrics.clone(), planned, now: None }
    }

    pub(super) const fn planned(&self) -> u64 {
        self.planned
    }

    /// The turns that ended or will not begin.
    pub(super) fn done(&self) -> u64 {
        self.planned.saturating_sub(self.cells.values().map(|left| left.turns).sum())
    }

    /// What runs now.
    pub(super) fn current(&self) -> &str {
        self.now.as_ref().map_or("", |now| now.run.as_ref().unwrap_or(&now.place))
    }

    /// The turn that is on, if it is that one.
    pub(super) fn now(&mut self, turn: &str) -> Option<&mut Now> {
        self.now.as_mut().filter(|now| now.turn == turn)
    }

    pub(super) fn turn_started(&mut self, t: f64, turn: &TurnStarted) {
        let Some(left) = self.cells.get(&turn.cell) else { return };
        let Pace { group, kind, .. } = &self.groups[left.group];
        let (word, of) = match (kind, turn.phase) {
            (SubjectKind::Server, _) => ("start", group.rounds),
            (SubjectKind::Command, Phase::Measured) => ("run", group.rounds),
            (SubjectKind::Command, Phase::Warmup) => ("warm-up", group.warmup),
        };
        self.now = Some(Now {
            turn: turn.turn.clone(),
            cell: turn.cell.clone(),
            group: left.group,
            started: t,
            run: None,
            expected: None,
            place: format!("{} {word} {}/{of}", turn.cell, turn.round),
            ready: Metrics::new(),
            told: false,
        });
    }

    pub(super) fn ready(&mut self, ready: &Ready) {
        if let Some(now) = self.now(&ready.turn) {
            now.ready.extend(ready.metrics.clone());
        }
    }

    pub(super) fn run_started(&mut self, run: &RunStarted) {
        let place = self.run_place(run.phase, run.index);
        let Some(now) = self.now(&run.turn) else { return };
        now.run = Some(place);
        now.expected = run.expected;
        let group = now.group;
        let pace = &mut self.groups[group];
        let runs = if pace.kind == SubjectKind::Command { 1 } else { pace.group.warmup + pace.group.runs };
        pace.expected = run.expected.map(|seconds| seconds * real(runs)).or(pace.expected);
    }

    pub(super) fn sampled(&mut self, at: f64) {
        if let Some(now) = &mut self.now {
            let of = now.expected.map(|expected| format!(" of {}", show::span(expected)));
            let of = of.unwrap_or_default();
            let run = now.run.as_ref().map(|run| run.split(", ").next().unwrap_or_default().to_owned());
            now.run = run.map(|run| format!("{run}, {}{of}", show::span(at.round())));
        }
    }

    pub(super) fn turn_ended(&mut self, t: f64, ended: &TurnEnded) {
        let Some(now) = self.now.take().filter(|now| now.turn == ended.turn) else { return };
        let Some(left) = self.cells.get_mut(&now.cell) else { return };
        let pace = &mut self.groups[left.group];
        pace.seconds += t - now.started;
        pace.turns += 1;
        left.turns = if ended.outcome == Outcome::Ok { left.turns.saturating_sub(1) } else { 0 };
    }

    /// The seconds that are left, as far as anything is known.
    pub(super) fn left(&self, t: f64) -> Option<f64> {
        let (seconds, turns) = self.groups.iter().fold((0.0, 0), |(s, n), pace| (s + pace.seconds, n + pace.turns));
        let average = (turns > 0).then(|| seconds / f64::from(turns));
        let mut left = 0.0;
        for cell in self.cells.values().filter(|cell| cell.turns > 0) {
            let pace = &self.groups[cell.group];
            let own = (pace.turns > 0).then(|| pace.seconds / f64::from(pace.turns));
            left += real(cell.turns) * own.or(pace.expected).or(average)?;
        }
        let gone = self.now.as_ref().map_or(0.0, |now| t - now.started);
        Some((left - gone).max(0.0)).filter(|left| *left > 0.0)
    }

    fn pace(&self) -> Option<&Pace> {
        self.now.as_ref().map(|now| &self.groups[now.group])
    }

    /// The place of a run of the turn that is on: of a command it is the turn's.
    pub(super) fn run_place(&self, phase: Phase, index: u64) -> String {
        let (Some(now), Some(pace)) = (&self.now, self.pace()) else { return String::new() };
        let (word, of) = match phase {
            Phase::Measured => ("run", pace.group.runs),
            Phase::Warmup => ("warm-up", pace.group.warmup),
        };
        match pace.kind {
            SubjectKind::Command => now.place.clone(),
            SubjectKind::Server => format!("{} {word} {index}/{of}", now.place),
        }
    }

    /// Whether the runs of the turn that is on speak for it.
    pub(super) fn has_runs(&self) -> bool {
        self.pace().is_some_and(|pace| pace.kind == SubjectKind::Command || pace.group.runs > 0)
    }

    /// The numbers that a line has room for: of a load its throughput and tail, else the headline.
    pub(super) fn values(&self, metrics: &Metrics) -> String {
        let unit = |name: &str| self.metrics.get(name).map_or("1", |metric| metric.unit.as_str());
        let value = |name: &str| metrics.get(name).map(|value| show::value(unit(name), *value));
        let named = |name: &String| Some(format!("{name} {}", value(name)?));
        let mut parts = Vec::new();
        if let Some(throughput) = value("throughput") {
            parts.push(throughput);
            parts.extend(value("latency.p99").map(|p99| format!("p99 {p99}")));
        } else {
            let report = self.pace().map_or(&[][..], |pace| &pace.group.report);
            parts.extend(report.iter().find_map(named).or_else(|| named(&"wall".to_owned())));
        }
        let errors = metrics.get("errors.total").filter(|errors| **errors > 0.0);
        parts.extend(errors.map(|errors| format!("{} errors", show::value("1", *errors))));
        if parts.is_empty() { "done".to_owned() } else { parts.join(", ") }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of turns lie far below 2^53")]
const fn real(count: u64) -> f64 {
    count as f64
}
