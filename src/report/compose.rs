//! From results to the document: what is said, in which order.

use super::group;
use super::table::{Block, Document, Row, Table, Tone};
use crate::event::{CheckOutcome, MachineFacts};
use crate::results::{CellOutcome, Check, Results, Status};
use crate::units::show::{self, counted};

/// The whole report.
#[must_use]
pub fn document(results: &Results) -> Document {
    let mut document = Document::default();
    let scenario = &results.scenario;
    document.blocks.push(Block::Title(scenario.title.as_ref().unwrap_or(&scenario.name).clone()));
    status(&mut document, results);
    for paragraph in scenario.description.iter().flat_map(|text| text.split("\n\n")) {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        document.text(Tone::Plain, lines.join(" ").trim().to_owned());
    }
    for of in &results.groups {
        group::add(&mut document, results, of);
    }
    checks(&mut document, &results.checks);
    diagnostics(&mut document, results);
    document.heading("How it was measured");
    let general = results.warnings.iter().filter(|warning| warning.cell.is_none() && warning.group.is_none());
    let general = general.map(|warning| format!("{} [{}]", warning.text, warning.code)).collect();
    document.list(Tone::Warning, "Warnings", general);
    document.list(Tone::Plain, "Setup", setup(results));
    document.list(Tone::Plain, "Tools", tools(results));
    document.list(Tone::Plain, "Machine", machine(&results.machine));
    document.list(Tone::Plain, "Not measured", scenario.caveats.clone());
    document.list(Tone::Plain, "Quoted, not measured", references(results));
    document.list(Tone::Plain, "Scenario", provenance(results));
    document
}

fn status(document: &mut Document, results: &Results) {
    let when = match &results.finished {
        Some(finished) => format!("measured from {} to {finished}", results.started),
        None => format!("measured from {} on", results.started),
    };
    let (tone, text) = match results.status {
        Status::Complete => (Tone::Plain, format!("Complete: {when}.")),
        Status::Partial => (Tone::Alarm, format!("Partial, since something failed: {when}.")),
        Status::Interrupted => (Tone::Alarm, format!("Interrupted before its end: {when}.")),
    };
    document.text(tone, text);
    for (outcome, title) in
        [(CellOutcome::Failed, "Failed"), (CellOutcome::Skipped, "Skipped"), (CellOutcome::Interrupted, "Interrupted")]
    {
        let cells = results.cells.iter().filter(|cell| cell.outcome == outcome).map(|cell| cell.id.clone());
        document.list(Tone::Alarm, title, cells.collect());
    }
    let others = results.failures.iter().filter(|failure| failure.cell.is_none());
    let line = |failure: &crate::event::Failed| match &failure.place {
        Some(place) => format!("{} ({place})", failure.message),
        None => failure.message.clone(),
    };
    document.list(Tone::Alarm, "Also failed", others.map(line).collect());
}

fn checks(document: &mut Document, checks: &[Check]) {
    if checks.is_empty() {
        return;
    }
    document.heading("Checks");
    let row = |check: &Check| {
        let (word, tone) = match check.outcome {
            CheckOutcome::Pass => ("pass", Tone::Plain),
            CheckOutcome::Fail => ("fail", Tone::Alarm),
            CheckOutcome::KnownFailure => ("known failure", Tone::Plain),
            CheckOutcome::UnexpectedPass => ("unexpected pass", Tone::Warning),
        };
        Row { cells: vec![check.label.clone(), word.to_owned(), check.exit.clone()], tone }
    };
    let columns = ["check", "outcome", "exit"].map(str::to_owned).to_vec();
    document.blocks.push(Block::Table(Table { columns, rows: checks.iter().map(row).collect() }));
}

