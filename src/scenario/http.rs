//! Requests, probes and loads.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{Decode, Decoder, HeaderName, Keyed, PathKey, table};
use super::field::{Field, FromValue, invalid, plain_text};
use super::kinds::{Cpus, LongerThanZero, Method, OneLine, Pattern, Positive, Size, Status, UrlPath};
use super::node::{Node, NodeValue};
use super::process::Expand;
use super::value::{Piece, Text, Value};
use super::words::{Protocol, Record, SameAnswer};
use crate::diagnostic::{Problems, Span};

table! {
    /// A request: at most one of `body`, `json` and `body_repeat`.
    RequestTable {
        /// The method. Default GET.
        method: Field<Method>,
        /// The path.
        path: Field<UrlPath>,
        /// Headers.
        headers: Keyed<HeaderName, Field<OneLine>>,
        /// The body as text.
        body: Field<Text>,
        /// The body as JSON.
        json: Field<Value>,
        /// The body as a text repeated up to a size.
        body_repeat: Repeat,
        /// The body is sent in chunks: true, or their size and the delay between them.
        chunked: Chunked,
    }
}

table! {
    /// A text repeated up to a size.
    Repeat {
        /// The text.
        text: Field<Text>,
        /// The size.
        size: Field<Size>,
    }
}

table! {
    /// Chunks of a body.
    ChunkTable {
        /// The size of each. Default 16KiB.
        size: Field<Size>,
        /// The delay before each but the first. Default none.
        delay: Field<Duration>,
    }
}

/// A request: `"GET /json"`, or a table.
#[derive(Debug, Clone)]
pub enum Request {
    /// Method and path.
    Line(Field<RequestLine>),
    /// With more to it.
    Table(Box<RequestTable>, Span),
}

impl Decode for Request {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::String(_) => Field::decode(node, decoder).map(Self::Line),
            NodeValue::Table(_) => {
                RequestTable::decode(node, decoder).map(|table| Self::Table(Box::new(table), node.span))
            }
            _ => {
                decoder.expected(node, "a request: \"GET /path\", or a table");
                None
            }
        }
    }
}

impl JsonSchema for Request {
    fn schema_name() -> Cow<'static, str> {
        "Request".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [RequestLine::schema(generator), generator.subschema_for::<RequestTable>()] })
    }
}

/// Method and path in one string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// The method.
    pub method: String,
    /// The path.
    pub path: Text,
}

impl FromValue for RequestLine {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = Text::from_value(value, span, problems)?;
        let (method, path) = match text.pieces() {
            [Piece::Plain(first), rest @ ..] => match first.split_once(' ') {
                Some((method, path)) => {
                    let mut whole = Text::from(path.trim_start());
                    rest.iter().cloned().for_each(|piece| whole.push(piece));
                    (Text::from(method), whole)
                }
                None => return invalid("a request is a method, a space and a path: \"GET /json\"", span, problems),
            },
            _ => return invalid("a request is a method, a space and a path: \"GET /json\"", span, problems),
        };
        let method = Method::from_value(Value::Text(method), span, problems);
        let path = UrlPath::from_value(Value::Text(path), span, problems);
        Some(Self { method: method?.0, path: path?.0 })
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "method and path, such as \"GET /json\"" })
    }
}

/// Whether and how a body is sent in chunks.
#[derive(Debug, Clone)]
pub enum Chunked {
    /// In one way or the other.
    Flag(Field<bool>),
    /// In chunks like these.
    Table(ChunkTable),
}

impl Decode for Chunked {
    fn decode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Table(_) => ChunkTable::decode(node, decoder).map(Self::Table),
            _ => Field::decode(node, decoder).map(Self::Flag),
        }
    }
}

impl JsonSchema for Chunked {
    fn schema_name() -> Cow<'static, str> {
        "Chunked".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Field<bool>>(), generator.subschema_for::<ChunkTable>()] })
    }
}

