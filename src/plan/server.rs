//! The servers of a plan.

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::{At, Identity, JsonPath, Origin, Pattern, Port, Process, Signal, Step, Text};
use crate::units::seconds;

/// A server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Server {
    /// Id, name, axes, label.
    #[serde(flatten)]
    pub identity: Identity,
    /// What is started.
    pub launch: Launch,
    /// Where it listens.
    pub port: Port,
    /// Ids of the servers that are started before it, in that order.
    pub needs: Vec<String>,
    /// Steps before it is started.
    pub before: Vec<Step>,
    /// Steps after it is stopped.
    pub after: Vec<Step>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// How it is stopped.
    pub stop: Stop,
    /// TLS.
    pub tls: Option<Tls>,
    /// Values that it tells.
    pub capture: IndexMap<String, ServerCapture>,
    /// Names of the caches it uses.
    pub caches: Vec<String>,
}

impl Server {
    /// Whether it speaks TLS: its URL is https then.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || matches!(&self.launch, Launch::Running(url) if url.starts_with("https://"))
    }
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    /// A process.
    Process(Box<Process>),
    /// The embedded reference server.
    Builtin(Builtin),
    /// A server that runs already, at this URL.
    Running(String),
}

/// The embedded reference server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Builtin {
    /// Every answer is this late, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub delay: Duration,
    /// `/json` answers this many bytes.
    pub body: Option<u64>,
    /// The processors it may run on; empty where any.
    pub cpus: Vec<usize>,
}

/// How a server is known to be ready.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ready {
    /// What shows it.
    pub when: ReadyWhen,
    /// When it is given up, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub timeout: Duration,
    /// How often it is asked, in seconds: also the step of `startup`.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub interval: Duration,
    /// Where it stands; the server's name where it does not.
    #[serde(skip)]
    pub origin: Origin,
}

/// What shows that a server is ready.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyWhen {
    /// It accepts a TCP connection.
    Tcp,
    /// It answers this path with this status.
    Http {
        /// The path.
        path: Text,
        /// The status.
        status: u16,
    },
    /// It prints what matches this.
    Output(Pattern),
    /// This command exits 0.
    Command(Box<Process>),
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stop {
    /// The signal.
    pub signal: Signal,
    /// How long it may take before its whole tree is killed, in seconds.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub grace: Duration,
}

/// TLS of a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tls {
    /// A file with the certificates to trust.
    pub ca: Option<Text>,
    /// True where no certificate is checked.
    pub insecure: bool,
    /// Where it stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// A value that a server tells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServerCapture {
    /// Where it is found.
    pub from: ServerCaptureFrom,
    /// When the server is asked.
    pub at: At,
    /// Its unit; absent for a fact.
    pub unit: Option<String>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// Where a value is found that a server tells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerCaptureFrom {
    /// In what it prints.
    Output(Pattern),
    /// In the answer to a path.
    Http {
        /// The path.
        path: Text,
        /// Where in the JSON of the answer.
        json: JsonPath,
    },
}
