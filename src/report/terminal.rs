//! A report on a terminal, or as plain text.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, TableStyle};

use super::table::{Block, Document, Table, Tone};
use crate::units::show;

/// How the text looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// The terminal's width in columns; tables are as wide as they need where there is none.
    pub width: Option<u16>,
    /// Whether to use colours.
    pub colour: bool,
}

/// The document as text.
#[must_use]
pub fn terminal(document: &Document, look: Look) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Title(text) | Block::Heading(text) => {
                out.push_str(&look.paint(BOLD, &show::visible(text)));
                out.push('\n');
                let rule = if matches!(block, Block::Title(_)) { "═" } else { "─" };
                out.push_str(&rule.repeat(show::visible(text).chars().count()));
            }
            Block::Text(tone, text) => out.push_str(&look.say(*tone, text)),
            Block::List(tone, title, items) => {
                out.push_str(&look.say(*tone, &format!("{title}:")));
                out.extend(items.iter().map(|item| format!("\n  - {}", look.say(*tone, item))));
            }
            Block::Table(table) => out.push_str(&rows(table, look)),
            Block::Verbatim(text) => {
                let lines: Vec<String> = text.lines().map(|line| format!("  {}", show::visible(line))).collect();
                out.push_str(&lines.join("\n"));
            }
        }
        out.push_str("\n\n");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

const BOLD: &str = "1";

impl Look {
    fn say(self, tone: Tone, text: &str) -> String {
        let text = show::visible(text);
        match tone {
            Tone::Plain => text,
            Tone::Warning => self.paint("33", &text),
            Tone::Alarm => self.paint("1;31", &text),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The table, or where it is wider than the terminal several below each other, each with the first column.
fn rows(table: &Table, look: Look) -> String {
    const PADDING: usize = 3;
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let widths = columns(table, &all, look).column_max_content_widths();
    let needed = |parts: &[usize]| parts.iter().map(|index| usize::from(widths[*index]) + PADDING).sum::<usize>();
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    for index in all {
        let fits = look.width.is_none_or(|width| {
            needed(parts.last().map_or(&[], Vec::as_slice)) + needed(&[index]) <= usize::from(width)
        });
        match parts.last_mut() {
            Some(part) if fits || part.len() < 2 => part.push(index),
            _ => parts.push(vec![0, index]),
        }
    }
    let texts: Vec<String> = parts.iter().map(|part| columns(table, part, look).trim_fmt()).collect();
    texts.join("\n\n")
}

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Some columns of a table.
fn columns(table: &Table, which: &[usize], look: Look) -> comfy_table::Table {
    let mut out = comfy_table::Table::new();
    out.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    // What the terminal is, the caller has found out: the table must not look for itself.
    out.force_no_tty();
    match look.width {
        Some(width) => out.set_width(width),
        None => out.set_content_arrangement(ContentArrangement::Disabled),
    };
    if look.colour {
        out.enforce_styling();
    }
    let cell = |cells: &[String], index: usize| {
        let side = if index == 0 { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(show::visible(&cells[index])).set_alignment(side)
    };
    out.set_header(
        which.iter().map(|index| cell(&table.columns, *index).add_attribute(Attribute::Bold)).collect::<Vec<_>>(),
    );
    for row in &table.rows {
        let toned = |cell: Cell| match row.tone {
            Tone::Plain => cell,
            Tone::Warning => cell.fg(Color::Yellow),
            Tone::Alarm => cell.fg(Color::Red),
        };
        out.add_row(which.iter().map(|index| toned(cell(&row.cells, *index))).collect::<Vec<_>>());
    }
    out
}
