//! What is sent: where to, the head, the body.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

use super::Error;

/// How HTTP travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// As it is.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The port of a URL that names none.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether it goes over TLS.
    pub scheme: Scheme,
    /// A name, an IPv4 address or an IPv6 address (without brackets).
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Target {
    /// A server on this machine, at 127.0.0.1, plain.
    #[must_use]
    pub fn local(port: u16) -> Self {
        Target { scheme: Scheme::Http, host: "127.0.0.1".to_owned(), port }
    }

    /// What the `host` header of a request says: the port stands there unless it is the usual one.
    #[must_use]
    pub fn authority(&self) -> String {
        let whole = self.to_string();
        let usual = format!(":{}", self.scheme.port());
        whole.strip_suffix(&usual).map(str::to_owned).unwrap_or(whole)
    }
}

/// `host:port`, with brackets around an IPv6 address.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Reads `http://host:port` or `https://host:port`; the port may be left out (80, 443), a last `/` may stand.
impl FromStr for Target {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let wrong = |text| Error::Url { url: url.to_owned(), text };
        let uri: hyper::Uri = url.parse().map_err(|_| wrong("is not a url"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(wrong("begins neither with http:// nor with https://")),
        };
        let Some(authority) = uri.authority() else { return Err(wrong("names no host")) };
        if authority.as_str().contains('@') {
            return Err(wrong("holds a user name"));
        }
        if uri.path() != "/" && !uri.path().is_empty() || uri.query().is_some() {
            return Err(wrong("has a path: only scheme, host and port are meant here"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("names no host"));
        }
        let port = match (authority.port_u16(), authority.as_str().ends_with(authority.host())) {
            (Some(0), _) | (None, false) => return Err(wrong("has no valid port")),
            (Some(port), _) => port,
            (None, true) => scheme.port(),
        };
        Ok(Target { scheme, host: host.to_owned(), port })
    }
}

/// One request. `host` is added when it is not among the headers, and the length or encoding of the body; nothing else.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where it goes.
    pub target: Target,
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Names and values, in the order in which they are sent.
    pub headers: Vec<(String, String)>,
    /// What follows the head.
    pub body: Body,
}

impl Request {
    /// A GET without headers or body.
    #[must_use]
    pub fn get(target: Target, path: &str) -> Self {
        Request { target, method: "GET".to_owned(), path: path.to_owned(), headers: Vec::new(), body: Body::Empty }
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub enum Body {
    /// None.
    Empty,
    /// These bytes, with their length in the head.
    Whole(Bytes),
    /// These bytes in chunked transfer encoding. The length is not in the head.
    Chunked {
        /// All of the body.
        bytes: Bytes,
        /// The size of each chunk in bytes; the last may be smaller.
        size: NonZeroUsize,
        /// The pause between two chunks, kept to about 1 ms. The first is sent at once, the end together with the last.
        delay: Duration,
    },
}
