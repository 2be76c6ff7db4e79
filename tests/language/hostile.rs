//! Files that are made to hurt: nothing panics, hangs, takes much memory, or reaches the terminal raw.

use std::time::{Duration, Instant};

use super::{outcome, outcome_with, whole};
use bakeoff::plan::show;
use bakeoff::scenario::Options;

/// Generous for a debug build on a busy machine; what was refused too late took minutes, or all memory.
const AT_ONCE: Duration = Duration::from_secs(30);

fn refused(what: &str, text: &str, code: &str) {
    let start = Instant::now();
    let outcome = outcome_with(text.as_bytes(), &Options::default());
    assert!(outcome.codes.split(' ').any(|it| it == code), "{what}: {}\n{:.2000}", outcome.codes, outcome.shown);
    assert!(outcome.shown.len() < 16 << 20, "{what}: {} bytes", outcome.shown.len());
    assert!(start.elapsed() < AT_ONCE, "{what}: {:?}", start.elapsed());
}

#[test]
fn nesting() {
    let var = |value: String| whole(&format!("[vars]\na = {value}\n"));
    refused("brackets", &"[".repeat(1 << 20), "syntax");
    refused("arrays", &var("[".repeat(400_000) + &"]".repeat(400_000)), "syntax");
    refused("tables", &var("{a=".repeat(200_000) + "1" + &"}".repeat(200_000)), "syntax");
    refused("a dotted key", &whole(&format!("vars{} = 1\n", ".a".repeat(400_000))), "syntax");
    refused("a dotted header", &whole(&format!("[vars{}]\n", ".a".repeat(400_000))), "syntax");
    refused("braces", &var(format!("\"{}\"", "{{".repeat(400_000))), "template-syntax");
    let require = |text: String| {
        whole(&format!("[commands.a]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"a\"]\nrequire = [\"{text}\"]\n"))
    };
    refused("a sum", &require("1+".repeat(400_000) + "1 > 0"), "invalid-expression");
    refused("parentheses", &require("(".repeat(1_000)), "invalid-expression");
    refused("negations", &require("not ".repeat(200) + "1 > 0"), "invalid-expression");
    let expect = |text: String| {
        whole(&format!(
            "[commands.a]\ncommand = [\"x\"]\nexpect = {{ stdout = '{text}' }}\n[measures.m]\ncommands = [\"a\"]\n"
        ))
    };
    refused("groups", &expect("(".repeat(30_000) + &")".repeat(30_000)), "invalid-pattern");
    refused("repetitions", &expect("((((a{99}){99}){99}){99})".to_owned()), "invalid-pattern");
}

/// Names that double what is before them, sixty times.
#[test]
fn doubling() {
    let doubling = |first: &str, next: &dyn Fn(usize) -> String| {
        let vars: String = (1..=60).map(|index| format!("v{index} = {}\n", next(index - 1))).collect();
        whole(&format!("[vars]\nv0 = {first}\n{vars}"))
    };
    let text = |index: usize| format!("\"{{{{ v{index} }}}}{{{{ v{index} }}}}\"");
    let list = |index: usize| format!("[\"{{{{ v{index} }}}}\", \"{{{{ v{index} }}}}\"]");
    refused("strings", &doubling("\"x\"", &text), "too-large");
    refused("lists", &doubling("[\"x\"]", &list), "too-large");
    assert_eq!(outcome_with(doubling("\"\"", &text).as_bytes(), &Options::default()).codes, "");
}

