//! The kinds of values that keys take: numbers with their ranges, durations, sizes, ports, patterns, words, lists.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::decode::{is_axis_word, is_token};
use super::field::{FromValue, Raw, RawPart, Scope, all, invalid, plain_text, render, wrong_type};
use super::value::{Piece, Text, Value};
use crate::diagnostic::{Code, Diagnostic, Problems, Span, Spanned};
use crate::units;

/// A string in which only a run may know some parts.
impl FromValue for Text {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value.text() {
            Some(text)
                if text.pieces().iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains('\0'))) =>
            {
                invalid("a string cannot hold a NUL character", span, problems)
            }
            Some(text) => Some(text),
            None => wrong_type("a string", &value, span, problems),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer", "number", "boolean"] })
    }
}

/// A string that the plan knows wholly.
impl FromValue for String {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        plain_text("a string", &value, span, problems)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Anything.
impl FromValue for Value {
    fn from_value(value: Value, _: Span, _: &mut Problems) -> Option<Self> {
        Some(value)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}

impl FromValue for bool {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(value),
            other => wrong_type("true or false", &other, span, problems),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// A number.
impl FromValue for f64 {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            #[expect(clippy::cast_precision_loss, reason = "rates and weights lie far below 2^53")]
            Value::Integer(number) => Some(number as Self),
            Value::Float(number) => Some(number),
            other => wrong_type("a number", &other, span, problems),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: i64, const MAX: i64>(pub i64);

/// 0 and more, at most a trillion.
pub type Natural = Whole<0, 1_000_000_000_000>;
/// 1 and more, at most a trillion.
pub type Positive = Whole<1, 1_000_000_000_000>;
/// A status code.
pub type Status = Whole<100, 599>;

impl<const MIN: i64, const MAX: i64> Whole<MIN, MAX> {
    /// The number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.unsigned_abs()
    }
}

impl<const MIN: i64, const MAX: i64> FromValue for Whole<MIN, MAX> {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Integer(number) if number < MIN => {
                invalid(format!("{number} is too small: at least {MIN}"), span, problems)
            }
            Value::Integer(number) if number > MAX => {
                invalid(format!("{number} is too large: at most {MAX}"), span, problems)
            }
            Value::Integer(number) => Some(Self(number)),
            other => wrong_type("a whole number", &other, span, problems),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

impl FromValue for Duration {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        if matches!(value, Value::Integer(_) | Value::Float(_)) {
            let message = format!("expected a duration, found {}", value.kind());
            let help = "a duration is a string with a unit, such as \"250ms\" or \"1m30s\"";
            problems.push(Diagnostic::error(Code::WrongType, span, message).help(help));
            return None;
        }
        let text = plain_text("a duration such as \"250ms\"", &value, span, problems)?;
        units::parse_duration(&text).map_or_else(|message| invalid(message, span, problems), Some)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^([0-9][0-9_]*(\\.[0-9]+)? ?(ns|us|ms|s|m|h) ?)+$", "description": "a duration such as \"250ms\" or \"1m30s\"" })
    }
}

/// A duration that is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongerThanZero(pub Duration);

impl FromValue for LongerThanZero {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match Duration::from_value(value, span, problems)? {
            Duration::ZERO => invalid("the duration must be longer than 0", span, problems),
            duration => Some(Self(duration)),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Duration::schema(generator)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromValue for Size {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        if let Value::Integer(number) = value {
            let size = u64::try_from(number).map(Self).ok();
            return size.or_else(|| invalid("a size cannot be negative", span, problems));
        }
        let text = plain_text("a size such as 512 or \"64KiB\"", &value, span, problems)?;
        units::parse_size(&text).map_or_else(|message| invalid(message, span, problems), |size| Some(Self(size)))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"], "minimum": 0,
            "pattern": "^[0-9][0-9_]*(\\.[0-9]+)? ?(B|kB|MB|GB|KiB|MiB|GiB)?$|\\{\\{",
            "description": "bytes: a whole number, or such as \"64KiB\"",
        })
    }
}

/// A set of processors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus(pub Vec<usize>);

impl FromValue for Cpus {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = match value {
            Value::Integer(number) => number.to_string(),
            value => plain_text("a set of CPUs such as \"0-3,6\"", &value, span, problems)?,
        };
        units::parse_cpus(&text).map_or_else(|message| invalid(message, span, problems), |cpus| Some(Self(cpus)))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "minimum": 0, "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$|\\{\\{", "description": "processors in Linux notation, such as \"0-3,6\"" })
    }
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// On a free port, chosen for each start.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// On this one.
    Fixed(u16),
}

