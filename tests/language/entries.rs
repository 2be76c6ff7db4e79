//! Processes, steps, tools, caches, checks, captures, claims, and what stands around them.

use super::{check, plan};

fn of(command: &str, measure: &str) -> String {
    format!("[commands.a]\ncommand = [\"true\"]\n{command}\n[measures.m]\ncommands = [\"a\"]\n{measure}\n")
}

fn check_of(cases: &[(&str, &str, &str)]) {
    let made: Vec<(String, &str)> =
        cases.iter().map(|(command, measure, codes)| (of(command, measure), *codes)).collect();
    let cases: Vec<(&str, &str)> = made.iter().map(|(case, codes)| (case.as_str(), *codes)).collect();
    check(&cases);
}

#[test]
fn processes() {
    check_of(&[
        ("env = { A = 1, B = true, C = 0.5 }", "", ""),
        ("env = { \"\" = \"x\" }", "", "invalid-name"),
        ("env = { \"A=B\" = \"x\" }", "", "invalid-name"),
        ("stdin = { file = \"a.sql\" }", "", ""),
        ("stdin = {}", "", "missing-key"),
        ("stdin = 3", "", "wrong-type"),
        ("cpus = \"0\"", "", ""),
        ("files = { \"a/b.ini\" = \"x\" }", "", ""),
        ("files = { \"/etc/x\" = \"x\" }", "", "invalid-name"),
        ("files = { \"../x\" = \"x\" }", "", "invalid-name"),
        ("files = { \"a/../x\" = \"x\" }", "", "invalid-name"),
        ("files = { \"./x\" = \"x\" }", "", "invalid-name"),
        ("files = { \"\" = \"x\" }", "", "invalid-name"),
        ("stdout = \"null\"", "", ""),
        ("stdout = \"terminal\"", "", "invalid-value"),
        ("shell = \"true\"", "", "conflict"),
        ("creates = \"x\"", "", "unknown-key"),
        ("before = [[\"rm\", \"x\"], { shell = \"true\", cwd = \"a\" }]", "", ""),
        ("before = [\"rm x\"]", "", "wrong-type"),
        ("before = [[]]", "", "invalid-value"),
        ("before = [{}]", "", "missing-key"),
        ("before = [{ command = [\"a\"], shell = \"b\" }]", "", "conflict"),
        ("before = [{ files = { a = \"x\" } }]", "", ""),
        ("", "before = [[\"rm\", \"{{ dir }}\"]]", ""),
        ("", "workspace = {}", ""),
        ("", "workspace = { from = \"site\", copy = [\"a\", \"b\"] }", ""),
        ("", "workspace = { copy = [\"/etc\"] }", "invalid-value"),
        ("", "workspace = { copy = [\"../x\"] }", "invalid-value"),
        ("", "workspace = { from = \"..\" }", "invalid-value"),
        ("", "needs = [\"x\"]", "unknown-entry"),
        ("expect = { exit = 256 }", "", "invalid-value"),
        (
            "expect = { exit = 1, stdout = 'a', stderr = 'b', stdout_not = 'c', stderr_not = 'd', json = { a = [1] }, unchanged = [\"x\"], exists = [\"y\"] }",
            "",
            "",
        ),
    ]);
    check(&[
        ("[[setup]]\nfiles = { a = \"x\" }", ""),
        ("[[setup]]\ncreates = \"x\"", "missing-key"),
        (
            "[[setup]]\ncommand = [\"npm\", \"ci\"]\ncreates = \"node_modules\"\ncwd = \"{{ dir }}\"",
            "misplaced-placeholder",
        ),
        ("[tools.node]\ncommand = [\"node\", \"-v\"]\nexpect = { stdout = '^v26' }", ""),
        ("[tools.node]\ncommand = [\"node\"]\neach = [\"a\"]", "unknown-key"),
        ("[caches.a]\nclear = [\"rm\", \"x\"]\nempty = [\"x\"]", ""),
        ("[caches.a]\nclear = \"page-cache\"", ""),
        ("[caches.a]\nclear = \"pages\"", "wrong-type"),
        ("[caches.a]\nempty = [\"x\"]", "missing-key"),
        ("[caches.a]\ncommand = [\"rm\"]\nclear = [\"rm\"]", "conflict"),
        ("[caches.a]\nclear = \"page-cache\"\nenv = { A = \"x\" }", "conflict"),
        ("[environment]\ninherit = [\"npm_config_*\", \"-HOME\"]\nset = { A = \"x\" }\nsecret = [\"TOKEN\"]", ""),
        ("[environment]\ninherit = [\"a*b\"]", "invalid-value"),
        ("[environment]\ninherit = [\"-\"]", "invalid-value"),
        ("[environment]\ninherit = [\"A=B\"]", "invalid-value"),
        ("[environment]\nsecret = [\"-TOKEN\"]", "invalid-value"),
        ("[environment]\nset = { A = \"{{ port }}\" }", "misplaced-placeholder"),
        ("[machine]\ncores = 4\nmemory = \"8GiB\"\nhypervisor = false\ngovernor = \"performance\"\nrefuse = true", ""),
        ("[machine]\ncores = 0", "invalid-value"),
        ("[machine]\nram = 1", "unknown-key"),
        ("caveats = [\"a\"]\n[[references]]\ntext = \"a\"\nvalue = 2.5\nsource = \"b\"\ndate = 2026-01-01", ""),
        ("[[references]]\ntext = \"a\"\nvalue = 2.5\nsource = \"b\"\ndate = \"2026-01-01\"", "wrong-type"),
        ("[[references]]\ntext = \"a\"\nvalue = \"2.5\"\nsource = \"b\"\ndate = 2026-01-01", "wrong-type"),
        ("[[references]]\ntext = \"a\"", "missing-key"),
        ("[[references]]", "missing-key"),
        ("[[references]]\ntext = \"a\"\nvalue = 2.5\nsource = \"b\"\ndate = 10:00:00", "wrong-type"),
    ]);
}

