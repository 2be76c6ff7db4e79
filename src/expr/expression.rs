//! Expressions over numbers in base units: metric names, `vars.NAME`, literals, `+ - * / ** ( )`, comparisons,
//! `and or not`, functions. Parsed by precedence climbing, loosest first:
//! `or`, `and`, `not`, comparison (does not chain), `+ -`, `* /`, sign, `**` (from the right).

use std::ops::Range;

use super::{SyntaxError, identifier_end, space_end};

/// The functions of numbers, each of one argument.
pub const FUNCTIONS: [&str; 4] = ["floor", "ceil", "round", "abs"];

const MAX_DEPTH: usize = 64;
/// The longest expression, in bytes: it bounds how deep a chain of operators becomes.
const MAX_LENGTH: usize = 1024;

/// Whether an expression is a number or a truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A truth.
    Truth,
}

/// A parsed expression of a known kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
    kind: Kind,
}

/// A function that only some expressions have (those of claims): its name and the names of its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// The function's name.
    pub name: &'static str,
    /// Its arguments; all are quoted words.
    pub arguments: &'static [&'static str],
    /// What it gives.
    pub kind: Kind,
}

/// A call of a function of quoted words, as it stands in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: String,
    /// Its arguments, with their places.
    pub arguments: Vec<(String, Range<usize>)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    at: Range<usize>,
    value: NodeValue,
}

#[derive(Debug, Clone, PartialEq)]
enum NodeValue {
    Number(f64),
    Name(String),
    Negative(Box<Node>),
    Not(Box<Node>),
    Function(&'static str, Box<Node>),
    Call(Call, Kind),
    Binary(Operator, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

/// Two-character operators come first, so that the longer one is read.
const OPERATORS: [(&str, Operator, u8); 13] = [
    ("or", Operator::Or, 1),
    ("and", Operator::And, 2),
    ("==", Operator::Equal, 4),
    ("!=", Operator::Unequal, 4),
    ("<=", Operator::LessOrEqual, 4),
    (">=", Operator::GreaterOrEqual, 4),
    ("<", Operator::Less, 4),
    (">", Operator::Greater, 4),
    ("+", Operator::Add, 5),
    ("-", Operator::Subtract, 5),
    ("**", Operator::Power, 8),
    ("*", Operator::Multiply, 6),
    ("/", Operator::Divide, 6),
];
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SIGN: u8 = 7;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// A divisor was zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A name has no value here.
    #[error("`{0}` has no value in this run")]
    Missing(String),
    /// The result is no finite number.
    #[error("the result is no finite number")]
    NotFinite,
}

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A truth.
    Truth(bool),
}

/// Where an expression gets its values from.
pub trait Lookup {
    /// The value of a name, if it has one.
    fn name(&self, name: &str) -> Option<f64>;

    /// The value of a function of quoted words.
    ///
    /// # Errors
    /// Why it has none.
    fn call(&self, call: &Call) -> Result<Value, NoValue> {
        Err(NoValue::Missing(call.function.clone()))
    }
}

impl<F: Fn(&str) -> Option<f64>> Lookup for F {
    fn name(&self, name: &str) -> Option<f64> {
        self(name)
    }
}

impl Expression {
    /// Parses `text` and checks its types; `calls` are the functions of quoted words that it may use.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str, calls: &[Signature]) -> Result<Self, SyntaxError> {
        if text.len() > MAX_LENGTH {
            return Err(SyntaxError::new(0..0, "an expression is at most 1 KiB long"));
        }
        let mut parser = Parser { text, at: 0, calls, depth: 0 };
        let root = parser.operand_and_operators(0)?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.unexpected());
        }
        let kind = root.kind()?;
        Ok(Self { root, kind })
    }

    /// Number or truth.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The names in it, with their places.
    #[must_use]
    pub fn names(&self) -> Vec<(&str, Range<usize>)> {
        let mut names = Vec::new();
        self.root.visit(&mut |node| {
            if let NodeValue::Name(name) = &node.value {
                names.push((name.as_str(), node.at.clone()));
            }
        });
        names
    }

    /// The calls of functions of quoted words in it.
    #[must_use]
    pub fn calls(&self) -> Vec<&Call> {
        let mut calls = Vec::new();
        self.root.visit(&mut |node| {
            if let NodeValue::Call(call, _) = &node.value {
                calls.push(call);
            }
        });
        calls
    }

    /// Its value.
    ///
    /// # Errors
    /// Why it has none.
    pub fn evaluate(&self, lookup: &dyn Lookup) -> Result<Value, NoValue> {
        self.root.evaluate(lookup)
    }
}