impl FromValue for Port {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Integer(number) => match u16::try_from(number) {
                Ok(port) if port > 0 => Some(Self::Fixed(port)),
                _ => invalid(format!("{number} is no port: 1 to 65535"), span, problems),
            },
            value => match plain_text("\"auto\", \"none\" or a port", &value, span, problems)?.as_str() {
                "auto" => Some(Self::Auto),
                "none" => Some(Self::None),
                other => invalid(format!("`{other}` is no port: \"auto\", \"none\" or 1 to 65535"), span, problems),
            },
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["auto", "none"] }, { "type": "integer", "minimum": 1, "maximum": 65535 }] })
    }
}

/// An HTTP method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method(pub String);

impl FromValue for Method {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = plain_text("a method", &value, span, problems)?;
        if is_token(&text) {
            return Some(Self(text));
        }
        invalid(format!("`{text}` is no HTTP method"), span, problems)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" })
    }
}

/// The path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPath(pub Text);

impl FromValue for UrlPath {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = Text::from_value(value, span, problems)?;
        match text.pieces().first() {
            Some(Piece::Plain(first)) if first.starts_with('/') => {}
            _ => return invalid("a path begins with `/`", span, problems),
        }
        let printable =
            |piece: &Piece| !matches!(piece, Piece::Plain(text) if text.chars().any(|c| c.is_control() || c == ' '));
        if !text.pieces().iter().all(printable) {
            return invalid(
                "a path holds no spaces and no control characters: write `%20` and the like",
                span,
                problems,
            );
        }
        Some(Self(text))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^/" })
    }
}

/// A string of one line, such as the value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneLine(pub Text);

impl FromValue for OneLine {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = Text::from_value(value, span, problems)?;
        if text.pieces().iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains(['\r', '\n']))) {
            return invalid("a header holds no line break", span, problems);
        }
        Some(Self(text))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

thread_local! {
    /// The expressions that were compiled last: one that many runs have is compiled once.
    static COMPILED: RefCell<HashMap<String, regex::bytes::Regex>> = RefCell::default();
}

/// How many compiled expressions are remembered.
const REMEMBERED: usize = 256;

/// A regular expression: `(?m)` is on, CR LF is one line end, at most 1 MiB compiled. It is compiled when it is read, to
/// know that it can be, and kept from its first use on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Pattern {
    source: String,
    regex: OnceLock<regex::bytes::Regex>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(source: String) -> Result<Self, String> {
        compiled(&source)?;
        Ok(Self { source, regex: OnceLock::new() })
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.source
    }
}

impl Pattern {
    /// As it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Compiled. It matches bytes, so that text that is no UTF-8 can be searched.
    #[must_use]
    ///
    /// # Panics
    /// Never: what does not compile is no pattern.
    pub fn regex(&self) -> &regex::bytes::Regex {
        self.regex.get_or_init(|| compiled(&self.source).expect("a pattern is made only of what compiles"))
    }
}

/// The compiled expression, or what is wrong with it.
fn compiled(source: &str) -> Result<regex::bytes::Regex, String> {
    if let Some(regex) = COMPILED.with_borrow(|known| known.get(source).cloned()) {
        return Ok(regex);
    }
    let built = regex::bytes::RegexBuilder::new(source).multi_line(true).crlf(true).size_limit(1 << 20).build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern compiles to more than 1 MiB".to_owned(),
        // The last line of the message says what is wrong; those before it draw the pattern.
        error => {
            let text = error.to_string();
            text.lines().last().unwrap_or("it does not parse").trim_start_matches("error: ").to_owned()
        }
    })?;
    COMPILED.with_borrow_mut(|known| {
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(source.to_owned(), regex.clone());
    });
    Ok(regex)
}

impl FromValue for Pattern {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let source = plain_text("a regular expression", &value, span, problems)?;
        match Self::try_from(source) {
            Ok(pattern) => Some(pattern),
            Err(message) => {
                let message = format!("this is no regular expression: {message}");
                problems.push(Diagnostic::error(Code::InvalidPattern, span, message));
                None
            }
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "a regular expression in the syntax of Rust's `regex`, `(?m)` on" })
    }
}

/// A JSON path (RFC 9535).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct JsonPath(pub String);

