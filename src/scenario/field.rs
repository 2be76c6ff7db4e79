//! Values that may be templates: how they stand in the file, and how they become typed once their names are filled in.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{Decode, Decoder};
use super::node::{Node, NodeValue};
use super::value::{Piece, Text, Value};
use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned};
use crate::expr::{self, Name, Template};

/// The longest string that templates may make, in bytes.
pub const MAX_STRING: usize = 64 * 1024;

/// A value as it stands in the file, templates parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A string.
    Text(Vec<RawPart>),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A truth.
    Boolean(bool),
    /// A list.
    List(Vec<Spanned<Raw>>),
    /// A table.
    Table(Vec<(Spanned<String>, Spanned<Raw>)>),
}

/// A piece of a string.
#[derive(Debug, Clone, PartialEq)]
pub enum RawPart {
    /// Text as it stands.
    Plain(String),
    /// A name to be filled in, and its place.
    Name(Name, Span),
}

impl Decode for Raw {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::String(text) => parts(text, node.span, decoder).map(Self::Text),
            NodeValue::Integer(number) => Some(Self::Integer(*number)),
            NodeValue::Float(number) => Some(Self::Float(*number)),
            NodeValue::Boolean(value) => Some(Self::Boolean(*value)),
            NodeValue::Date(_) => {
                decoder.expected(node, "a string, a number, a flag, a list or a table");
                None
            }
            NodeValue::Array(items) => all(items.iter().map(|item| Spanned::decode(item, decoder))).map(Self::List),
            NodeValue::Table(table) => {
                let members = table.iter().map(|(key, member)| {
                    let value = Spanned::decode(&member.node, decoder)?;
                    Some((Spanned::new(key.clone(), member.key), value))
                });
                all(members).map(Self::Table)
            }
        }
    }
}

fn parts(text: &str, span: Span, decoder: &mut Decoder<'_>) -> Option<Vec<RawPart>> {
    let literal = decoder.sources.slice(span).to_owned();
    let place = |at: std::ops::Range<usize>| within(&literal, span, at);
    match Template::parse(text) {
        Ok(template) => {
            let parts = template.parts.into_iter().map(|part| match part {
                expr::Part::Text(text) => RawPart::Plain(text),
                expr::Part::Name(name, at) => RawPart::Name(name, place(at)),
            });
            Some(parts.collect())
        }
        Err(error) => {
            let wrong = Diagnostic::error(Code::TemplateSyntax, place(error.at), error.message);
            decoder.problems.push(wrong.maybe_help(error.help));
            None
        }
    }
}

/// The place of the bytes `at` of a string's value, given the string as it is written at `span`.
#[must_use]
pub fn within(literal: &str, span: Span, at: std::ops::Range<usize>) -> Span {
    let start = span.start + written_offset(literal, at.start);
    let end = (span.start + written_offset(literal, at.end)).max(start);
    Span { start, end, ..span }
}

/// Where the byte `offset` of a TOML string's value stands in the string as it is written, quotes and escapes included.
fn written_offset(literal: &str, offset: usize) -> usize {
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| literal.starts_with(quotes));
    // No quotes: a text of `--set`, which is its own value.
    let Some(quotes) = quotes else { return offset.min(literal.len()) };
    let mut at = quotes.len();
    if quotes.len() == 3 {
        let line_end = ["\r\n", "\n"].into_iter().find(|line_end| literal[at..].starts_with(line_end));
        at += line_end.map_or(0, str::len);
    }
    let escapes = quotes.starts_with('"');
    let mut value = 0;
    while value < offset {
        let Some(c) = literal[at..].chars().next() else { break };
        if c != '\\' || !escapes {
            (at, value) = (at + c.len_utf8(), value + c.len_utf8());
            continue;
        }
        let (written, length) = escape(&literal[at + 1..]);
        (at, value) = (at + 1 + written, value + length);
    }
    at.min(literal.len())
}

/// How many bytes the escape behind a backslash takes as written, and how many its value has.
fn escape(rest: &str) -> (usize, usize) {
    let hex = |digits: usize| {
        let code = rest.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (digits + 1, code.and_then(char::from_u32).map_or(1, char::len_utf8))
    };
    match rest.chars().next() {
        Some('u') => hex(4),
        Some('U') => hex(8),
        Some('x') => hex(2),
        // A backslash at the end of a line swallows all white space behind it.
        Some(c) if c.is_whitespace() => (rest.len() - rest.trim_start().len(), 0),
        Some(c) => (c.len_utf8(), 1),
        None => (0, 0),
    }
}

/// Who knows what names mean, and takes what is wrong.
pub trait Scope {
    /// The value of a name; `None` where it has none, which was then reported.
    fn lookup(&mut self, name: &Name, span: Span) -> Option<Value>;

    /// Where problems go.
    fn problems(&mut self) -> &mut Problems;
}

/// Knows no name and does not mind: what is constant can be checked with it.
pub(super) struct Constant<'a>(pub(super) &'a mut Problems);

impl Scope for Constant<'_> {
    fn lookup(&mut self, _: &Name, _: Span) -> Option<Value> {
        None
    }

    fn problems(&mut self) -> &mut Problems {
        self.0
    }
}

