//! The head of an answer: in come its bytes, out goes what it means for the body and the connection (RFC 9112, 6.3).

use super::super::chunked::Chunked;
use super::{Framing, Head};
use httparse::{EMPTY_HEADER, Error, Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// So many headers are read without allocating.
const USUAL_HEADERS: usize = 64;

/// Reads a whole head. `bodiless` says that the request was a `HEAD`.
pub(super) fn read(bytes: &[u8], bodiless: bool) -> Result<Head, &'static str> {
    with_parsed(bytes, |response| interpret(response, bodiless))?
}

/// The headers of a whole head, in order.
pub(super) fn headers(bytes: &[u8]) -> Vec<(String, String)> {
    let text = |header: &Header<'_>| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned());
    with_parsed(bytes, |response| response.headers.iter().map(text).collect()).unwrap_or_default()
}

/// Parses a head and hands it to `then`.
fn with_parsed<T>(bytes: &[u8], then: impl FnOnce(&Response<'_, '_>) -> T) -> Result<T, &'static str> {
    let mut few = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut response = Response::new(&mut []);
    match ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut few) {
        Err(Error::TooManyHeaders) => {
            let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            let mut many = vec![EMPTY_HEADER; lines];
            let mut response = Response::new(&mut many);
            whole(response.parse(bytes), bytes)?;
            Ok(then(&response))
        }
        parsed => {
            whole(parsed, bytes)?;
            Ok(then(&response))
        }
    }
}

/// Refuses a head that is not one, or ends elsewhere than at its empty line.
fn whole(parsed: httparse::Result<usize>, bytes: &[u8]) -> Result<(), &'static str> {
    match parsed {
        Ok(Status::Complete(length)) if length == bytes.len() => Ok(()),
        Ok(_) => Err("the head does not end in an empty line"),
        Err(Error::Version) => Err("the answer is not one of HTTP/1.0 or HTTP/1.1"),
        Err(Error::Status) => Err("the answer's first line is not a status line"),
        Err(_) => Err("the answer's headers are not well formed"),
    }
}

/// What the headers mean.
fn interpret(response: &Response<'_, '_>, bodiless: bool) -> Result<Head, &'static str> {
    let status = response.code.ok_or("the answer has no status")?;
    let mut persistent = response.version == Some(1);
    let mut closing = false;
    let mut length = None;
    let mut coding = None;
    for header in response.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            length = Some(one_length(length, header.value)?);
        } else if is("transfer-encoding") {
            coding = tokens(header.value).last().or(coding);
        } else if is("connection") {
            closing |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"close"));
            persistent |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
        }
    }
    let framing = match (coding, length) {
        _ if bodiless || status < 200 || status == 204 || status == 304 => Framing::Nothing,
        (Some(last), _) if last.eq_ignore_ascii_case(b"chunked") => Framing::Chunked(Chunked::default()),
        (Some(_), _) | (None, None) => Framing::Close,
        (None, Some(length)) => Framing::Length(length),
    };
    let persistent = persistent && !closing && !matches!(framing, Framing::Close);
    Ok(Head { status, framing, persistent })
}

/// The length that this header and those before agree on.
fn one_length(before: Option<u64>, value: &[u8]) -> Result<u64, &'static str> {
    let mut agreed = before;
    for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if !token.iter().all(u8::is_ascii_digit) {
            return Err("the content length is no number");
        }
        let text = std::str::from_utf8(token).unwrap_or_default();
        let length = text.parse().map_err(|_| "the content length is no number of 64 bits")?;
        if agreed.is_some_and(|agreed| agreed != length) {
            return Err("the content lengths differ");
        }
        agreed = Some(length);
    }
    agreed.ok_or("the content length is no number")
}

/// The words of a header's list.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}
