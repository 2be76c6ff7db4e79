//! The requests, probes and loads of a plan.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Identity, JsonPath, Origin, Pattern, Protocol, Record, SameAnswer, Text, Value};
use crate::units::seconds;

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path.
    pub path: Text,
    /// Headers, in file order.
    pub headers: Vec<(String, Text)>,
    /// The body.
    pub body: Body,
    /// How it is sent in chunks, if it is.
    pub chunked: Option<Chunked>,
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// A text.
    Text(Text),
    /// JSON.
    Json(Value),
    /// A text repeated up to a size.
    Repeat {
        /// The text.
        text: Text,
        /// Bytes of the body.
        size: u64,
    },
}

/// Chunks of a body.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chunked {
    /// Bytes of each.
    pub size: u64,
    /// The delay before each but the first, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub delay: Duration,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AnswerExpect {
    /// The status; absent: any 2xx.
    pub status: Option<u16>,
    /// The length of the body in bytes.
    pub bytes: Option<u64>,
    /// The body as text.
    pub body: Option<Text>,
    /// The JSON value that the body must equal.
    pub json: Option<Value>,
    /// JSON paths and the values that each must find.
    pub json_path: Vec<(JsonPath, Value)>,
    /// A pattern that the body must match.
    pub matches: Option<Pattern>,
    /// Headers and the values that each must have.
    pub headers: Vec<(String, Text)>,
    /// Where it stands; absent where nothing is expected but a 2xx.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

/// A probe.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Probe {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is sent.
    pub request: Request,
    /// What is expected of the answer.
    pub expect: AnswerExpect,
    /// What results keep of each answer.
    pub record: Vec<Record>,
    /// What must be the same over the servers of a group.
    pub same: Vec<SameAnswer>,
    /// What is known to differ; lower case.
    pub known_differences: Vec<String>,
    /// Where the request stands.
    #[serde(skip)]
    pub request_origin: Origin,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is sent; more than one is a mix.
    pub requests: Vec<LoadRequest>,
    /// How many connections are kept busy.
    pub connections: u64,
    /// When a run ends.
    pub stop: LoadStop,
    /// Requests per second over all connections; absent: a closed loop.
    pub rate: Option<f64>,
    /// Requests in flight on one connection.
    pub pipeline: u64,
    /// When a request without an answer is given up, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// False where every request has a connection of its own.
    pub keep_alive: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// Threads of the generator.
    pub threads: u64,
    /// Processors that the generator is bound to; empty where any.
    pub cpus: Vec<usize>,
}

/// A request of a load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadRequest {
    /// Its name; absent where the load has one request.
    pub name: Option<String>,
    /// How often it is drawn, relative to the others.
    pub weight: f64,
    /// What is sent.
    pub request: Request,
    /// Which answers are good: status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// Which answers are good: the length of the body in bytes.
    pub bytes: Option<u64>,
}

/// When a run of a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadStop {
    /// After this time, in seconds.
    Duration(
        #[serde(with = "seconds")]
        #[schemars(with = "f64")]
        Duration,
    ),
    /// After so many requests.
    Count(u64),
}