impl JsonPath {
    /// The path, if `text` is one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match jsonpath_rust::parser::parse_json_path(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => {
                Err(error.to_string().lines().last().unwrap_or_default().trim().trim_start_matches("= ").to_owned())
            }
        }
    }
}

impl FromValue for JsonPath {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = plain_text("a JSON path", &value, span, problems)?;
        Self::parse(&text).map_or_else(
            |message| {
                let message = format!("this is no JSON path (RFC 9535): {message}");
                problems.push(Diagnostic::error(Code::InvalidPattern, span, message));
                None
            },
            Some,
        )
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^\\$", "description": "a JSON path (RFC 9535)" })
    }
}

/// An axis value: a whole number or a word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisValue {
    /// A whole number.
    Number(i64),
    /// A word.
    Word(String),
}

impl std::fmt::Display for AxisValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl From<&AxisValue> for Value {
    fn from(value: &AxisValue) -> Self {
        match value {
            AxisValue::Number(number) => Self::Integer(*number),
            AxisValue::Word(word) => Self::Text(Text::from(word.as_str())),
        }
    }
}

impl FromValue for AxisValue {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(Self::Number(number)),
            value @ Value::Text(_) => {
                let word = plain_text("a value of an axis", &value, span, problems)?;
                if is_axis_word(&word) {
                    return Some(Self::Word(word));
                }
                let message = format!(
                    "`{word}` is no value of an axis: whole numbers, or words of A-Z, a-z, 0-9, `.`, `_` and `-`"
                );
                invalid(message, span, problems)
            }
            other => wrong_type("a whole number or a word", &other, span, problems),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "pattern": "^[A-Za-z0-9._-]+$|\\{\\{" })
    }
}

/// A list, or a template that gives one.
impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::List(items) => all(items.into_iter().map(|item| T::from_value(item, span, problems))),
            other => {
                let message = format!("expected a list, found {}", other.kind());
                let help = "a list stands in brackets, also where it holds one thing: [\"a\"]";
                problems.push(Diagnostic::error(Code::WrongType, span, message).help(help));
                None
            }
        }
    }

    fn from_raw(raw: &Spanned<Raw>, scope: &mut dyn Scope) -> Option<Self> {
        match &raw.value {
            Raw::List(items) => all(items.iter().map(|item| T::from_raw(item, scope))),
            _ => Self::from_value(render(raw, scope)?, raw.span, scope.problems()),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": T::schema(generator) })
    }
}

/// A value with its place.
impl<T: FromValue> FromValue for Spanned<T> {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        T::from_value(value, span, problems).map(|value| Self::new(value, span))
    }

    fn from_raw(raw: &Spanned<Raw>, scope: &mut dyn Scope) -> Option<Self> {
        T::from_raw(raw, scope).map(|value| Self::new(value, raw.span))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }
}

/// An argument vector: an element that is one template and gives a list is replaced by the list's elements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Argv(pub Vec<Text>);

impl Argv {
    fn checked(arguments: Vec<Text>, span: Span, problems: &mut Problems) -> Option<Self> {
        match arguments.first() {
            None => invalid("an argument vector cannot be empty", span, problems),
            Some(program) if program.is_empty() => invalid("the program's name is empty", span, problems),
            Some(_) => Some(Self(arguments)),
        }
    }
}

impl FromValue for Argv {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::List(_) => Self::checked(Vec::from_value(value, span, problems)?, span, problems),
            other => {
                let message = format!("expected an argument vector, found {}", other.kind());
                let help =
                    "write each argument as a string of its own: [\"prog\", \"arg\"]; for a shell there is `shell`";
                problems.push(Diagnostic::error(Code::WrongType, span, message).help(help));
                None
            }
        }
    }

    fn from_raw(raw: &Spanned<Raw>, scope: &mut dyn Scope) -> Option<Self> {
        let Raw::List(items) = &raw.value else {
            return Self::from_value(render(raw, scope)?, raw.span, scope.problems());
        };
        let arguments = items.iter().map(|item| match (&item.value, render(item, scope)?) {
            (Raw::Text(parts), value @ Value::List(_)) if matches!(parts.as_slice(), [RawPart::Name(..)]) => {
                Vec::from_value(value, item.span, scope.problems())
            }
            (_, value) => Text::from_value(value, item.span, scope.problems()).map(|text| vec![text]),
        });
        Self::checked(all(arguments)?.concat(), raw.span, scope.problems())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "minItems": 1, "items": { "type": ["string", "integer", "number", "boolean"] }, "description": "an argument vector: the program, then each argument" })
    }
}
