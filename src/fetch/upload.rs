//! The body of a request, as hyper takes it: each piece that it is given becomes one chunk on the wire.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::request;

/// A body on its way out.
pub(super) enum Upload {
    /// Known in length: at most one piece.
    Whole(Bytes),
    /// Chunks with pauses between them.
    Chunked { rest: Bytes, size: usize, delay: Duration, pause: Option<Pin<Box<Sleep>>> },
}

impl From<&request::Body> for Upload {
    fn from(body: &request::Body) -> Self {
        match body {
            request::Body::Empty => Upload::Whole(Bytes::new()),
            request::Body::Whole(bytes) => Upload::Whole(bytes.clone()),
            request::Body::Chunked { bytes, size, delay } => {
                Upload::Chunked { rest: bytes.clone(), size: size.get(), delay: *delay, pause: None }
            }
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Upload::Whole(bytes) => std::mem::take(bytes),
            Upload::Chunked { rest, size, delay, pause } => {
                if let Some(sleep) = pause.as_mut() {
                    ready!(sleep.as_mut().poll(cx));
                    *pause = None;
                }
                let piece = rest.split_to((*size).min(rest.len()));
                if !rest.is_empty() && !delay.is_zero() {
                    *pause = Some(Box::pin(tokio::time::sleep(*delay)));
                }
                piece
            }
        };
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Upload::Whole(bytes) => bytes.is_empty(),
            Upload::Chunked { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Upload::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Upload::Chunked { .. } => SizeHint::default(),
        }
    }
}
