//! The exchange itself: connect, secure the connection where it is asked for, send, read to the end.

use std::cell::Cell;
use std::error::Error as _;
use std::io;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::answer::Arriving;
use super::connect;
use super::request::{Body, Request, Scheme, Target};
use super::upload::Upload;
use super::{Answer, Error, Fetcher, Progress};
use crate::trust;

/// More headers than this end the exchange; so does a head of more than 408 KiB, which is hyper's own bound.
const MAX_HEADERS: usize = 1024;

/// One request and its answer, without a time limit. `progress` says at any moment how far it is.
pub(super) async fn exchange(fetcher: &Fetcher, request: &Request, progress: &Cell<Progress>) -> Result<Answer, Error> {
    let target = &request.target;
    let address = target.to_string();
    let message = message(request)?;
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(|source| connect::failure(address.clone(), source))?;
    if connect::is_own_echo(stream.local_addr(), stream.peer_addr()) {
        return Err(Error::Refused { address });
    }
    // Without it the kernel may hold back a small chunk; a connection that is lost here fails at once below.
    let _ = stream.set_nodelay(true);
    match target.scheme {
        Scheme::Http => over(stream, message, (&address, fetcher.bound), progress).await,
        Scheme::Https => {
            progress.set(Progress::Handshake);
            let stream = secure(stream, target, fetcher.tls.as_ref()).await?;
            over(stream, message, (&address, fetcher.bound), progress).await
        }
    }
}

/// The TLS connection over a stream.
async fn secure(
    stream: TcpStream,
    target: &Target,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<TlsStream<TcpStream>, Error> {
    let failed = |text: String| Error::Tls { address: target.to_string(), text };
    let tls = tls.ok_or_else(|| failed("nothing says which certificates are trusted".to_owned()))?;
    let name = trust::server_name(&target.host).map_err(|error| failed(error.to_string()))?;
    TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(|error| match trust::phrase(&error) {
        Some(text) => failed(text),
        None => broken(error.kind(), target.to_string(), Progress::Handshake)
            .unwrap_or_else(|| Error::Unreachable { address: target.to_string(), source: error }),
    })
}

/// The exchange over a stream that is ready for it, with the bound of the body.
async fn over<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    message: hyper::Request<Upload>,
    (address, bound): (&str, u64),
    progress: &Cell<Progress>,
) -> Result<Answer, Error> {
    progress.set(Progress::Connected);
    let failed = |error: &hyper::Error| failure(address, error, progress.get());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|e| failed(&e))?;
    // The task ends with this set: when the exchange returns or is dropped, so does the connection.
    let mut connections = JoinSet::new();
    connections.spawn(connection);

    let response = sender.send_request(message).await.map_err(|e| failed(&e))?;
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    progress.set(Progress::Head { status, body: 0 });
    let too_large = || Error::TooLarge { address: address.to_owned(), bound };
    if body.size_hint().lower() > bound {
        return Err(too_large());
    }
    let mut arriving = Arriving::new(status, &head.headers);
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|e| failed(&e))?.into_data() else { continue };
        let so_far = arriving.push(&piece);
        if so_far > bound {
            return Err(too_large());
        }
        progress.set(Progress::Head { status, body: so_far });
    }
    Ok(arriving.finish())
}

/// The request in hyper's types.
fn message(request: &Request) -> Result<hyper::Request<Upload>, Error> {
    let wrong = |text: String| Error::Request { address: request.target.to_string(), text };
    if !request.path.starts_with('/') {
        return Err(wrong(format!("the path {:?} does not begin with /", request.path)));
    }
    let mut message = hyper::Request::builder()
        .method(request.method.as_str())
        .uri(request.path.as_str())
        .body(Upload::from(&request.body))
        .map_err(|e| wrong(e.to_string()))?;
    let headers = message.headers_mut();
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        let host = HeaderValue::try_from(request.target.authority()).map_err(|e| wrong(e.to_string()))?;
        headers.append(HOST, host);
    }
    for (name, value) in &request.headers {
        let given = HeaderName::try_from(name).map_err(|_| wrong(format!("{name:?} is not a header name")))?;
        let value = HeaderValue::try_from(value).map_err(|_| wrong(format!("the header {name} has no valid value")))?;
        headers.append(given, value);
    }
    if matches!(request.body, Body::Chunked { .. }) {
        if headers.contains_key(CONTENT_LENGTH) {
            return Err(wrong("a chunked body has no content-length".to_owned()));
        }
        if !headers.contains_key(TRANSFER_ENCODING) {
            headers.append(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    Ok(message)
}

/// Sorts what hyper says of a failed exchange.
fn failure(address: &str, error: &hyper::Error, progress: Progress) -> Error {
    let address = address.to_owned();
    if let Some(text) = trust::phrase(error) {
        return Error::Tls { address, text };
    }
    let mut source = error.source();
    while let Some(cause) = source {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        if let Some(error) = kind.and_then(|kind| broken(kind, address.clone(), progress)) {
            return error;
        }
        source = cause.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return Error::Closed { address, progress };
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    Error::Protocol { address, text }
}

/// The error of a connection that broke, if that is what this kind says.
fn broken(kind: io::ErrorKind, address: String, progress: Progress) -> Option<Error> {
    match kind {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            Some(Error::Reset { address, progress })
        }
        io::ErrorKind::UnexpectedEof => Some(Error::Closed { address, progress }),
        _ => None,
    }
}
