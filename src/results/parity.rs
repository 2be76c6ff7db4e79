//! Parity: what differed between the answers that the subjects of one group gave to the same probe.
//!
//! A subject stands for its first answer before the runs. Where its other answers had another value, it varies; a header
//! that varies in both of two subjects (an id, a nonce) is no difference between them.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::Results;
use super::rows::{Cell, Parity, Warning};
use crate::event::design::{Probe, Same};
use crate::event::{Answer, CellId, When};

/// An answer to a probe.
pub(super) struct Answered {
    pub(super) cell: CellId,
    pub(super) probe: String,
    pub(super) when: When,
    pub(super) answer: Answer,
}

/// What is compared of an answer: its parts by name, in the order in which they are reported.
type Parts = BTreeMap<Part, String>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Status,
    Header(String),
    Body,
}

/// What one subject answered: the parts of its first answer, and those that were not the same every time.
struct Said<'a> {
    cell: &'a Cell,
    first: Parts,
    varies: Vec<Part>,
}

/// Fills in what differed, and a warning for each subject that differs from its baseline in what is not declared.
pub(super) fn compare(results: &mut Results, probes: &[Probe], answers: &[Answered]) {
    let mut parity = Vec::new();
    let mut undeclared: IndexMap<&CellId, Vec<String>> = IndexMap::new();
    for group in &results.groups {
        let cells: Vec<&Cell> = results.cells.iter().filter(|cell| cell.group == group.id).collect();
        for probe in probes.iter().filter(|probe| !probe.same.is_empty()) {
            let said: Vec<Said> = cells.iter().filter_map(|cell| Said::of(cell, probe, answers)).collect();
            let reference = said.iter().find(|said| said.cell.id == group.baseline).or(said.first());
            let Some(reference) = reference.filter(|_| said.len() > 1) else { continue };
            for part in parts(&said) {
                let differs: Vec<&Said> = said.iter().filter(|said| said.differs(reference, &part)).collect();
                let varies: Vec<&Said> = said.iter().filter(|said| said.varies.contains(&part)).collect();
                if differs.is_empty() && varies.is_empty() {
                    continue;
                }
                let declared = probe.known_differences.iter().any(|known| *known == part.key());
                for said in differs.iter().filter(|_| !declared) {
                    undeclared.entry(&said.cell.id).or_default().push(format!("{} of {}", part.name(), probe.id));
                }
                let subjects = |said: &[&Said]| said.iter().map(|said| said.cell.subject.clone()).collect();
                parity.push(Parity {
                    group: group.id.clone(),
                    probe: probe.id.clone(),
                    what: part.name(),
                    values: said.iter().map(|s| (s.cell.subject.clone(), s.first.get(&part).cloned())).collect(),
                    varies: subjects(&varies),
                    differs: subjects(&differs),
                    declared,
                });
            }
        }
    }
    let warnings = undeclared.into_iter().map(|(cell, what)| Warning {
        code: "parity".to_owned(),
        text: format!("its answers differ from the baseline's: {}", what.join(", ")),
        cell: Some(cell.clone()),
        ..Warning::default()
    });
    let warnings: Vec<Warning> = warnings.collect();
    results.warnings.extend(warnings);
    results.parity = parity;
}

impl<'a> Said<'a> {
    /// `None` where nothing was answered.
    fn of(cell: &'a Cell, probe: &Probe, answers: &[Answered]) -> Option<Self> {
        let own = answers.iter().filter(|answered| answered.cell == cell.id && answered.probe == probe.id);
        let own: Vec<&Answered> = own.collect();
        let first = own.iter().find(|answered| answered.when == When::Before).or(own.first())?;
        let first = compared(&first.answer, probe);
        let mut varies = Vec::new();
        for other in own.iter().map(|answered| compared(&answered.answer, probe)) {
            let changed = first.keys().chain(other.keys()).filter(|part| first.get(part) != other.get(part));
            varies.extend(changed.cloned());
        }
        Some(Self { cell, first, varies })
    }

    fn differs(&self, reference: &Self, part: &Part) -> bool {
        let (own, other) = (self.first.get(part), reference.first.get(part));
        let varies = (self.varies.contains(part), reference.varies.contains(part));
        match (part, varies) {
            (Part::Header(_), (true, true)) => own.is_some() != other.is_some(),
            _ => own != other || varies.0 != varies.1,
        }
    }
}

/// Every part that any subject's answers have.
fn parts(said: &[Said]) -> Vec<Part> {
    let mut parts: Vec<Part> = said.iter().flat_map(|said| said.first.keys().chain(&said.varies).cloned()).collect();
    parts.sort();
    parts.dedup();
    parts
}

/// What the probe compares of an answer: `date` aside, a header that came several times as one.
fn compared(answer: &Answer, probe: &Probe) -> Parts {
    let mut parts = Parts::new();
    for same in &probe.same {
        match same {
            Same::Status => drop(parts.insert(Part::Status, answer.status.to_string())),
            Same::Body => drop(parts.insert(Part::Body, format!("sha256:{}", answer.sha256))),
            Same::Headers => {
                for (name, value) in answer.headers.iter().filter(|(name, _)| name != "date") {
                    let known = parts.entry(Part::Header(name.clone()));
                    known.and_modify(|known| *known = format!("{known}, {value}")).or_insert_with(|| value.clone());
                }
            }
        }
    }
    parts
}

impl Part {
    /// As a result names it.
    fn name(&self) -> String {
        match self {
            Self::Header(name) => format!("header {name}"),
            other => other.key().to_owned(),
        }
    }

    /// As a scenario declares it.
    fn key(&self) -> &str {
        match self {
            Self::Status => "status",
            Self::Header(name) => name,
            Self::Body => "body",
        }
    }
}