impl Node {
    fn children(&self) -> Vec<&Self> {
        match &self.value {
            NodeValue::Number(_) | NodeValue::Name(_) | NodeValue::Call(..) => Vec::new(),
            NodeValue::Negative(inner) | NodeValue::Not(inner) | NodeValue::Function(_, inner) => vec![inner],
            NodeValue::Binary(_, left, right) => vec![left, right],
        }
    }

    fn visit<'a>(&'a self, seen: &mut impl FnMut(&'a Self)) {
        seen(self);
        for child in self.children() {
            child.visit(seen);
        }
    }

    /// The node's kind; the first operand of the wrong kind is the error.
    fn kind(&self) -> Result<Kind, SyntaxError> {
        let (takes, gives) = match &self.value {
            NodeValue::Number(_) | NodeValue::Name(_) => return Ok(Kind::Number),
            NodeValue::Call(_, kind) => return Ok(*kind),
            NodeValue::Negative(_) | NodeValue::Function(..) => (Kind::Number, Kind::Number),
            NodeValue::Not(_) | NodeValue::Binary(Operator::And | Operator::Or, ..) => (Kind::Truth, Kind::Truth),
            NodeValue::Binary(operator, ..) if operator.compares() => (Kind::Number, Kind::Truth),
            NodeValue::Binary(..) => (Kind::Number, Kind::Number),
        };
        for child in self.children() {
            if child.kind()? != takes {
                let message = match takes {
                    Kind::Number => "a number is expected here, not a comparison",
                    Kind::Truth => "a comparison is expected here, not a number",
                };
                return Err(SyntaxError::new(child.at.clone(), message));
            }
        }
        Ok(gives)
    }

    fn evaluate(&self, lookup: &dyn Lookup) -> Result<Value, NoValue> {
        let value = match &self.value {
            NodeValue::Number(value) => Value::Number(*value),
            NodeValue::Name(name) => Value::Number(lookup.name(name).ok_or_else(|| NoValue::Missing(name.clone()))?),
            NodeValue::Call(call, _) => lookup.call(call)?,
            NodeValue::Negative(inner) => Value::Number(-inner.number(lookup)?),
            NodeValue::Not(inner) => Value::Truth(!inner.truth(lookup)?),
            NodeValue::Function(name, inner) => {
                let value = inner.number(lookup)?;
                Value::Number(match *name {
                    "floor" => value.floor(),
                    "ceil" => value.ceil(),
                    "round" => value.round(),
                    _ => value.abs(),
                })
            }
            NodeValue::Binary(Operator::And, left, right) => Value::Truth(left.truth(lookup)? && right.truth(lookup)?),
            NodeValue::Binary(Operator::Or, left, right) => Value::Truth(left.truth(lookup)? || right.truth(lookup)?),
            NodeValue::Binary(operator, left, right) => operator.of(left.number(lookup)?, right.number(lookup)?)?,
        };
        match value {
            Value::Number(number) if !number.is_finite() => Err(NoValue::NotFinite),
            value => Ok(value),
        }
    }

    fn number(&self, lookup: &dyn Lookup) -> Result<f64, NoValue> {
        match self.evaluate(lookup)? {
            Value::Number(value) => Ok(value),
            Value::Truth(_) => Err(NoValue::NotFinite),
        }
    }