#[test]
fn steps_take_what_they_stand_in() {
    let plan = plan(
        "[commands.a]\ncommand = [\"x\"]\nenv = { A = \"1\", B = \"2\" }\ncwd = \"w\"\nuser = \"u\"\nbefore = [{ command = [\"y\"], env = { B = \"3\" } }, { command = [\"z\"], cwd = \"v\" }]\n[measures.m]\ncommands = [\"a\"]\n",
    );
    let steps = &plan.commands[0].before;
    let env: Vec<String> = steps[0].process.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["A=1", "B=3"]);
    assert_eq!(steps[0].process.cwd.as_ref().unwrap().to_string(), "w");
    assert_eq!(steps[1].process.cwd.as_ref().unwrap().to_string(), "v");
    assert_eq!(steps[1].process.user.as_deref(), Some("u"));
}

#[test]
fn captures() {
    check_of(&[
        (
            "capture.n = { stdout = 'added (\\d+)', unit = \"packages\", exact = true, better = \"higher\", step = 1 }",
            "report = [\"n\"]",
            "",
        ),
        ("capture.n = { stdout = 'added (\\d+)' }", "report = [\"n\"]", "unknown-metric"),
        ("capture.n = { stdout = 'added' }", "", "invalid-pattern"),
        ("capture.n = { stdout = 'added', pick = \"count\" }", "report = [\"n\"]", ""),
        ("capture.n = { stdout = 'a (?<value>\\d+)(?<unit>ms|s)' }", "report = [\"n\"]", ""),
        ("capture.n = { stdout = 'a (?<value>\\d+)(?<unit>ms|kB)' }", "", "invalid-pattern"),
        ("capture.n = { stdout = 'a (?<value>\\d+)(?<unit>\\w+)' }", "", "invalid-pattern"),
        ("capture.n = { stdout = 'a (?<value>\\d+)(?<unit>ms|s)', unit = \"s\" }", "", "conflict"),
        ("capture.n = { stdout = '(a)', stderr = '(b)' }", "", "conflict"),
        ("capture.n = {}", "", "missing-key"),
        ("capture.n = { file = \"out.txt\" }", "", "missing-key"),
        ("capture.n = { file = \"out.txt\", regex = '(a)', json = \"$.a\" }", "", "conflict"),
        ("capture.n = { stdout = '(a)', regex = '(b)' }", "", "conflict"),
        ("capture.n = { stdout_json = \"$.requests.average\", unit = \"1/s\" }", "", ""),
        ("capture.n = { stdout_json = \"requests\" }", "", "invalid-pattern"),
        ("capture.n = { stdout_json = \"$.a\", pick = \"last\" }", "", "conflict"),
        ("capture.n = { size = \"node_modules\", unit = \"B\" }", "", ""),
        ("capture.n = { sha256 = \"a\", unit = \"B\" }", "", "conflict"),
        ("capture.n = { entries = \"a\" }", "", ""),
        ("capture.n = { stdout = '(a)', step = \"10ms\" }", "", ""),
        ("capture.n = { stdout = '(a)', step = \"x\" }", "", "invalid-value"),
        ("capture.n = { stdout = '(a)', step = 0 }", "", "invalid-value"),
        ("capture.n = { stdout = '(a)', optional = true }", "", ""),
        ("capture.n = { stdout = '(a)', optional = true, default = \"x\" }", "", ""),
        ("capture.n = { stdout = '(\\d)', unit = \"s\", default = \"x\" }", "", "wrong-type"),
        ("capture.n = { stdout = '(\\d)', unit = \"s\", default = 0 }", "", ""),
        ("capture.\"latency.p99\" = { stdout_json = \"$.a\", unit = \"ms\" }", "report = [\"latency.p99\"]", ""),
        ("capture.wall = { stdout = '(\\d+)', unit = \"ms\" }", "", "duplicate"),
        ("capture.\"rss.peak\" = { stdout = '(\\d+)', unit = \"B\" }", "", "duplicate"),
        ("capture.\"a..b\" = { stdout = '(\\d+)' }", "", "invalid-name"),
        ("capture.A = { stdout = '(\\d+)' }", "", "invalid-name"),
        (
            "capture.n = { stdout = '(\\d+)', unit = \"s\" }",
            "capture.n = { stderr = '(\\d+)', unit = \"s\" }",
            "duplicate",
        ),
        ("capture.n = { stdout = '(\\d+)', unit = \"ms\" }", "derive.n = { expr = \"wall\" }", "duplicate"),
        ("capture.n = { size = \"x\" }", "same = { runs = [\"n\"], subjects = [\"n\"] }", ""),
        ("", "same = { runs = [\"n\"] }", "unknown-metric"),
    ]);
}

