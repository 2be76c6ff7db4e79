//! A request as HTTP/2 sends it (RFC 9113, 8.3.1): in comes a [`Request`], out come its fields and the pieces of its body.

use crate::load::{Body, Error, Request, Target};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Uri};
use std::time::Duration;

/// Headers that speak of a connection, which in HTTP/2 is no request's business (RFC 9113, 8.2.2).
const OF_CONNECTIONS: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];

/// One request, made once and sent often.
#[derive(Debug)]
pub(in crate::load) struct Form {
    pub(super) head: http::Request<()>,
    pub(super) body: Bytes,
    /// How many bytes go out between two pauses, at least 1.
    pub(super) piece: usize,
    pub(super) pause: Duration,
}

impl Form {
    /// Checks a request and writes it out.
    pub(in crate::load) fn new(target: &Target, request: &Request) -> Result<Self, Error> {
        request.check(true)?;
        let refuse = |what: String, why| Error::Invalid { what, why };
        let path = PathAndQuery::try_from(request.path.as_str())
            .map_err(|_| refuse(format!("the path {:?}", request.path), "cannot be sent over HTTP/2"))?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| refuse(format!("the method {:?}", request.method), "is not an HTTP token"))?;
        let mut authority = target.authority();
        let mut headers = http::HeaderMap::new();
        for (name, value) in &request.headers {
            if OF_CONNECTIONS.iter().any(|other| name.eq_ignore_ascii_case(other)) {
                return Err(refuse(format!("the header {name:?}"), "speaks of the connection, which HTTP/2 forbids"));
            }
            if name.eq_ignore_ascii_case("te") && !value.trim().eq_ignore_ascii_case("trailers") {
                return Err(refuse(format!("the header \"{name}: {value}\""), "may only say \"trailers\" over HTTP/2"));
            }
            if name.eq_ignore_ascii_case("host") {
                authority = value.trim().to_owned();
                continue;
            }
            let wrong = || refuse(format!("the header \"{name}: {value}\""), "cannot be sent over HTTP/2");
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.append(header, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?);
        }
        let authority = Authority::try_from(authority.as_str())
            .map_err(|_| refuse(format!("the host {authority:?}"), "cannot be sent over HTTP/2"))?;
        let (body, piece, pause) = match &request.body {
            Body::None => (Bytes::new(), usize::MAX, Duration::ZERO),
            Body::Sized(bytes) => (Bytes::copy_from_slice(bytes), usize::MAX, Duration::ZERO),
            Body::Chunked { bytes, size, delay } => (Bytes::copy_from_slice(bytes), *size, *delay),
        };
        let says_length = matches!(request.body, Body::Sized(_)) || (request.says_no_content() && body.is_empty());
        if says_length && !matches!(request.body, Body::Chunked { .. }) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let scheme = if target.is_tls() { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
        let uri = uri.map_err(|_| refuse(format!("the path {:?}", request.path), "cannot be sent over HTTP/2"))?;
        let mut head = http::Request::new(());
        (*head.method_mut(), *head.uri_mut(), *head.headers_mut()) = (method, uri, headers);
        Ok(Self { head, body, piece, pause })
    }
}
