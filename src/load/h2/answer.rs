//! One exchange on a stream: in come the stream's two halves and the request's body, out comes the answer as it grows, and
//! how it ended.

use super::form::Form;
use crate::load::engine::Broken;
use crate::load::fault::Fault;
use crate::load::response::{EXCERPT, Excerpt};
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use http::response::Parts;
use rustix::io::Errno;
use std::future::{pending, poll_fn};

/// What came of an answer so far.
#[derive(Default)]
pub(super) struct Answer {
    head: Option<Parts>,
    /// Content, in bytes.
    length: u64,
    /// The first of it.
    excerpt: Vec<u8>,
}

impl Answer {
    /// The status, and how many bytes of the body came, once the head is whole.
    pub(super) fn so_far(&self) -> Option<(u16, u64)> {
        self.head.as_ref().map(|head| (head.status.as_u16(), self.length))
    }

    /// What was read, to be shown.
    pub(super) fn excerpt(self) -> Excerpt {
        let text = |headers: &HeaderMap| {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
        };
        Excerpt {
            status: self.so_far().map(|(status, _)| status),
            headers: self.head.map(|head| text(&head.headers)).unwrap_or_default(),
            body: self.excerpt,
        }
    }

    /// Sends a body, and reads what is answered up to its end, which may come before the body is sent.
    pub(super) async fn exchange(
        &mut self,
        form: &Form,
        (response, stream): (ResponseFuture, SendStream<Bytes>),
    ) -> Result<(), Fault> {
        let sending = async {
            // What the server will not take, it says by its answer or by the end of the stream.
            let _ = send(form, stream).await;
            pending().await
        };
        tokio::select! {
            biased;
            end = self.read(response) => end.map_err(|error| self.fault(&error)),
            () = sending => Ok(()),
        }
    }

    async fn read(&mut self, response: ResponseFuture) -> Result<(), h2::Error> {
        let (head, mut body) = response.await?.into_parts();
        self.head = Some(head);
        while let Some(data) = body.data().await {
            self.take(&data?, &mut body)?;
        }
        body.trailers().await.map(drop)
    }

    fn take(&mut self, data: &[u8], body: &mut RecvStream) -> Result<(), h2::Error> {
        self.length += data.len() as u64;
        let wanted = EXCERPT - self.excerpt.len();
        self.excerpt.extend_from_slice(&data[..data.len().min(wanted)]);
        body.flow_control().release_capacity(data.len())
    }

    /// What the failure of a stream makes of the answer.
    fn fault(&self, error: &h2::Error) -> Fault {
        if let Some((_, got)) = self.so_far() {
            return Fault::Cut { got, why: reason(error) };
        }
        match error.get_io() {
            Some(io) => io
                .raw_os_error()
                .map_or(Fault::Closed, |code| Fault::Broken(Broken::System(Errno::from_raw_os_error(code)))),
            None if error.is_remote() => Fault::Ended(reason(error)),
            None => Fault::Http2(reason(error)),
        }
    }
}

/// The error's code (RFC 9113, 7) and who gave it, or what the system said.
fn reason(error: &h2::Error) -> String {
    match (error.reason(), error.is_remote()) {
        (Some(reason), true) => format!("the server said {reason:?}"),
        (Some(reason), false) => format!("{reason:?}"),
        (None, _) => error.to_string(),
    }
}

/// Sends a body in its pieces, as fast as the server takes it.
async fn send(form: &Form, mut stream: SendStream<Bytes>) -> Result<(), h2::Error> {
    let mut body = form.body.clone();
    while !body.is_empty() {
        let mut piece = body.split_to(form.piece.min(body.len()));
        while !piece.is_empty() {
            stream.reserve_capacity(piece.len());
            let Some(room) = poll_fn(|context| stream.poll_capacity(context)).await else { return Ok(()) };
            let part = piece.split_to(room?.min(piece.len()));
            stream.send_data(part, piece.is_empty() && body.is_empty())?;
        }
        if !body.is_empty() && !form.pause.is_zero() {
            tokio::time::sleep(form.pause).await;
        }
    }
    Ok(())
}
