//! Real processes through the real launcher, judged by what the processes say of themselves.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test's own doings is its failure")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bakeoff::process::{Command, Descendant, Ended, Launcher, Output, Process, Stdin, Waited, resolve};
use tempfile::TempDir;

mod process {
    mod ending;
    mod launching;
    mod measuring;
    mod output;
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Long enough for anything that should happen at once, on a busy machine too.
const SOON: Duration = Duration::from_secs(20);

fn launcher() -> Launcher {
    Launcher::new(env!("CARGO_BIN_EXE_bakeoff"))
}

/// A command in a directory of its own, which holds its logs.
struct Run {
    directory: TempDir,
    command: Command,
}

impl Run {
    fn new(argv: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = |name: &str| Output::Log(directory.path().join(name));
        let command = Command {
            program: resolve(OsStr::new(argv[0]), OsStr::new(PATH), Path::new("/")).unwrap(),
            argv: argv.iter().map(Into::into).collect(),
            env: vec![("PATH".into(), PATH.into())],
            cwd: directory.path().to_owned(),
            stdin: Stdin::Null,
            stdout: log("stdout"),
            stderr: log("stderr"),
            cpus: Vec::new(),
            user: None,
        };
        Run { directory, command }
    }

    fn shell(script: &str) -> Self {
        Run::new(&["sh", "-c", script])
    }

    fn python(script: &str) -> Self {
        Run::new(&["python3", "-c", script])
    }

    fn launch(&self) -> Process {
        launcher().launch(&self.command).unwrap()
    }

    /// Runs it to its own end.
    fn finish(&self) -> Ended {
        let mut process = self.launch();
        assert_eq!(process.wait(None, None), Ok(Waited::Exited));
        process.end()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn stdout(&self) -> String {
        fs::read_to_string(self.path("stdout")).unwrap()
    }

    /// What it has written, once it has written whole lines.
    fn first_lines(&self) -> String {
        eventually("a line of output", || Some(self.stdout()).filter(|text| text.ends_with('\n')))
    }
}

/// Tries until there is an answer.
fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        match attempt() {
            Some(answer) => return answer,
            None => assert!(Instant::now() < until, "never came: {what}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The fields of `/proc/PID/stat` from the state on; none for a process that is gone or a zombie.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect::<Vec<_>>();
    (fields[0] != "Z").then_some(fields)
}

fn lives(pid: u32) -> bool {
    stat(pid).is_some()
}

fn names(descendants: &[Descendant]) -> Vec<&str> {
    descendants.iter().map(|one| one.comm.as_str()).collect()
}
