//! The document that every face of a report shows: numbers, units and rounding are decided when it is made.
//!
//! Its texts are raw: a renderer escapes what has a meaning in its format, and control characters.

/// A report from top to bottom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Its parts in order.
    pub blocks: Vec<Block>,
}

/// How loudly something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As the rest.
    Plain,
    /// A reader of the numbers must know it.
    Warning,
    /// Something failed or is not there.
    Alarm,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The title of the whole.
    Title(String),
    /// The title of a section.
    Heading(String),
    /// A paragraph.
    Text(Tone, String),
    /// Items under a title.
    List(Tone, String, Vec<String>),
    /// A table.
    Table(Table),
    /// Lines as they are, such as a diagnostic.
    Verbatim(String),
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The titles of its columns; all but the first hold numbers and are set to the right.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As many cells as the table has columns.
    pub cells: Vec<String>,
    /// How loudly.
    pub tone: Tone,
}

impl Document {
    /// Adds a list, unless it is empty.
    pub(super) fn list(&mut self, tone: Tone, title: &str, items: Vec<String>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(tone, title.to_owned(), items));
        }
    }

    /// Adds a paragraph.
    pub(super) fn text(&mut self, tone: Tone, text: String) {
        self.blocks.push(Block::Text(tone, text));
    }

    /// Adds the title of a section.
    pub(super) fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(text.to_owned()));
    }
}
