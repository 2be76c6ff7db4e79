//! What a report says.

use bakeoff::event::Phase;
use bakeoff::report::{Look, document, markdown, terminal};
use bakeoff::results::Results;

use crate::log::{self, folded};

const PLAIN: Look = Look { width: None, colour: false };

fn plain(results: &Results) -> String {
    terminal(&document(results), PLAIN)
}

#[test]
fn servers() {
    let document = document(&log::servers().fold().results);
    insta::assert_snapshot!("servers.md", markdown(&document));
    insta::assert_snapshot!("servers.txt", terminal(&document, PLAIN));
}

#[test]
fn where_the_generator_was_the_limit_no_ratio_is_shown() {
    let document = document(&log::bound(2, (1, Phase::Measured)).fold().results);
    let section = |text: String, end: &str| {
        let lines = text.lines().skip_while(|line| !line.contains("Throughput, 100"));
        lines.take_while(|line| !line.contains(end)).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("bound.txt", section(terminal(&document, PLAIN), "The answers"));
    insta::assert_snapshot!("bound.md", section(markdown(&document), "The answers"));
}

#[test]
fn a_warning_of_a_warm_up_says_so() {
    let text = plain(&log::bound(2, (1, Phase::Warmup)).fold().results);
    assert!(text.contains("\n  - Bun.serve: in a warm-up, the generator was busy"), "{text}");
    assert!(!text.contains("cannot tell"), "{text}");
}

#[test]
fn commands() {
    insta::assert_snapshot!("commands.txt", plain(&log::commands().fold().results));
}

#[test]
fn failed() {
    insta::assert_snapshot!("failed.md", markdown(&document(&log::failed().fold().results)));
}

#[test]
fn interrupted() {
    let text = log::servers().text();
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() / 2].join("\n");
    insta::assert_snapshot!("interrupted.txt", plain(&folded(&cut).results));
}

#[test]
fn a_table_fits_its_terminal() {
    let document = document(&log::servers().fold().results);
    let text = terminal(&document, Look { width: Some(80), colour: false });
    let table = text.lines().skip_while(|line| !line.starts_with("Planned")).skip(2);
    let table: Vec<&str> = table.take_while(|line| !line.starts_with("Against")).collect();
    insta::assert_snapshot!("narrow.txt", table.join("\n"));
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:#?}");
    assert!(!text.contains('\u{1b}'));
    assert!(terminal(&document, Look { width: Some(80), colour: true }).contains("\u{1b}[1m"));
}

#[test]
fn no_text_of_a_scenario_moves_the_cursor_or_breaks_the_table() {
    let results = log::commands_titled("A | *B*\u{1b}[31m\n# C").fold().results;
    let text = plain(&results);
    assert!(text.starts_with("A | *B*\\u{1b}[31m\\n# C\n"), "{text}");
    let marked = markdown(&document(&results));
    assert!(marked.starts_with("# A \\| \\*B\\*\\\\u{1b}\\[31m\\\\n# C\n"), "{marked}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<usize> = marked.lines().filter(|line| line.starts_with('|')).map(columns).collect();
    assert_eq!(table, [7, 7, 7, 7]);
    assert!([text, marked].iter().all(|text| text.chars().all(|c| c == '\n' || !c.is_control())));
}

#[test]
fn a_verdict_is_not_spoken() {
    for results in [log::servers(), log::commands(), log::failed()].map(|log| log.fold().results) {
        let text = plain(&results).to_lowercase();
        for word in ["faster", "slower", "better", "worse", "winner", "significant"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