#[test]
fn checks() {
    let check_with = |keys: &str| {
        format!("[axes]\nr = [\"node\", \"bun\"]\ns = [1, 2]\nt = [2, 3]\n[checks.c]\ncommand = [\"x\"]\n{keys}\n")
    };
    let made: Vec<(String, &str)> = [
        ("each = [\"r\"]\nfails_on.bun = { exit = 1, stderr = 'E' }", ""),
        ("each = [\"r\"]\nfails_on.deno = { exit = 1 }", "unknown-entry"),
        ("fails_on.bun = { exit = 1 }", "unknown-entry"),
        ("each = [\"s\", \"t\"]\nfails_on.2 = { exit = 1 }", "ambiguous-join"),
        ("each = [\"s\", \"t\"]\nfails_on.3 = { exit = 1 }", ""),
        ("each = [\"r\"]\nfails_on.bun = { exit = \"{{ nothing }}\" }", "undefined-name"),
        ("same = [\"stdout\"]", ""),
        ("same = [\"headers\"]", "invalid-value"),
        ("before = [[\"x\"]]", "unknown-key"),
        ("each = [\"r\"]\nlabel = \"on {{ r }}\"\nexpect = { exit = 0 }", ""),
    ]
    .map(|(keys, codes)| (check_with(keys), codes))
    .into();
    let cases: Vec<(&str, &str)> = made.iter().map(|(case, codes)| (case.as_str(), *codes)).collect();
    check(&cases);
}

