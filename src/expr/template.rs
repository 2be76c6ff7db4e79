//! Templates: text with `{{ name }}` in it. No filter, call, arithmetic or statement; `{%` and `{#` are plain text.

use std::fmt;
use std::ops::Range;

use super::{SyntaxError, identifier_end, space_end};

/// A dotted name: `node`, `runtime.bin`, `servers["node-http"].port`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    segments: Vec<String>,
}

impl Name {
    /// Its segments; at least one.
    #[must_use]
    pub fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.segments.iter().enumerate() {
            let plain = identifier_end(segment, 0) == segment.len() && !segment.is_empty();
            match (index, plain) {
                (0, _) => write!(f, "{segment}")?,
                (_, true) => write!(f, ".{segment}")?,
                (_, false) => write!(f, "[\"{segment}\"]")?,
            }
        }
        Ok(())
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text as it stands, string literals included.
    Text(String),
    /// A name, and where its braces stand in the text (bytes).
    Name(Name, Range<usize>),
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its pieces; texts are not empty and never follow each other.
    pub parts: Vec<Part>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    /// The first place that is neither text, a name nor a string literal.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut at = 0;
        while let Some(open) = text[at..].find("{{").map(|offset| at + offset) {
            plain.push_str(&text[at..open]);
            let (inner, end) = braces(text, open)?;
            match inner {
                Inner::Literal(literal) => plain.push_str(literal),
                Inner::Name(name) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Name(name, open..end));
                }
            }
            at = end;
        }
        plain.push_str(&text[at..]);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The name, where the template is one name and nothing else.
    #[must_use]
    pub fn single(&self) -> Option<(&Name, &Range<usize>)> {
        match self.parts.as_slice() {
            [Part::Name(name, at)] => Some((name, at)),
            _ => None,
        }
    }

    /// The text, where no name stands in it.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

enum Inner<'a> {
    Literal(&'a str),
    Name(Name),
}

/// What stands in the braces that open at `open`, and where they end.
fn braces(text: &str, open: usize) -> Result<(Inner<'_>, usize), SyntaxError> {
    let unclosed = || {
        SyntaxError::new(open..open + 2, "`{{` is not closed").help("write `{{ \"{{\" }}` for the braces themselves")
    };
    let start = space_end(text, open + 2);
    let (inner, end) = match text.as_bytes().get(start) {
        None => return Err(unclosed()),
        Some(b'"' | b'\'') => {
            let (literal, end) = quoted(text, start).ok_or_else(unclosed)?;
            (Inner::Literal(literal), end)
        }
        Some(_) => {
            let (name, end) = name(text, start)?;
            (Inner::Name(name), end)
        }
    };
    let close = space_end(text, end);
    if text[close..].starts_with("}}") {
        return Ok((inner, close + 2));
    }
    if !text[open..].contains("}}") {
        return Err(unclosed());
    }
    Err(unexpected(text, close, open))
}

/// The text between the quotes that open at `start`, and where it ends. There are no escapes.
fn quoted(text: &str, start: usize) -> Option<(&str, usize)> {
    let quote = char::from(text.as_bytes()[start]);
    let length = text[start + 1..].find(quote)?;
    Some((&text[start + 1..start + 1 + length], start + length + 2))
}

fn name(text: &str, start: usize) -> Result<(Name, usize), SyntaxError> {
    let mut end = identifier_end(text, start);
    if end == start {
        return Err(unexpected(text, start, start));
    }
    let mut segments = vec![text[start..end].to_owned()];
    loop {
        match text.as_bytes().get(end) {
            Some(b'.') => {
                let next = identifier_end(text, end + 1);
                if next == end + 1 {
                    return Err(unexpected(text, end + 1, start));
                }
                segments.push(text[end + 1..next].to_owned());
                end = next;
            }
            Some(b'[') => {
                let open = end + 1;
                let literal =
                    matches!(text.as_bytes().get(open), Some(b'"' | b'\'')).then(|| quoted(text, open)).flatten();
                match literal {
                    Some((segment, after)) if text.as_bytes().get(after) == Some(&b']') => {
                        segments.push(segment.to_owned());
                        end = after + 1;
                    }
                    _ => return Err(unexpected(text, open, start)),
                }
            }
            _ => return Ok((Name { segments }, end)),
        }
    }
}

fn unexpected(text: &str, at: usize, start: usize) -> SyntaxError {
    let word = text[at..].chars().next();
    let range = at..at + word.map_or(0, char::len_utf8);
    match word {
        None => SyntaxError::new(start..text.len(), "`{{` is not closed"),
        Some('}') => SyntaxError::new(range, "a name is missing between the braces"),
        Some('-') => SyntaxError::new(range, "`-` cannot stand in a template")
            .help("there is no arithmetic; a name with a dash is written `servers[\"node-http\"].port`"),
        Some('|' | '(') => SyntaxError::new(range, "a template has no filters and no calls")
            .help("only a name may stand between `{{` and `}}`"),
        Some(c) => SyntaxError::new(range, format!("`{c}` cannot stand in a template"))
            .help("only a name such as `runtime.bin`, or a string literal, may stand between `{{` and `}}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        Template::parse(text)
            .unwrap()
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Name(name, _) => Some(name.to_string()),
                Part::Text(_) => None,
            })
            .collect()
    }

    #[test]
    fn names_and_text() {
        assert_eq!(names("{{ node }} and {{runtime.bin}}"), ["node", "runtime.bin"]);
        assert_eq!(names("{{ servers[\"node-http\"].port }}"), ["servers[\"node-http\"].port"]);
        assert_eq!(names("{% if %} {# no #} }} {"), Vec::<String>::new());
    }

    #[test]
    fn literals_join_the_text() {
        assert_eq!(Template::parse("a{{ \"{{\" }}b{{ '}}' }}").unwrap().literal(), Some("a{{b}}"));
    }

    #[test]
    fn what_is_no_name_is_refused_at_its_place() {
        let wrong = |text: &str| Template::parse(text).unwrap_err().at;
        assert_eq!(wrong("{{ a | upper }}"), 5..6);
        assert_eq!(wrong("{{ a + b }}"), 5..6);
        assert_eq!(wrong("x {{ }}"), 5..6);
        assert_eq!(wrong("{{ f() }}"), 4..5);
        assert_eq!(wrong("a {{ b"), 2..4);
        assert_eq!(wrong("{{ a.[\"b\"] }}"), 5..6);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused_within_itself(text in "\\PC{0,40}|[{}a-z.\\[\\]\"' ]{0,40}") {
            if let Err(error) = Template::parse(&text) {
                prop_assert!(error.at.end <= text.len() && text.is_char_boundary(error.at.start));
            }
        }
    }
}