/// The diagnostics of what failed, as they were shown.
fn diagnostics(document: &mut Document, results: &Results) {
    let rendered = results.failures.iter().map(|failure| failure.rendered.trim_end());
    let rendered: Vec<&str> = rendered.filter(|text| !text.is_empty()).collect();
    if !rendered.is_empty() {
        document.heading("What failed");
        document.blocks.extend(rendered.into_iter().map(|text| Block::Verbatim(text.to_owned())));
    }
}

fn setup(results: &Results) -> Vec<String> {
    let step = |step: &crate::event::SetupStep| match step.wall {
        Some(wall) if !step.skipped => format!("{} ({})", step.step, show::span(wall)),
        _ if step.skipped => format!("{} (skipped: what it makes was there)", step.step),
        _ => step.step.clone(),
    };
    results.setup.iter().map(step).collect()
}

fn tools(results: &Results) -> Vec<String> {
    let tool = |tool: &crate::event::ToolFact| {
        let said = if tool.lines.is_empty() { "said nothing".to_owned() } else { tool.lines.join("; ") };
        let exit = if tool.exit == 0 { String::new() } else { format!(" (exit {})", tool.exit) };
        format!("{}: {said}{exit}", tool.tool)
    };
    results.tools.iter().map(tool).collect()
}

fn machine(machine: &MachineFacts) -> Vec<String> {
    let MachineFacts { cpu, sockets, cores, threads, governor, turbo, kernel, memory, .. } = machine;
    let MachineFacts { hypervisor, cgroup_cpus, cgroup_memory, distribution, run_dir_fs, .. } = machine;
    let bytes = |bytes: &Option<u64>| bytes.map(show::bytes);
    let counts = [(sockets, "socket"), (cores, "core"), (threads, "thread")];
    let counts = counts.iter().filter_map(|(number, thing)| number.map(|number| counted(number, thing)));
    let counts: Vec<String> = counts.collect();
    let facts = [
        ("processor", cpu.clone()),
        ("processors", (!counts.is_empty()).then(|| counts.join(", "))),
        ("frequency governor", governor.clone()),
        ("turbo", turbo.map(|turbo| if turbo { "on" } else { "off" }.to_owned())),
        ("memory", bytes(memory)),
        ("hypervisor", hypervisor.clone()),
        ("limit of the control group", cgroup_cpus.map(|cpus| format!("{} cores", show::value("1", cpus)))),
        ("memory limit of the control group", bytes(cgroup_memory)),
        ("kernel", kernel.clone()),
        ("distribution", distribution.clone()),
        ("file system of the run's directory", run_dir_fs.clone()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?))).collect()
}

fn references(results: &Results) -> Vec<String> {
    let line = |reference: &crate::event::design::Reference| {
        let value = show::value(reference.unit.as_deref().unwrap_or("1"), reference.value);
        format!("{}: {value} ({}, {})", reference.text, reference.source, reference.date)
    };
    results.scenario.references.iter().map(line).collect()
}

/// What somebody needs who wants to measure the same again.
fn provenance(results: &Results) -> Vec<String> {
    let scenario = &results.scenario;
    let mut lines: Vec<String> = Vec::new();
    lines.extend(scenario.files.iter().map(|file| format!("{}, sha256 {}", file.path, prefix(&file.sha256))));
    lines.push(format!("plan {}, seed {}", prefix(&results.plan), results.seed));
    lines.extend(scenario.profile.iter().map(|profile| format!("profile {profile}")));
    lines.extend(scenario.set.iter().map(|(name, value)| format!("set {name} = {value}")));
    let maker = &results.bakeoff;
    let commit = maker.commit.as_ref().map(|commit| format!(" ({})", prefix(commit)));
    lines.push(format!("measured by bakeoff {}{}, {} build", maker.version, commit.unwrap_or_default(), maker.profile));
    if (&maker.folded_by.version, &maker.folded_by.commit) != (&maker.version, &maker.commit) {
        lines.push(format!("folded by bakeoff {}", maker.folded_by.version));
    }
    lines
}

fn prefix(digest: &str) -> String {
    digest.chars().take(12).collect()
}
