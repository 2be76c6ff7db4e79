//! From summaries to comparisons: each subject of a group against its baseline, metric by metric.
//!
//! A comparison carries numbers and the codes of the warnings that touch it, and no verdict.

use std::collections::{BTreeSet, HashMap};

use super::rows::{Cell, Comparison, Summary};
use super::{Results, Warning};
use crate::event::design::Group;
use crate::stats;

/// The code of a comparison whose difference is smaller than the metric's `step`.
pub const BELOW_STEP: &str = "below-step";

/// Fills in the comparisons.
pub(super) fn compare(results: &mut Results) {
    let mut summaries: HashMap<&str, Vec<&Summary>> = HashMap::new();
    for summary in &results.summaries {
        summaries.entry(&summary.cell).or_default().push(summary);
    }
    let of = |cell: &Cell| summaries.get(cell.id.as_str()).map_or(&[][..], Vec::as_slice);
    let mut comparisons = Vec::new();
    for group in &results.groups {
        let Some(baseline) = results.cell(&group.baseline) else { continue };
        for subject in results.cells.iter().filter(|cell| cell.group == group.id && cell.id != baseline.id) {
            let touching: Vec<&Warning> =
                results.warnings.iter().filter(|warning| touches(warning, group, [baseline, subject])).collect();
            for b in of(subject) {
                let Some(a) = of(baseline).iter().find(|a| a.metric == b.metric) else { continue };
                let codes = touching.iter().filter(|warning| concerns(warning, &a.metric));
                let mut codes: BTreeSet<String> = codes.map(|warning| warning.code.clone()).collect();
                if is_below_step(results, a, b) {
                    codes.insert(BELOW_STEP.to_owned());
                }
                let codes = codes.into_iter().collect();
                comparisons.push(comparison(group, [baseline, subject], [a, b], codes));
            }
        }
    }
    results.comparisons = comparisons;
}

fn comparison(group: &Group, [a, b]: [&Cell; 2], [of_a, of_b]: [&Summary; 2], warnings: Vec<String>) -> Comparison {
    let ratio = stats::ratio(of_b.median, of_a.median);
    Comparison {
        group: group.id.clone(),
        metric: of_a.metric.clone(),
        baseline: a.subject.clone(),
        subject: b.subject.clone(),
        baseline_n: of_a.n,
        subject_n: of_b.n,
        ratio,
        difference: ratio.is_none().then_some(of_b.median - of_a.median),
        overlap: stats::ranges_overlap(of_a.min..=of_a.max, of_b.min..=of_b.max),
        warnings,
    }
}

/// Whether a warning belongs to the comparison of two cells of a group.
fn touches(warning: &Warning, group: &Group, cells: [&Cell; 2]) -> bool {
    match (&warning.cell, &warning.group) {
        (Some(cell), _) => cells.iter().any(|of| of.id == *cell),
        (None, of) => of.as_ref() == Some(&group.id),
    }
}

fn concerns(warning: &Warning, metric: &str) -> bool {
    warning.metric.as_ref().is_none_or(|of| of == metric)
}

/// A difference smaller than what the metric's clock can show is none that was seen.
fn is_below_step(results: &Results, a: &Summary, b: &Summary) -> bool {
    let step = results.metrics.get(&a.metric).and_then(|metric| metric.step);
    step.is_some_and(|step| (b.median - a.median).abs() < step)
}
