//! Axes, joins, cells, groups, profiles and defaults.

use std::time::{Duration, Instant};

use super::{check, outcome, outcome_with, plan, whole};
use bakeoff::plan::Plan;
use bakeoff::scenario::Options;

fn cells(plan: &Plan) -> Vec<Vec<&str>> {
    plan.groups.iter().map(|group| group.cells.iter().map(|cell| cell.id.as_str()).collect()).collect()
}

#[test]
fn axes() {
    check(&[
        ("[axes]\na = [1, 2]\nb = [\"x\", \"y.z-1_A\"]", ""),
        ("[axes]\na = []", "empty-expansion"),
        ("[axes]\na = [1, 1]", "duplicate"),
        ("[axes]\na = [1, \"1\"]", "duplicate"),
        ("[axes]\na = [1.5]", "wrong-type"),
        ("[axes]\na = [\"a b\"]", "invalid-value"),
        ("[axes]\na = [\"\"]", "invalid-value"),
        ("[axes]\na = [\"a/b\"]", "invalid-value"),
        ("[axes]\na = 3", "wrong-type"),
        ("[axes.r]", "empty-expansion"),
        ("[axes.r]\nn = { bin = \"n\" }\nb = { bin = \"b\" }", ""),
        ("[axes.r]\nn = { bin = \"n\" }\nb = {}", "missing-key"),
        ("[axes.r]\nn = { bin = \"n\" }\nb = { bin = \"b\", x = 1 }", "missing-key"),
        ("[axes.r]\nn = { f = [\"a\"], g = 1, h = true, i = 0.5 }", ""),
        ("[axes.r]\nn = { f = { x = 1 } }", "wrong-type"),
        ("[axes.r]\nn = { f = [1] }", "wrong-type"),
        ("[axes.r]\nn = 1", "wrong-type"),
        ("[vars]\nl = [1, 2]\n[axes]\na = \"{{ l }}\"", ""),
        ("[axes]\na = [1]\n[commands.x]\neach = [\"a\"]\nexclude = [{ b = 1 }]\ncommand = [\"x\"]", "unknown-entry"),
        ("[axes]\na = [1]\n[commands.x]\neach = [\"a\"]\nexclude = [{ a = 2 }]\ncommand = [\"x\"]", "invalid-value"),
        ("[axes]\na = [1]\n[commands.x]\neach = [\"a\"]\nexclude = [{ a = 1 }]\ncommand = [\"x\"]", "empty-expansion"),
        ("[axes]\na = [1]\n[commands.x]\neach = [\"a\", \"a\"]\ncommand = [\"x\"]", "duplicate"),
        ("[axes]\na = [1]\n[commands.x]\ncommand = [\"{{ a }}\"]", "undefined-name"),
        ("[axes]\na = [1]\n[commands.x]\neach = [\"a\"]\ncommand = [\"{{ a.bin }}\"]", "undefined-name"),
    ]);
}

#[test]
fn ids_and_order() {
    let plan = plan(
        "[axes]\nb = [2, 1]\na = [\"x\", \"y\"]\n[commands.c]\neach = [\"a\", \"b\"]\nexclude = [{ a = \"x\", b = 1 }]\nlabel = \"{{ a }} {{ b }}\"\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"c\"]\n",
    );
    let ids: Vec<(&str, &str)> =
        plan.commands.iter().map(|c| (c.identity.id.as_str(), c.identity.label.as_str())).collect();
    assert_eq!(ids, [("c/x/2", "x 2"), ("c/y/2", "y 2"), ("c/y/1", "y 1")]);
    assert_eq!(cells(&plan), [["m:c/x/2", "m:c/y/2", "m:c/y/1"]]);
}

