//! Templates (`{{ name }}`) and expressions over numbers: syntax, types and values, without any notion of what names mean.
//!
//! In: text. Out: a [`Template`] (parts to be filled in by whoever knows the names) or an [`Expression`] (checked for types,
//! evaluated with a lookup). What is wrong is a [`SyntaxError`] with its place in the text.
//! To add a function to expressions, add it to [`expression::FUNCTIONS`] and to `Expression::evaluate`.

pub mod expression;
pub mod template;

use std::ops::Range;

pub use expression::{Expression, Kind};
pub use template::{Name, Part, Template};

/// What is wrong in a template or an expression, and where in its text (bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where in the text.
    pub at: Range<usize>,
    /// What is wrong, one phrase.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl SyntaxError {
    fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The end of the identifier `[A-Za-z_][A-Za-z0-9_]*` that begins at `start`, or `start` where none does.
fn identifier_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = start;
    while let Some(byte) = bytes.get(end) {
        let fits = byte.is_ascii_alphabetic() || *byte == b'_' || (end > start && byte.is_ascii_digit());
        if !fits {
            break;
        }
        end += 1;
    }
    end
}

/// The end of the white space that begins at `start`.
fn space_end(text: &str, start: usize) -> usize {
    text[start..].find(|c: char| !c.is_whitespace()).map_or(text.len(), |at| start + at)
}