/// Fills in the names of `raw`.
pub fn render(raw: &Spanned<Raw>, scope: &mut dyn Scope) -> Option<Value> {
    match &raw.value {
        Raw::Integer(number) => Some(Value::Integer(*number)),
        Raw::Float(number) => Some(Value::Float(*number)),
        Raw::Boolean(value) => Some(Value::Boolean(*value)),
        Raw::Text(parts) => match parts.as_slice() {
            [RawPart::Name(name, span)] => scope.lookup(name, *span),
            parts => text(parts, raw.span, scope).map(Value::Text),
        },
        Raw::List(items) => all(items.iter().map(|item| render(item, scope))).map(Value::List),
        Raw::Table(members) => {
            let members = members.iter().map(|(key, value)| Some((key.value.clone(), render(value, scope)?)));
            all(members).map(Value::Table)
        }
    }
}

fn text(parts: &[RawPart], span: Span, scope: &mut dyn Scope) -> Option<Text> {
    let pieces = parts.iter().map(|part| match part {
        RawPart::Plain(text) => Some(Text::from(text.as_str())),
        RawPart::Name(name, span) => {
            let value = scope.lookup(name, *span)?;
            let text = value.text();
            if text.is_none() {
                let message = format!("`{name}` is {}, which cannot stand in the midst of a string", value.kind());
                let help = "as the whole of an element of an argument vector, a list is replaced by its elements";
                scope.problems().push(Diagnostic::error(Code::WrongType, *span, message).help(help));
            }
            text
        }
    });
    let mut whole = Text::default();
    for piece in all(pieces)? {
        whole.append(piece);
        if whole.len() > MAX_STRING {
            let message = "the rendered string is longer than 64 KiB";
            scope.problems().push(Diagnostic::error(Code::TooLarge, span, message));
            return None;
        }
    }
    Some(whole)
}

/// All values, or none if one is missing; every one is looked at, so that every problem is found.
pub(super) fn all<T>(values: impl IntoIterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut found = Some(Vec::new());
    for value in values {
        found = match (found, value) {
            (Some(mut list), Some(value)) => {
                list.push(value);
                Some(list)
            }
            _ => None,
        };
    }
    found
}

/// A type that rendered values become.
pub trait FromValue: Sized {
    /// The type, of `value` that stands at `span`; `None` where a problem was reported.
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self>;

    /// The type, of what stands in the file.
    fn from_raw(raw: &Spanned<Raw>, scope: &mut dyn Scope) -> Option<Self> {
        let value = render(raw, scope)?;
        Self::from_value(value, raw.span, scope.problems())
    }

    /// Its JSON Schema, without templates.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

/// A value of a key: a `T`, or a template that gives one.
#[derive(Debug, Clone)]
pub struct Field<T> {
    raw: Spanned<Raw>,
    kind: PhantomData<fn() -> T>,
}

impl<T: FromValue> Field<T> {
    /// The value, its names filled in by `scope`.
    pub fn get(&self, scope: &mut dyn Scope) -> Option<T> {
        T::from_raw(&self.raw, scope)
    }

    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Span {
        self.raw.span
    }

    /// As it stands in the file.
    #[must_use]
    pub fn raw(&self) -> &Spanned<Raw> {
        &self.raw
    }
}

impl<T: FromValue> Decode for Field<T> {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let raw = Spanned::decode(node, decoder)?;
        // What is constant is checked at once, whether or not anything is ever expanded from it.
        T::from_raw(&raw, &mut Constant(decoder.problems));
        Some(Self { raw, kind: PhantomData })
    }
}

impl<T: FromValue> JsonSchema for Field<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let plain = T::schema(generator);
        let is_string = plain.get("type").is_some_and(|kind| kind == "string")
            && plain.get("enum").is_none()
            && plain.get("pattern").is_none();
        if is_string {
            return plain;
        }
        json_schema!({ "anyOf": [plain, { "type": "string", "pattern": "\\{\\{", "description": "a template that gives such a value" }] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Says that a value is of the wrong type.
pub(super) fn wrong_type<T>(what: &str, found: &Value, span: Span, problems: &mut Problems) -> Option<T> {
    let message = format!("expected {what}, found {}", found.kind());
    problems.push(Diagnostic::error(Code::WrongType, span, message));
    None
}

/// Says that a value is none that the key can have.
pub(super) fn invalid<T>(message: impl Into<String>, span: Span, problems: &mut Problems) -> Option<T> {
    problems.push(Diagnostic::error(Code::InvalidValue, span, message));
    None
}

/// The string, where it is one and holds nothing that only a run knows.
pub(super) fn plain_text(what: &str, value: &Value, span: Span, problems: &mut Problems) -> Option<String> {
    let Value::Text(text) = value else { return wrong_type(what, value, span, problems) };
    match text.pieces().iter().find_map(|piece| if let Piece::Hole(hole) = piece { Some(hole) } else { None }) {
        None => Some(text.to_string()),
        Some(hole) => {
            let message = format!("{hole} is known only to a run and cannot be used here");
            let help = "it may stand in argument vectors, env, cwd, paths, stdin, files and requests";
            problems.push(Diagnostic::error(Code::MisplacedPlaceholder, span, message).help(help));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_within_strings_know_quotes_and_escapes() {
        fn at(literal: &str, value: usize) -> &str {
            &literal[written_offset(literal, value)..]
        }
        assert_eq!(at("\"ab{{x}}\"", 2), "{{x}}\"");
        assert_eq!(at("'a\\b{{x}}'", 3), "{{x}}'");
        assert_eq!(at("\"\\u00e4\\n{{x}}\"", 3), "{{x}}\"");
        assert_eq!(at("\"\"\"\nab{{x}}\"\"\"", 2), "{{x}}\"\"\"");
        assert_eq!(at("\"\"\"a\\\n   b{{x}}\"\"\"", 2), "{{x}}\"\"\"");
        assert_eq!(at("ab{{x}}", 2), "{{x}}");
    }
}