    fn truth(&self, lookup: &dyn Lookup) -> Result<bool, NoValue> {
        match self.evaluate(lookup)? {
            Value::Truth(value) => Ok(value),
            Value::Number(_) => Err(NoValue::NotFinite),
        }
    }
}

impl Operator {
    fn compares(self) -> bool {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
        matches!(self, Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual)
    }

    #[expect(clippy::float_cmp, reason = "`==` of the language is exact: counts and bytes are compared with it")]
    fn of(self, a: f64, b: f64) -> Result<Value, NoValue> {
        Ok(match self {
            Self::Equal => Value::Truth(a == b),
            Self::Unequal => Value::Truth(a != b),
            Self::Less => Value::Truth(a < b),
            Self::LessOrEqual => Value::Truth(a <= b),
            Self::Greater => Value::Truth(a > b),
            Self::GreaterOrEqual => Value::Truth(a >= b),
            Self::Add => Value::Number(a + b),
            Self::Subtract => Value::Number(a - b),
            Self::Multiply => Value::Number(a * b),
            Self::Divide if b == 0.0 => return Err(NoValue::DivisionByZero),
            Self::Divide => Value::Number(a / b),
            Self::Power if a == 0.0 && b < 0.0 => return Err(NoValue::DivisionByZero),
            Self::Power => Value::Number(a.powf(b)),
            Self::And | Self::Or => return Err(NoValue::NotFinite),
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    calls: &'a [Signature],
    depth: usize,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.at = space_end(self.text, self.at);
    }

    fn takes(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// An operand, then every operator that binds at least as tightly as `floor`, with its right operand.
    fn operand_and_operators(&mut self, floor: u8) -> Result<Node, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError::new(self.at..self.at, "the expression is nested too deeply"));
        }
        let mut left = self.prefix()?;
        while let Some((operator, binding, length)) = self.operator(floor) {
            let start = left.at.start;
            let place = self.at..self.at + length;
            self.at = place.end;
            // `**` binds from the right, so its right operand may hold another one.
            let right_floor = if operator == Operator::Power { SIGN } else { binding + 1 };
            let right = self.operand_and_operators(right_floor)?;
            if binding == COMPARISON && self.operator(COMPARISON).is_some_and(|(_, binding, _)| binding == COMPARISON) {
                return Err(SyntaxError::new(place, "comparisons do not chain").help("join them with `and`"));
            }
            let at = start..right.at.end;
            left = Node { at, value: NodeValue::Binary(operator, Box::new(left), Box::new(right)) };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that stands next, if it binds at least as tightly as `floor`; it is not yet read.
    fn operator(&mut self, floor: u8) -> Option<(Operator, u8, usize)> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let word = &rest[..identifier_end(rest, 0)];
        OPERATORS
            .iter()
            .find(|(token, ..)| if word.is_empty() { rest.starts_with(token) } else { word == *token })
            .filter(|(_, _, binding)| *binding >= floor)
            .map(|(token, operator, binding)| (*operator, *binding, token.len()))
    }

    fn prefix(&mut self) -> Result<Node, SyntaxError> {
        self.skip_space();
        let start = self.at;
        let rest = &self.text[start..];
        if self.takes("(") {
            let inner = self.operand_and_operators(0)?;
            if !self.takes(")") {
                return Err(SyntaxError::new(start..start + 1, "`(` is not closed"));
            }
            return Ok(Node { at: start..self.at, ..inner });
        }
        if self.takes("-") {
            let inner = self.operand_and_operators(SIGN)?;
            return Ok(Node { at: start..inner.at.end, value: NodeValue::Negative(Box::new(inner)) });
        }
        let word_end = identifier_end(self.text, start);
        if &self.text[start..word_end] == "not" {
            self.at = word_end;
            let inner = self.operand_and_operators(NOT)?;
            return Ok(Node { at: start..inner.at.end, value: NodeValue::Not(Box::new(inner)) });
        }
        if word_end > start {
            return self.word(start, word_end);
        }
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.literal(start);
        }
        Err(self.unexpected())
    }

