//! What is said of one group: its table, the sentences, what failed, and what the reader of its numbers must know.

use indexmap::IndexMap;

use super::table::{Block, Document, Row, Table, Tone};
use crate::event::design::Group;
use crate::event::{Phase, Role, SubjectKind};
use crate::results::{BELOW_STEP, Cell, CellOutcome, Comparison, Parity, Percentile, Results, Summary, Verdict};
use crate::units::show::{self, Scale, counted};

/// What stands where there is no value.
const NONE: &str = "–";

/// Adds the section of a group.
pub(super) fn add(document: &mut Document, results: &Results, group: &Group) {
    let view = View::of(results, group);
    let driver = group.driver.as_ref().map(|driver| format!(", {}", driver.label));
    document.heading(&format!("{}{}", group.label, driver.unwrap_or_default()));
    document.text(Tone::Plain, view.design());
    document.blocks.push(Block::Table(view.table()));
    document.list(Tone::Alarm, "Failed, or not whole", view.broken());
    document.list(Tone::Plain, "Against the baseline", view.sentences());
    document.list(Tone::Warning, "Warnings", view.warnings());
    let (declared, undeclared): (Vec<&Parity>, Vec<&Parity>) = view.differences().partition(|parity| parity.declared);
    let lines = |parity: Vec<&Parity>| parity.into_iter().map(|parity| view.difference(parity)).collect();
    document.list(Tone::Warning, "The answers were not the same", lines(undeclared));
    document.list(Tone::Plain, "Differences of the answers that the scenario declares", lines(declared));
    document.list(Tone::Plain, "Headers that vary from answer to answer", view.varying());
    document.list(Tone::Plain, "Percentiles of all requests of all runs, pooled", view.pooled());
    document.list(Tone::Plain, "Not shown", view.hidden());
}

struct View<'a> {
    results: &'a Results,
    group: &'a Group,
    cells: Vec<&'a Cell>,
    kind: SubjectKind,
}

impl<'a> View<'a> {
    fn of(results: &'a Results, group: &'a Group) -> Self {
        let cells: Vec<&Cell> = results.cells.iter().filter(|cell| cell.group == group.id).collect();
        let subject = cells.first().and_then(|cell| results.subject(&cell.subject));
        let kind = subject.map_or(SubjectKind::Command, |subject| subject.kind);
        Self { results, group, cells, kind }
    }

    fn label(&self, subject: &'a str) -> &'a str {
        self.results.subject(subject).map_or(subject, |subject| subject.label.as_str())
    }

    fn is_baseline(&self, cell: &Cell) -> bool {
        cell.id == self.group.baseline
    }

    fn is_single_start(&self) -> bool {
        self.kind == SubjectKind::Server && self.group.rounds == 1 && self.group.runs > 0
    }

    /// How it was measured, in a sentence.
    fn design(&self) -> String {
        let Group { rounds, warmup, runs, order, .. } = self.group;
        let warmups = counted(*warmup, "warm-up run");
        let how = match (self.kind, runs) {
            (SubjectKind::Command, _) => format!("{} of each after {warmups}", counted(*rounds, "run")),
            (SubjectKind::Server, 0) => format!("{} of each", counted(*rounds, "start")),
            (SubjectKind::Server, _) => {
                let (starts, runs) = (counted(*rounds, "start"), counted(*runs, "measured run"));
                format!("{starts} of each, with {warmups} and {runs} in every one")
            }
        };
        let order = format!("{order:?}").to_lowercase();
        format!("Planned: {how}; {order} order. A value is the median (the smallest … the largest).")
    }

    /// The summary that is shown for a metric of a cell: not of a percentile that too few requests stand behind.
    fn shown(&self, cell: &Cell, metric: &str) -> Option<&'a Summary> {
        self.results.summary(&cell.id, metric).filter(|summary| is_shown(summary))
    }

    fn is_shown_at_all(&self, metric: &str) -> bool {
        self.cells.iter().any(|cell| self.shown(cell, metric).is_some())
    }

