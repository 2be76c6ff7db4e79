//! Requests of a plan as they are sent, by probes and loads alike.
//!
//! A `json` body says so in a `content-type` header, unless the request has one of its own.

use std::time::Duration;

use super::fill::Names;
use crate::plan::{Body, Request};
use crate::{fetch, load};

/// A request, its holes filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filled {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    /// Bytes of a chunk, at least 1, and the pause before each but the first.
    chunked: Option<(usize, Duration)>,
}

impl Filled {
    pub(super) fn new(request: &Request, names: &Names<'_>) -> Self {
        let mut headers: Vec<(String, String)> =
            request.headers.iter().map(|(name, value)| (name.clone(), names.fill(value))).collect();
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let body = match &request.body {
            Body::Empty => None,
            Body::Text(text) => Some(names.fill(text).into_bytes()),
            Body::Json(value) => {
                if !typed {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                Some(names.json(value).to_string().into_bytes())
            }
            Body::Repeat { text, size } => Some(repeat(&names.fill(text), *size)),
        };
        let chunked = request.chunked.as_ref();
        let chunked =
            chunked.map(|chunked| (usize::try_from(chunked.size).unwrap_or(usize::MAX).max(1), chunked.delay));
        Self { method: request.method.clone(), path: names.fill(&request.path), headers, body, chunked }
    }

    pub(super) fn for_fetch(self, target: fetch::Target) -> fetch::Request {
        let body = match (self.body, self.chunked) {
            (body, Some((size, delay))) => fetch::Body::Chunked {
                bytes: body.unwrap_or_default().into(),
                size: size.try_into().unwrap_or(std::num::NonZeroUsize::MIN),
                delay,
            },
            (Some(body), None) => fetch::Body::Whole(body.into()),
            (None, None) => fetch::Body::Empty,
        };
        fetch::Request { target, method: self.method, path: self.path, headers: self.headers, body }
    }

    pub(super) fn for_load(self) -> load::Request {
        let body = match (self.body, self.chunked) {
            (body, Some((size, delay))) => load::Body::Chunked { bytes: body.unwrap_or_default(), size, delay },
            (Some(body), None) => load::Body::Sized(body),
            (None, None) => load::Body::None,
        };
        load::Request { method: self.method, path: self.path, headers: self.headers, body }
    }
}

/// A text repeated up to a size; the last repetition may be cut.
fn repeat(text: &str, size: u64) -> Vec<u8> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    text.bytes().cycle().take(if text.is_empty() { 0 } else { size }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plan::Text;

    #[test]
    fn bodies() {
        let here = Path::new("/");
        let names = Names { scenario_dir: here, run_dir: here, dir: here, servers: &[], subject: None };
        let of = |body: Body, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), Text::from(*value))).collect();
            Filled::new(&Request { method: "POST".to_owned(), path: "/".into(), headers, body, chunked: None }, &names)
        };
        let json = crate::plan::Value::Table(vec![("ok".to_owned(), crate::plan::Value::Boolean(true))]);
        let filled = of(Body::Json(json.clone()), &[]);
        assert_eq!(filled.body.as_deref(), Some(&br#"{"ok":true}"#[..]));
        assert_eq!(filled.headers, [("content-type".to_owned(), "application/json".to_owned())]);
        assert_eq!(of(Body::Json(json), &[("Content-Type", "x")]).headers.len(), 1);
        let repeated = of(Body::Repeat { text: "abc".into(), size: 7 }, &[]);
        assert_eq!(repeated.body.as_deref(), Some(&b"abcabca"[..]));
    }
}
