//! A report as Markdown (CommonMark with the tables of GitHub).

use super::table::{Block, Document, Table, Tone};
use crate::units::show;

/// The document as Markdown.
#[must_use]
pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Title(text) => out.push_str(&format!("# {}\n", inline(text))),
            Block::Heading(text) => out.push_str(&format!("## {}\n", inline(text))),
            Block::Text(Tone::Alarm, text) => out.push_str(&format!("**{}**\n", inline(text))),
            Block::Text(_, text) => out.push_str(&format!("{}\n", inline(text))),
            Block::List(tone, title, items) => {
                let mark = if *tone == Tone::Plain { "" } else { "**" };
                out.push_str(&format!("{mark}{}:{mark}\n\n", inline(title)));
                out.extend(items.iter().map(|item| format!("- {}\n", inline(item))));
            }
            Block::Table(table) => rows(table, &mut out),
            Block::Verbatim(text) => out.extend(text.lines().map(|line| format!("    {}\n", show::visible(line)))),
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn rows(table: &Table, out: &mut String) {
    let mut row = |cells: &[String]| {
        out.push('|');
        out.extend(cells.iter().map(|cell| format!(" {cell} |")));
        out.push('\n');
    };
    let escaped = |cells: &[String]| cells.iter().map(|cell| inline(cell)).collect::<Vec<_>>();
    row(&escaped(&table.columns));
    let rule = |index| if index == 0 { "---".to_owned() } else { "--:".to_owned() };
    row(&(0..table.columns.len()).map(rule).collect::<Vec<_>>());
    for line in &table.rows {
        row(&escaped(&line.cells));
    }
}

/// Text that reads as it stands: what has a meaning in Markdown is escaped, and so are control characters.
fn inline(text: &str) -> String {
    let text = show::visible(text);
    let mut out = String::with_capacity(text.len());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbers_a_list =
        digits > 0 && text[digits..].starts_with(['.', ')']) && !text[digits + 1..].starts_with(|c: char| c != ' ');
    let mut before = ' ';
    for (index, c) in text.char_indices() {
        let begins_a_block = index == 0 && "#+-=".contains(c) || numbers_a_list && index == digits;
        let joins_a_word = c == '_' && before.is_alphanumeric();
        if begins_a_block || "\\`*_[]<>|~&$".contains(c) && !joins_a_word {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_is_escaped() {
        assert_eq!(inline("a|b"), "a\\|b");
        assert_eq!(inline("<b>*x* `y` [z](u)"), "\\<b\\>\\*x\\* \\`y\\` \\[z\\](u)");
        assert_eq!(inline("# no title"), "\\# no title");
        assert_eq!(inline("1. no list"), "1\\. no list");
        assert_eq!(inline("12."), "12\\.");
        assert_eq!(inline("1.5 times"), "1.5 times");
        assert_eq!(inline("per_request and _this"), "per_request and \\_this");
        assert_eq!(inline("two\nlines\u{1b}[0m"), "two\\\\nlines\\\\u{1b}\\[0m");
    }
}