/// An axis in the measure's `each` makes separate tables; one that only its subjects have makes rows of one table.
#[test]
fn joins_and_groups() {
    let base = "[axes]\nconn = [1, 2]\nrt = [\"n\", \"b\"]\n[servers.s]\neach = [\"rt\"]\nbuiltin = {}\n[servers.t]\nbuiltin = {}\n[loads.l]\neach = [\"conn\"]\nrequest = \"GET /\"\ncount = 1\nconnections = \"{{ conn }}\"\n";
    let plan_of = |measure: &str| plan(&format!("{base}[measures.m]\n{measure}\n"));
    let separate = plan_of("each = [\"conn\"]\nservers = [\"s\", \"t\"]\nload = \"l\"");
    assert_eq!(
        cells(&separate),
        [["m/1:s/n:l/1", "m/1:s/b:l/1", "m/1:t:l/1"], ["m/2:s/n:l/2", "m/2:s/b:l/2", "m/2:t:l/2"]]
    );
    // Each load left after the join makes a group of its own.
    let groups = plan_of("servers = [\"s/*\"]\nload = \"l\"");
    assert_eq!(cells(&groups), [["m:s/n:l/1", "m:s/b:l/1"], ["m:s/n:l/2", "m:s/b:l/2"]]);
    assert_eq!(groups.groups[0].id, "m:l/1");
    let part = plan_of("servers = [\"s/b\", \"t\"]\nload = \"l/2\"\nbaseline = \"t\"");
    assert_eq!(cells(&part), [["m:s/b:l/2", "m:t:l/2"]]);
    assert_eq!(part.groups[0].baseline, "m:t:l/2");
    // Instances of a driver that differ only by axes of the subject count as one.
    let shared = plan(
        "[axes]\nrt = [\"n\", \"b\"]\n[servers.s]\neach = [\"rt\"]\nbuiltin = {}\n[loads.l]\neach = [\"rt\"]\nrequest = \"GET /{{ rt }}\"\ncount = 1\n[measures.m]\nservers = [\"s\"]\nload = \"l\"\n",
    );
    assert_eq!(cells(&shared), [["m:s/n:l/n", "m:s/b:l/b"]]);
    assert_eq!(shared.groups[0].id, "m:l");
}

#[test]
fn references() {
    let base = "[axes]\nrt = [\"n\", \"b\"]\nk = [1]\n[servers.db]\neach = [\"rt\"]\nbuiltin = {}\n[servers.one]\nbuiltin = {}\n";
    let made: Vec<(String, &str)> = [
        ("[commands.a]\ncommand = [\"x\"]\nneeds = [\"one\"]\n[measures.m]\ncommands = [\"a\"]", ""),
        ("[commands.a]\ncommand = [\"x\", \"{{ servers.one.port }}\", \"{{ servers['one'].url }}\", \"{{ servers.one.dir }}\"]\nneeds = [\"one\"]\n[measures.m]\ncommands = [\"a\"]", ""),
        ("[commands.a]\ncommand = [\"x\"]\nneeds = [\"db\"]\n[measures.m]\ncommands = [\"a\"]", "ambiguous-join"),
        ("[commands.a]\ncommand = [\"x\"]\nneeds = [\"db/n\"]\n[measures.m]\ncommands = [\"a\"]", ""),
        ("[commands.a]\neach = [\"rt\"]\ncommand = [\"x\", \"{{ servers.db.port }}\"]\nneeds = [\"db\"]\n[measures.m]\ncommands = [\"a\"]", ""),
        ("[commands.a]\neach = [\"k\"]\ncommand = [\"x\"]\nneeds = [\"db\"]\n[measures.m]\ncommands = [\"a\"]", "ambiguous-join"),
        ("[commands.a]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"b*\"]", "unknown-entry"),
        ("[commands.a]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"one\"]", "unknown-entry"),
        ("[commands.a]\ncommand = [\"x\"]\n[measures.m]\ncommands = []", "empty-expansion"),
        ("[commands.a]\ncommand = [\"x\"]\n[measures.m]\nservers = [\"one\"]\ncommands = [\"a\"]", ""),
        ("[commands.a]\ncommand = [\"x\", \"{{ server.url }}\", \"{{ server.port }}\", \"{{ server.name }}\"]\n[measures.m]\nservers = [\"one\"]\ncommands = [\"a\"]", ""),
        ("[commands.a]\ncommand = [\"x\", \"{{ server.url }}\"]\n[measures.m]\ncommands = [\"a\"]", "misplaced-placeholder"),
        ("[measures.m]\nservers = [\"db\"]\nbaseline = \"db\"", "ambiguous-join"),
        ("[measures.m]\nservers = [\"db\"]\nbaseline = \"db/b\"", ""),
        ("[measures.m]\neach = [\"rt\"]\nservers = [\"db\"]\nbaseline = \"db\"", ""),
        ("[measures.m]\neach = [\"rt\"]\nservers = [\"one\"]\nlabel = \"{{ rt }}\"", ""),
        ("[measures.m]\nservers = [\"db/x\"]", "unknown-entry"),
        ("[measures.m]\nneeds = [\"one\"]\nservers = [\"db\"]", ""),
        ("[measures.m]\nservers = [\"one\"]\nrunz = 1", "unknown-key"),
        ("[measures.m]\nservers = [\"one\"]\nload = \"l\"", "unknown-entry"),
        ("[measures.m]\n", "missing-key"),
        ("[servers.x]\nneeds = [\"x\"]\nbuiltin = {}\n[measures.m]\nservers = [\"one\"]", "needs-cycle"),
        ("[servers.there]\nurl = \"http://127.0.0.1:80\"\nneeds = [\"one\"]\n[measures.m]\nservers = [\"there\"]", ""),
        ("[servers.quiet]\ncommand = [\"x\"]\nport = \"none\"\nready = { output = 'up' }\n[loads.l]\nrequest = \"GET /\"\ncount = 1\n[measures.m]\nservers = [\"quiet\"]\nload = \"l\"", "conflict"),
        ("[servers.quiet]\ncommand = [\"x\", \"{{ port }}\"]\nport = \"none\"\nready = { output = 'up' }\n[measures.m]\nservers = [\"quiet\"]", "misplaced-placeholder"),
    ]
    .map(|(case, codes)| (format!("{base}{case}\n"), codes))
    .into();
    let cases: Vec<(&str, &str)> = made.iter().map(|(case, codes)| (case.as_str(), *codes)).collect();
    check(&cases);
}