    fn literal(&mut self, start: usize) -> Result<Node, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            let sign = matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || (end > start && sign)) {
                break;
            }
            end += 1;
        }
        self.at = end;
        let value = self.text[start..end].replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite());
        match value {
            Some(value) => Ok(Node { at: start..end, value: NodeValue::Number(value) }),
            None => Err(SyntaxError::new(start..end, format!("`{}` is no number", &self.text[start..end]))
                .help("numbers are in base units (seconds, bytes) and have no suffix")),
        }
    }

    /// A function, or a dotted name with an optional `[request]` behind it.
    fn word(&mut self, start: usize, end: usize) -> Result<Node, SyntaxError> {
        let word = &self.text[start..end];
        self.at = end;
        if matches!(word, "and" | "or") {
            self.at = start;
            return Err(self.unexpected());
        }
        if self.takes("(") {
            return self.call(start, end);
        }
        self.at = end;
        while self.text[self.at..].starts_with('.') {
            let next = identifier_end(self.text, self.at + 1);
            if next == self.at + 1 {
                return Err(SyntaxError::new(self.at..self.at + 1, "a name is missing behind the dot"));
            }
            self.at = next;
        }
        if self.text[self.at..].starts_with('[') {
            let close = self.text[self.at..].find(']').map(|offset| self.at + offset + 1);
            self.at = close.ok_or_else(|| SyntaxError::new(self.at..self.at + 1, "`[` is not closed"))?;
        }
        let name = self.text[start..self.at].to_owned();
        Ok(Node { at: start..self.at, value: NodeValue::Name(name) })
    }

    fn call(&mut self, start: usize, name_end: usize) -> Result<Node, SyntaxError> {
        let name = &self.text[start..name_end];
        if let Some(function) = FUNCTIONS.iter().find(|function| **function == name) {
            let inner = self.operand_and_operators(0)?;
            if !self.takes(")") {
                return Err(SyntaxError::new(name_end..name_end + 1, "`(` is not closed"));
            }
            return Ok(Node { at: start..self.at, value: NodeValue::Function(function, Box::new(inner)) });
        }
        let known: Vec<&str> = FUNCTIONS.into_iter().chain(self.calls.iter().map(|signature| signature.name)).collect();
        let Some(signature) = self.calls.iter().find(|signature| signature.name == name).copied() else {
            return Err(SyntaxError::new(start..name_end, format!("there is no function `{name}` here"))
                .help(format!("known here: {}", known.join(", "))));
        };
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() && !self.takes(",") {
                return Err(self.unexpected());
            }
            arguments.push(self.quoted()?);
        }
        if arguments.len() != signature.arguments.len() {
            let message = format!("`{name}` takes {}", signature.arguments.join(", "));
            return Err(SyntaxError::new(start..self.at, message));
        }
        let call = Call { function: name.to_owned(), arguments };
        Ok(Node { at: start..self.at, value: NodeValue::Call(call, signature.kind) })
    }

    fn quoted(&mut self) -> Result<(String, Range<usize>), SyntaxError> {
        self.skip_space();
        let start = self.at;
        let quote = self.text[start..].chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(quote) = quote else { return Err(self.unexpected()) };
        let length = self.text[start + 1..]
            .find(quote)
            .ok_or_else(|| SyntaxError::new(start..start + 1, "the quote is not closed"))?;
        self.at = start + length + 2;
        Ok((self.text[start + 1..self.at - 1].to_owned(), start..self.at))
    }

    fn unexpected(&mut self) -> SyntaxError {
        self.skip_space();
        match self.text[self.at..].chars().next() {
            None => SyntaxError::new(self.at..self.at, "the expression ends too early"),
            Some(c) => {
                let word = identifier_end(self.text, self.at).max(self.at + c.len_utf8());
                let error =
                    SyntaxError::new(self.at..word, format!("`{}` is not expected here", &self.text[self.at..word]));
                if c == '=' { error.help("equality is written `==`") } else { error }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<Value, NoValue> {
        let lookup = |name: &str| match name {
            "rss.peak" => Some(1_048_576.0),
            "throughput" => Some(500.0),
            "latency.p99[get]" => Some(0.25),
            "vars.price" => Some(2.0),
            "zero" => Some(0.0),
            _ => None,
        };
        Expression::parse(text, &[]).unwrap_or_else(|error| panic!("{text}: {error:?}")).evaluate(&lookup)
    }

    /// The values are those of Python 3.11, which has the same operators with the same precedence.
    #[test]
    fn precedence_is_that_of_python() {
        for (text, right) in [
            ("2 + 3 * 4", 14.0),
            ("2 ** 3 ** 2", 512.0),
            ("-2 ** 2", -4.0),
            ("2 ** -1", 0.5),
            ("(2 + 3) * 4", 20.0),
            ("10 - 4 - 3", 3.0),
            ("100 / 10 / 5", 2.0),
            ("floor(7 / 2) + ceil(0.1) + abs(-3)", 7.0),
            ("- 2 * 3", -6.0),
            ("1e3 + 1_000", 2000.0),
        ] {
            assert_eq!(value(text), Ok(Value::Number(right)), "{text}");
        }
        for (text, right) in [
            ("1 < 2 and 2 < 3", true),
            ("not 1 < 2 or 3 == 3", true),
            ("not (1 < 2 or 3 == 3)", false),
            ("1 + 1 == 2 and not 2 != 2", true),
        ] {
            assert_eq!(value(text), Ok(Value::Truth(right)), "{text}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(value("throughput / (rss.peak / 1048576)"), Ok(Value::Number(500.0)));
        assert_eq!(value("latency.p99[get] * vars.price"), Ok(Value::Number(0.5)));
        assert_eq!(value("nothing"), Err(NoValue::Missing("nothing".to_owned())));
        assert_eq!(value("1 / zero"), Err(NoValue::DivisionByZero));
        assert_eq!(value("zero ** -1"), Err(NoValue::DivisionByZero));
        assert_eq!(value("10 ** 400"), Err(NoValue::NotFinite));
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        let wrong = |text: &str| Expression::parse(text, &[]).unwrap_err().at;
        assert_eq!(wrong("1 +"), 3..3);
        assert_eq!(wrong("1 < 2 < 3"), 2..3);
        assert_eq!(wrong("a and b"), 0..1);
        assert_eq!(wrong("(1 < 2) + 3"), 0..7);
        assert_eq!(wrong("foo(1)"), 0..3);
        assert_eq!(wrong("12ms"), 0..4);
        assert_eq!(wrong("errors.total = 0"), 13..14);
        assert_eq!(wrong("a b"), 2..3);
    }

    #[test]
    fn functions_of_quoted_words() {
        let signature = Signature { name: "ratio", arguments: &["metric", "a", "b"], kind: Kind::Number };
        let parsed = Expression::parse("ratio('rss.peak', 'node-http', 'bun-serve') > 1", &[signature]).unwrap();
        assert_eq!(parsed.kind(), Kind::Truth);
        assert_eq!(parsed.calls()[0].arguments[1].0, "node-http");
        assert!(Expression::parse("ratio('a', 'b')", &[signature]).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,40}|[-+*/()a-z0-9.<>=! ]{0,60}") {
            if let Err(error) = Expression::parse(&text, &[]) {
                prop_assert!(error.at.end <= text.len());
            }
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(Expression::parse(&"(".repeat(1_000), &[]).is_err());
        assert!(Expression::parse(&"-".repeat(1_000), &[]).is_err());
        let chain = |terms: usize| format!("1{}", "+1".repeat(terms));
        assert!(Expression::parse(&chain(100_000), &[]).is_err());
        assert_eq!(value(&chain(500)), Ok(Value::Number(501.0)));
    }
}
