//! Diagnostics as text: the one place that knows the renderer.

use std::fmt::Write as _;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, FileId, Label, Severity, Sources};

/// `text` with its control characters, and those that turn the direction of writing or cannot be seen, written as escapes;
/// tabs and line ends are kept.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hidden = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if (c.is_control() && c != '\n' && c != '\t') || hidden {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// `text` with line ends and tabs escaped too.
fn on_one_line(text: &str) -> String {
    escape_controls(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// How many bytes of sources are quoted at most: a line may be a mebibyte long, and wrong in a thousand places.
const MAX_QUOTED: usize = 8 << 20;

/// The diagnostics as text, each with `FILE:LINE:COLUMN`, its line underlined, other places and help.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    let mut quoted = 0;
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        if !out.is_empty() {
            out.push('\n');
        }
        quoted += by_file(diagnostic).iter().map(|(file, labels)| lines(sources, *file, labels).2.len()).sum::<usize>();
        if quoted > MAX_QUOTED && index > 0 {
            let _ = writeln!(out, "… and {} more, whose lines are too long to be shown", diagnostics.len() - index);
            break;
        }
        out.push_str(&one(diagnostic, sources, &renderer));
        out.push('\n');
    }
    out
}

fn one(diagnostic: &Diagnostic, sources: &Sources, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = on_one_line(&diagnostic.message);
    let title = level.primary_title(message).id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for (file, labels) in by_file(diagnostic) {
        group = group.element(snippet(sources, file, &labels));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(escape_controls(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(on_one_line(help)));
    }
    renderer.render(&[group])
}

/// The labels of each file, the primary one's file first.
fn by_file(diagnostic: &Diagnostic) -> Vec<(FileId, Vec<(AnnotationKind, &Label)>)> {
    let primary = diagnostic.primary.iter().map(|label| (AnnotationKind::Primary, label));
    let others = diagnostic.others.iter().map(|label| (AnnotationKind::Context, label));
    let mut files: Vec<(FileId, Vec<(AnnotationKind, &Label)>)> = Vec::new();
    for (kind, label) in primary.chain(others) {
        match files.iter_mut().find(|(file, _)| *file == label.span.file) {
            Some((_, labels)) => labels.push((kind, label)),
            None => files.push((label.span.file, vec![(kind, label)])),
        }
    }
    files
}

/// A snippet of only the lines that labels touch.
fn snippet<'a>(
    sources: &'a Sources,
    file: FileId,
    labels: &[(AnnotationKind, &'a Label)],
) -> Snippet<'a, Annotation<'a>> {
    let source = sources.get(file);
    let text = source.text.as_str();
    let (line, from, touched) = lines(sources, file, labels);
    let annotations = labels.iter().map(|(kind, label)| {
        let start = (floor(text, label.span.start) - from).min(touched.len());
        let end = (ceil(text, label.span.end) - from).clamp(start, touched.len());
        let text = (!label.text.is_empty()).then(|| on_one_line(&label.text));
        kind.span(start..end).label(text)
    });
    Snippet::source(touched).path(on_one_line(&source.name)).line_start(line).annotations(annotations)
}

/// The lines of a file that labels touch: the number of the first, where it begins, and their text.
fn lines<'a>(sources: &'a Sources, file: FileId, labels: &[(AnnotationKind, &Label)]) -> (usize, usize, &'a str) {
    let source = sources.get(file);
    let text = source.text.as_str();
    let first = labels.iter().map(|(_, label)| floor(text, label.span.start)).min().unwrap_or(0);
    let last = labels.iter().map(|(_, label)| ceil(text, label.span.end)).max().unwrap_or(0);
    let (line, from) = source.line(first);
    let to = text[last..].find('\n').map_or(text.len(), |at| last + at);
    (line, from, text[from..to].trim_end_matches('\r'))
}

/// The nearest boundary of characters at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The nearest boundary of characters at or behind `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
