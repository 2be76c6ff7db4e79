//! Includes, encodings, and which file says what.

use super::{outcome_of, outcome_of_files, outcome_with, whole};
use bakeoff::scenario::Options;

const RUN: &str = "[commands.filler]\ncommand = [\"true\"]\n[measures.filler]\ncommands = [\"filler\"]\n";

fn main_with(head: &str) -> String {
    format!("format = 1\nname = \"main\"\n{head}\n{RUN}")
}

/// What the first file begins with, the other files, and the codes.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const INCLUDES: &[Case] = &[
    ("include = [\"a.toml\"]", &[("a.toml", "format = 1\n[vars]\nx = 1\n")], ""),
    ("include = [\"a.toml\"]", &[("a.toml", "# first\n\nformat = 1\n")], ""),
    ("include = [\"sub/../a.toml\"]", &[("a.toml", "format = 1\n"), ("sub/x", "")], ""),
    ("include = [\"/etc/passwd\"]", &[], "unreadable-file"),
    ("include = [\"/etc/a.toml\"]", &[], "unreadable-file"),
    ("include = [\"a.txt\"]", &[("a.txt", "format = 1\n")], "unreadable-file"),
    ("include = [\"none.toml\"]", &[], "unreadable-file"),
    ("include = [\"a.toml\"]", &[("a.toml", "secret = \"hush\"\n")], "unreadable-file"),
    ("include = [\"a.toml\"]", &[("a.toml", "hush hush hush")], "unreadable-file"),
    ("include = [\"a.toml\"]", &[("a.toml", "")], "unreadable-file"),
    ("include = [\"a.toml\"]", &[("a.toml", "format = 2\n")], "unsupported-format"),
    ("include = [\"a.toml\"]", &[("a.toml", "format = \"1\"\n")], "wrong-type"),
    ("include = [\"a.toml\"]", &[("a.toml", "format = 1\ninclude = [\"main.toml\"]\n")], "include-cycle"),
    ("include = [\"main.toml\"]", &[], "include-cycle"),
    (
        "include = [\"a.toml\", \"b.toml\"]",
        &[
            ("a.toml", "format = 1\ninclude = [\"c.toml\"]\n"),
            ("b.toml", "format = 1\ninclude = [\"c.toml\"]\n"),
            ("c.toml", "format = 1\n[vars]\nx = 1\n"),
        ],
        "",
    ),
    ("include = [\"a.toml\", \"./a.toml\"]", &[("a.toml", "format = 1\n[vars]\nx = 1\n")], ""),
    (
        "include = [\"a.toml\", \"b.toml\"]",
        &[("a.toml", "format = 1\n[vars]\nx = 1\n"), ("b.toml", "format = 1\n[vars]\nx = 2\n")],
        "duplicate",
    ),
    ("include = [\"a.toml\"]\n[vars]\nx = 1", &[("a.toml", "format = 1\n[vars]\nx = 1\n")], "duplicate"),
    ("include = [\"a.toml\"]\n[vars]\ny = \"{{ x }}\"", &[("a.toml", "format = 1\n[vars]\nx = 1\n")], ""),
    ("include = [\"a.toml\"]\n[vars]\ny = 1", &[("a.toml", "format = 1\n[vars]\nx = \"{{ y }}\"\n")], "vars-cycle"),
    (
        "include = [\"a.toml\"]\n[environment]\ninherit = [\"A\"]",
        &[("a.toml", "format = 1\n[environment]\ninherit = [\"B\"]\nset = { X = \"1\" }\n")],
        "",
    ),
    (
        "include = [\"a.toml\"]\n[environment]\nset = { X = \"2\" }",
        &[("a.toml", "format = 1\n[environment]\nset = { X = \"1\" }\n")],
        "duplicate",
    ),
    (
        "include = [\"a.toml\"]\n[defaults.commands]\ntimeout = \"1s\"",
        &[("a.toml", "format = 1\n[defaults.commands]\ncwd = \".\"\n[defaults.servers]\ncwd = \".\"\n")],
        "",
    ),
    (
        "include = [\"a.toml\"]\n[defaults.commands]\ntimeout = \"1s\"",
        &[("a.toml", "format = 1\n[defaults.commands]\ntimeout = \"2s\"\n")],
        "duplicate",
    ),
    (
        "include = [\"a.toml\"]\n[profiles.quick]\nmeasures.filler.runs = 1",
        &[("a.toml", "format = 1\n[vars]\nx = 1\n[profiles.quick]\nvars.x = 2\nmeasures.filler.warmup = 0\n")],
        "",
    ),
    (
        "include = [\"a.toml\"]\n[profiles.quick]\nmeasures.filler.runs = 1",
        &[("a.toml", "format = 1\n[profiles.quick]\nmeasures.filler.runs = 2\n")],
        "duplicate",
    ),
    ("include = [\"a.toml\"]\n[machine]\ncores = 1", &[("a.toml", "format = 1\n[machine]\ncores = 2\n")], "duplicate"),
    (
        "include = [\"a.toml\"]",
        &[("a.toml", "format = 1\nname = \"other\"\ntitle = \"other\"\ndescription = \"other\"\n")],
        "",
    ),
    ("include = [\"a.toml\"]", &[("a.toml", "format = 1\nx = [\n")], "syntax"),
    ("include = [\"a.toml\"]", &[("a.toml", "format = 1\ntitel = 1\n")], "unknown-key"),
    ("include = \"a.toml\"", &[], "wrong-type"),
    ("include = [3]", &[], "wrong-type"),
    ("include = [\"{{ a }}.toml\"]", &[], "unreadable-file"),
];

