//! The code keeps to the levels that `docs/architecture.md` lists.
//!
//! Every path in `src` that begins at the crate's root (`crate::`, `$crate::`, `bakeoff::`, `super::` where it leads
//! there) names a room; a room imports from rooms on lower levels of the page's table, and from itself. Within a row of
//! the table a later module may import an earlier one (`cli`, `main`). Level 3 imports from level 0 alone. Comments are
//! no code: links in docs are free.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The level of the mechanisms, which know neither each other nor what they are used for.
const MECHANISMS: usize = 3;

/// Where the modules stand: level, and place in the row.
struct Levels(BTreeMap<String, (usize, usize)>);

/// An edge that is not allowed.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl Levels {
    /// Reads the rows `| LEVEL | `MODULE`, `MODULE` | … |` of a page.
    fn of(page: &str) -> Self {
        let mut levels = BTreeMap::new();
        for line in page.lines() {
            let mut columns = line.split('|').map(str::trim).skip(1);
            let Some(Ok(level)) = columns.next().map(str::parse::<usize>) else { continue };
            let names = columns.next().unwrap_or_default().split(',').map(|name| name.trim().trim_matches('`'));
            for (place, name) in names.enumerate() {
                let twice = levels.insert(name.to_owned(), (level, place));
                assert_eq!(twice, None, "the table names `{name}` twice");
            }
        }
        Self(levels)
    }

    /// Why `from` must not import `to`.
    fn refuse(&self, from: &str, to: &str) -> Option<String> {
        if from == to {
            return None;
        }
        let Some(own) = self.0.get(from) else { return Some(format!("`{from}` stands in no row of the table")) };
        let Some(other) = self.0.get(to) else { return Some(format!("`{to}` stands in no row of the table")) };
        if other >= own {
            return Some(format!("`{from}` (level {}) imports `{to}` (level {})", own.0, other.0));
        }
        (own.0 == MECHANISMS && other.0 != 0).then(|| {
            format!("`{from}` (level {MECHANISMS}) imports `{to}` (level {}): only level 0 is open to it", other.0)
        })
    }

    /// What is wrong in one file, whose module is `path`: empty for `lib.rs`.
    fn check(&self, path: &[&str], source: &str) -> Vec<Wrong> {
        let Some(room) = path.first() else { return Vec::new() };
        let found = Imports::of(path, source).into_iter();
        let wrong = found.filter_map(|import| {
            let what = match import.room.as_deref() {
                Some(to) => self.refuse(room, to)?,
                None => format!("`{room}` imports the crate's root: name the module"),
            };
            Some(Wrong { line: import.line, what })
        });
        let mut wrong: Vec<Wrong> = wrong.collect();
        wrong.dedup();
        wrong
    }
}

/// A path that begins at the crate's root; `None` is the root itself, under another name or with `*`.
struct Import {
    line: usize,
    room: Option<String>,
}

/// A token of Rust that matters here: a word, `::`, or one character.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

/// Finds the imports of a file.
struct Imports {
    tokens: Vec<Token>,
    at: usize,
    found: Vec<Import>,
}

impl Imports {
    fn of(path: &[&str], source: &str) -> Vec<Import> {
        let mut imports = Self { tokens: tokens(source), at: 0, found: Vec::new() };
        let mut module: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        // The modules that are open in the file, each with the depth of braces at which it ends.
        let mut open: Vec<usize> = Vec::new();
        let mut depth = 0;
        while let Some(word) = imports.word(0).map(str::to_owned) {
            match word.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if open.pop_if(|end| *end == depth).is_some() {
                        module.pop();
                    }
                }
                "mod" if imports.word(2) == Some("{") => {
                    module.push(imports.word(1).unwrap().to_owned());
                    open.push(depth);
                }
                "crate" | "bakeoff" if imports.word(1) == Some("::") => {
                    imports.at += 2;
                    imports.tree(Vec::new());
                    continue;
                }
                "crate" if imports.word(1) == Some("as") => imports.add(None),
                "super" if imports.word(1) == Some("::") => {
                    imports.tree(module.clone());
                    continue;
                }
                _ => {}
            }
            imports.at += 1;
        }
        imports.found
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        self.tokens.get(self.at + ahead).map(|token| token.text.as_str())
    }

    fn add(&mut self, room: Option<String>) {
        let token = &self.tokens[self.at.min(self.tokens.len() - 1)];
        self.found.push(Import { line: token.line, room });
    }

    /// Reads on from `base` to the end of the path: `a::b`, `{a, b::c}`, `*`, `self`.
    fn tree(&mut self, mut base: Vec<String>) {
        loop {
            match self.word(0).unwrap_or_default() {
                "{" => {
                    self.at += 1;
                    while !matches!(self.word(0), None | Some("}")) {
                        self.tree(base.clone());
                        while !matches!(self.word(0), None | Some("," | "}")) {
                            self.at += 1;
                        }
                        self.at += usize::from(self.word(0) == Some(","));
                    }
                    self.at += 1;
                    return;
                }
                "super" => drop(base.pop()),
                "self" | "*" => {}
                name => base.push(name.to_owned()),
            }
            if self.word(1) != Some("::") {
                self.add(base.first().cloned());
                self.at += 1;
                return;
            }
            self.at += 2;
            if self.word(0) == Some("<") {
                self.add(base.first().cloned());
                return;
            }
        }
    }
}