/// 64 KiB is the longest string; a plan that would be larger than memory is not made first.
#[test]
fn sizes() {
    let vars: String =
        (1..=12).map(|index| format!("v{index} = \"{{{{ v{0} }}}}{{{{ v{0} }}}}\"\n", index - 1)).collect();
    let vars = format!("[vars]\nv0 = \"{}\"\n{vars}", "x".repeat(16));
    assert_eq!(outcome(&vars).codes, "");
    assert_eq!(outcome(&format!("{vars}w = \"{{{{ v12 }}}}y\"\n")).codes, "too-large");
    let argv = "\"{{ v12 }}\", ".repeat(50_000);
    refused(
        "a long argument vector",
        &whole(&format!("{vars}[commands.a]\ncommand = [{argv}]\n[measures.m]\ncommands = [\"a\"]\n")),
        "too-large",
    );
    let values: Vec<String> = (0..5_000).map(|value| value.to_string()).collect();
    let axis = format!("[axes]\na = [{}]\n", values.join(","));
    let each =
        |keys: &str| whole(&format!("{axis}[commands.c]\neach = [\"a\"]\n{keys}\n[measures.m]\ncommands = [\"c\"]\n"));
    refused("a large plan", &each(&format!("command = [\"echo\", \"{}\"]", "x".repeat(60_000))), "too-large");
    let references = "\"c\", ".repeat(2_000);
    refused(
        "many references",
        &whole(&format!(
            "{axis}[commands.c]\neach = [\"a\"]\ncommand = [\"x\"]\n[measures.m]\neach = [\"a\"]\ncommands = [{references}]\n"
        )),
        "too-large",
    );
    let exclusions: Vec<String> = (0..5_000).map(|value| format!("{{ a = {value} }}")).collect();
    refused("many exclusions", &each(&format!("command = [\"x\"]\nexclude = [{}]", exclusions.join(","))), "too-large");
    let wide: String = (0..2_000).map(|axis| format!("b{axis} = [1]\n")).collect();
    let names: Vec<String> = (0..2_000).map(|axis| format!("\"b{axis}\"")).collect();
    refused(
        "many axes",
        &whole(&format!(
            "{axis}{wide}[commands.c]\neach = [\"a\", {}]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"c\"]\n",
            names.join(",")
        )),
        "too-large",
    );
}

/// What is wrong in tens of thousands of places is said a thousand times.
#[test]
fn many_problems() {
    let keys: String = (0..20_000).map(|key| format!("k{key} = 1\n")).collect();
    refused("unknown keys", &whole(&keys), "unknown-key");
    let line: Vec<String> = (0..50_000).map(|key| format!("A{key} = 1")).collect();
    refused("names on one line", &whole(&format!("vars = {{ {} }}\n", line.join(", "))), "invalid-name");
}

/// Nothing of a file moves the cursor, changes colours, or turns the direction of writing.
#[test]
fn controls_are_escaped() {
    let raw =
        |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c));
    let wrong = outcome_with(
        "format = 1\nname = \"x\\u001b[31m\"\n\"k\\u001b[2J\\n\" = 1\n# \u{202e}\n[commands.\"a\\u009b\"]\ncommand = [\"{{ nothing }}\\u001b\"] # \u{202e}\nlabel = \"\\u001b{{ port }}\" # \u{2066}\n[measures.m]\ncommands = [\"\\u001b[5m\", \"b\u{202e}\"]\norder = \"\\u0007\"\n".as_bytes(),
        &Options::default(),
    );
    assert!(wrong.codes.contains("unknown-key") && wrong.codes.contains("invalid-name"), "{}", wrong.codes);
    assert!(!raw(&wrong.shown), "{:?}", wrong.shown);
    assert!(wrong.shown.contains("\\u{1b}[2J"), "{}", wrong.shown);
    let right = outcome(
        "title = \"\\u001b]0;x\\u0007\\u202e\\n\"\n[commands.a]\ncommand = [\"\\u001b[31mred\", \"\\u202e\\n\\r\"]\nlabel = \"\\u001b[1m\"\nenv = { \"A\\u001b\" = \"\\u009b1m\" }\ncwd = \"\\u001b\"\n[measures.m]\ncommands = [\"a\"]\n",
    );
    let shown = show(&right.plan.unwrap());
    assert!(!raw(&shown), "{shown:?}");
    assert!(shown.contains("\\u{1b}[31mred"), "{shown}");
}
