//! How a request can end that is not ok: the kinds that are counted, and what is said of a single one.
//!
//! To add a way to fail, add it to [`Fault`] under the kind it counts as; a new kind is a new metric.

use super::engine::Broken;

/// As what a request that was not ok is counted. The names are those of the metrics `errors.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole answer, of a status that is not good.
    Status,
    /// Fewer body bytes than were promised, or not as many as were expected.
    Body,
    /// No whole answer in time; in an open loop also no free connection in time.
    Timeout,
    /// No connection: refused, unreachable, or not made in time.
    Connect,
    /// The connection ended before the answer's head was whole, or broke in a body that only its end delimits.
    Reset,
    /// What came is no answer of the load's protocol, or more than one.
    Protocol,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Status, Self::Body, Self::Timeout, Self::Connect, Self::Reset, Self::Protocol];

    /// The kind's name, as in `errors.NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Body => "body",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
        }
    }
}

/// Why one request was not ok.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the status {0} was not expected")]
    Status(u16),
    #[error("the connection ended after {got} of {promised} body bytes")]
    Short { got: u64, promised: u64 },
    #[error("the connection ended in a chunked body, after {got} bytes")]
    Unfinished { got: u64 },
    #[error("the body has {got} bytes, {expected} were expected")]
    Length { got: u64, expected: u64 },
    #[error("no whole answer in time")]
    Timeout,
    #[error("it waited for a free connection until its time was over")]
    Expired,
    #[error("the answer before it on the same connection did not come in time")]
    Behind,
    #[error("no connection: {0}")]
    Connect(Broken),
    #[error("no connection in time")]
    ConnectTimeout,
    #[error("the connection was closed before a whole answer")]
    Closed,
    #[error("the connection broke before a whole answer: {0}")]
    Broken(Broken),
    #[error("{0}")]
    Protocol(&'static str),
    #[error("the request was broken off before an answer: {0}")]
    Ended(String),
    #[error("the answer was broken off after {got} body bytes: {why}")]
    Cut { got: u64, why: String },
    #[error("what came is not an answer of HTTP/2: {0}")]
    Http2(String),
}

impl Fault {
    /// As what it is counted.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Status(_) => Kind::Status,
            Self::Short { .. } | Self::Unfinished { .. } | Self::Length { .. } | Self::Cut { .. } => Kind::Body,
            Self::Timeout | Self::Expired | Self::Behind => Kind::Timeout,
            Self::Connect(_) | Self::ConnectTimeout => Kind::Connect,
            Self::Closed | Self::Broken(_) | Self::Ended(_) => Kind::Reset,
            Self::Protocol(_) | Self::Http2(_) => Kind::Protocol,
        }
    }
}