/// The tokens of a source, without comments and literals; a string that is a path of this crate, as attributes have it,
/// counts.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        let length = if let Some(length) = comment(rest) {
            length
        } else if let Some((length, content)) = literal(rest) {
            if content.starts_with("crate::") {
                tokens.extend(self::tokens(content).into_iter().map(|token| Token { line, ..token }));
                tokens.push(Token { line, text: "\"".to_owned() });
            }
            length
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let text = &rest[..length];
        let is_token = comment(rest).is_none() && literal(rest).is_none() && !first.is_whitespace();
        if is_token {
            tokens.push(Token { line, text: text.to_owned() });
        }
        line += text.matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length of the comment that a text begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(text.len())
}

/// The length of the literal, or the lifetime, that a text begins with, and what is between its quotes.
fn literal(text: &str) -> Option<(usize, &str)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| match rest.trim_start_matches('#') {
            raw if prefix.ends_with('r') => raw.starts_with('"'),
            _ => rest.starts_with('"') || (rest.starts_with('\'') && matches!(*prefix, "" | "b")),
        })
    })?;
    let rest = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let content = &rest[hashes + 1..];
        let end = content.find(&format!("\"{}", "#".repeat(hashes))).unwrap_or(content.len());
        let length = (prefix.len() + hashes + 1 + end + 1 + hashes).min(text.len());
        return Some((length, &content[..end]));
    }
    let quote = rest.chars().next()?;
    let mut inside = rest.char_indices().skip(1);
    let (mut taken, mut is_escaped) = (0, false);
    while let Some((at, c)) = inside.next() {
        taken += 1;
        match c {
            '\\' => is_escaped = inside.next().is_some(),
            _ if c == quote => return Some((prefix.len() + at + 1, &rest[1..at])),
            // `'a` without a quote after it is a lifetime.
            _ if quote == '\'' && taken > 1 && !is_escaped => return Some((prefix.len() + 1, "")),
            _ => {}
        }
    }
    Some(if quote == '\'' { (prefix.len() + 1, "") } else { (text.len(), &rest[1..]) })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn levels() -> Levels {
    Levels::of(&std::fs::read_to_string(root().join("docs/architecture.md")).unwrap())
}

