//! Numbers, durations, sizes, words, names, templates, expressions, patterns.

use super::{check, outcome_with, plan, whole};
use bakeoff::scenario::Options;

/// A command with these further keys, and one measure with these.
fn of(command: &str, measure: &str) -> String {
    format!("[commands.a]\ncommand = [\"true\"]\n{command}\n[measures.m]\ncommands = [\"a\"]\n{measure}\n")
}

fn load(keys: &str) -> String {
    format!(
        "[servers.s]\nbuiltin = {{}}\n[loads.l]\nrequest = \"GET /\"\n{keys}\n[measures.m]\nservers = [\"s\"]\nload = \"l\"\n"
    )
}

fn server(keys: &str) -> String {
    format!("[servers.s]\n{keys}\n[measures.m]\nservers = [\"s\"]\n")
}

fn probe(keys: &str) -> String {
    format!("[servers.s]\nbuiltin = {{}}\n[probes.p]\n{keys}\n[measures.m]\nservers = [\"s\"]\nprobes = [\"p\"]\n")
}

/// Cases made of keys by `make`.
fn check_made(make: impl Fn(&str) -> String, cases: &[(&str, &str)]) {
    let made: Vec<(String, &str)> = cases.iter().map(|(keys, codes)| (make(keys), *codes)).collect();
    let cases: Vec<(&str, &str)> = made.iter().map(|(case, codes)| (case.as_str(), *codes)).collect();
    check(&cases);
}

#[test]
fn ranges_of_measures() {
    check_made(
        |keys| of("", keys),
        &[
            ("runs = 1", ""),
            ("runs = 0", "invalid-value"),
            ("runs = -3", "invalid-value"),
            ("runs = 1.5", "wrong-type"),
            ("runs = \"10\"", "wrong-type"),
            ("warmup = 0", ""),
            ("warmup = -1", "invalid-value"),
            ("warmup = { runs = 2 }", ""),
            ("warmup = { runs = 2, duration = \"1s\" }", "conflict"),
            ("warmup = { count = 2 }", "unknown-key"),
            ("starts = 2", "conflict"),
            ("probes = []", "conflict"),
            ("order = \"grouped\"", ""),
            ("order = \"Grouped\"", "invalid-value"),
            ("caches = \"cold\"", ""),
            ("caches = \"hot\"", "invalid-value"),
            ("cooldown = \"0s\"", ""),
            ("margin = \"1%\"", ""),
            ("margin = \"0%\"", "invalid-value"),
            ("margin = \"100%\"", "invalid-value"),
            ("margin = 1", "wrong-type"),
            ("control = true", ""),
            ("control = \"yes\"", "wrong-type"),
            ("until = { ci = \"2%\", metric = \"wall\", max_runs = 30, max_time = \"10m\" }", ""),
            ("until = { ci = \"2%\", metric = \"wall\" }", "missing-key"),
            ("until = { metric = \"wall\", max_runs = 30 }", "missing-key"),
            ("until = { ci = \"2\", metric = \"wall\", max_runs = 30 }", "invalid-value"),
            ("until = { ci = \"2%\", metric = \"wall\", max_runs = 0 }", "invalid-value"),
            ("until = { ci = \"2%\", metric = \"wall\", max_time = \"0s\" }", "invalid-value"),
            ("report = [\"wall\"]", ""),
            ("report = [\"wall\", \"wall\"]", "duplicate"),
            ("report = [\"throughput\"]", "unknown-metric"),
            ("baseline = \"a\"", ""),
            ("baseline = \"b\"", "unknown-entry"),
            ("colour = 1", "unknown-key"),
        ],
    );
}

