//! Everything that can be wrong with a scenario is said with a code of its own, at its place, with what to write instead.
//!
//! Every file under `tests/scenarios/invalid/` is named after the code that it raises; what is said of it is a snapshot.
//! A file whose first line is `# with: …` is loaded with these arguments. Files that other files include are in `part/`.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bakeoff::diagnostic::{Code, Diagnostic, Problems, Sources, render};
use bakeoff::plan::expand;
use bakeoff::scenario::{Options, load};

const INVALID: &str = "tests/scenarios/invalid";
const FAILING: &str = "tests/scenarios/failing";

/// The scenario files of a folder, without those of its subfolders.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The options that the first line of a file asks for.
fn options(path: &Path) -> Options {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut options = Options { path: path.to_owned(), ..Options::default() };
    let mut words = text.lines().next().and_then(|line| line.strip_prefix("# with: ")).unwrap_or_default().split(' ');
    while let Some(word) = words.next().filter(|word| !word.is_empty()) {
        let value = words.next().unwrap();
        match word {
            "--profile" => options.profile = Some(value.to_owned()),
            "--set" => options.set.push(value.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()),
            other => panic!("{other}"),
        }
    }
    options
}

/// What is wrong with a file, and how it is shown.
fn diagnose(path: &Path) -> (Vec<Diagnostic>, String) {
    let mut sources = Sources::default();
    let mut problems = Problems::default();
    if let Some(loaded) = load(&options(path), &mut sources, &mut problems) {
        expand(&loaded, None, &sources, &mut problems);
    }
    let diagnostics = problems.into_sorted();
    let shown = render(&diagnostics, &sources, false);
    (diagnostics, shown)
}

/// The code that a file is named after: `CODE.toml` or `CODE-what.toml`.
fn named_code(path: &Path) -> Code {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let fits =
        |code: &&Code| stem.strip_prefix(code.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let code = Code::ALL.iter().filter(fits).max_by_key(|code| code.name().len());
    *code.unwrap_or_else(|| panic!("{stem} is named after no code"))
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

#[test]
fn what_is_said_of_invalid_scenarios() {
    for path in files(INVALID) {
        let (diagnostics, shown) = diagnose(&path);
        insta::with_settings!({ description => path.display().to_string(), omit_expression => true }, {
            insta::assert_snapshot!(format!("invalid__{}", stem(&path)), shown);
        });
        if stem(&path).starts_with("many") {
            continue;
        }
        let code = named_code(&path);
        let codes: BTreeSet<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code.name()).collect();
        assert!(codes.contains(code.name()), "{} raises {codes:?}", path.display());
        if stem(&path) == code.name() {
            assert_eq!(codes.len(), 1, "{} raises {codes:?}", path.display());
        }
    }
}

#[test]
fn every_code_has_its_file() {
    let has = |folder: &str, code: &Code| Path::new(folder).join(format!("{}.toml", code.name())).is_file();
    // What no scenario alone provokes: an output that cannot be written is asked for on the command line; a foreign process
    // on a server's port, before it is ready or after it was stopped, is none that a scenario starts.
    let not_alone = [Code::OutputUnwritable, Code::ServerNotOurs, Code::ServerLeftBehind];
    for code in Code::ALL {
        let folder = if code.at_run() { FAILING } else { INVALID };
        assert!(has(folder, code) || not_alone.contains(code), "{folder}/{}.toml is missing", code.name());
    }
}

#[test]
fn scenarios_that_fail_in_a_run_are_valid() {
    for path in files(FAILING) {
        let (_, shown) = diagnose(&path);
        assert_eq!(shown, "", "{}", path.display());
        assert!(named_code(&path).at_run(), "{}", path.display());
    }
}

/// The spans are exact: what is underlined is what is wrong, not its line.
#[test]
fn spans_lie_within_their_files() {
    for path in files(INVALID) {
        let mut sources = Sources::default();
        let mut problems = Problems::default();
        if let Some(loaded) = load(&options(&path), &mut sources, &mut problems) {
            expand(&loaded, None, &sources, &mut problems);
        }
        for diagnostic in problems.into_sorted() {
            for label in diagnostic.primary.iter().chain(&diagnostic.others) {
                let text = &sources.get(label.span.file).text;
                assert!(text.get(label.span.start..label.span.end).is_some(), "{}: {diagnostic:?}", path.display());
            }
            assert!(!diagnostic.message.starts_with(char::is_uppercase), "{}", diagnostic.message);
            assert!(!diagnostic.message.ends_with('.') && !diagnostic.message.contains('\n'), "{}", diagnostic.message);
            assert!(diagnostic.help.is_none_or(|help| !help.contains('\n')));
        }
    }
}

/// One pass says all that is wrong: names, types, templates, ranges, references, expressions, in two files.
#[test]
fn all_problems_of_a_file_come_at_once() {
    let (diagnostics, shown) = diagnose(&Path::new(INVALID).join("many.toml"));
    let codes: BTreeSet<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    let expected = [
        Code::UnknownKey,
        Code::WrongType,
        Code::InvalidValue,
        Code::MissingKey,
        Code::Conflict,
        Code::InvalidName,
        Code::Duplicate,
        Code::TemplateSyntax,
        Code::UnknownOverride,
        Code::InvalidPattern,
    ];
    for code in expected {
        assert!(codes.contains(&code), "{} is not among\n{shown}", code.name());
    }
    let (whole, shown) = diagnose(&Path::new(INVALID).join("many-names.toml"));
    let codes: BTreeSet<Code> = whole.iter().map(|diagnostic| diagnostic.code).collect();
    let names = [
        Code::VarsCycle,
        Code::NeedsCycle,
        Code::UndefinedName,
        Code::MisplacedPlaceholder,
        Code::UnknownEntry,
        Code::InvalidExpression,
        Code::UnknownMetric,
        Code::AmbiguousJoin,
        Code::InvalidValue,
        Code::WrongType,
        Code::UnknownKey,
    ];
    for code in names {
        assert!(codes.contains(&code), "{} is not among\n{shown}", code.name());
    }
}

#[test]
fn the_page_of_codes_lists_them_all() {
    let row = |code: &Code| format!("| `{}` | {} |\n", code.name(), code.about());
    let table = |at_run: bool| -> String {
        let rows: String = Code::ALL.iter().filter(|code| code.at_run() == at_run).map(row).collect();
        format!("| code | meaning |\n| --- | --- |\n{rows}")
    };
    let page = std::fs::read_to_string("docs/diagnostics.md").unwrap();
    for (what, at_run) in [("of `validate` and `plan`", false), ("of a run", true)] {
        let table = table(at_run);
        assert!(page.contains(&table), "docs/diagnostics.md must hold the codes {what}:\n\n{table}");
    }
    assert_eq!(page.matches("\n| `").count(), Code::ALL.len(), "docs/diagnostics.md lists codes that are none");
}