    fn comparison(&self, cell: &Cell, metric: &str) -> Option<&'a Comparison> {
        let baseline = self.results.cell(&self.group.baseline)?;
        self.shown(cell, metric).and(self.shown(baseline, metric))?;
        self.results.comparison(&self.group.id, &cell.subject, metric)
    }

    fn table(&self) -> Table {
        let headline = self.group.report.first().map(String::as_str);
        let errors: Vec<Option<String>> = self.cells.iter().map(|cell| self.errors(cell)).collect();
        let any_errors = errors.iter().any(Option::is_some);
        let scales: Vec<Scale> = self.group.report.iter().map(|metric| self.scale(metric)).collect();

        let mut columns = vec![if self.kind == SubjectKind::Server { "server" } else { "command" }.to_owned()];
        columns.extend(self.group.report.iter().zip(&scales).map(|(metric, scale)| match scale.unit.as_str() {
            unit if !unit.is_empty() && self.is_shown_at_all(metric) => format!("{metric} ({unit})"),
            _ => metric.clone(),
        }));
        columns.push("n".to_owned());
        if let Some(headline) = headline {
            columns.extend([format!("{headline} ratio"), "ranges".to_owned()]);
        }
        columns.extend(any_errors.then(|| "errors".to_owned()));

        let row = |(cell, errors): (&&Cell, Option<String>)| {
            let mut cells = vec![self.name(cell)];
            cells.extend(self.group.report.iter().zip(&scales).map(|(metric, scale)| self.value(cell, metric, scale)));
            cells.push(self.n(cell).map_or_else(|| NONE.to_owned(), show::count));
            if let Some(headline) = headline {
                cells.extend(self.against(cell, headline));
            }
            cells.extend(any_errors.then(|| errors.unwrap_or_else(|| "0".to_owned())));
            let tone = if cell.outcome == CellOutcome::Ok { Tone::Plain } else { Tone::Alarm };
            Row { cells, tone }
        };
        Table { columns, rows: self.cells.iter().zip(errors).map(row).collect() }
    }

    fn scale(&self, metric: &str) -> Scale {
        let values = self.cells.iter().filter_map(|cell| self.shown(cell, metric)).flat_map(|s| [s.min, s.max]);
        Scale::of(self.results.unit(metric), values)
    }

    fn name(&self, cell: &Cell) -> String {
        let mut name = self.label(&cell.subject).to_owned();
        if self.is_baseline(cell) {
            name.push_str(" (baseline)");
        } else if cell.role == Role::Control {
            name.push_str(" (the baseline once more)");
        }
        match cell.outcome {
            CellOutcome::Ok => name,
            CellOutcome::Failed => name + " – failed",
            CellOutcome::Skipped => name + " – skipped",
            CellOutcome::Interrupted => name + " – interrupted",
        }
    }

    /// How many values the cell has: those of its headline, or of the first metric that has any.
    fn n(&self, cell: &Cell) -> Option<u64> {
        self.group.report.iter().find_map(|metric| self.shown(cell, metric)).map(|summary| summary.n)
    }

    fn value(&self, cell: &Cell, metric: &str, scale: &Scale) -> String {
        let Some(summary) = self.shown(cell, metric) else { return NONE.to_owned() };
        let mut text = scale.number(summary.median);
        if self.has_warning("rss-floor", cell, metric) {
            text.insert_str(0, "≤ ");
        }
        if summary.n > 1 {
            text.push_str(&format!(" ({} … {})", scale.number(summary.min), scale.number(summary.max)));
        }
        if self.n(cell) != Some(summary.n) {
            text.push_str(&format!(" n = {}", summary.n));
        }
        text
    }

    fn has_warning(&self, code: &str, cell: &Cell, metric: &str) -> bool {
        let of = |of: &Option<String>, id: &str| of.as_deref() == Some(id);
        self.results.warnings.iter().any(|w| w.code == code && of(&w.cell, &cell.id) && of(&w.metric, metric))
    }

    /// The ratio to the baseline, or why there is none, and how the ranges lie.
    fn against(&self, cell: &Cell, metric: &str) -> [String; 2] {
        if self.is_baseline(cell) {
            return [if self.shown(cell, metric).is_some() { "1" } else { NONE }.to_owned(), String::new()];
        }
        let Some(row) = self.comparison(cell, metric) else { return [NONE.to_owned(), NONE.to_owned()] };
        let ratio = match row.verdict {
            Some(Verdict::Invalid) => format!("cannot tell: {}", why(row)),
            None => row.ratio.map_or_else(|| NONE.to_owned(), show::ratio),
        };
        [ratio, ranges(row).unwrap_or(NONE).to_owned()]
    }

    /// How many of the requests of the measured runs failed, and in what way.
    fn errors(&self, cell: &Cell) -> Option<String> {
        let runs = self.results.runs.iter().filter(|run| run.cell == cell.id && run.phase == Phase::Measured);
        let mut sums: IndexMap<&str, f64> = IndexMap::new();
        for (metric, value) in runs.flat_map(|run| &run.metrics).filter(|(metric, _)| !metric.contains('[')) {
            *sums.entry(metric).or_default() += value;
        }
        let number = |value: f64| show::value("1", value);
        let total = sums.get("errors.total").copied().filter(|total| *total > 0.0)?;
        let of = sums.get("requests").map(|requests| format!(" of {}", number(*requests)));
        let kinds = sums.iter().filter_map(|(metric, sum)| Some((metric.strip_prefix("errors.")?, *sum)));
        let kinds = kinds.filter(|(kind, sum)| *kind != "total" && *sum > 0.0);
        let kinds: Vec<String> = kinds.map(|(kind, sum)| format!("{} {kind}", number(sum))).collect();
        Some(format!("{}{}: {}", number(total), of.unwrap_or_default(), kinds.join(", ")))
    }

    /// Each subject against the baseline, in words; never which is the better one.
    fn sentences(&self) -> Vec<String> {
        self.cells.iter().filter_map(|cell| self.sentence(cell)).collect()
    }

    fn sentence(&self, cell: &Cell) -> Option<String> {
        let rows: Vec<&Comparison> =
            self.group.report.iter().filter_map(|metric| self.comparison(cell, metric)).collect();
        let (compared, invalid): (Vec<&Comparison>, Vec<&Comparison>) =
            rows.iter().partition(|row| row.verdict != Some(Verdict::Invalid));
        let not_compared = self.not_compared(&invalid);
        let clauses = compared.iter().map(|row| self.clause(row, compared[0]));
        let clauses: Vec<String> = if rows.first()?.verdict.is_some() {
            not_compared.into_iter().chain(clauses).collect()
        } else {
            clauses.chain(not_compared).collect()
        };
        let mut codes: Vec<&str> = rows.iter().flat_map(|row| &row.warnings).map(String::as_str).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.retain(|code| *code != BELOW_STEP);
        let warned = if codes.is_empty() { String::new() } else { format!(". Warnings: {}", codes.join(", ")) };
        Some(format!("{}: {}{warned}", self.label(&cell.subject), clauses.join("; ")))
    }

    /// The metrics that are not compared, each under its reason.
    fn not_compared(&self, rows: &[&'a Comparison]) -> Vec<String> {
        let mut reasons: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for row in rows {
            reasons.entry(why(row)).or_default().push(&row.metric);
        }
        let baseline = rows.first().map_or("the baseline", |row| self.label(&row.baseline));
        let clause =
            |(why, metrics): (&str, Vec<&str>)| format!("{} not compared with {baseline} ({why})", metrics.join(", "));
        reasons.into_iter().map(clause).collect()
    }

    fn clause(&self, row: &'a Comparison, first: &Comparison) -> String {
        let metric = self.results.metrics.get(&row.metric);
        let unit = self.results.unit(&row.metric);
        let size = match (row.ratio, row.difference.unwrap_or_default()) {
            (Some(1.0), _) => "equal to".to_owned(),
            (Some(ratio), _) => format!("{} times", show::ratio(ratio)),
            (None, 0.0) => "equal to".to_owned(),
            (None, more) if more > 0.0 => format!("{} more than", show::value(unit, more)),
            (None, less) => format!("{} less than", show::value(unit, -less)),
        };
        let mut notes = Vec::new();
        notes.extend(ranges(row).map(|ranges| format!("ranges {ranges}")));
        if let Some(step) =
            metric.and_then(|metric| metric.step).filter(|_| row.warnings.iter().any(|w| w == BELOW_STEP))
        {
            let whose = if unit == "s" { "the clock's" } else { "its" };
            notes.push(format!("the difference is below {whose} step of {}", show::value(unit, step)));
        }
        if std::ptr::eq(row, first) {
            notes.push(self.numbers(row));
        } else if (row.subject_n, row.baseline_n) != (first.subject_n, first.baseline_n) {
            notes.push(each(row, "value", ""));
        }
        let baseline = if std::ptr::eq(row, first) { self.label(&row.baseline) } else { "the baseline" };
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{} {size} {baseline}{notes}", row.metric)
    }

    /// `6 starts each`, `10 runs against 9`.
    fn numbers(&self, row: &Comparison) -> String {
        match (self.kind, self.is_single_start()) {
            (SubjectKind::Server, false) => each(row, "start", ""),
            (SubjectKind::Server, true) => each(row, "run", " of one start"),
            (SubjectKind::Command, _) => each(row, "run", ""),
        }
    }

    /// The cells that are not whole, each with its reason and the place in the scenario.
    fn broken(&self) -> Vec<String> {
        let broken = self.cells.iter().filter(|cell| cell.outcome != CellOutcome::Ok);
        let line = |cell: &&Cell| {
            let place = self.results.failures.iter().find(|failure| failure.cell.as_ref() == Some(&cell.id));
            let place = place.and_then(|failure| failure.place.as_ref()).map(|place| format!(" ({place})"));
            let reason = cell.reason.as_deref().unwrap_or("it does not say why");
            format!("{}: {reason}{}", self.name(cell), place.unwrap_or_default())
        };
        broken.map(line).collect()
    }

    /// The warnings of the group and its cells, each once with how often it was given; parity is told apart.
    fn warnings(&self) -> Vec<String> {
        let mut lines: IndexMap<String, u64> = IndexMap::new();
        for warning in self.results.warnings.iter().filter(|warning| warning.code != "parity") {
            let cell = self.cells.iter().find(|cell| warning.cell.as_ref() == Some(&cell.id));
            let when = if warning.phase == Some(Phase::Warmup) { "in a warm-up, " } else { "" };
            let whom = match cell {
                Some(cell) => format!("{}: {when}", self.label(&cell.subject)),
                None if warning.group.as_ref() == Some(&self.group.id) => String::new(),
                None => continue,
            };
            *lines.entry(format!("{whom}{} [{}]", warning.text, warning.code)).or_default() += 1;
        }
        let times = |(line, times)| if times == 1 { line } else { format!("{line}, {times} times") };
        lines.into_iter().map(times).collect()
    }

    fn parity(&self) -> impl Iterator<Item = &'a Parity> {
        self.results.parity.iter().filter(|parity| parity.group == self.group.id)
    }

    fn differences(&self) -> impl Iterator<Item = &'a Parity> {
        self.parity().filter(|parity| !parity.differs.is_empty())
    }

    fn difference(&self, parity: &'a Parity) -> String {
        let value = |(subject, value): (&'a String, &Option<String>)| {
            let value = value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("“{}”", shortened(value)));
            let varies = if parity.varies.contains(subject) { " (varies)" } else { "" };
            format!("{} {value}{varies}", self.label(subject))
        };
        let values: Vec<String> = parity.values.iter().map(value).collect();
        format!("{}, {}: {}", parity.probe, parity.what, values.join(", "))
    }

    fn varying(&self) -> Vec<String> {
        let varying = self.parity().filter(|parity| parity.differs.is_empty());
        let line = |parity: &'a Parity| {
            let labels: Vec<&str> = parity.varies.iter().map(|subject| self.label(subject)).collect();
            format!("{}, {}: {}", parity.probe, parity.what, labels.join(", "))
        };
        varying.map(line).collect()
    }

    fn pooled(&self) -> Vec<String> {
        let line = |cell: &&Cell| {
            let summaries = self.group.report.iter().filter_map(|metric| self.shown(cell, metric));
            let pooled = |summary: &Summary| {
                let value = show::value(self.results.unit(&summary.metric), summary.pooled?);
                Some(format!("{} {value}", summary.metric))
            };
            let values: Vec<String> = summaries.filter_map(pooled).collect();
            (!values.is_empty()).then(|| format!("{}: {}", self.label(&cell.subject), values.join(", ")))
        };
        self.cells.iter().filter_map(line).collect()
    }

    /// Why a column has no value.
    fn hidden(&self) -> Vec<String> {
        let of_cell = |cell: &&'a Cell| {
            let subject = self.label(&cell.subject);
            let summaries = self.group.report.iter().filter_map(|metric| self.results.summary(&cell.id, metric));
            let line = move |summary: &Summary| {
                let requests = counted(summary.requests.unwrap_or_default(), "request");
                format!("{subject}: {}, since a run had {requests}: fewer than 10 lie beyond it", summary.metric)
            };
            summaries.filter(|summary| !is_shown(summary)).map(line).collect::<Vec<_>>()
        };
        let is_absent =
            |metric: &&String| self.cells.iter().all(|cell| self.results.summary(&cell.id, metric).is_none());
        let absent = self.group.report.iter().filter(is_absent);
        let absent = absent.map(|metric| format!("{metric}: no run that counts has it"));
        self.cells.iter().flat_map(of_cell).chain(absent).collect()
    }
}

/// Why nothing is compared.
fn why(row: &Comparison) -> &str {
    row.reason.as_deref().unwrap_or("it does not say why")
}

/// How the ranges lie; a single value on both sides is no range.
fn ranges(row: &Comparison) -> Option<&'static str> {
    let ranges = if row.overlap? { "overlap" } else { "do not overlap" };
    (row.subject_n > 1 || row.baseline_n > 1).then_some(ranges)
}

fn each(row: &Comparison, thing: &str, of: &str) -> String {
    let number = counted(row.subject_n, thing);
    if row.subject_n == row.baseline_n {
        format!("{number}{of} each")
    } else {
        format!("{number}{of} against {}", show::count(row.baseline_n))
    }
}

fn is_shown(summary: &Summary) -> bool {
    let percentile = Percentile::of(&summary.metric).zip(summary.requests);
    percentile.is_none_or(|(percentile, requests)| percentile.is_shown(requests))
}

fn shortened(value: &str) -> String {
    const MOST: usize = 60;
    let short: String = value.chars().take(MOST).collect();
    if short.len() == value.len() { short } else { short + "…" }
}
