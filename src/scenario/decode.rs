//! From the tree to types: every problem of a table is reported, not only its first.
//!
//! serde stops at the first error of a value and loses places under flattening; so the tables of the language are declared
//! with [`table!`], which makes the struct, its JSON Schema and its [`Decode`] from one list of keys.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::node::{Node, NodeValue, Table};
use crate::diagnostic::{Code, Diagnostic, Problems, Sources, Span, Spanned, suggest};

/// What decoding reads and writes beside the tree.
pub(super) struct Decoder<'a> {
    pub(super) sources: &'a Sources,
    pub(super) problems: &'a mut Problems,
}

impl Decoder<'_> {
    /// Says that `node` is not what the key takes.
    pub(super) fn expected(&mut self, node: &Node, what: &str) {
        let message = format!("expected {what}, found {}", node.kind());
        self.problems.push(Diagnostic::error(Code::WrongType, node.span, message));
    }
}

/// A type that a node is decoded to. `None` where a problem was reported.
pub(super) trait Decode: Sized {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// The keys that a table gave, known ones only, with their places: also those whose values are wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given(Vec<(&'static str, Span)>);

impl Given {
    /// The place of `key`, where it was given.
    #[must_use]
    pub fn at(&self, key: &str) -> Option<Span> {
        self.0.iter().find(|(given, _)| *given == key).map(|(_, span)| *span)
    }

    /// Whether `key` was given.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.at(key).is_some()
    }

    /// Every key that was given, and its place.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, Span)> {
        self.0.clone()
    }

    pub(super) fn note(&mut self, key: &'static str, span: Span) {
        self.0.push((key, span));
    }
}

/// A table whose keys are known.
pub(super) trait Keys: Default {
    /// Adds the names of the keys.
    fn keys(names: &mut Vec<&'static str>);

    /// Decodes `node` into the field of `key`; false where there is no such key.
    fn set(&mut self, key: (&str, Span), node: &Node, decoder: &mut Decoder<'_>) -> bool;
}

/// Decodes the members of a table, each on its own; unknown keys are reported with the nearest known one.
pub(super) fn decode_members<T: Keys>(table: &Table, decoder: &mut Decoder<'_>) -> T {
    let mut decoded = T::default();
    for (key, member) in table {
        if !decoded.set((key, member.key), &member.node, decoder) {
            let mut names = Vec::new();
            T::keys(&mut names);
            let unknown = Diagnostic::error(Code::UnknownKey, member.key, format!("unknown key `{key}`"));
            decoder.problems.push(unknown.help(suggest(key, &names)));
        }
    }
    decoded
}

/// Declares a table of the language: a struct of optional fields, its schema and its decoding. `..` takes in the keys
/// of another table.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $name:ident {
            $(..$part:ident: $part_type:ty,)*
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct $name {
            $(
                #[doc = concat!("Its keys as ", stringify!($part_type), ".")]
                #[schemars(flatten)]
                pub $part: $part_type,
            )*
            $($(#[$field_meta])* pub $field: Option<$type>,)*
            /// The keys that were given.
            #[schemars(skip)]
            pub given: $crate::scenario::decode::Given,
        }

        impl $crate::scenario::decode::Keys for $name {
            fn keys(names: &mut Vec<&'static str>) {
                $(<$part_type as $crate::scenario::decode::Keys>::keys(names);)*
                $(names.push($crate::scenario::decode::key_name(stringify!($field)));)*
            }

            fn set(
                &mut self,
                (key, span): (&str, $crate::diagnostic::Span),
                node: &$crate::scenario::node::Node,
                decoder: &mut $crate::scenario::decode::Decoder<'_>,
            ) -> bool {
                $(if self.$part.set((key, span), node, decoder) { return true; })*
                $(
                    let name = $crate::scenario::decode::key_name(stringify!($field));
                    if key == name {
                        self.given.note(name, span);
                        self.$field = <$type as $crate::scenario::decode::Decode>::decode(node, decoder);
                        return true;
                    }
                )*
                false
            }
        }

        impl $crate::scenario::decode::Decode for $name {
            fn decode(
                node: &$crate::scenario::node::Node,
                decoder: &mut $crate::scenario::decode::Decoder<'_>,
            ) -> Option<Self> {
                match node.table() {
                    Some(table) => Some($crate::scenario::decode::decode_members(table, decoder)),
                    None => {
                        decoder.expected(node, "a table");
                        None
                    }
                }
            }
        }
    };
}
pub(super) use table;

/// The key that a field stands for: a raw identifier without its prefix.
pub(super) fn key_name(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// An array whose elements stand for themselves.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Array(items) => Some(items.iter().filter_map(|item| T::decode(item, decoder)).collect()),
            _ => {
                decoder.expected(node, "an array");
                None
            }
        }
    }
}