#[test]
fn ranges_of_loads() {
    check_made(
        load,
        &[
            ("count = 1", ""),
            ("count = 0", "invalid-value"),
            ("duration = \"1ms\"", ""),
            ("duration = \"0s\"", "invalid-value"),
            ("duration = \"1s\"\ncount = 1", "conflict"),
            ("", "missing-key"),
            ("count = 1\nconnections = 0", "invalid-value"),
            ("count = 1\npipeline = 0", "invalid-value"),
            ("count = 1\nthreads = 0", "invalid-value"),
            ("count = 1\nthreads = 2", "conflict"),
            ("count = 1\nthreads = 2\nconnections = 2", ""),
            ("count = 1\nrate = 0", "invalid-value"),
            ("count = 1\nrate = 0.5", ""),
            ("count = 1\nrate = -1.0", "invalid-value"),
            ("count = 1\ntimeout = \"0s\"", "invalid-value"),
            ("count = 1\nkeep_alive = false", ""),
            ("count = 1\nkeep_alive = false\npipeline = 2", "conflict"),
            ("count = 1\nprotocol = \"h2\"", ""),
            ("count = 1\nprotocol = \"h3\"", "invalid-value"),
            ("count = 1\nexpect = { status = [200, 204], bytes = 29 }", ""),
            ("count = 1\nexpect = { status = 200 }", "wrong-type"),
            ("count = 1\nexpect = { status = [600] }", "invalid-value"),
            ("count = 1\nrequests = []", "conflict"),
            ("count = 1\ncpus = \"0-3,6\"", ""),
            ("count = 1\ncpus = 0", ""),
            ("count = 1\ncpus = \"a\"", "invalid-value"),
            ("count = 1\ncpus = \"\"", "invalid-value"),
        ],
    );
    check_made(
        |requests| load(&format!("count = 1\n{requests}")).replace("request = \"GET /\"\n", ""),
        &[
            (
                "requests = [{ name = \"get\", path = \"/\" }, { name = \"put\", method = \"PUT\", path = \"/\", weight = 3 }]",
                "",
            ),
            ("requests = [{ path = \"/\" }]", "missing-key"),
            ("requests = [{ name = \"get\" }]", "missing-key"),
            ("requests = [{ name = \"get\", path = \"/\" }, { name = \"get\", path = \"/\" }]", "duplicate"),
            ("requests = [{ name = \"Get it\", path = \"/\" }]", "invalid-name"),
            ("requests = [{ name = \"get\", path = \"/\", weight = 0 }]", "invalid-value"),
            ("requests = []", "invalid-value"),
            ("", "missing-key"),
        ],
    );
}

#[test]
fn ranges_of_servers() {
    check_made(
        server,
        &[
            ("builtin = {}", ""),
            ("builtin = { delay = \"1ms\", body = \"64KiB\" }", ""),
            ("builtin = { body = -1 }", "invalid-value"),
            ("", "missing-key"),
            ("builtin = {}\ncommand = [\"true\"]", "conflict"),
            ("builtin = {}\nport = 1", ""),
            ("builtin = {}\nport = 65535", ""),
            ("builtin = {}\nport = 0", "invalid-value"),
            ("builtin = {}\nport = \"8080\"", "invalid-value"),
            ("builtin = {}\nenv = { A = \"x\" }", "conflict"),
            ("command = [\"x\"]\nport = \"none\"", "conflict"),
            ("command = [\"x\"]\nport = \"none\"\nready = { output = 'up' }", ""),
            ("command = [\"x\"]\nport = \"none\"\nready = { command = [\"true\"] }", ""),
            ("command = [\"x\"]\nport = \"none\"\nready = { http = \"/\" }", "conflict"),
            ("command = [\"x\"]\nready = { http = \"/\", tcp = true }", "conflict"),
            ("command = [\"x\"]\nready = { tcp = false }", "invalid-value"),
            ("command = [\"x\"]\nready = { status = 200 }", "conflict"),
            ("command = [\"x\"]\nready = { http = \"up\" }", "invalid-value"),
            ("command = [\"x\"]\nready = { http = \"/\", status = 700 }", "invalid-value"),
            ("command = [\"x\"]\nready = { interval = \"0ms\" }", "invalid-value"),
            ("command = [\"x\"]\nready = { timeout = \"0ms\" }", "invalid-value"),
            ("command = [\"x\"]\ntimeout = \"1s\"", "conflict"),
            ("command = [\"x\"]\nstop = { signal = \"INT\", grace = \"0s\" }", ""),
            ("command = [\"x\"]\nstop = { signal = \"SIGINT\" }", "invalid-value"),
            ("command = [\"x\"]\ntls = {}", ""),
            ("command = [\"x\"]\ntls = { ca = \"ca.pem\", insecure = true }", "conflict"),
            ("command = [\"x\"]\ntls = { ca = \"{{ dir }}/ca.pem\" }", ""),
            ("command = [\"x\"]\nport = \"none\"\nready = { output = 'up' }\ntls = {}", "conflict"),
            ("builtin = {}\ntls = {}", "conflict"),
            ("url = \"https://127.0.0.1\"\ntls = { insecure = true }", ""),
            ("url = \"http://127.0.0.1\"\ntls = { insecure = true }", "conflict"),
            ("command = [\"x\"]\ncapture.heap = { http = \"/metrics\", json = \"$.heap\", unit = \"B\" }", ""),
            ("command = [\"x\"]\ncapture.heap = { http = \"/metrics\" }", "missing-key"),
            ("command = [\"x\"]\ncapture.heap = { output = 'heap (\\d+)', json = \"$.a\" }", "conflict"),
            ("command = [\"x\"]\ncapture.heap = { output = 'heap (\\d+)', at = \"later\" }", "invalid-value"),
            ("url = \"http://127.0.0.1:8080\"", ""),
            ("url = \"http://127.0.0.1:8080/\"", ""),
            ("url = \"https://[::1]\"", ""),
            ("url = \"127.0.0.1:8080\"", "invalid-value"),
            ("url = \"http://127.0.0.1:0\"", "invalid-value"),
            ("url = \"http://127.0.0.1:99999\"", "invalid-value"),
            ("url = \"http://127.0.0.1/path\"", "invalid-value"),
            ("url = \"http://u@127.0.0.1\"", "invalid-value"),
            ("url = \"http://127.0.0.1\"\nport = 80", "conflict"),
            ("url = \"http://127.0.0.1\"\nready = { output = 'up' }", "conflict"),
            ("url = \"http://127.0.0.1\"\ncapture.x = { output = '(u)p' }", "conflict"),
        ],
    );
}

