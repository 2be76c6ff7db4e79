//! Probes: one request, one whole answer, every expectation.
//!
//! In: a probe of the plan and where its server is. Out: a [`Probed`]. What is expected is looked at by [`unmet`], which is
//! pure; to add an expectation, add it there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jsonpath_rust::JsonPath as _;
use rustls::ClientConfig;
use serde_json::Value as Json;

use super::blame::failure;
use super::effects::{Probed, Trouble};
use super::expect::{phrase, quote};
use super::fill::Names;
use super::request::Filled;
use crate::diagnostic::Code;
use crate::event::{Answer, Unmet};
use crate::fetch::{self, Fetcher, Target};
use crate::plan::{AnswerExpect, Probe};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a body is kept in the log.
const HEAD: usize = 1024;

/// Sends a probe to the server at `url`, over TLS with what is believed of it.
pub(super) fn send(
    probe: &Probe,
    (url, tls): (&str, Option<Arc<ClientConfig>>),
    names: &Names<'_>,
    interrupted: &AtomicBool,
) -> Probed {
    let origin = probe.expect.origin.unwrap_or(probe.request_origin);
    let id = &probe.identity.id;
    let answered = url.parse::<Target>().and_then(|target| {
        let fetcher = Fetcher::new()?;
        let fetcher = if let Some(tls) = tls { fetcher.trusting(tls) } else { fetcher };
        fetcher.fetch(&Filled::new(&probe.request, names).for_fetch(target), TIMEOUT, interrupted)
    });
    match answered {
        Ok(answer) => {
            let failures = unmet(&probe.expect, &answer, names);
            let phrases: Vec<String> = failures.iter().map(phrase).collect();
            let trouble = (!failures.is_empty()).then(|| {
                let message = format!("the answer to the probe `{id}` is not what is expected: {}", phrases.join("; "));
                let body = format!(
                    "the answer had status {} and {} bytes: {}",
                    answer.status,
                    answer.length(),
                    quote(&answer.body)
                );
                failure(Code::ProbeFailed, origin, message).note(body).into()
            });
            Probed { answer: Some(told(&answer)), error: None, failures, trouble }
        }
        Err(fetch::Error::Interrupted { .. }) => {
            Probed { error: Some("interrupted".to_owned()), trouble: Some(Trouble::Interrupted), ..Probed::default() }
        }
        Err(error) => {
            let message = format!("no answer to the probe `{id}`: {error}");
            let trouble = failure(Code::ProbeFailed, probe.request_origin, message).into();
            Probed { error: Some(error.to_string()), trouble: Some(trouble), ..Probed::default() }
        }
    }
}

/// An answer as the log holds it.
fn told(answer: &fetch::Answer) -> Answer {
    let head = answer.body.get(..HEAD).unwrap_or(&answer.body);
    Answer {
        status: answer.status,
        headers: answer.headers.clone(),
        bytes: answer.length(),
        sha256: answer.sha256.clone(),
        head: String::from_utf8_lossy(head).into_owned(),
    }
}

