//! A TOML document as a tree in which every key and value knows its place, and the merging of such trees.

use indexmap::IndexMap;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Code, Diagnostic, FileId, Problems, Span};

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: NodeValue,
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeValue {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date or time, as TOML writes it.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A table in file order.
pub(super) type Table = IndexMap<String, Member>;

/// A key's place and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) key: Span,
    pub(super) node: Node,
}

impl Node {
    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::String(_) => "a string",
            NodeValue::Integer(_) => "an integer",
            NodeValue::Float(_) => "a float",
            NodeValue::Boolean(_) => "a boolean",
            NodeValue::Date(_) => "a date",
            NodeValue::Array(_) => "an array",
            NodeValue::Table(_) => "a table",
        }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        match &self.value {
            NodeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(super) fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            NodeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The member at `path`, through tables.
    pub(super) fn find(&self, path: &[&str]) -> Option<&Member> {
        let (first, rest) = path.split_first()?;
        let member = self.table()?.get(*first)?;
        if rest.is_empty() { Some(member) } else { member.node.find(rest) }
    }
}

/// Parses a file. Syntax errors are all reported, and then there is no tree.
pub(super) fn parse(file: FileId, text: &str, problems: &mut Problems) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = Span::new(file, table.span());
        return Some(Node { value: NodeValue::Table(convert_table(file, table.get_ref(), problems)), span });
    }
    for error in errors {
        let span = Span::new(file, error.span().unwrap_or(0..0));
        problems.push(Diagnostic::error(Code::Syntax, span, phrase(error.message())));
    }
    None
}

/// Parses one value, as `--set` gives it.
pub(super) fn parse_value(file: FileId, text: &str, problems: &mut Problems) -> Option<Node> {
    match DeValue::parse(text) {
        Ok(value) => convert(file, &value, problems),
        Err(error) => {
            let span = Span::new(file, error.span().unwrap_or(0..text.len()));
            problems.push(Diagnostic::error(Code::Syntax, span, phrase(error.message())));
            None
        }
    }
}

/// The parser's message as one lower-case line.
fn phrase(message: &str) -> String {
    message.trim().replace('\n', ", ")
}

fn convert_table(file: FileId, table: &DeTable<'_>, problems: &mut Problems) -> Table {
    let members = table.iter().filter_map(|(key, value)| {
        let node = convert(file, value, problems)?;
        Some((key.get_ref().to_string(), Member { key: Span::new(file, key.span()), node }))
    });
    members.collect()
}

fn convert(file: FileId, value: &toml::Spanned<DeValue<'_>>, problems: &mut Problems) -> Option<Node> {
    let span = Span::new(file, value.span());
    let value = match value.get_ref() {
        DeValue::String(text) => NodeValue::String(text.to_string()),
        DeValue::Boolean(value) => NodeValue::Boolean(*value),
        DeValue::Datetime(date) => NodeValue::Date(date.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => NodeValue::Integer(number),
            Err(_) => {
                let message = format!("`{number}` does not fit into 64 bits");
                problems.push(Diagnostic::error(Code::InvalidValue, span, message));
                return None;
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => NodeValue::Float(number),
            None => {
                let message = format!("`{}` is no finite number", number.as_str());
                problems.push(Diagnostic::error(Code::InvalidValue, span, message));
                return None;
            }
        },
        DeValue::Array(items) => {
            NodeValue::Array(items.iter().filter_map(|item| convert(file, item, problems)).collect())
        }
        DeValue::Table(table) => NodeValue::Table(convert_table(file, table, problems)),
    };
    Some(Node { value, span })
}

/// Adds `later` to `into`: tables are merged down to `depth`, arrays joined, and what is defined twice is an error that
/// shows both places.
pub(super) fn merge(into: &mut Table, later: Table, depth: &dyn Fn(&[String]) -> usize, problems: &mut Problems) {
    merge_at(into, later, &mut Vec::new(), depth, problems);
}

fn merge_at(
    into: &mut Table,
    later: Table,
    path: &mut Vec<String>,
    depth: &dyn Fn(&[String]) -> usize,
    problems: &mut Problems,
) {
    for (key, member) in later {
        path.push(key.clone());
        let deeper = path.len() <= depth(path);
        match into.get_mut(&key) {
            None => {
                into.insert(key, member);
            }
            Some(first) => match (&mut first.node.value, member.node.value) {
                (NodeValue::Table(first), NodeValue::Table(second)) if deeper => {
                    merge_at(first, second, path, depth, problems);
                }
                (NodeValue::Array(first), NodeValue::Array(second)) if deeper => first.extend(second),
                _ => problems.push(
                    Diagnostic::error(Code::Duplicate, member.key, format!("`{}` is defined twice", path.join(".")))
                        .label("the second definition")
                        .also(first.key, "the first one"),
                ),
            },
        }
        path.pop();
    }
}
