//! From summaries to comparisons: each subject of a group against its baseline, metric by metric.
//!
//! A comparison carries numbers and the codes of the warnings that touch it; or no number, and why there is none.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::rows::{Cell, Comparison, Summary, Verdict};
use super::{Results, Warning};
use crate::event::design::Group;
use crate::event::metric::rests_on_load;
use crate::event::{GENERATOR_BOUND, Outcome, Phase};
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
    let bound = generator_bound(results);
    let mut comparisons = Vec::new();
    for group in &results.groups {
        let Some(baseline) = results.cell(&group.baseline) else { continue };
        for subject in results.cells.iter().filter(|cell| cell.group == group.id && cell.id != baseline.id) {
            let cells = [baseline, subject];
            let limited = cells.iter().any(|cell| bound.contains(cell.id.as_str()));
            let touching: Vec<&Warning> =
                results.warnings.iter().filter(|warning| touches(warning, group, cells)).collect();
            for b in of(subject) {
                let Some(a) = of(baseline).iter().find(|a| a.metric == b.metric) else { continue };
                let mut row = without_numbers(group, cells, [a, b]);
                let codes = touching.iter().filter(|warning| concerns(warning, &a.metric));
                let mut codes: BTreeSet<String> = codes.map(|warning| warning.code.clone()).collect();
                if limited && rests_on_load(&a.metric) {
                    row.verdict = Some(Verdict::Invalid);
                    row.reason = Some("the generator was the limit".to_owned());
                } else {
                    row.ratio = stats::ratio(b.median, a.median);
                    row.difference = row.ratio.is_none().then_some(b.median - a.median);
                    row.overlap = Some(stats::ranges_overlap(a.min..=a.max, b.min..=b.max));
                    codes.extend(is_below_step(results, a, b).then(|| BELOW_STEP.to_owned()));
                }
                row.warnings = codes.into_iter().collect();
                comparisons.push(row);
            }
        }
    }
    results.comparisons = comparisons;
}

fn without_numbers(group: &Group, [a, b]: [&Cell; 2], [of_a, of_b]: [&Summary; 2]) -> Comparison {
    Comparison {
        group: group.id.clone(),
        metric: of_a.metric.clone(),
        baseline: a.subject.clone(),
        subject: b.subject.clone(),
        baseline_n: of_a.n,
        subject_n: of_b.n,
        ratio: None,
        difference: None,
        overlap: None,
        verdict: None,
        reason: None,
        warnings: Vec::new(),
    }
}

/// The cells of which the generator limited a measured run. One is enough: it is in the range and may be the median.
fn generator_bound(results: &Results) -> HashSet<&str> {
    let counting = results.runs.iter().filter(|run| run.phase == Phase::Measured && run.outcome == Outcome::Ok);
    let bound = counting.filter(|run| run.warnings.iter().any(|code| code == GENERATOR_BOUND));
    bound.map(|run| run.cell.as_str()).collect()
}

/// Whether a warning belongs to the comparison of two cells of a group. What a warm-up did stands in no number.
fn touches(warning: &Warning, group: &Group, cells: [&Cell; 2]) -> bool {
    match (&warning.cell, &warning.group) {
        (Some(cell), _) => warning.phase != Some(Phase::Warmup) && cells.iter().any(|of| of.id == *cell),
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
