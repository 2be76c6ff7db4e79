//! `validate` and `plan` start no process, open no socket and write no file, whatever the scenario says: strace watches.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::path::Path;
use std::process::Command;

/// What makes processes, sockets and files, or changes them.
const CALLS: &str = "execve,execveat,fork,vfork,clone,clone3,socket,socketpair,connect,bind,listen,open,openat,openat2,\
                     creat,mkdir,mkdirat,mknod,mknodat,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,symlink,\
                     symlinkat,truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,kill";

/// A scenario in which everything asks to be started, asked or written.
const EVERYTHING: &str = r#"format = 1
name = "everything"

[environment]
secret = ["HOME"]

[[setup]]
shell = "touch made-by-setup"
creates = "made-by-setup"

[[setup]]
files = { "made-by-files" = "x" }

[tools.sh]
command = ["sh", "-c", "touch made-by-tool"]

[caches.c]
clear = ["touch", "made-by-cache"]
empty = ["made-by-cache"]

[servers.s]
command = ["sh", "-c", "touch made-by-server"]
port = 18399
ready = { http = "/" }
before = [["touch", "made-by-step"]]

[servers.there]
url = "http://127.0.0.1:9"

[commands.a]
command = ["touch", "made-by-command"]
caches = ["c"]

[probes.p]
request = "GET /"

[loads.l]
request = "GET /"
count = 1

[checks.c]
command = ["touch", "made-by-check"]

[measures.m]
servers = ["s", "there"]
probes = ["p"]
load = "l"

[measures.n]
commands = ["a"]
workspace = { copy = ["everything.toml"] }
"#;

/// The calls that `bakeoff` makes with these arguments, and its exit code; nothing where there is no strace.
fn traced(folder: &Path, arguments: &[&str]) -> Option<(Vec<String>, i32)> {
    let log = folder.join("strace.log");
    let outcome = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={CALLS}"), "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_bakeoff"))
        .args(arguments)
        .current_dir(folder)
        .output();
    let Ok(outcome) = outcome else {
        eprintln!("skipped: strace is not installed");
        return None;
    };
    let text = std::fs::read_to_string(log).unwrap();
    // Every line begins with a process id.
    let calls = text.lines().map(|line| line.split_once(' ').unwrap().1.trim().to_owned()).collect();
    Some((calls, outcome.status.code().unwrap()))
}

#[test]
fn validate_and_plan_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("everything.toml", EVERYTHING);
    write("wrong.toml", &EVERYTHING.replace("[measures.m]", "[measures.m]\nload = \"none\"\nwhat = 1"));
    write("empty.toml", "");
    for (arguments, code) in [
        (vec!["validate", "everything.toml"], 0),
        (vec!["plan", "everything.toml"], 0),
        (vec!["plan", "everything.toml", "--format", "json"], 0),
        (vec!["validate", "wrong.toml"], 2),
        (vec!["plan", "wrong.toml"], 2),
        (vec!["validate", "empty.toml"], 2),
        (vec!["validate", "nowhere.toml"], 2),
    ] {
        let Some((calls, exit)) = traced(folder.path(), &arguments) else { return };
        assert_eq!(exit, code, "{arguments:?}");
        let is_open = |call: &&String| call.starts_with("open");
        let writes =
            |call: &&String| ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
        let (opened, others): (Vec<&String>, Vec<&String>) = calls.iter().partition(is_open);
        // The start of the program itself is the one call of its kind, so that the trace is known to be one.
        assert!(others.len() == 1 && others[0].starts_with("execve("), "{arguments:?}: {others:?}");
        assert!(opened.len() > 1 && !opened.iter().any(writes), "{arguments:?}: {opened:?}");
        let read = |name: &str| opened.iter().any(|call| call.contains(name));
        assert_eq!(read(arguments[1]), arguments[1] != "nowhere.toml", "{arguments:?}: {opened:?}");
    }
    let mut left: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["empty.toml", "everything.toml", "strace.log", "wrong.toml"]);
}