#[test]
fn includes() {
    for (head, others, codes) in INCLUDES {
        let main = main_with(head);
        let mut files = vec![("main.toml", main.as_str())];
        files.extend(others.iter().copied());
        let outcome = outcome_of_files(&files);
        assert_eq!(outcome.codes, *codes, "{head} {others:?}\n{}", outcome.shown);
        assert!(!outcome.shown.contains("hush"), "{}", outcome.shown);
    }
}

/// Entries of included files come first, and lists are joined.
#[test]
fn what_is_merged_keeps_its_order() {
    let main = main_with(
        "include = [\"a.toml\"]\ncaveats = [\"main\"]\n[[setup]]\ncommand = [\"second\"]\n[environment]\ninherit = [\"B\"]\n[commands.z]\ncommand = [\"z\"]",
    );
    let other = "format = 1\ncaveats = [\"other\"]\n[[setup]]\ncommand = [\"first\"]\n[environment]\ninherit = [\"A\"]\n[commands.y]\ncommand = [\"y\"]\n";
    let plan = outcome_of_files(&[("main.toml", &main), ("a.toml", other)]).plan.unwrap();
    let commands: Vec<&str> = plan.commands.iter().map(|command| command.identity.id.as_str()).collect();
    assert_eq!(commands, ["y", "z", "filler"]);
    assert_eq!(plan.caveats, ["other", "main"]);
    assert_eq!(plan.environment.inherit, ["A", "B"]);
    let setup: Vec<String> = plan.setup.iter().map(|step| step.process.argv[0].to_string()).collect();
    assert_eq!(setup, ["first", "second"]);
}

#[test]
fn a_scenario_is_made_of_64_files() {
    let of = |count: usize| {
        let names: Vec<String> = (1..count).map(|index| format!("f{index}.toml")).collect();
        let listed: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let main = main_with(&format!("include = [{}]", listed.join(", ")));
        let mut files = vec![("main.toml", main.as_str())];
        files.extend(names.iter().map(|name| (name.as_str(), "format = 1\n")));
        outcome_of_files(&files).codes
    };
    assert_eq!(of(64), "");
    assert_eq!(of(65), "unreadable-file");
}

/// A queue without a writer would be waited for for ever; a folder and a device are no files either.
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, path("queue.toml"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    std::fs::create_dir(path("folder.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("device.toml")).unwrap();
    std::os::unix::fs::symlink("loop.toml", path("loop.toml")).unwrap();
    for name in ["queue.toml", "folder.toml", "device.toml", "loop.toml", "nothing.toml"] {
        let outcome = outcome_of(&Options { path: path(name), ..Options::default() });
        assert_eq!(outcome.codes, "unreadable-file", "{name}");
        std::fs::write(path("main.toml"), main_with(&format!("include = [{name:?}]"))).unwrap();
        let outcome = outcome_of(&Options { path: path("main.toml"), ..Options::default() });
        assert_eq!(outcome.codes, "unreadable-file", "{name}");
    }
}

#[test]
fn encodings() {
    let text = whole("");
    let of = |bytes: &[u8]| outcome_with(bytes, &Options::default()).codes;
    assert_eq!(of(text.as_bytes()), "");
    assert_eq!(of([b"\xef\xbb\xbf", text.as_bytes()].concat().as_slice()), "");
    assert_eq!(of(text.replace('\n', "\r\n").as_bytes()), "");
    assert_eq!(of([text.as_bytes(), b"# \xff\n"].concat().as_slice()), "unreadable-file");
    assert_eq!(of(text.replace("case", "ca\0se").as_bytes()), "syntax");
    assert_eq!(of(text.replace('\n', "\r").as_bytes()), "syntax");
    assert_eq!(of(b"\xff\xfef\0o\0r\0"), "unreadable-file");
    assert_eq!(of(b""), "missing-key unsupported-format");
    let comment = |length: usize| format!("{text}#{}\n", "x".repeat(length - text.len() - 2));
    assert_eq!(of(comment(1 << 20).as_bytes()), "");
    assert_eq!(of(comment((1 << 20) + 1).as_bytes()), "unreadable-file");
}

/// With CR LF and a byte order mark too, what is underlined is what is wrong.
#[test]
fn places_in_other_encodings() {
    let text = whole("titel = 1\n[vars]\na = \"\"\"\n{{ x }}\n\"\"\"\n");
    let plain = outcome_with(text.as_bytes(), &Options::default()).shown;
    let crlf = outcome_with(text.replace('\n', "\r\n").as_bytes(), &Options::default()).shown;
    let marked = outcome_with(format!("\u{feff}{text}").as_bytes(), &Options::default()).shown;
    let only = |shown: &str| shown.lines().filter(|line| !line.contains("-->")).collect::<Vec<_>>().join("\n");
    assert_eq!(only(&plain), only(&crlf));
    assert_eq!(only(&plain), only(&marked));
    assert!(plain.contains("case.toml:3:1") && plain.contains("case.toml:6:1"), "{plain}");
}