/// Every source file, with its module's path.
fn sources() -> Vec<(PathBuf, Vec<String>)> {
    let src = root().join("src");
    let (mut found, mut open) = (Vec::new(), vec![src.clone()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.strip_prefix(&src).unwrap().with_extension("");
                let module: Vec<String> = module.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                found.push((path, if module == ["lib"] { Vec::new() } else { module }));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_import_goes_down() {
    let levels = levels();
    let mut wrong = Vec::new();
    for (file, module) in sources() {
        let source = std::fs::read_to_string(&file).unwrap();
        let module: Vec<&str> = module.iter().map(String::as_str).collect();
        let place = file.strip_prefix(root()).unwrap().display();
        wrong.extend(levels.check(&module, &source).iter().map(|wrong| format!("{place}:{wrong}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_names_every_module_and_no_other() {
    let levels = levels();
    let modules = sources().into_iter().filter_map(|(_, module)| module.into_iter().next());
    let modules: BTreeSet<String> = modules.collect();
    assert_eq!(levels.0.into_keys().collect::<BTreeSet<_>>(), modules);
}

const PAGE: &str = "
| level | module | what is in it |
| --- | --- | --- |
| 0 | `units` | … |
| 1 | `scenario` | … |
| 1 | `event` | … |
| 3 | `load` | … |
| 3 | `serve` | … |
| 6 | `cli`, `main` | … |
";

/// What the checker says of a made-up file, `LINE: WHAT`.
fn said(module: &str, source: &str) -> Vec<String> {
    let module: Vec<&str> = module.split("::").collect();
    Levels::of(PAGE).check(&module, source).iter().map(Wrong::to_string).collect()
}

#[test]
fn what_goes_down_is_allowed() {
    assert_eq!(said("event", "use crate::units::show;"), [""; 0]);
    assert_eq!(said("load", "use crate::{units::{self, show}, load::Stop};"), [""; 0]);
    assert_eq!(said("load::request", "use super::Stop; mod tests { use super::super::*; }"), [""; 0]);
    assert_eq!(said("main", "fn main() { bakeoff::cli::main(); bakeoff::load::main() }"), [""; 0]);
    assert_eq!(said("scenario", "pub(crate) struct A; mod inner { pub(in crate::scenario) struct B; }"), [""; 0]);
}

#[test]
fn what_goes_up_or_across_is_not() {
    let up = ["1: `units` (level 0) imports `event` (level 1)"];
    for source in [
        "use crate::event;",
        "use crate::event::{Line, Event};",
        "use crate::{units::show, event::Line};",
        "use super::event::Line;",
        "use super::{units, event};",
        "use self::super::event;",
        "fn f() -> crate::event::Line { todo!() }",
        "fn f<'a>(x: &'a str) -> Vec<crate::event::Line> { x.into() }",
        "macro_rules! m { () => { $crate::event::Line } }",
        "pub(in crate::event) struct A;",
        "#[serde(default = \"crate::event::line\")] struct A;",
        "mod a { mod b {} use super::super::event; }",
        "mod a { mod b { } } use super::event;",
        "use bakeoff::event::Line;",
        "const C: (char, &str, &str) = ('\"', \"\\\"\", r#\"\"\"#); use crate::event;",
    ] {
        assert_eq!(said("units", source), up, "{source}");
    }
    assert_eq!(said("units::show", "use super::super::event;"), up);
    assert_eq!(said("event", "\n\nuse crate::scenario;"), ["3: `event` (level 1) imports `scenario` (level 1)"]);
    assert_eq!(said("load", "use crate::serve::Server;"), ["1: `load` (level 3) imports `serve` (level 3)"]);
    let open = "1: `load` (level 3) imports `event` (level 1): only level 0 is open to it";
    assert_eq!(said("load::request", "use crate::event::Line;"), [open]);
    assert_eq!(said("cli", "use crate::main::x;"), ["1: `cli` (level 6) imports `main` (level 6)"]);
    assert_eq!(said("cli", "use crate::utils::x;"), ["1: `utils` stands in no row of the table"]);
    assert_eq!(said("utils", "use crate::units;"), ["1: `utils` stands in no row of the table"]);
}

#[test]
fn the_root_is_no_way_around() {
    for source in ["use crate as root;", "use crate::*;", "use crate::{self as root};", "use super::*;"] {
        assert_eq!(said("units", source), ["1: `units` imports the crate's root: name the module"], "{source}");
    }
}

#[test]
fn comments_and_strings_are_no_imports() {
    for source in [
        "//! [`crate::event::Line`]",
        "/* use crate::event; /* nested */ use crate::event; */",
        "const A: &str = \"use crate::event;\";",
        "const A: &str = r#\"use crate::event; \"quoted\" use crate::event;\"#;",
        "const A: char = '\"'; const B: &str = \"use crate::event;\";",
        "const A: [char; 2] = ['\\u{1b}','\"']; const B: &str = \"use crate::event;\";",
        "const A: char = '\\''; const B: &str = \"use crate::event;\";",
    ] {
        assert_eq!(said("units", source), [""; 0], "{source}");
    }
}