#[test]
fn claims() {
    let claim_with = |keys: &str| {
        format!(
            "[axes]\nsize = [1, 2]\n[commands.a]\ncommand = [\"x\"]\n[commands.b]\ncommand = [\"y\"]\n[measures.m]\neach = [\"size\"]\ncommands = [\"a\", \"b\"]\n[measures.n]\ncommands = [\"a\", \"b\"]\n[claims.c]\n{keys}\n"
        )
    };
    let text = "text = \"{{ value }} times\"\n";
    let made: Vec<(String, &str)> = [
        ("measure = \"n\"\nvalue = \"ratio('wall', 'a', 'b')\"\nexpect = \">= 2\"", ""),
        ("measure = \"n\"\nvalue = \"difference('wall', 'a', 'b') + percent('wall', 'a', 'b') * mean('wall', 'a') - min('wall', 'a') / max('wall', 'b')\"\ndecimals = 0", ""),
        ("measure = \"n\"\nvalue = \"always_below('wall', 'a', 'b')\"\nexpect = \"true\"", ""),
        ("measure = \"n\"\nvalue = \"overlap('wall', 'a', 'b')\"\nexpect = \">= 2\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median('wall', 'a')\"\nexpect = \"true\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median('wall', 'a')\"\nexpect = \"2\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median('wall', 'a')\"\nexpect = \">= rss.peak\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median('wall', 'a')\"\nexpect = \"> 1 and < 2\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median('wall')\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"median(wall, a)\"", "invalid-expression"),
        ("measure = \"n\"\nvalue = \"wall\"", "unknown-metric"),
        ("measure = \"n\"\nvalue = \"median('throughput', 'a')\"", "unknown-metric"),
        ("measure = \"n\"\nvalue = \"median('wall', 'c')\"", "unknown-entry"),
        ("value = \"median('wall', 'a')\"", "ambiguous-join"),
        ("measure = \"m\"\nvalue = \"median('wall', 'a')\"", "ambiguous-join"),
        ("measure = \"m\"\nwhere = { size = 2 }\nvalue = \"median('wall', 'a')\"", ""),
        ("measure = \"m/2\"\nvalue = \"median('wall', 'a')\"", ""),
        ("measure = \"m\"\nwhere = { size = 3 }\nvalue = \"median('wall', 'a')\"", "invalid-value"),
        ("measure = \"m\"\nwhere = { colour = 3 }\nvalue = \"median('wall', 'a')\"", "unknown-entry"),
        ("measure = \"x\"\nvalue = \"median('wall', 'a')\"", "unknown-entry"),
        ("measure = \"n\"\ndecimals = -1\nvalue = \"median('wall', 'a')\"", "invalid-value"),
        ("measure = \"n\"", "missing-key"),
    ]
    .map(|(keys, codes)| (claim_with(&format!("{text}{keys}")), codes))
    .into();
    let cases: Vec<(&str, &str)> = made.iter().map(|(case, codes)| (case.as_str(), *codes)).collect();
    check(&cases);
    check(&[
        (&format!("{}[claims.c]\nvalue = \"median('wall', 'a')\"\n", of("", "")), "missing-key"),
        (
            &format!(
                "{}[claims.c]\ntext = \"{{{{ value }}}} {{{{ port }}}}\"\nvalue = \"median('wall', 'a')\"\n",
                of("", "")
            ),
            "misplaced-placeholder",
        ),
        (&format!("{}[claims.c]\ntext = \"{{{{ value }}}}\"\nvalue = \"median('wall', 'a')\"\n", of("", "")), ""),
    ]);
}

/// A gate that could not tell a difference is refused: 6 pairs for one comparison, 8 for four; 4 of each where unpaired.
#[test]
fn gates() {
    let commands = |count: usize, keys: &str| {
        let entries: String = (0..count).map(|index| format!("[commands.c{index}]\ncommand = [\"x\"]\ncapture.n = {{ size = \"f\", unit = \"B\", exact = true }}\n")).collect();
        format!("{entries}[measures.m]\ncommands = [\"*\"]\n{keys}\n")
    };
    let servers = |keys: &str| {
        format!(
            "[servers.a]\nbuiltin = {{}}\n[servers.b]\nbuiltin = {{}}\n[loads.l]\nrequest = \"GET /\"\ncount = 1\n[measures.m]\nservers = [\"*\"]\nload = \"l\"\ngate = [\"throughput\"]\n{keys}\n"
        )
    };
    check(&[
        (&commands(2, "gate = [\"wall\"]"), ""),
        (&commands(2, "gate = [\"wall\"]\nruns = 6"), ""),
        (&commands(2, "gate = [\"wall\"]\nruns = 5"), "invalid-value"),
        (&commands(5, "gate = [\"wall\"]\nruns = 7"), "invalid-value"),
        (&commands(5, "gate = [\"wall\"]\nruns = 8"), ""),
        (&commands(2, "gate = [\"wall\"]\nruns = 4\norder = \"grouped\""), ""),
        (&commands(2, "gate = [\"wall\"]\nruns = 3\norder = \"grouped\""), "invalid-value"),
        (&commands(2, "gate = [\"wall\"]\nruns = 2\nuntil = { ci = \"1%\", metric = \"wall\", max_runs = 20 }"), ""),
        (
            &commands(2, "gate = [\"wall\"]\nruns = 2\nuntil = { ci = \"1%\", metric = \"wall\", max_runs = 5 }"),
            "invalid-value",
        ),
        (&commands(2, "gate = [\"n\"]\nruns = 1"), ""),
        (&commands(2, "gate = [\"n\", \"n\"]"), "duplicate"),
        (&commands(2, "gate = [\"throughput\"]"), "unknown-metric"),
        (&servers(""), ""),
        (&servers("starts = 5"), "invalid-value"),
        (&servers("starts = 1"), "invalid-value"),
        (&servers("starts = 1\nruns = 4"), ""),
    ]);
}
