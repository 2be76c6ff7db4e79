//! The plan: what will be done, in order, with nothing left to look up.
//!
//! In: a [`Scenario`](crate::scenario::Scenario), by expansion. Out: a [`Plan`], which cannot be wrong: names are
//! resolved, axes multiplied, templates rendered, the order of turns fixed. What only a run knows is a typed hole in a
//! [`Text`]. A plan names no machine, so the same file has the same [`digest`](Plan::digest) everywhere; origins (places in
//! the file) are no part of it.
//! To add something that a run does, add it here, render it in `plan/expand`, and execute it in `run`.

mod design;
mod digest;
mod expand;
mod group;
mod http;
pub mod order;
mod process;
mod server;
mod show;

use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::design::{Told, design};
pub use self::expand::expand;
pub use self::group::{Cell, Derive, Driver, Formula, Group, Require, Turn, Until, Workspace};
pub use self::http::{AnswerExpect, Body, Chunked, Load, LoadRequest, LoadStop, Probe, Request};
pub use self::process::{Cache, Capture, CaptureFrom, Check, Clear, Command, Expect, Process, Stdin, Step, Tool};
pub use self::server::{Builtin, Launch, Ready, ReadyWhen, Server, ServerCapture, ServerCaptureFrom, Stop, Tls};
pub use self::show::show;
use crate::diagnostic::Span;
use crate::event::design::Reference;
use crate::event::metric::Metric;
pub use crate::scenario::value::{ClaimField, Hole, Piece, Place, ServerField, Text, Value};
pub use crate::scenario::{
    Argv, At, AxisValue, Better, CacheState, JsonPath, Order, Pattern, Pick, Port, Protocol, Record, SameAnswer,
    SameStream, Signal, Stdout,
};
use crate::units::seconds;

/// The version of the plan's JSON.
pub const SCHEMA: &str = "bakeoff.plan/1";

/// Axis names to values, in the order of `each`.
pub type Axes = IndexMap<String, AxisValue>;

/// What will be done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// `bakeoff.plan/1`.
    pub schema: &'static str,
    /// The scenario's name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The seed of every shuffle and mix.
    pub seed: u64,
    /// The vars in force.
    pub vars: IndexMap<String, Value>,
    /// What reaches the environment of the processes.
    pub environment: Environment,
    /// Steps that are run once, in order, before all else.
    pub setup: Vec<Step>,
    /// Commands whose first line is recorded as a fact.
    pub tools: Vec<Tool>,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Every server, whether measured or needed.
    pub servers: Vec<Server>,
    /// Every command.
    pub commands: Vec<Command>,
    /// Every probe.
    pub probes: Vec<Probe>,
    /// Every load.
    pub loads: Vec<Load>,
    /// Every check, in the order of execution.
    pub checks: Vec<Check>,
    /// The groups, in the order of execution.
    pub groups: Vec<Group>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Every metric that a run of this plan can have.
    pub metrics: IndexMap<String, Metric>,
    /// What the machine must be.
    pub machine: Option<Machine>,
    /// Figures quoted from elsewhere.
    pub references: Vec<Reference>,
    /// What was not measured.
    pub caveats: Vec<String>,
    /// Where the keys stand that later versions execute, in the order of the file.
    #[serde(skip)]
    pub places: Places,
}

/// Where keys of the scenario stand that have no other origin in a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `[machine]`.
    pub machine: Option<Span>,
    /// `[[references]]`.
    pub references: Option<Span>,
    /// `caveats`.
    pub caveats: Option<Span>,
}

/// What reaches the environment of the processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Environment {
    /// Variables of the caller that are passed on beside the usual ones; `*` at the end allowed, `-NAME` takes one away.
    pub inherit: Vec<String>,
    /// Variables that are set.
    pub set: IndexMap<String, Text>,
    /// Variables of the caller that are passed on and never written down.
    pub secret: Vec<String>,
}

/// What every entry that is expanded has.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Identity {
    /// Its id: `NAME/value/value`.
    pub id: String,
    /// The name of the entry that it was expanded from.
    pub name: String,
    /// Its axis values.
    pub axes: Axes,
    /// Its name for people.
    pub label: String,
    /// Where the entry's name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// A place in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(pub Span);

/// A sentence about the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The group it is about.
    pub group: String,
    /// The sentence.
    pub text: Text,
    /// The value, an expression over summaries.
    pub value: Formula,
    /// Decimals of the printed value.
    pub decimals: u8,
    /// What the value must be.
    pub expect: Option<String>,
    /// Where its name stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// What the machine must be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// At least so many cores.
    pub cores: Option<u64>,
    /// At least so many bytes of memory.
    pub memory: Option<u64>,
    /// Whether there is a hypervisor.
    pub hypervisor: Option<bool>,
    /// The frequency governor.
    pub governor: Option<String>,
    /// True where nothing is run on another machine.
    pub refuse: bool,
}

impl Plan {
    /// The server with this id.
    #[must_use]
    pub fn server(&self, id: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.identity.id == id)
    }

    /// The command with this id.
    #[must_use]
    pub fn command(&self, id: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.identity.id == id)
    }

    /// The probe with this id.
    #[must_use]
    pub fn probe(&self, id: &str) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.identity.id == id)
    }

    /// The load with this id.
    #[must_use]
    pub fn load(&self, id: &str) -> Option<&Load> {
        self.loads.iter().find(|load| load.identity.id == id)
    }

    /// SHA-256 of the plan's canonical JSON (no white space, no origins), in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        digest::of(self)
    }
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn optional_seconds<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds::serialize(duration, serializer),
        None => serializer.serialize_none(),
    }
}