#[test]
fn requests() {
    check_made(
        probe,
        &[
            ("request = \"GET /json\"", ""),
            ("request = \"/json\"", "invalid-value"),
            ("request = \"GET\"", "invalid-value"),
            ("request = \"GET json\"", "invalid-value"),
            ("request = \"G@T /\"", "invalid-value"),
            ("request = \"GET /a b\"", "invalid-value"),
            ("request = \"GET /\\n\"", "invalid-value"),
            ("request = {}", "missing-key"),
            ("request = 3", "wrong-type"),
            ("", "missing-key"),
            ("request = { path = \"/\", method = \"PATCH\" }", ""),
            ("request = { path = \"/\", headers = { Accept = \"a\\nb\" } }", "invalid-value"),
            ("request = { path = \"/\", headers = { \"a b\" = \"c\" } }", "invalid-name"),
            ("request = { path = \"/\", body = \"a\", json = {} }", "conflict"),
            ("request = { path = \"/\", body_repeat = { text = \"x\", size = \"64KiB\" }, chunked = true }", ""),
            ("request = { path = \"/\", body_repeat = { text = \"\", size = 4 } }", "invalid-value"),
            ("request = { path = \"/\", body_repeat = { text = \"x\" } }", "missing-key"),
            ("request = { path = \"/\", body_repeat = { text = \"x\", size = \"1GiB\" } }", "invalid-value"),
            ("request = { path = \"/\", chunked = true }", "conflict"),
            ("request = { path = \"/\", body = \"x\", chunked = { size = 0 } }", "invalid-value"),
            ("request = { path = \"/\", body = \"x\", chunked = { size = \"16KiB\", delay = \"1ms\" } }", ""),
            ("request = \"GET /\"\nexpect = { status = 100 }", ""),
            ("request = \"GET /\"\nexpect = { status = 99 }", "invalid-value"),
            ("request = \"GET /\"\nexpect = { bytes = -1 }", "invalid-value"),
            ("request = \"GET /\"\nexpect = { json_path = { \"$.ok\" = true } }", ""),
            ("request = \"GET /\"\nexpect = { json_path = { \"ok\" = true } }", "invalid-name invalid-pattern"),
            ("request = \"GET /\"\nexpect = { json_path = { \"$.[\" = true } }", "invalid-pattern"),
            ("request = \"GET /\"\nexpect = { matches = '(' }", "invalid-pattern"),
            ("request = \"GET /\"\nrecord = [\"headers\", \"body\"]", ""),
            ("request = \"GET /\"\nrecord = [\"cookies\"]", "invalid-value"),
            ("request = \"GET /\"\nsame = [\"status\", \"headers\", \"body\"]\nknown_differences = [\"etag\"]", ""),
            ("request = \"GET /\"\nknown_differences = [\"etag\"]", "conflict"),
        ],
    );
}