/// A value with its place.
impl<T: Decode> Decode for Spanned<T> {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        T::decode(node, decoder).map(|value| Self::new(value, node.span))
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }
}

/// A string that is no template.
impl Decode for String {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::String(text) => Some(text.clone()),
            _ => {
                decoder.expected(node, "a string");
                None
            }
        }
    }
}

/// A flag that is no template.
impl Decode for bool {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            NodeValue::Boolean(value) => Some(value),
            _ => {
                decoder.expected(node, "true or false");
                None
            }
        }
    }
}

/// A whole number that is no template.
impl Decode for i64 {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            NodeValue::Integer(value) => Some(value),
            _ => {
                decoder.expected(node, "a whole number");
                None
            }
        }
    }
}

/// A number that is no template.
impl Decode for f64 {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match node.value {
            #[expect(clippy::cast_precision_loss, reason = "quoted figures are shown with far fewer digits")]
            NodeValue::Integer(value) => Some(value as Self),
            NodeValue::Float(value) => Some(value),
            _ => {
                decoder.expected(node, "a number");
                None
            }
        }
    }
}

/// A TOML date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Date(pub String);

impl Decode for Date {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            // A time alone is none.
            NodeValue::Date(date) if date.as_bytes().get(4) == Some(&b'-') => Some(Self(date.clone())),
            _ => {
                decoder.expected(node, "a date such as 2026-05-17, without quotes");
                None
            }
        }
    }
}

impl JsonSchema for Date {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "a TOML date, without quotes" })
    }
}

/// Which names a [`Keyed`] table takes.
pub trait KeyKind {
    /// What a name is, for messages.
    const WHAT: &'static str;
    /// A regular expression for editors.
    const PATTERN: &'static str;
    /// What it must look like, for messages.
    const RULE: &'static str;

    /// Whether `name` is one.
    fn is(name: &str) -> bool;
}

/// A table of freely named members, in file order.
#[derive(Debug, Clone)]
pub struct Keyed<K, T> {
    members: Vec<Entry<T>>,
    /// Names whose bodies are wrong, which was reported.
    broken: Vec<String>,
    kind: PhantomData<K>,
}

/// A named member.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// Its name.
    pub name: Spanned<String>,
    /// What stands there.
    pub body: T,
}

impl<K, T> Default for Keyed<K, T> {
    fn default() -> Self {
        Self { members: Vec::new(), broken: Vec::new(), kind: PhantomData }
    }
}

impl<K, T> Keyed<K, T> {
    /// The member called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry<T>> {
        self.members.iter().find(|entry| entry.name.value == name)
    }

    /// All members, in file order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry<T>> {
        self.members.iter()
    }

    /// Names whose bodies are wrong: nothing more is to be said of them.
    #[must_use]
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// All names, in file order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.members.iter().map(|entry| entry.name.value.as_str()).collect()
    }
}

impl<'a, K, T> IntoIterator for &'a Keyed<K, T> {
    type Item = &'a Entry<T>;
    type IntoIter = std::slice::Iter<'a, Entry<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter()
    }
}

