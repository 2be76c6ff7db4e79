//! Claims: which group each is about, and whether its expressions can be computed.

use std::collections::HashSet;

use indexmap::IndexSet;

use super::Expander;
use super::scope::Known;
use crate::diagnostic::{Code, Diagnostic, Span, Spanned, suggest};
use crate::expr::expression::Signature;
use crate::expr::{Expression, Kind};
use crate::plan::{Axes, Claim, Formula, Group, Origin, Text};
use crate::scenario::{self, AxisValue};

const ONE: &[&str] = &["metric", "subject"];
const TWO: &[&str] = &["metric", "a", "b"];
/// The functions over summaries.
const FUNCTIONS: [Signature; 9] = [
    Signature { name: "median", arguments: ONE, kind: Kind::Number },
    Signature { name: "mean", arguments: ONE, kind: Kind::Number },
    Signature { name: "min", arguments: ONE, kind: Kind::Number },
    Signature { name: "max", arguments: ONE, kind: Kind::Number },
    Signature { name: "ratio", arguments: TWO, kind: Kind::Number },
    Signature { name: "difference", arguments: TWO, kind: Kind::Number },
    Signature { name: "percent", arguments: TWO, kind: Kind::Number },
    Signature { name: "always_below", arguments: TWO, kind: Kind::Truth },
    Signature { name: "overlap", arguments: TWO, kind: Kind::Truth },
];