#[test]
fn durations_and_sizes() {
    check_made(
        |value| of(&format!("timeout = {value}"), ""),
        &[
            ("\"250ms\"", ""),
            ("\"1m30s\"", ""),
            ("\"1.5s\"", ""),
            ("\"10\"", "invalid-value"),
            ("10", "wrong-type"),
            ("\"-1s\"", "invalid-value"),
            ("\"1 parsec\"", "invalid-value"),
            ("\"999999999999999999999h\"", "invalid-value"),
            ("\"\"", "invalid-value"),
            ("\"0s\"", "invalid-value"),
            ("true", "wrong-type"),
        ],
    );
}

#[test]
fn names() {
    let long = "a".repeat(64);
    let longer = "a".repeat(65);
    let command =
        |name: &str| format!("[commands.{name}]\ncommand = [\"true\"]\n[measures.m]\ncommands = [{name:?}]\n");
    check_made(
        |name| command(name.trim_matches('"')),
        &[
            ("a", ""),
            ("0-a_b", ""),
            (&long, ""),
            (&longer, "invalid-name"),
            ("A", "invalid-name"),
            ("_a", "invalid-name"),
            ("-a", "invalid-name"),
        ],
    );
    check(&[
        ("[vars]\nfine_1 = 1", ""),
        ("[vars]\nFine = 1", "invalid-name"),
        ("[vars]\n1st = 1", "invalid-name"),
        ("[vars]\nport = 1", "invalid-name"),
        ("[vars]\nvars = 1", "invalid-name"),
        ("[axes]\nvalue = [1]", "invalid-name"),
        ("[axes]\nservers = [1]", "invalid-name"),
        ("[vars]\na = 1\n[axes]\na = [1]", "duplicate"),
        (
            "[servers.a]\nbuiltin = {}\n[commands.a]\ncommand = [\"true\"]\n[measures.m]\ncommands = [\"a\"]",
            "duplicate",
        ),
        ("[axes.r]\nn = { name = \"x\" }", "invalid-name"),
        ("[axes.r]\nn = { Bin = \"x\" }", "invalid-name"),
        ("[axes.r]\n\"a b\" = { bin = \"x\" }", "invalid-name"),
        ("[servers.\"é\"]\nbuiltin = {}\n[measures.m]\nservers = [\"é\"]", "invalid-name"),
    ]);
    let named = |name: &str| {
        outcome_with(
            format!("format = 1\nname = \"{name}\"\n[checks.c]\ncommand = [\"true\"]\n").as_bytes(),
            &Options::default(),
        )
        .codes
    };
    assert_eq!(named("a-1"), "");
    assert_eq!(named("A 1"), "invalid-name");
    assert_eq!(named(""), "invalid-name");
}

