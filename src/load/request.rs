//! What is sent: in comes a [`Request`], out come its bytes, made once, with the places where sending pauses.
//!
//! To add another kind of body, add it to [`Body`] and to [`Wire`]; the connection only knows bytes and pauses.

use super::{Error, Target};
use std::time::Duration;

/// Methods whose requests say that they have no body (RFC 9110, 8.6).
const WITH_CONTENT: [&str; 3] = ["POST", "PUT", "PATCH"];

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, as it is sent.
    pub method: String,
    /// The path with its query; it begins with `/`.
    pub path: String,
    /// Headers in order. `Host` is added unless it is here, the body's framing always.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

impl Request {
    /// A `GET` of a path, without headers.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), path: path.into(), headers: Vec::new(), body: Body::None }
    }

    /// Refuses what would not be one whole self.
    pub(super) fn check(&self, keep_alive: bool) -> Result<(), Error> {
        let refuse = |what: String, why| Err(Error::Invalid { what, why });
        if self.method.is_empty() || !self.method.bytes().all(is_token) {
            return refuse(format!("the method {:?}", self.method), "is not an HTTP token");
        }
        if self.method == "CONNECT" {
            return refuse("the method \"CONNECT\"".to_owned(), "asks for a tunnel, not for an answer");
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            let why = "must begin with `/` and hold no space, line break, `#` or character beyond ASCII";
            return refuse(format!("the path {:?}", self.path), why);
        }
        for (name, value) in &self.headers {
            if name.is_empty() || !name.bytes().all(is_token) {
                return refuse(format!("the header name {name:?}"), "is not an HTTP token");
            }
            if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                return refuse(format!("the value {value:?} of the header {name:?}"), "holds a control character");
            }
            if ["content-length", "transfer-encoding"].iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
                return refuse(format!("the header {name:?}"), "is made from the body, it cannot be set");
            }
            let mut tokens = value.split(',').map(str::trim);
            if keep_alive
                && name.eq_ignore_ascii_case("connection")
                && tokens.any(|token| token.eq_ignore_ascii_case("close"))
            {
                return refuse("the header \"Connection: close\"".to_owned(), "contradicts `keep_alive = true`");
            }
        }
        match self.body {
            Body::Chunked { size: 0, .. } => refuse("the size of a chunk".to_owned(), "must be at least 1"),
            _ => Ok(()),
        }
    }

    /// Whether it says that it has no body: those do whose method lets a body be expected.
    pub(super) fn says_no_content(&self) -> bool {
        self.body == Body::None && WITH_CONTENT.contains(&self.method.as_str())
    }
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// None.
    None,
    /// With `Content-Length`.
    Sized(Vec<u8>),
    /// With `Transfer-Encoding: chunked`.
    Chunked {
        /// The whole body.
        bytes: Vec<u8>,
        /// How many bytes a chunk has, at least 1.
        size: usize,
        /// The pause between two chunks; it is part of the latency.
        delay: Duration,
    },
}

/// A request as the bytes that go over the wire.
#[derive(Debug)]
pub(super) struct Wire {
    /// All of it.
    pub(super) bytes: Vec<u8>,
    /// The ends of the pieces between which sending pauses; the last is the end of all.
    pieces: Vec<usize>,
    /// The pause, in ns.
    pub(super) pause: u64,
}

impl Wire {
    /// Checks the request and writes it out.
    pub(super) fn new(target: &Target, request: &Request, keep_alive: bool) -> Result<Self, Error> {
        request.check(keep_alive)?;
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        };
        let given = |wanted: &str| request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !given("host") {
            line("Host", &target.authority());
        }
        if !keep_alive && !given("connection") {
            line("Connection", "close");
        }
        for (name, value) in &request.headers {
            line(name, value);
        }
        match &request.body {
            Body::None if request.says_no_content() => line("Content-Length", "0"),
            Body::None => {}
            Body::Sized(bytes) => line("Content-Length", &bytes.len().to_string()),
            Body::Chunked { .. } => line("Transfer-Encoding", "chunked"),
        }
        head.push_str("\r\n");
        Ok(Self::with_body(head.into_bytes(), &request.body))
    }

    /// Appends the body to the head.
    fn with_body(mut bytes: Vec<u8>, body: &Body) -> Self {
        let mut pieces = Vec::new();
        let mut pause = 0;
        match body {
            Body::None => {}
            Body::Sized(content) => bytes.extend_from_slice(content),
            Body::Chunked { bytes: content, size, delay } => {
                pause = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
                for (index, chunk) in content.chunks(*size).enumerate() {
                    if index > 0 && pause > 0 {
                        pieces.push(bytes.len());
                    }
                    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        pieces.push(bytes.len());
        Self { bytes, pieces, pause }
    }

    /// The end of the piece that the byte at `position` stands in.
    pub(super) fn piece_end(&self, position: usize) -> usize {
        let piece = self.pieces.partition_point(|&end| end <= position);
        self.pieces.get(piece).copied().unwrap_or(self.bytes.len())
    }

    /// Whether sending pauses at `position`.
    pub(super) fn pauses_at(&self, position: usize) -> bool {
        position < self.bytes.len() && self.pieces.binary_search(&position).is_ok()
    }

    /// Whether sending pauses anywhere.
    pub(super) fn has_pauses(&self) -> bool {
        self.pieces.len() > 1
    }
}

/// Whether a byte may stand in a token (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
