//! What came back.

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use sha2::{Digest, Sha256};

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, 101 or 200 to 999.
    pub status: u16,
    /// Names in lower case and values, duplicates kept. The order is that of first appearance; the values of a name that
    /// came several times stand together, in their order. A value that is not UTF-8 is read as Latin-1.
    pub headers: Vec<(String, String)>,
    /// The body, without transfer encoding. A content encoding (gzip) is left as it is.
    pub body: Bytes,
    /// SHA-256 of the body, in hexadecimal.
    pub sha256: String,
}

impl Answer {
    /// The length of the body in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.body.len() as u64
    }

    /// The first value of a header, its name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// An answer while its body arrives.
pub(super) struct Arriving {
    status: u16,
    headers: Vec<(String, String)>,
    body: BytesMut,
    digest: Sha256,
}

impl Arriving {
    pub(super) fn new(status: u16, headers: &HeaderMap) -> Self {
        let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
        Arriving { status, headers, body: BytesMut::new(), digest: Sha256::new() }
    }

    /// Takes a piece of the body and returns how many bytes there are now.
    pub(super) fn push(&mut self, piece: &[u8]) -> u64 {
        self.digest.update(piece);
        self.body.extend_from_slice(piece);
        self.body.len() as u64
    }

    pub(super) fn finish(self) -> Answer {
        let sha256 = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Answer { status: self.status, headers: self.headers, body: self.body.freeze(), sha256 }
    }
}

fn text(value: &[u8]) -> String {
    match str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect(),
    }
}