#[test]
fn templates() {
    let base = "[vars]\nword = \"w\"\nten = 10\nflags = [\"-a\", \"-b\"]\nflag = true\nhalf = 0.5\nmixed = [\"a\", 1]\nnested = [[\"a\"]]\nmap = { a = 1 }\n";
    check_made(
        |keys| format!("{base}{}", of(keys, "").replace("command = [\"true\"]\ncommand", "command")),
        &[
            ("command = [\"{{ word }}\"]", ""),
            ("command = [\"{{word}}\"]", ""),
            ("command = [\"{{ word}}-{{ ten }}-{{ flag }}-{{ half }}\"]", ""),
            ("command = [\"a\", \"{{ flags }}\"]", ""),
            ("command = [\"a\", \"x{{ flags }}\"]", "wrong-type"),
            ("command = [\"a\", \"{{ mixed }}\"]", ""),
            ("command = [\"a\", \"{{ nested }}\"]", "wrong-type"),
            ("command = [\"a\", \"{{ map }}\"]", "wrong-type"),
            ("command = [\"a\", \"{{ map.a }}\"]", "undefined-name"),
            ("command = \"{{ flags }}\"", ""),
            ("command = \"{{ word }}\"", "wrong-type"),
            ("command = [\"{{ nothing }}\"]", "undefined-name"),
            ("command = [\"{% if %}{# no comment #}{ a }\"]", ""),
            ("command = [\"{{ '{{' }} and {{ \\\"}}\\\" }}\"]", ""),
            ("command = [\"{{ 1 }}\"]", "template-syntax"),
            ("command = [\"{{ a | b }}\"]", "template-syntax"),
            ("command = [\"{{ a() }}\"]", "template-syntax"),
            ("command = [\"{{ a + b }}\"]", "template-syntax"),
            ("command = [\"{{ a\"]", "template-syntax"),
            ("command = [\"{{ }}\"]", "template-syntax"),
            ("command = [\"{{ word ~ word }}\"]", "template-syntax"),
            ("command = [\"{{ word }\"]", "template-syntax"),
            ("command = [\"{{ {{ word }} }}\"]", "template-syntax"),
            ("command = [\"{{ __class__ }}\"]", "undefined-name"),
            ("command = [\"{{ vars.word }}\"]", "undefined-name"),
            ("command = [\"a\"]\ntimeout = \"{{ ten }}s\"", ""),
            ("command = [\"a\"]\nexpect = { exit = \"{{ ten }}\" }", ""),
            ("command = [\"a\"]\nexpect = { exit = \"{{ ten }}0\" }", "wrong-type"),
            ("command = [\"a\"]\nexpect = { exists = \"{{ flags }}\" }", ""),
            ("command = [\"a\"]\nlabel = \"{{ word }}\"", ""),
            ("command = [\"a\"]\nlabel = \"{{ run_dir }}\"", "misplaced-placeholder"),
            ("command = [\"a\"]\nexpect = { stdout = '{{ dir }}' }", "misplaced-placeholder"),
            ("command = [\"a\"]\ncapture.x = { stdout_json = \"{{ dir }}\" }", "misplaced-placeholder"),
            ("command = [\"a\", \"{{ dir }}\", \"{{ run_dir }}\", \"{{ scenario_dir }}\"]", ""),
            ("command = [\"a\", \"{{ port }}\"]", "misplaced-placeholder"),
            ("command = [\"a\", \"{{ value }}\"]", "misplaced-placeholder"),
            ("command = [\"a\", \"{{ servers.s.port }}\"]", "undefined-name"),
            (
                "command = [\"a\"]\ncwd = \"{{ run_dir }}\"\nenv = { A = \"{{ dir }}\" }\nstdin = \"{{ dir }}\"\nfiles = { a = \"{{ dir }}\" }",
                "",
            ),
            ("command = [\"a\"]\nuser = \"{{ dir }}\"", "misplaced-placeholder"),
            ("command = []", "invalid-value"),
            ("command = [\"\"]", "invalid-value"),
            ("command = [\"a\\u0000b\"]", "invalid-value"),
        ],
    );
}

#[test]
fn a_list_is_spliced_and_all_else_is_one_argument() {
    let plan = plan(
        "[vars]\nflags = [\"-a\", \"-b c\"]\nempty = []\nspaced = \"x y\"\n[commands.a]\ncommand = [\"p\", \"{{ flags }}\", \"{{ empty }}\", \"{{ spaced }}\", \"{{ '{{' }}\", 3]\n[measures.m]\ncommands = [\"a\"]\n",
    );
    let argv: Vec<String> = plan.commands[0].process.argv.iter().map(ToString::to_string).collect();
    assert_eq!(argv, ["p", "-a", "-b c", "x y", "{{", "3"]);
}

/// These hold no templates: what looks like one is text.
#[test]
fn what_is_no_template() {
    let plan = plan("title = \"{{ nothing }}\"\ndescription = \"{{ nor this\"\n");
    assert_eq!(plan.title.as_deref(), Some("{{ nothing }}"));
    assert_eq!(plan.description.as_deref(), Some("{{ nor this"));
}

#[test]
fn vars_in_order() {
    check(&[
        ("[vars]\na = \"x\"\nb = \"{{ a }}\"", ""),
        ("[vars]\nb = \"{{ a }}\"\na = \"x\"", "vars-cycle"),
        ("[vars]\na = \"{{ a }}\"", "vars-cycle"),
        ("[vars]\na = \"{{ size }}\"\n[axes]\nsize = [1]", "undefined-name"),
        ("[vars]\na = 1979-05-27", "wrong-type"),
        ("[vars]\na = [\"{{ b }}\"]", "undefined-name"),
        ("[vars]\na = nan", "invalid-value"),
        ("[vars]\na = 9223372036854775807", ""),
        ("[vars]\na = 9223372036854775808", "invalid-value"),
        ("[vars]\na = 0xffffffffffffffffffffff", "invalid-value"),
    ]);
}