table! {
    /// What is expected of an answer to a probe.
    AnswerExpect {
        /// The status code.
        status: Field<Status>,
        /// The length of the body in bytes.
        bytes: Field<Size>,
        /// The body as text.
        body: Field<Text>,
        /// The JSON value that the body must equal.
        json: Field<Value>,
        /// JSON paths (RFC 9535) and the values that each must find.
        json_path: Keyed<PathKey, Field<Value>>,
        /// A pattern that the body must match.
        matches: Field<Pattern>,
        /// Headers and the values that each must have exactly.
        headers: Keyed<HeaderName, Field<OneLine>>,
    }
}

table! {
    /// A request that shows that a server does what is to be measured.
    Probe {
        ..expand: Expand,
        /// The request: `"GET /json"`, or a table.
        request: Request,
        /// What is expected of the answer. Default: any 2xx.
        expect: AnswerExpect,
        /// What results keep of each answer: `"headers"`, `"body"`.
        record: Field<Vec<Record>>,
        /// What must be the same over the servers of a group: `"status"`, `"headers"`, `"body"`.
        same: Field<Vec<SameAnswer>>,
        /// Headers (or `"status"`, `"body"`) whose difference is known and reported as declared.
        known_differences: Field<Vec<String>>,
    }
}

table! {
    /// Which answers are good.
    LoadExpect {
        /// The status codes. Default any 2xx.
        status: Field<Vec<Status>>,
        /// The length of the body in bytes.
        bytes: Field<Size>,
    }
}

table! {
    /// A request of a mix.
    LoadRequest {
        ..request: RequestTable,
        /// Its name: it has metrics of its own, such as `latency.p99[NAME]`.
        name: Field<String>,
        /// How often it is drawn, relative to the others. Default 1.
        weight: Field<f64>,
        /// Which answers are good. Default: those of the load.
        expect: LoadExpect,
    }
}

table! {
    /// A load of the built-in generator: one of `request` and `requests`, one of `duration` and `count`.
    Load {
        ..expand: Expand,
        /// The request: `"GET /json"`, or a table.
        request: Request,
        /// A mix of requests, drawn from the seed by weight.
        requests: Vec<LoadRequest>,
        /// How many connections are kept busy. Default 1.
        connections: Field<Positive>,
        /// How long a run lasts.
        duration: Field<LongerThanZero>,
        /// How many requests a run makes.
        count: Field<Positive>,
        /// Requests per second over all connections: an open loop. Default: a closed loop.
        rate: Field<f64>,
        /// Requests in flight on one connection. Default 1.
        pipeline: Field<Positive>,
        /// When a request without an answer is given up. Default 10s.
        timeout: Field<LongerThanZero>,
        /// False where every request has a connection of its own. Default true.
        keep_alive: Field<bool>,
        /// `"http/1.1"` (default) or `"h2"`.
        protocol: Field<Protocol>,
        /// Threads of the generator. Default 1.
        threads: Field<Positive>,
        /// Processors that the generator is bound to.
        cpus: Field<Cpus>,
        /// Which answers are good. Default any 2xx.
        expect: LoadExpect,
    }
}

/// The URL of a server: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlBase(pub String);

impl FromValue for UrlBase {
    fn from_value(value: Value, span: Span, problems: &mut Problems) -> Option<Self> {
        let text = plain_text("a URL", &value, span, problems)?;
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let host = rest.map(|rest| rest.trim_end_matches('/'));
        let fits = |host: &str| {
            let bare =
                !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) && !host.chars().any(char::is_control);
            let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
            bare && port.is_none_or(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
        };
        match host {
            Some(host) if fits(host) => Some(Self(text.trim_end_matches('/').to_owned())),
            _ => invalid(
                format!("`{text}` is no URL of a server: write such as \"http://127.0.0.1:8080\""),
                span,
                problems,
            ),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^https?://" })
    }
}
