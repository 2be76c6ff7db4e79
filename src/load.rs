//! The HTTP load generator: knows URLs, connections and clocks; nothing of scenarios.
//!
//! In go [`Options`], out comes an [`Outcome`] in which every request that was started has an end with a name. [`start`]
//! checks, resolves and starts a worker; [`Running`] is looked at, stopped and finished. A worker is one plain thread that
//! owns its connections, histograms and counters; it shares an event to stop it and a few relaxed counters, no more.
//!
//! To add another time to send, extend `schedule`; another way a request can end, [`Kind`] and `fault`; another framing,
//! `response`; another protocol, a module beside `connection`.

mod chunked;
mod connection;
mod fault;
mod generator;
mod latency;
mod options;
mod outcome;
mod request;
mod response;
mod running;
mod schedule;
mod tally;
mod target;
mod worker;

pub use fault::Kind;
pub use generator::Generator;
pub use latency::Latency;
pub use options::{Expect, Options, Stop};
pub use outcome::Outcome;
pub use request::{Body, Request};
pub use running::{Progress, Running};
pub use tally::{Counts, Kept, Second};
pub use target::Target;

use std::io;
use std::net::SocketAddr;

/// Why a load could not be started, or has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a URL that names a server.
    #[error("{url:?} is not the URL of a server: {why}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The URL asks for TLS.
    #[error("not yet: https")]
    Https,
    /// An option, or a part of the request, cannot be.
    #[error("{what} {why}")]
    Invalid {
        /// Which option, with its value where that helps.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name of the server leads to no address.
    #[error("the name {host:?} leads to no address: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The generator has used up its local ports.
    #[error("this machine has no local port left for another connection to {address}")]
    Ports {
        /// The server's address.
        address: SocketAddr,
    },
    /// The generator may not open as many files as it needs connections.
    #[error("this process may not open as many files as the load needs connections")]
    Descriptors,
    /// Not one connection of the opening got an answer.
    #[error("no connection got an answer from {address}: {why}")]
    Unanswered {
        /// The server's address.
        address: SocketAddr,
        /// What became of the first request.
        why: String,
    },
    /// The load was stopped before its window began.
    #[error("stopped before the window began")]
    Stopped,
    /// The books do not balance: a fault of the generator, whose figures must not be used.
    #[error("the generator lost count of its requests: {counts:?}, {recorded} latencies")]
    Conservation {
        /// The counters that do not add up.
        counts: Box<Counts>,
        /// How many latencies the histogram holds.
        recorded: u64,
    },
    /// The worker died of a fault of its own.
    #[error("the load generator failed: {0}")]
    Panicked(String),
    /// A system call of the generator's own failed.
    #[error("{doing}: {source}")]
    System {
        /// What the generator was about to do.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A histogram could not be written.
    #[error("a histogram cannot be written: {0}")]
    Encode(String),
}

impl Error {
    /// A stable word for results: `generator-…` where the generator, not the server, is at fault.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Url { .. } | Self::Https | Self::Invalid { .. } => "load-invalid",
            Self::Resolve { .. } => "load-unresolved",
            Self::Ports { .. } => "generator-ports",
            Self::Descriptors => "generator-descriptors",
            Self::Unanswered { .. } => "load-unanswered",
            Self::Stopped => "load-stopped",
            Self::Conservation { .. } | Self::Panicked(_) | Self::Encode(_) => "generator-fault",
            Self::System { .. } => "generator-system",
        }
    }

    /// Names the deed of a failed system call.
    fn system(doing: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System { doing, source: errno.into() }
    }
}

/// Checks the options, resolves the server's name, and starts the worker.
///
/// # Errors
/// An option or a part of the request that cannot be, a name without an address, or a refusal of the system. What goes
/// wrong later is told by [`Running::finish`].
pub fn start(options: Options) -> Result<Running, Error> {
    options.check()?;
    let wire = request::Wire::new(&options)?;
    let address = options.target.resolve(options.timeout)?;
    Running::spawn(move |stop, shared| worker::Worker::new(options, wire, address, &stop, shared)?.run())
}
