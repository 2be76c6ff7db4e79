//! Diagnostics as text: the one place that knows the renderer.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, FileId, Label, Severity, Sources};

/// `text` with its control characters, and those that turn the direction of writing, written as escapes; tabs and line
/// ends are kept.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\n' && c != '\t') || turns || c == '\u{feff}' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The diagnostics as text, each with `FILE:LINE:COLUMN`, its line underlined, other places and help.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
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
    let message = escape_controls(&diagnostic.message);
    let title = level.primary_title(message).id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for (file, labels) in by_file(diagnostic) {
        group = group.element(snippet(sources, file, &labels));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(escape_controls(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(escape_controls(help)));
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

/// A snippet of only the lines that labels touch: a file may be a mebibyte long.
fn snippet<'a>(
    sources: &'a Sources,
    file: FileId,
    labels: &[(AnnotationKind, &'a Label)],
) -> Snippet<'a, Annotation<'a>> {
    let source = sources.get(file);
    let text = source.text.as_str();
    let first = labels.iter().map(|(_, label)| label.span.start.min(text.len())).min().unwrap_or(0);
    let last = labels.iter().map(|(_, label)| label.span.end.min(text.len())).max().unwrap_or(0);
    let from = text[..floor(text, first)].rfind('\n').map_or(0, |at| at + 1);
    let to = text[ceil(text, last)..].find('\n').map_or(text.len(), |at| ceil(text, last) + at);
    let line = text[..from].matches('\n').count() + 1;
    let annotations = labels.iter().map(|(kind, label)| {
        let start = floor(text, label.span.start.min(text.len())) - from;
        let end = ceil(text, label.span.end.min(text.len())).max(start + from) - from;
        let text = (!label.text.is_empty()).then(|| escape_controls(&label.text));
        kind.span(start..end).label(text)
    });
    Snippet::source(&text[from..to]).path(escape_controls(&source.name)).line_start(line).annotations(annotations)
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