/// The expectations that do not hold.
fn unmet(expect: &AnswerExpect, answer: &fetch::Answer, names: &Names<'_>) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    let mut push =
        |what: &str, expected: String, actual: String| unmet.push(Unmet { what: what.to_owned(), expected, actual });
    match expect.status {
        Some(status) if status != answer.status => push("status", status.to_string(), answer.status.to_string()),
        None if !(200..300).contains(&answer.status) => push("status", "2xx".to_owned(), answer.status.to_string()),
        _ => {}
    }
    if let Some(bytes) = expect.bytes.filter(|bytes| *bytes != answer.length()) {
        push("bytes", bytes.to_string(), answer.length().to_string());
    }
    if let Some(body) = expect.body.as_ref().map(|body| names.fill(body))
        && body.as_bytes() != answer.body
    {
        push("body", quote(body.as_bytes()), quote(&answer.body));
    }
    if let Some(pattern) = expect.matches.as_ref().filter(|pattern| !pattern.regex().is_match(&answer.body)) {
        push("matches", format!("a match of `{}`", pattern.source()), quote(&answer.body));
    }
    for (name, value) in &expect.headers {
        let value = names.fill(value);
        let given: Vec<&str> = answer
            .headers
            .iter()
            .filter(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect();
        if !given.contains(&value.as_str()) {
            let actual =
                if given.is_empty() { "no such header".to_owned() } else { quote(given.join(", ").as_bytes()) };
            push(&format!("header {}", name.to_ascii_lowercase()), quote(value.as_bytes()), actual);
        }
    }
    if expect.json.is_some() || !expect.json_path.is_empty() {
        match serde_json::from_slice::<Json>(&answer.body) {
            Ok(json) => unmet.extend(unmet_json(expect, &json, names)),
            Err(error) => push("json", "JSON".to_owned(), format!("{} ({error})", quote(&answer.body))),
        }
    }
    unmet
}

fn unmet_json(expect: &AnswerExpect, json: &Json, names: &Names<'_>) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    if let Some(expected) = expect.json.as_ref().map(|expected| names.json(expected))
        && !equal(&expected, json)
    {
        let (expected, actual) = (quote_json(&expected), quote_json(json));
        unmet.push(Unmet { what: "json".to_owned(), expected, actual });
    }
    for (path, expected) in &expect.json_path {
        let expected = names.json(expected);
        let found = json.query(&path.0).unwrap_or_default();
        if !matches!(found.as_slice(), [one] if equal(&expected, one)) {
            let actual = match found.as_slice() {
                [] => "nothing".to_owned(),
                [one] => quote_json(one),
                many => format!("{} values, the first {}", many.len(), quote_json(many[0])),
            };
            unmet.push(Unmet { what: format!("json_path {}", path.0), expected: quote_json(&expected), actual });
        }
    }
    unmet
}

fn quote_json(json: &Json) -> String {
    let text = json.to_string();
    let cut: String = text.chars().take(HEAD / 4).collect();
    if cut.len() < text.len() { format!("{cut} …") } else { cut }
}

/// Whether two values are the same: numbers by what they are worth (1 is 1.0), objects whatever the order of their members.
fn equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => left == right || same_number(left, right),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            let same = |(name, value)| right.get(name).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right,
    }
}

/// Two whole numbers are compared as such: beyond 2^53 different ones may be the same float.
fn same_number(left: &serde_json::Number, right: &serde_json::Number) -> bool {
    let whole = |number: &serde_json::Number| number.is_i64() || number.is_u64();
    !(whole(left) && whole(right)) && left.as_f64() == right.as_f64()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::plan::{JsonPath, Pattern, Value};

    fn phrases(expect: &AnswerExpect, status: u16, body: &str) -> Vec<String> {
        let here = Path::new("/");
        let names = Names { scenario_dir: here, run_dir: here, dir: here, servers: &[], subject: None };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let answer = fetch::Answer { status, headers, body: body.to_owned().into(), sha256: String::new() };
        unmet(expect, &answer, &names).iter().map(phrase).collect()
    }

    #[test]
    fn any_2xx_is_expected_where_nothing_is_said() {
        assert_eq!(phrases(&AnswerExpect::default(), 204, ""), [""; 0]);
        assert_eq!(phrases(&AnswerExpect::default(), 302, ""), ["status: expected 2xx, got 302"]);
        let gone = AnswerExpect { status: Some(410), ..AnswerExpect::default() };
        assert_eq!(phrases(&gone, 410, ""), [""; 0]);
        assert_eq!(phrases(&gone, 200, ""), ["status: expected 410, got 200"]);
    }

    #[test]
    fn every_expectation_is_looked_at() {
        let path = |path: &str, value| (JsonPath(path.to_owned()), value);
        let expect = AnswerExpect {
            bytes: Some(3),
            body: Some("abc".into()),
            matches: Some(Pattern::try_from("^x$".to_owned()).unwrap()),
            headers: vec![("Content-Type".to_owned(), "application/json".into()), ("ETag".to_owned(), "1".into())],
            json: Some(Value::Integer(1)),
            json_path: vec![
                path("$.a", Value::Float(1.0)),
                path("$.b[*]", Value::Integer(2)),
                path("$.c", Value::Integer(3)),
            ],
            ..AnswerExpect::default()
        };
        let got = phrases(&expect, 200, r#"{"a":1,"b":[2,2]}"#);
        let expected = [
            "bytes: expected 3, got 17",
            r#"body: expected "abc", got "{"a":1,"b":[2,2]}""#,
            r#"matches: expected a match of `^x$`, got "{"a":1,"b":[2,2]}""#,
            r#"header etag: expected "1", got no such header"#,
            r#"json: expected 1, got {"a":1,"b":[2,2]}"#,
            "json_path $.b[*]: expected 2, got 2 values, the first 2",
            "json_path $.c: expected 3, got nothing",
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn json_is_compared_by_worth() {
        assert!(equal(&json!({"a": 1, "b": [1.0]}), &json!({"b": [1], "a": 1.0})));
        assert!(!equal(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(!equal(&json!([1, 2]), &json!([2, 1])));
        assert!(!equal(&json!(null), &json!(false)));
    }
}
