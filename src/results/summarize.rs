//! From runs to replicates to summaries.
//!
//! A replicate is the value of one turn: the median over its measured runs, or what is taken once per start. With a single
//! start of a server its runs stand in. Warm-ups are in none, nor is anything of a cell that failed.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::fold::FoldError;
use super::percentile::{Percentile, Pool};
use super::rows::{Cell, CellOutcome, Interval, Run, Summary, Turn};
use super::{Results, Warning};
use crate::event::design::Group;
use crate::event::{Outcome, Phase, SubjectKind};
use crate::stats;

/// Whether the runs of a group stand in for its single start.
pub(super) fn is_single_start(results: &Results, group: &Group) -> bool {
    let baseline = results.cell(&group.baseline).and_then(|cell| results.subject(&cell.subject));
    group.rounds == 1 && baseline.is_some_and(|subject| subject.kind == SubjectKind::Server)
}

/// Fills in the summaries, and the warnings about what they are made of.
pub(super) fn summarize(results: &mut Results) -> Result<(), FoldError> {
    let mut summaries = Vec::new();
    let mut warnings = Vec::new();
    let mut turns: HashMap<&str, Vec<&Turn>> = HashMap::new();
    for turn in &results.turns {
        turns.entry(&turn.cell).or_default().push(turn);
    }
    let mut runs: HashMap<&str, Vec<&Run>> = HashMap::new();
    for run in results.runs.iter().filter(|run| run.phase == Phase::Measured && run.outcome == Outcome::Ok) {
        runs.entry(&run.turn).or_default().push(run);
    }
    for group in &results.groups {
        let single = is_single_start(results, group);
        if single {
            warnings.push(Warning {
                code: "single-start".to_owned(),
                text: "each server was started once: what a new start changes is in no number here".to_owned(),
                group: Some(group.id.clone()),
                ..Warning::default()
            });
        }
        let cells = results.cells.iter().filter(|cell| cell.group == group.id);
        for cell in cells.filter(|cell| matches!(cell.outcome, CellOutcome::Ok | CellOutcome::Interrupted)) {
            let turns = turns.get(cell.id.as_str()).map_or(&[][..], Vec::as_slice);
            let made = Made::of(turns, &runs, single)?;
            warnings.extend(at_floor(cell, &made.runs));
            summaries.extend(made.summaries(cell, results)?);
        }
    }
    results.summaries = summaries;
    results.warnings.extend(warnings);
    Ok(())
}

/// What the statistics of a cell are made of.
struct Made<'a> {
    runs: Vec<&'a Run>,
    values: IndexMap<&'a str, Vec<f64>>,
    pool: Pool,
}

impl<'a> Made<'a> {
    fn of(turns: &[&'a Turn], runs: &HashMap<&str, Vec<&'a Run>>, single: bool) -> Result<Self, FoldError> {
        let mut made = Self { runs: Vec::new(), values: IndexMap::new(), pool: Pool::default() };
        for turn in turns.iter().filter(|turn| turn.phase == Phase::Measured) {
            let whole = turn.outcome == Outcome::Ok;
            if !whole && !single {
                continue;
            }
            let runs = runs.get(turn.id.as_str()).map_or(&[][..], Vec::as_slice);
            made.runs.extend(runs);
            let mut of_runs: IndexMap<&str, Vec<f64>> = IndexMap::new();
            for run in runs {
                made.pool.add(run)?;
                for (metric, value) in &run.metrics {
                    of_runs.entry(metric).or_default().push(*value);
                }
            }
            for (metric, value) in turn.metrics.iter().filter(|_| whole) {
                of_runs.entry(metric).or_insert_with(|| vec![*value]);
            }
            for (metric, values) in of_runs {
                let replicates = if single { values } else { vec![median(&values, turn, metric)?] };
                made.values.entry(metric).or_default().extend(replicates);
            }
        }
        Ok(made)
    }

    /// In the order of the metrics' dictionary.
    fn summaries(mut self, cell: &Cell, results: &Results) -> Result<Vec<Summary>, FoldError> {
        self.values.sort_by_cached_key(|metric, _| results.metrics.get_index_of(*metric).unwrap_or(usize::MAX));
        let values = std::mem::take(&mut self.values);
        values.into_iter().map(|(metric, values)| self.summary(cell, metric, &values)).collect()
    }

    fn summary(&self, cell: &Cell, metric: &str, values: &[f64]) -> Result<Summary, FoldError> {
        let refused = |why| FoldError::Numbers { cell: cell.id.clone(), metric: metric.to_owned(), why };
        let stats::Summary { n, min, q1, median, q3, max, mean, sd, mad } = stats::summary(values).map_err(refused)?;
        let interval = stats::median_interval(values).map_err(refused)?.map(|interval| Interval {
            low: interval.low,
            high: interval.high,
            coverage: interval.coverage,
            method: "order statistics".to_owned(),
        });
        let percentile = Percentile::of(metric);
        Ok(Summary {
            cell: cell.id.clone(),
            metric: metric.to_owned(),
            n: n as u64,
            median,
            min,
            max,
            mean,
            sd,
            q1,
            q3,
            mad,
            interval,
            pooled: percentile.as_ref().and_then(|percentile| self.pool.pooled(percentile, &self.runs)),
            requests: percentile.as_ref().and_then(|percentile| self.pool.fewest(percentile, &self.runs)),
        })
    }
}

fn median(values: &[f64], turn: &Turn, metric: &str) -> Result<f64, FoldError> {
    let refused = |why| FoldError::Numbers { cell: turn.cell.clone(), metric: metric.to_owned(), why };
    stats::median(values).map_err(refused)
}

/// The kernel counts pages of each kind in batches for each processor: peaks this near, in bytes, are the same.
const FLOOR_NOISE: f64 = 1_048_576.0;

/// A command whose peak memory is not above what the launcher held has a peak that is not known.
fn at_floor(cell: &Cell, runs: &[&Run]) -> Option<Warning> {
    let at_floor = |run: &&&Run| match (run.metrics.get("rss.peak"), run.metrics.get("rss.floor")) {
        (Some(peak), Some(floor)) => *peak <= floor + FLOOR_NOISE,
        _ => false,
    };
    let count = runs.iter().filter(at_floor).count();
    (count > 0).then(|| Warning {
        code: "rss-floor".to_owned(),
        text: format!(
            "in {count} of {} runs rss.peak is within 1 MiB of what the launcher itself held: the command may have needed less",
            runs.len()
        ),
        cell: Some(cell.id.clone()),
        metric: Some("rss.peak".to_owned()),
        ..Warning::default()
    })
}
