//! One HTTP request, one whole answer: for probes and readiness.
//!
//! In: a [`Request`] (where to, what, which headers and body) and a time limit. Out: the whole [`Answer`], or an [`Error`]
//! that says how far the exchange had come. Every request has a connection of its own, over TLS where its target says so.
//! All of it is bounded: the head, the body and the time, whatever the other side sends.
//!
//! The functions here block; tokio and hyper stay inside. Nothing runs between two calls.
//!
//! To add a way of sending a body, add it to [`Body`] and to `upload`. To add a way of failing, add it to [`Error`] and
//! to `exchange::failure`, which is the one place that reads hyper's errors.

mod answer;
mod connect;
mod exchange;
mod request;
mod upload;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use answer::Answer;
pub use connect::{answers, connect};
pub use request::{Body, Request, Scheme, Target};
use rustls::ClientConfig;

/// The largest body that is kept when nothing else is said: 64 MiB.
pub const BODY_BOUND: u64 = 64 << 20;

/// What is offered on a TLS connection (ALPN): HTTP/1.1 alone is spoken here.
pub const ALPN: &[&[u8]] = &[b"http/1.1"];

/// How often a waiting fetch looks whether it was interrupted.
const INTERRUPT_TICK: Duration = Duration::from_millis(20);

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing listens there.
    #[error("{address} refused the connection")]
    Refused {
        /// Host and port.
        address: String,
    },
    /// The connection could not be made for another reason.
    #[error("no connection to {address}: {source}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The time for the whole exchange was over.
    #[error("{address} gave no whole answer within {limit:?}: {progress}")]
    Timeout {
        /// Host and port.
        address: String,
        /// The limit.
        limit: Duration,
        /// What had arrived.
        progress: Progress,
    },
    /// The other side reset the connection.
    #[error("{address} reset the connection: {progress}")]
    Reset {
        /// Host and port.
        address: String,
        /// What had arrived.
        progress: Progress,
    },
    /// The other side closed the connection before the answer was whole.
    #[error("{address} closed the connection too early: {progress}")]
    Closed {
        /// Host and port.
        address: String,
        /// What had arrived.
        progress: Progress,
    },
    /// There is a connection, but no TLS over it, or none that can be trusted.
    #[error("no TLS with {address}: {text}")]
    Tls {
        /// Host and port.
        address: String,
        /// What is wrong, as [`phrase`](crate::trust::phrase) tells it.
        text: String,
    },
    /// What came is not an HTTP/1.1 answer.
    #[error("{address} did not answer in http/1.1: {text}")]
    Protocol {
        /// Host and port.
        address: String,
        /// What is wrong with it.
        text: String,
    },
    /// The body is larger than the bound.
    #[error("{address} answered with a body larger than {bound} bytes")]
    TooLarge {
        /// Host and port.
        address: String,
        /// The bound in bytes.
        bound: u64,
    },
    /// The caller ended the wait.
    #[error("the request to {address} was interrupted")]
    Interrupted {
        /// Host and port.
        address: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request to {address} is not valid: {text}")]
    Request {
        /// Host and port.
        address: String,
        /// What is wrong with it.
        text: String,
    },
    /// A URL that is not of the form `http://host:port` or `https://host:port`.
    #[error("the url {url} {text}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        text: &'static str,
    },
    /// The runtime could not be made.
    #[error("no runtime for http requests: {0}")]
    Runtime(io::Error),
}

/// How far an exchange had come when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There was no connection yet.
    Connecting,
    /// There was a connection, but the TLS handshake over it was not done.
    Handshake,
    /// There was a connection, but no whole head of an answer.
    Connected,
    /// The head had come, and so much of the body.
    Head {
        /// The status.
        status: u16,
        /// Bytes of the body.
        body: u64,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Connecting => f.write_str("not connected"),
            Progress::Handshake => f.write_str("connected, the TLS handshake not done"),
            Progress::Connected => f.write_str("connected, no head of an answer"),
            Progress::Head { status, body } => {
                write!(f, "a head with status {status} and {body} bytes of body had come")
            }
        }
    }
}

/// Sends requests, one at a time.
#[derive(Debug)]
pub struct Fetcher {
    runtime: tokio::runtime::Runtime,
    bound: u64,
    tls: Option<Arc<ClientConfig>>,
}

impl Fetcher {
    /// Makes a fetcher that keeps bodies of up to [`BODY_BOUND`] bytes.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system has no file descriptors left.
    pub fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        Ok(Fetcher { runtime, bound: BODY_BOUND, tls: None })
    }

    /// The same with another bound for bodies, in bytes.
    #[must_use]
    pub fn with_bound(self, bound: u64) -> Self {
        Fetcher { bound, ..self }
    }

    /// The same that makes TLS connections with this, which is to offer [`ALPN`]. Without it no `https` target is believed.
    #[must_use]
    pub fn trusting(self, tls: Arc<ClientConfig>) -> Self {
        Fetcher { tls: Some(tls), ..self }
    }

    /// Sends the request on a fresh connection and waits for the whole answer, at most `timeout` from the call on. The
    /// wait ends within about 20 ms once `interrupted` is set. The connection is dropped afterwards in every case.
    ///
    /// Informational answers (1xx) are passed over; redirects are answers like others and are not followed. Trailers
    /// are dropped.
    ///
    /// # Errors
    /// Every variant of [`Error`] but `Url` and `Runtime`.
    pub fn fetch(&self, request: &Request, timeout: Duration, interrupted: &AtomicBool) -> Result<Answer, Error> {
        let progress = Cell::new(Progress::Connecting);
        let address = || request.target.to_string();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = set(interrupted) => Err(Error::Interrupted { address: address() }),
                result = exchange::exchange(self, request, &progress) => result,
                () = tokio::time::sleep(timeout) => {
                    Err(Error::Timeout { address: address(), limit: timeout, progress: progress.get() })
                }
            }
        })
    }
}

/// Ready once the flag is set.
async fn set(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        tokio::time::sleep(INTERRUPT_TICK).await;
    }
}
