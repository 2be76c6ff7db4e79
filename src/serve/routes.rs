//! From a request to its answer.

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::alarm::Alarm;
use super::content::Content;

/// The usual answer of `/json`.
const HELLO: &[u8] = br#"{"message":"hello","ok":true}"#;
/// The most that `/bytes/N` sends.
const BYTES_BOUND: u64 = 1 << 30;
/// The most that `/echo` keeps.
const ECHO_BOUND: u64 = 64 << 20;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// What the server answers with.
pub(super) struct Routes {
    json: Content,
    alarm: Option<Rc<Alarm>>,
}

impl Routes {
    /// `body` is the length of the answer of `/json`; `alarm` holds every answer back.
    pub(super) fn new(body: Option<u64>, alarm: Option<Rc<Alarm>>) -> Self {
        let json = match body {
            None => Content::whole(Bytes::from_static(HELLO)),
            Some(length) => Content::json(length),
        };
        Routes { json, alarm }
    }

    /// The answer to any request, whatever its method.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Content> {
        let answer = match request.uri().path() {
            "/json" => ok(JSON, self.json.clone()),
            "/echo" => echo(request).await,
            "/" => ok(TEXT, Content::whole("bakeoff reference server\n")),
            path => numbered(path),
        };
        if let Some(alarm) = &self.alarm {
            alarm.wait().await;
        }
        answer
    }
}

/// The routes that end with a number.
fn numbered(path: &str) -> Response<Content> {
    if let Some(length) = path.strip_prefix("/bytes/").and_then(number)
        && length <= BYTES_BOUND
    {
        return ok(OCTETS, Content::bytes(length));
    }
    if let Some(status) = path.strip_prefix("/status/").and_then(number)
        && (200..600).contains(&status)
        && let Ok(status) = StatusCode::from_u16(status as u16)
    {
        return with(status, TEXT, Content::default());
    }
    with(StatusCode::NOT_FOUND, TEXT, Content::whole("there is no such page\n"))
}

/// A whole number in plain digits: `+1` is none.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The body is read wholly before the answer begins: a client that reads nothing until it has sent all would wait for
/// ever on a server that answers as it reads.
async fn echo(request: Request<Incoming>) -> Response<Content> {
    let (head, body) = request.into_parts();
    let kind = head.headers.get(CONTENT_TYPE).cloned().unwrap_or(OCTETS);
    if body.size_hint().lower() <= ECHO_BOUND {
        match Limited::new(body, ECHO_BOUND as usize).collect().await {
            Ok(body) => return ok(kind, Content::whole(body.to_bytes())),
            Err(error) if !error.is::<http_body_util::LengthLimitError>() => {
                return with(StatusCode::BAD_REQUEST, TEXT, Content::whole("the body did not arrive\n"));
            }
            Err(_) => {}
        }
    }
    let mut answer = with(StatusCode::PAYLOAD_TOO_LARGE, TEXT, Content::whole("the body is too large\n"));
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn ok(kind: HeaderValue, content: Content) -> Response<Content> {
    with(StatusCode::OK, kind, content)
}

fn with(status: StatusCode, kind: HeaderValue, content: Content) -> Response<Content> {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
