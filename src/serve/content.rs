//! The bodies of answers: short ones are kept whole, long ones are made while they are sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// A text of this many bytes is sent in one piece and kept; a longer one is sent in pieces of this size. A multiple of
/// the length of `hello`, so that the pieces join.
const PIECE: usize = 5 * 13107;

/// A body of known length: a beginning, a filling, an end.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    begin: Bytes,
    filling: Bytes,
    filled: u64,
    end: Bytes,
}

impl Content {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Content { begin: bytes.into(), ..Content::default() }
    }

    /// So many bytes of `hellohello…`.
    pub(super) fn bytes(length: u64) -> Self {
        Content { filling: filling(length), filled: length, ..Content::default() }
    }

    /// A JSON text of exactly this length: an object with a message as long as it takes where there is room for one
    /// (29 bytes give the usual answer), else a string, a number, or nothing at all.
    pub(super) fn json(length: u64) -> Self {
        let (begin, end) = match length {
            24.. => (r#"{"message":""#, r#"","ok":true}"#),
            2..24 => ("\"", "\""),
            1 => ("1", ""),
            0 => ("", ""),
        };
        let filled = length - (begin.len() + end.len()) as u64;
        let content = Content {
            begin: Bytes::from_static(begin.as_bytes()),
            filling: filling(filled),
            filled,
            end: Bytes::from_static(end.as_bytes()),
        };
        content.joined()
    }

    /// The same in one piece, if it is short.
    fn joined(self) -> Self {
        if self.length() > PIECE as u64 {
            return self;
        }
        let filled = &self.filling[..self.filled as usize];
        Content::whole([&self.begin[..], filled, &self.end[..]].concat())
    }

    fn length(&self) -> u64 {
        self.begin.len() as u64 + self.filled + self.end.len() as u64
    }

    fn next(&mut self) -> Bytes {
        if !self.begin.is_empty() {
            return std::mem::take(&mut self.begin);
        }
        if self.filled > 0 {
            let piece =
                self.filling.slice(..self.filling.len().min(usize::try_from(self.filled).unwrap_or(usize::MAX)));
            self.filled -= piece.len() as u64;
            return piece;
        }
        std::mem::take(&mut self.end)
    }
}

fn filling(length: u64) -> Bytes {
    let repeats = length.min(PIECE as u64).div_ceil(5);
    Bytes::from(b"hello".repeat(repeats as usize))
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.get_mut().next();
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.length() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(mut content: Content) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let piece = content.next();
            if piece.is_empty() {
                return all;
            }
            all.extend_from_slice(&piece);
        }
    }

    #[test]
    fn json_of_every_length_is_json_of_that_length() {
        let piece = PIECE as u64;
        for length in (1..200).chain([piece - 1, piece, piece + 1, piece + 24, piece + 25, 3 * piece + 7, 1 << 20]) {
            let text = collect(Content::json(length));
            assert_eq!(text.len() as u64, length);
            serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        }
        assert_eq!(collect(Content::json(29)), br#"{"message":"hello","ok":true}"#);
        assert!(collect(Content::json(0)).is_empty());
    }

    #[test]
    fn pieces_join_to_one_text() {
        let all = collect(Content::bytes(2 * PIECE as u64 + 3));
        assert_eq!(all.len(), 2 * PIECE + 3);
        assert!(all.chunks(5).all(|word| b"hello".starts_with(word)));
    }
}
