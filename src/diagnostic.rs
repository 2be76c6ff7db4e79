//! Spans, sources and diagnostics: what is wrong, where, and what to write instead.
//!
//! In: a [`Code`], a [`Span`] into one of the [`Sources`], a phrase. Out: [`render()`]ed text with the line underlined.
//! To add a diagnostic, add a row to the table of [`Code`] (it becomes documentation), raise it, and put the smallest file
//! that raises it under `tests/scenarios/invalid/`; a test fails as long as one is missing.

mod code;
mod render;

use std::fmt;

pub use code::Code;
pub use render::{escape_controls, render};

/// Which file of [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The range `start..end` of `file`.
    #[must_use]
    pub fn new(file: FileId, range: std::ops::Range<usize>) -> Self {
        Self { file, start: range.start, end: range.end }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, which stands at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A text that spans point into.
#[derive(Debug, Clone)]
pub struct Source {
    /// How it is shown: the path as the user wrote it, or `--set NAME`.
    pub name: String,
    /// All of it.
    pub text: String,
    /// Where each line but the first begins, in bytes.
    lines: Vec<usize>,
}

impl Source {
    /// The line that holds the byte `at`, counted from 1, and where it begins.
    fn line(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at);
        (line + 1, line.checked_sub(1).map_or(0, |index| self.lines[index]))
    }
}

/// The texts of one scenario.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a text.
    ///
    /// # Panics
    /// At the 4,294,967,296th.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = u32::try_from(self.files.len()).expect("a scenario has at most 64 files and a few --set values");
        let text = text.into();
        let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        self.files.push(Source { name: name.into(), text, lines });
        FileId(id)
    }

    /// The text that `id` names.
    #[must_use]
    pub fn get(&self, id: FileId) -> &Source {
        &self.files[id.0 as usize]
    }

    /// All texts, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        (0..).map(FileId).zip(&self.files)
    }

    /// What stands at `span`.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).text.get(span.start..span.end).unwrap_or_default()
    }

    /// File, line and column of the start of `span`, both counted from 1, columns in characters.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        let source = self.get(span.file);
        let (line, start) = source.line(span.start);
        let before = source.text.get(start..span.start).unwrap_or_default();
        Place { file: source.name.clone(), line, column: before.chars().count() + 1 }
    }
}

/// `FILE:LINE:COLUMN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as it is shown.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It cannot go on like this.
    Error,
    /// It can, but a reader must know.
    Warning,
}

/// A span and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What; may be empty.
    pub text: String,
}

/// Something that is wrong: one lower-case phrase, its place, and help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its stable code.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One lower-case phrase.
    pub message: String,
    /// The place, and what is wrong there. Absent where nothing of a file is to blame.
    pub primary: Option<Label>,
    /// Other places that have to do with it.
    pub others: Vec<Label>,
    /// Facts below the source, such as the end of a process's output.
    pub notes: Vec<String>,
    /// What to write instead, one line.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        let primary = Some(Label { span, text: String::new() });
        Self { primary, ..Self::bare(code, message) }
    }

    /// An error that has no place in a file.
    pub fn bare(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            primary: None,
            others: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Says what is wrong at the primary place.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(primary) = &mut self.primary {
            primary.text = text.into();
        }
        self
    }

    /// Shows another place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.others.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Says what to write instead, if anything is known.
    #[must_use]
    pub fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }

    /// Makes it a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

/// How many diagnostics are kept. What is wrong more often than this is wrong in one way, or is no scenario.
const MOST: usize = 1_000;

/// Diagnostics in the order in which they were found, each once; the first thousand of them.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    list: Vec<Diagnostic>,
    seen: std::collections::HashSet<(Code, Option<Span>, String)>,
    errors: bool,
    left_out: usize,
}

impl Problems {
    /// Adds one, unless the same was said of the same place before.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors |= diagnostic.severity == Severity::Error;
        if self.list.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let place = diagnostic.primary.as_ref().map(|label| label.span);
        if self.seen.insert((diagnostic.code, place, diagnostic.message.clone())) {
            self.list.push(diagnostic);
        }
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in others {
            self.push(diagnostic);
        }
    }

    /// Whether an error is among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len() + self.left_out
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, sorted by file and place; those without a place first. The last one says that more were left out.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|diagnostic| diagnostic.primary.as_ref().map(|label| label.span));
        if let (1.., Some(last)) = (self.left_out, self.list.last_mut()) {
            last.notes.push("there is more that is wrong: the first 1,000 problems are shown".to_owned());
        }
        self.list
    }
}

/// The candidate that is nearest to `word`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (word.chars().count().max(candidate.chars().count()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Help for a wrong word: the nearest candidate, or all of them.
#[must_use]
pub fn suggest(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if candidates.is_empty() => "there are none".to_owned(),
        None if candidates.len() > 24 => {
            format!("known here: {}, and {} more", list(&candidates[..24]), candidates.len() - 24)
        }
        None => format!("known here: {}", list(candidates)),
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters() {
        let mut sources = Sources::default();
        let file = sources.add("a.toml", "x = 1\nä = \"ö\"\n");
        let at = sources.get(file).text.find('"').unwrap();
        assert_eq!(sources.place(Span::new(file, at..at + 4)).to_string(), "a.toml:2:5");
    }

    #[test]
    fn the_same_is_said_once() {
        let mut sources = Sources::default();
        let span = Span::new(sources.add("a", "abc"), 0..1);
        let mut problems = Problems::default();
        for _ in 0..3 {
            problems.push(Diagnostic::error(Code::UnknownKey, span, "unknown key"));
        }
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn a_thousand_are_enough() {
        let mut sources = Sources::default();
        let file = sources.add("a", "x".repeat(2_000));
        let mut problems = Problems::default();
        for at in 0..2_000 {
            problems.push(Diagnostic::error(Code::UnknownKey, Span::new(file, at..at + 1), "unknown key"));
        }
        assert_eq!(problems.len(), 2_000);
        let shown = problems.into_sorted();
        assert_eq!(shown.len(), 1_000);
        assert_eq!(shown[999].notes.len(), 1);
    }

    #[test]
    fn suggestions() {
        assert_eq!(suggest("comand", &["command", "env"]), "did you mean `command`?");
        assert_eq!(suggest("zzzz", &["command", "env"]), "known here: `command`, `env`");
    }
}
