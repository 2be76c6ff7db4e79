//! Expectations of a process: pure, from how it ended and what is kept of its output.
//!
//! To add one, add it to [`unmet`], and take it off `not_yet`.

use super::blame;
use crate::event::Unmet;
use crate::plan::{Expect, Origin, Pattern};
use crate::process::Status;

/// The longest piece of output that is quoted.
const QUOTED: usize = 200;

/// What does not hold, and where it stands, if it is written anywhere. An exit code of 0 is expected unless one of the
/// expectations names another.
pub(super) fn unmet(
    expects: &[&Expect],
    status: Status,
    [stdout, stderr]: &[Vec<u8>; 2],
) -> Vec<(Unmet, Option<Origin>)> {
    let mut unmet = Vec::new();
    let named = expects.iter().filter_map(|expect| Some((expect.exit?, expect.origin))).collect::<Vec<_>>();
    let exits = if named.is_empty() { vec![(0, None)] } else { named };
    for (exit, origin) in exits {
        if status != Status::Code(exit) {
            let failed = Unmet { what: "exit".to_owned(), expected: exit.to_string(), actual: blame::words(status) };
            unmet.push((failed, origin));
        }
    }
    for expect in expects {
        let patterns = [
            ("stdout", &expect.stdout, stdout, true),
            ("stderr", &expect.stderr, stderr, true),
            ("stdout", &expect.stdout_not, stdout, false),
            ("stderr", &expect.stderr_not, stderr, false),
        ];
        for (stream, pattern, text, wanted) in patterns {
            if let Some(failed) = pattern.as_ref().and_then(|pattern| mismatch(stream, pattern, text, wanted)) {
                unmet.push((failed, expect.origin));
            }
        }
    }
    unmet
}

fn mismatch(stream: &str, pattern: &Pattern, text: &[u8], wanted: bool) -> Option<Unmet> {
    let found = pattern.regex().find(text);
    let source = pattern.source();
    let (expected, actual) = match (found, wanted) {
        (None, true) => (format!("a match of `{source}`"), "no match".to_owned()),
        (Some(found), false) => (format!("no match of `{source}`"), quote(found.as_bytes())),
        _ => return None,
    };
    Some(Unmet { what: stream.to_owned(), expected, actual })
}

/// The beginning of a text, in quotation marks.
pub(super) fn quote(text: &[u8]) -> String {
    let cut = text.get(..QUOTED).unwrap_or(text);
    let more = if text.len() > cut.len() { " …" } else { "" };
    format!("\"{}\"{more}", String::from_utf8_lossy(cut))
}

/// An expectation that does not hold, as a phrase.
pub(super) fn phrase(unmet: &Unmet) -> String {
    format!("{}: expected {}, got {}", unmet.what, unmet.expected, unmet.actual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(source: &str) -> Option<Pattern> {
        Some(Pattern::try_from(source.to_owned()).unwrap())
    }

    fn phrases(expects: &[&Expect], status: Status) -> Vec<String> {
        let output = [b"added 3 packages\r\n".to_vec(), b"warn\n".to_vec()];
        unmet(expects, status, &output).iter().map(|(unmet, _)| phrase(unmet)).collect()
    }

    #[test]
    fn exit_0_is_expected_where_none_is_named() {
        let nothing = Expect::default();
        assert_eq!(phrases(&[], Status::Code(0)), [""; 0]);
        assert_eq!(phrases(&[&nothing], Status::Code(2)), ["exit: expected 0, got 2"]);
        assert_eq!(phrases(&[&nothing], Status::Signal(11)), ["exit: expected 0, got killed by SIGSEGV"]);
        let three = Expect { exit: Some(3), ..Expect::default() };
        assert_eq!(phrases(&[&nothing, &three], Status::Code(3)), [""; 0]);
        assert_eq!(phrases(&[&three], Status::Code(0)), ["exit: expected 3, got 0"]);
    }

    #[test]
    fn patterns_match_lines() {
        let good =
            Expect { stdout: pattern(r"^added \d packages$"), stderr_not: pattern("error"), ..Expect::default() };
        assert_eq!(phrases(&[&good], Status::Code(0)), [""; 0]);
        let bad = Expect { stderr: pattern("error"), stdout_not: pattern("[0-9] pack"), ..Expect::default() };
        let expected = [
            "stderr: expected a match of `error`, got no match",
            "stdout: expected no match of `[0-9] pack`, got \"3 pack\"",
        ];
        assert_eq!(phrases(&[&bad], Status::Code(0)), expected);
    }
}