impl<K: KeyKind, T: Decode> Decode for Keyed<K, T> {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Some(table) = node.table() else {
            decoder.expected(node, "a table");
            return None;
        };
        let mut members = Vec::new();
        let mut broken = Vec::new();
        for (name, member) in table {
            if !K::is(name) {
                let message = format!("`{name}` is no {}", K::WHAT);
                decoder.problems.push(Diagnostic::error(Code::InvalidName, member.key, message).help(K::RULE));
            }
            match T::decode(&member.node, decoder) {
                Some(body) => members.push(Entry { name: Spanned::new(name.clone(), member.key), body }),
                None => broken.push(name.clone()),
            }
        }
        Some(Self { members, broken, kind: PhantomData })
    }
}

impl<K: KeyKind, T: JsonSchema> JsonSchema for Keyed<K, T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}_by_{}", T::schema_name(), K::WHAT.replace(' ', "_")).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": K::PATTERN },
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Declares a [`KeyKind`] by its pattern.
macro_rules! key_kinds {
    ($($(#[$meta:meta])* $name:ident { $what:literal, $pattern:literal, $rule:literal, $is:expr })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl KeyKind for $name {
                const WHAT: &'static str = $what;
                const PATTERN: &'static str = $pattern;
                const RULE: &'static str = $rule;

                fn is(name: &str) -> bool {
                    let is: fn(&str) -> bool = $is;
                    is(name)
                }
            }
        )*
    };
}

key_kinds! {
    /// Names of entries.
    EntryName {
        "name of an entry", "^[a-z0-9][a-z0-9_-]{0,63}$",
        "names of entries are 1 to 64 of a-z, 0-9, `_` and `-`, and begin with a letter or digit",
        |name| {
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
            (1..=64).contains(&name.len())
                && plain(name.as_bytes()[0])
                && name.bytes().all(|b| plain(b) || b == b'_' || b == b'-')
        }
    }
    /// Names that templates and expressions use.
    Word {
        "name for templates", "^[a-z][a-z0-9_]*$",
        "names used in templates are of a-z, 0-9 and `_`, and begin with a letter",
        is_word
    }
    /// Names of captured values: words, or dotted names of metrics.
    CaptureName {
        "name of a value", "^[a-z][a-z0-9_]*(\\.[a-z0-9_]+)*$",
        "names of values are of a-z, 0-9 and `_`, begin with a letter, and may be dotted like a metric's: \"latency.p99\"",
        |name| {
            let mut parts = name.split('.');
            parts.next().is_some_and(is_word)
                && parts.all(|part| !part.is_empty() && part.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit()))
        }
    }
    /// Names and values of axes.
    AxisWord {
        "value of an axis", "^[A-Za-z0-9._-]+$",
        "values of an axis are whole numbers, or words of A-Z, a-z, 0-9, `.`, `_` and `-`",
        is_axis_word
    }
    /// Names of environment variables.
    VariableName {
        "name of an environment variable", "^[^=\\u0000]+$",
        "names of environment variables are not empty and hold no `=`",
        |name| !name.is_empty() && !name.contains(['=', '\0'])
    }
    /// Names of HTTP headers.
    HeaderName {
        "name of a header", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        "header names are HTTP tokens",
        |name| is_token(name)
    }
    /// Names of files to be written.
    FileName {
        "plain relative file name", "^[^/\\u0000]([^\\u0000]*[^/\\u0000])?$",
        "files are named relative to their directory, without `..`",
        |name| {
            !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
        }
    }
    /// JSON paths as keys.
    PathKey {
        "JSON path", "^\\$",
        "a JSON path (RFC 9535) begins with `$`",
        |name| name.starts_with('$')
    }
}

/// Whether `name` may be used in templates and expressions.
pub(super) fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Whether `word` may be a value of an axis.
pub(super) fn is_axis_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Whether `text` is an HTTP token (RFC 9110, 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