impl Expander<'_> {
    pub(super) fn claims(&mut self, groups: &[Group]) -> Vec<Claim> {
        let scenario = self.scenario;
        let mut claims = Vec::new();
        for entry in scenario.claims.iter().flatten() {
            claims.extend(self.claim(&entry.body, &entry.name, groups));
        }
        claims
    }

    fn claim(&mut self, claim: &scenario::Claim, name: &Spanned<String>, groups: &[Group]) -> Option<Claim> {
        for key in ["text", "value"] {
            if !claim.given.has(key) {
                self.missing(key, "the claim", name.span);
            }
        }
        let axes = Axes::new();
        let text: Text =
            self.reach(&axes, Known { claim: true, ..Known::default() }).opt(claim.text.as_ref()).unwrap_or_default();
        let decimals = self
            .reach(&axes, Known::default())
            .opt(claim.decimals.as_ref())
            .map_or(2, |decimals| u8::try_from(decimals.0).unwrap_or(2));
        let value = claim.value.as_ref().and_then(|value| self.formula(value, None, &FUNCTIONS));
        let group = self.claimed_group(claim, name.span, groups)?;
        let (value, span) = (value?, claim.value.as_ref()?.span);
        self.check_claimed(&value, span, group);
        let expect = claim.expect.as_ref().and_then(|expect| self.claim_expect(expect, value.parsed.kind()));
        Some(Claim {
            name: name.value.clone(),
            group: group.id.clone(),
            text,
            value,
            decimals,
            expect,
            origin: Origin(name.span),
        })
    }

    /// The one group that `measure` and `where` leave.
    fn claimed_group<'g>(&mut self, claim: &scenario::Claim, span: Span, groups: &'g [Group]) -> Option<&'g Group> {
        let axes = Axes::new();
        let measure: Option<Spanned<String>> = self.reach(&axes, Known::default()).opt(claim.measure.as_ref());
        let mut chosen: Vec<&Group> = groups.iter().collect();
        if let Some(measure) = &measure {
            chosen.retain(|group| group.measure.name == measure.value || group.measure.id == measure.value);
            if chosen.is_empty() {
                let mut known: Vec<&str> = groups.iter().map(|group| group.measure.name.as_str()).collect();
                known.dedup();
                let unknown = Diagnostic::error(
                    Code::UnknownEntry,
                    measure.span,
                    format!("there is no measure `{}`", measure.value),
                );
                self.problems.push(unknown.help(suggest(&measure.value, &known)));
                return None;
            }
        }
        for entry in claim.r#where.iter().flatten() {
            let value = entry.body.get(&mut self.reach(&axes, Known::default()))?;
            self.check_where(&entry.name, Spanned::new(&value, entry.body.span()), &chosen)?;
            chosen.retain(|group| {
                group.cells.iter().any(|cell| cell.axes.get(&entry.name.value) == Some(&value))
                    && shared(group, &entry.name.value)
            });
        }
        let place = claim.given.at("where").or_else(|| claim.given.at("measure")).unwrap_or(span);
        match chosen.as_slice() {
            [one] => Some(one),
            [] => {
                if !self.problems.has_errors() {
                    self.problems.push(Diagnostic::error(Code::EmptyExpansion, place, "the claim is about no group"));
                }
                None
            }
            many => {
                let ids: Vec<&str> = many.iter().map(|group| group.id.as_str()).take(10).collect();
                let wrong = Diagnostic::error(Code::AmbiguousJoin, place, "the claim leaves a choice of groups");
                self.problems.push(wrong.help(format!("choose one with `measure` and `where`: {}", ids.join(", "))));
                None
            }
        }
    }

    /// An axis and a value that choose none of the groups are a mistake.
    fn check_where(&mut self, axis: &Spanned<String>, value: Spanned<&AxisValue>, groups: &[&Group]) -> Option<()> {
        let cells = || groups.iter().flat_map(|group| &group.cells);
        let values: IndexSet<String> =
            cells().filter_map(|cell| cell.axes.get(&axis.value)).map(ToString::to_string).collect();
        if values.contains(&value.to_string()) || groups.is_empty() {
            return Some(());
        }
        let wrong = if values.is_empty() {
            let axes: IndexSet<&str> = cells().flat_map(|cell| cell.axes.keys()).map(String::as_str).collect();
            let axes: Vec<&str> = axes.into_iter().collect();
            let message = format!("`{}` is no axis of what the claim is about", axis.value);
            Diagnostic::error(Code::UnknownEntry, axis.span, message).help(suggest(&axis.value, &axes))
        } else {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let message = format!("`{}` is no value of the axis `{}` here", value.value, axis.value);
            Diagnostic::error(Code::InvalidValue, value.span, message).help(suggest(&value.to_string(), &values))
        };
        self.problems.push(wrong);
        None
    }

    /// Metrics and subjects in the calls of a claim are those of its group.
    fn check_claimed(&mut self, value: &Formula, span: Span, group: &Group) {
        let metrics: HashSet<String> = self.metrics.keys().cloned().collect();
        self.check_formula(value, span, &HashSet::new());
        for call in value.parsed.calls() {
            let places: Vec<(&str, Span)> = call
                .arguments
                .iter()
                .map(|(word, at)| (word.as_str(), scenario::within(self.sources.slice(span), span, at.clone())))
                .collect();
            let Some(((metric, metric_span), subjects)) = places.split_first() else { continue };
            if !metrics.contains(*metric) {
                let mut known: Vec<&str> = metrics.iter().map(String::as_str).collect();
                known.sort_unstable();
                self.unknown_metric(metric, *metric_span, &known);
            }
            for (subject, place) in subjects {
                if !group.cells.iter().any(|cell| cell.subject == *subject) {
                    let known: Vec<&str> = group.cells.iter().map(|cell| cell.subject.as_str()).collect();
                    let message = format!("`{subject}` is no subject of `{}`", group.id);
                    self.problems
                        .push(Diagnostic::error(Code::UnknownEntry, *place, message).help(suggest(subject, &known)));
                }
            }
        }
    }

    /// What the value must be: `>= 2` of a number, `true` or `false` of a truth.
    fn claim_expect(&mut self, expect: &Spanned<String>, kind: Kind) -> Option<String> {
        let text = expect.value.trim();
        let fits = match kind {
            Kind::Truth => matches!(text, "true" | "false"),
            Kind::Number => {
                let compares = ["<", ">", "==", "!="].iter().any(|operator| text.starts_with(operator));
                compares
                    && Expression::parse(&format!("x {text}"), &[])
                        .is_ok_and(|parsed| parsed.kind() == Kind::Truth && parsed.names().len() == 1)
            }
        };
        if fits {
            return Some(text.to_owned());
        }
        let help = match kind {
            Kind::Truth => "write \"true\" or \"false\"",
            Kind::Number => "write such as \">= 2\"",
        };
        let message = format!("`{}` is nothing that the value can be compared with", expect.value);
        self.problems.push(Diagnostic::error(Code::InvalidExpression, expect.span, message).help(help));
        None
    }
}

/// Whether all cells of a group have the same value on this axis.
fn shared(group: &Group, axis: &str) -> bool {
    let first = group.cells.first().and_then(|cell| cell.axes.get(axis));
    group.cells.iter().all(|cell| cell.axes.get(axis) == first)
}