/// Counted before anything is expanded: a product of 10^12 is refused at once.
#[test]
fn too_many_cells() {
    let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
    let axes: String = (0..4).map(|axis| format!("a{axis} = [{}]\n", values.join(","))).collect();
    for rest in [
        "[commands.c]\neach = [\"a0\", \"a1\", \"a2\", \"a3\"]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"c\"]\n",
        "[commands.c]\ncommand = [\"x\"]\n[measures.m]\neach = [\"a0\", \"a1\", \"a2\", \"a3\"]\ncommands = [\"c\"]\n",
        "[servers.s]\neach = [\"a0\"]\nbuiltin = {}\n[loads.l]\neach = [\"a1\"]\nrequest = \"GET /\"\ncount = 1\n[measures.m]\nservers = [\"s\"]\nload = \"l\"\n",
        "[servers.s]\neach = [\"a0\"]\nbuiltin = {}\n[loads.l]\neach = [\"a1\"]\nrequest = \"GET /\"\ncount = 1\n[measures.m]\neach = [\"a2\"]\nservers = [\"s\"]\nload = \"l\"\n",
    ] {
        let start = Instant::now();
        let outcome = outcome(&format!("[axes]\n{axes}{rest}"));
        assert_eq!(outcome.codes, "too-large", "{}", outcome.shown);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
    let turns =
        outcome("[commands.c]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"c\"]\nruns = 1_000_000_000_000\n");
    assert_eq!(turns.codes, "too-large");
}

#[test]
fn defaults_are_replaced_whole() {
    let plan = plan(
        "[defaults.servers]\nenv = { A = \"1\", B = \"2\" }\nready = { http = \"/\" }\n[servers.own]\ncommand = [\"x\"]\nenv = { A = \"3\" }\n[servers.given]\ncommand = [\"x\"]\n[servers.embedded]\ncommand = [\"y\"]\n[measures.m]\nservers = [\"own\", \"given\"]\n",
    );
    let env = |index: usize| match &plan.servers[index].launch {
        bakeoff::plan::Launch::Process(process) => {
            process.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    assert_eq!(env(0), ["A=3"]);
    assert_eq!(env(1), ["A=1", "B=2"]);
    check(&[
        (
            "[defaults.servers]\nenv = { A = \"x\" }\n[servers.there]\nurl = \"http://127.0.0.1:80\"\n[measures.m]\nservers = [\"there\"]",
            "",
        ),
        (
            "[defaults.servers]\nenv = { A = \"x\" }\n[servers.embedded]\nbuiltin = {}\n[measures.m]\nservers = [\"embedded\"]",
            "",
        ),
        ("[defaults.measures]\nruns = 3\nwarmup = 2\n[servers.s]\nbuiltin = {}\n[measures.m]\nservers = [\"s\"]", ""),
        (
            "[defaults.loads]\nduration = \"1s\"\n[servers.s]\nbuiltin = {}\n[loads.l]\nrequest = \"GET /\"\ncount = 3\n[measures.m]\nservers = [\"s\"]\nload = \"l\"",
            "",
        ),
        ("[defaults.commands]\nshell = \"x\"\n[commands.a]\ncommand = [\"x\"]\n[measures.m]\ncommands = [\"a\"]", ""),
        ("[defaults.probes]\nrecord = []", "unknown-key"),
        ("[defaults.commands]\ntimeout = 3", "wrong-type"),
        ("[defaults.commands]\ntimeot = \"3s\"", "unknown-key"),
    ]);
}

#[test]
fn profiles() {
    let base = "[vars]\nv = 1\n[axes]\nsize = [1, 2, 3]\n[servers.s]\neach = [\"size\"]\nexclude = [{ size = 3 }]\nbuiltin = {}\n[loads.l]\nrequest = \"GET /\"\nduration = \"10s\"\n[measures.m]\nservers = [\"s\"]\nload = \"l\"\n[profiles.quick]\n";
    let with = |keys: &str, profile: &str| {
        let options = Options { profile: Some(profile.to_owned()), ..Options::default() };
        outcome_with(whole(&format!("{base}{keys}\n")).as_bytes(), &options)
    };
    let count = with("loads.l.count = 5\nmeasures.m.starts = 1", "quick").plan.unwrap();
    assert_eq!(count.loads[0].stop, bakeoff::plan::LoadStop::Count(5));
    assert_eq!(count.groups[0].rounds, 1);
    let fewer = with("axes.size = [1]", "quick");
    assert_eq!(fewer.codes, "", "{}", fewer.shown);
    assert_eq!(fewer.plan.unwrap().servers.len(), 1);
    for (keys, profile, codes) in [
        ("", "quick", ""),
        ("vars.v = 2", "quick", ""),
        ("vars.w = 2", "quick", "unknown-override"),
        ("axes.sice = [1]", "quick", "unknown-override"),
        ("loads.k.count = 1", "quick", "unknown-override"),
        ("measures.n.runs = 1", "quick", "unknown-override"),
        ("loads.l.cuont = 1", "quick", "unknown-key"),
        ("servers.s.port = 1", "quick", "unknown-key"),
        ("measures.m.runs = 0", "quick", "invalid-value"),
        ("", "quik", "unknown-profile"),
    ] {
        let outcome = with(keys, profile);
        assert_eq!(outcome.codes, codes, "{keys}\n{}", outcome.shown);
    }
}

#[test]
fn the_order_is_a_pure_function() {
    let case = "[commands.a]\ncommand = [\"x\"]\n[commands.b]\ncommand = [\"y\"]\n[commands.c]\ncommand = [\"z\"]\n[measures.m]\ncommands = [\"*\"]\norder = \"shuffled\"\n";
    let turns = |plan: &Plan| plan.groups[0].turns.iter().map(|turn| turn.id.clone()).collect::<Vec<_>>();
    assert_eq!(turns(&plan(case)), turns(&plan(case)));
    let commented = format!("# a comment changes nothing\n{case}");
    assert_eq!(plan(case).digest(), plan(&commented).digest());
    assert_ne!(plan(case).digest(), plan(&case.replace("\"z\"", "\"zz\"")).digest());
}