#[test]
fn set_keeps_the_type_of_a_var() {
    let text = whole("[vars]\ns = \"x\"\ni = 1\nf = 0.5\nb = true\nl = [1]\nm = { a = 1 }\n");
    let set = |name: &str, value: &str| {
        let options = Options { set: vec![(name.to_owned(), value.to_owned())], ..Options::default() };
        outcome_with(text.as_bytes(), &options).codes
    };
    for (name, value, codes) in [
        ("s", "5", ""),
        ("s", "", ""),
        ("s", "{{ nothing }}", "undefined-name"),
        ("s", "{{ 1 }}", "template-syntax"),
        ("i", "5", ""),
        ("i", "5.5", "wrong-type"),
        ("i", "x", "syntax"),
        ("i", "\"5\"", "wrong-type"),
        ("f", "2", ""),
        ("f", "2.5", ""),
        ("f", "x", "syntax"),
        ("b", "false", ""),
        ("b", "1", "wrong-type"),
        ("l", "[2, 3]", ""),
        ("l", "2", "wrong-type"),
        ("m", "{ b = 2 }", ""),
        ("i", "1\n[checks.x]", "syntax"),
        ("nothing", "1", "unknown-override"),
    ] {
        assert_eq!(set(name, value), codes, "--set {name}={value}");
    }
}

#[test]
fn expressions() {
    check_made(
        |expression| of("", &format!("require = [{expression}]")),
        &[
            ("\"wall > 0\"", ""),
            ("\"wall > 0 and not rss.peak < 1 or 1 == 1\"", ""),
            ("\"floor(wall) + ceil(wall) * round(wall) - abs(wall) / 2 ** 3 >= (1)\"", ""),
            ("\"wall\"", "invalid-expression"),
            ("\"wall > 0 > 1\"", "invalid-expression"),
            ("\"wall > (1 < 2)\"", "invalid-expression"),
            ("\"wall = 0\"", "invalid-expression"),
            ("\"wall > 10ms\"", "invalid-expression"),
            ("\"median('wall', 'a') > 0\"", "invalid-expression"),
            ("\"walll > 0\"", "unknown-metric"),
            ("\"vars.x > 0\"", "undefined-name"),
            ("\"\"", "invalid-expression"),
            ("\"{{ wall }} > 0\"", "invalid-expression"),
            ("3", "wrong-type"),
        ],
    );
    check(&[
        (
            &format!(
                "[vars]\nn = 2\nt = \"x\"\n{}",
                of(
                    "",
                    "derive.d = { expr = \"wall * vars.n\", unit = \"s\" }\nderive.e = { expr = \"d * 2\" }\nreport = [\"e\"]"
                )
            ),
            "",
        ),
        (&format!("[vars]\nt = \"x\"\n{}", of("", "derive.d = { expr = \"wall * vars.t\" }")), "invalid-expression"),
        (&of("", "derive.wall = { expr = \"rss.peak\" }"), "duplicate"),
        (&of("", "derive.d = { expr = \"e\" }\nderive.e = { expr = \"wall\" }"), "unknown-metric"),
        (&of("", "derive.D = { expr = \"wall\" }"), "invalid-name"),
        (&of("", "derive.d = {}"), "missing-key"),
        (&of("", "derive.d = { expr = \"wall > 1\" }"), "invalid-expression"),
    ]);
}

#[test]
fn patterns() {
    check_made(
        |pattern| of(&format!("expect = {{ stdout = '{pattern}' }}"), ""),
        &[
            (r"^added \d+ packages$", ""),
            (r"\Aall\z", ""),
            (r"(?<=a)b", "invalid-pattern"),
            (r"(a)\1", "invalid-pattern"),
            ("(", "invalid-pattern"),
            ("(?:a{1000}){1000}", "invalid-pattern"),
            ("(a*)*b", ""),
            ("((((((((((a+)+)+)+)+)+)+)+)+)+)+$", ""),
        ],
    );
}
