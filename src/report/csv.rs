//! Tidy files: one value a row, in base units and in full, as the csv crate quotes them.
//!
//! A text that a spreadsheet would take for a formula gets an apostrophe before it.

use std::collections::HashMap;
use std::io;

use indexmap::IndexSet;
use serde::Serialize;
use serde_json::Value as Json;

use crate::event::metric::BUILTIN;
use crate::event::{Metrics, Outcome};
use crate::results::{Cell, Results, Second};

/// `observations.csv`: every metric of every run, then what is taken once per turn, whose `index` is empty; of warm-ups and
/// of what failed too, each marked, and with the codes of its warnings, a space between two. A run that failed without a metric has one row without a value. Each axis is a column
/// `axis_NAME`. Values of a cell whose `cell_outcome` is `failed` are in no statistic.
///
/// # Errors
/// None that is known: those of the writer.
pub fn observations(results: &Results) -> io::Result<String> {
    let axes: IndexSet<&String> = results.cells.iter().flat_map(|cell| cell.axes.keys()).collect();
    let mut rows = Rows::new();
    let cells = ["cell", "measure", "subject", "driver"].map(str::to_owned).into_iter();
    let cells = cells.chain(axes.iter().map(|axis| format!("axis_{axis}")));
    let values = ["round", "index", "phase", "cell_outcome", "outcome", "warnings", "metric", "unit", "value"];
    rows.add(cells.chain(values.map(str::to_owned)))?;

    let cells: HashMap<&String, &Cell> = results.cells.iter().map(|cell| (&cell.id, cell)).collect();
    let runs = results.runs.iter().map(|run| {
        let place = [run.round.to_string(), run.index.to_string(), name(&run.phase)];
        (&run.cell, place, (run.outcome, &run.warnings), &run.metrics)
    });
    let turns = results.turns.iter().map(|turn| {
        let place = [turn.round.to_string(), String::new(), name(&turn.phase)];
        (&turn.cell, place, (turn.outcome, &turn.warnings), &turn.metrics)
    });
    for (cell, place, (outcome, warnings), metrics) in runs.chain(turns) {
        let Some(cell) = cells.get(cell) else { continue };
        let driver = cell.driver.clone().unwrap_or_default();
        let of_axes = axes.iter().map(|axis| cell.axes.get(*axis).map(plain).unwrap_or_default());
        let known = [cell.id.clone(), cell.measure.clone(), cell.subject.clone(), driver].into_iter().chain(of_axes);
        let marks = [name(&cell.outcome), name(&outcome), warnings.join(" ")];
        let known: Vec<String> = known.chain(place).chain(marks).collect();
        for (metric, value) in metrics {
            let value = [metric.clone(), unit(results, metric), value.to_string()];
            rows.add(known.iter().cloned().chain(value))?;
        }
        if metrics.is_empty() && outcome != Outcome::Ok {
            rows.add(known.into_iter().chain([const { String::new() }; 3]))?;
        }
    }
    rows.finish()
}

/// `series.csv`: every value of every second of every load; `at` is the end of the second, in seconds since its window
/// began.
///
/// # Errors
/// None that is known: those of the writer.
pub fn series(results: &Results, seconds: &[Second]) -> io::Result<String> {
    let mut rows = Rows::new();
    rows.add(["cell", "round", "index", "phase", "at", "metric", "unit", "value"].map(str::to_owned))?;
    for Second { cell, round, index, phase, at, values } in seconds {
        let place = [cell.clone(), round.to_string(), index.to_string(), name(phase), at.to_string()];
        for (metric, value) in values as &Metrics {
            let value = [metric.clone(), unit(results, metric), value.to_string()];
            rows.add(place.iter().cloned().chain(value))?;
        }
    }
    rows.finish()
}

/// The unit of a metric or of what a sample holds, whose `rss` is of the kind of `rss.peak`.
fn unit(results: &Results, metric: &str) -> String {
    let own = results.metrics.get(metric).map(|metric| metric.unit.clone());
    let kind = |name: &str| name.strip_prefix(metric).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    own.or_else(|| BUILTIN.iter().find(|row| kind(row.name)).map(|row| row.metric().unit)).unwrap_or_default()
}

/// A word as the JSON files have it.
fn name(word: &impl Serialize) -> String {
    serde_json::to_value(word).map(|json| plain(&json)).unwrap_or_default()
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

struct Rows(csv::Writer<Vec<u8>>);

impl Rows {
    fn new() -> Self {
        Self(csv::Writer::from_writer(Vec::new()))
    }

    fn add(&mut self, row: impl IntoIterator<Item = String>) -> io::Result<()> {
        Ok(self.0.write_record(row.into_iter().map(harmless))?)
    }

    fn finish(self) -> io::Result<String> {
        let bytes = self.0.into_inner().map_err(csv::IntoInnerError::into_error)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

fn harmless(text: String) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for (text, written) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("@SUM(1)", "'@SUM(1)"),
            ("-2+3", "'-2+3"),
            ("-2.5", "-2.5"),
            ("rss.peak", "rss.peak"),
        ] {
            assert_eq!(harmless(text.to_owned()), written);
        }
    }
}
