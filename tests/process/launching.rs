use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bakeoff::process::{LaunchError, Output, ResolveError, Status, Stdin, User, resolve};

use crate::{PATH, Run, eventually, launcher, stat};

/// Why it does not start. A file just written may be busy: another test's child has it until its exec.
fn failure(run: &Run) -> String {
    let attempt = || Some(launcher().launch(&run.command).unwrap_err().to_string());
    eventually("another reason", || attempt().filter(|text| !text.contains("busy")))
}

/// A file of this text beside the logs, of this mode.
fn file(run: &mut Run, text: &str, mode: u32) {
    let path = run.path("program");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    run.command.program = path;
}

#[test]
fn what_cannot_be_started_is_said() {
    let mut run = Run::new(&["true"]);
    run.command.program = run.path("nothing");
    assert!(matches!(launcher().launch(&run.command), Err(LaunchError::NotFound(path)) if path == run.path("nothing")));
    let shown = run.path("program").display().to_string();
    file(&mut run, "#!/bin/sh\n", 0o644);
    assert_eq!(failure(&run), format!("{shown} is not executable"));
    file(&mut run, "#!/no/such/interpreter\n", 0o755);
    assert_eq!(failure(&run), format!("the interpreter that {shown} asks for does not exist"));
    file(&mut run, "no line of that kind\n", 0o755);
    assert_eq!(failure(&run), format!("{shown} is not a program of this machine and has no #! line"));
    run.command.program = run.directory.path().to_owned();
    assert!(failure(&run).ends_with("is not executable"));
}

#[test]
fn what_a_process_needs_and_is_not_there_is_said() {
    let mut run = Run::new(&["true"]);
    run.command.cwd = "/no/such/place".into();
    assert_eq!(failure(&run), "the directory /no/such/place cannot be entered: No such file or directory (os error 2)");
    let mut run = Run::new(&["true"]);
    run.command.stdin = Stdin::File("/no/such/input".into());
    assert_eq!(failure(&run), "the input /no/such/input cannot be opened: No such file or directory (os error 2)");
    let mut run = Run::new(&["true"]);
    run.command.stderr = Output::Log("/no/such/log".into());
    assert_eq!(failure(&run), "the log /no/such/log cannot be created: No such file or directory (os error 2)");
    let mut run = Run::new(&["true"]);
    run.command.cpus = vec![0, 1000];
    assert_eq!(failure(&run), "these processors are not to be had: [0, 1000]");
    run.command.cpus = vec![1 << 40];
    assert!(matches!(launcher().launch(&run.command), Err(LaunchError::Cpus(_))));
}

#[test]
fn arguments_that_no_kernel_takes_are_said() {
    let mut run = Run::new(&["true"]);
    run.command.argv.push("x".repeat(5_000_000).into());
    assert!(failure(&run).ends_with("are too long"));
    let mut run = Run::new(&["true"]);
    run.command.argv.push("a\0b".into());
    assert!(matches!(launcher().launch(&run.command), Err(LaunchError::Exec(..))));
}

#[test]
fn a_program_that_is_no_launcher_is_an_error() {
    let other = bakeoff::process::Launcher::new("/bin/true");
    assert!(matches!(other.launch(&Run::new(&["true"]).command), Err(LaunchError::Lost(_))));
    let none = bakeoff::process::Launcher::new("/no/such/program");
    assert!(matches!(none.launch(&Run::new(&["true"]).command), Err(LaunchError::Launcher(_))));
}

#[test]
fn arguments_environment_and_directory_are_what_was_given() {
    let mut run = Run::new(&["env"]);
    run.command.env =
        vec![("A".into(), "1 = 2".into()), ("Ünï".into(), "\n\u{1f9c1}".into()), ("LD_X".into(), "".into())];
    run.finish();
    assert_eq!(run.stdout(), "A=1 = 2\nÜnï=\n\u{1f9c1}\nLD_X=\n");
    let mut run = Run::new(&["cat", "/proc/self/cmdline"]);
    run.command.argv[0] = "another name".into();
    run.finish();
    assert_eq!(run.stdout(), "another name\0/proc/self/cmdline\0");
    let run = Run::shell("pwd -P");
    run.finish();
    assert_eq!(Path::new(run.stdout().trim()), run.directory.path().canonicalize().unwrap());
}

#[test]
fn signals_and_descriptors_are_the_ordinary_ones() {
    let stray = rustix::io::dup(fs::File::open("/etc/passwd").unwrap()).unwrap();
    let run = Run::python(
        "import os\nprint(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1])\n\
         print([os.readlink(f'/proc/self/fd/{i}').split(':')[0] for i in range(3)])",
    );
    run.finish();
    assert!(stray.as_raw_fd() > 2);
    assert_eq!(run.stdout(), "[0, 1, 2]\n['/dev/null', 'pipe', 'pipe']\n");
    let run = Run::new(&["cat", "/proc/self/status"]);
    run.finish();
    let text = run.stdout();
    let signals = text.lines().filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"));
    assert!(signals.clone().count() == 4 && signals.clone().all(|line| line.ends_with("\t0000000000000000")), "{text}");
}

#[test]
fn a_process_has_a_group_and_a_session_that_are_not_ours() {
    let run = Run::new(&["sleep", "60"]);
    let process = run.launch();
    let [own, child] = [std::process::id(), process.id()].map(|pid| stat(pid).unwrap());
    let (parent, group, session) = (1, 2, 3);
    assert_eq!(child[parent], process.launcher_id().to_string());
    assert_eq!(child[group], process.id().to_string());
    assert_eq!(child[session], process.launcher_id().to_string());
    assert_ne!(child[session], own[session]);
    assert_eq!(process.tree(), [process.id()]);
}

#[test]
fn processors_are_those_that_were_asked_for() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..1024).rfind(|cpu| allowed.is_set(*cpu)).unwrap();
    let mut run = Run::new(&["grep", "Cpus_allowed_list", "/proc/self/status"]);
    run.command.cpus = vec![last];
    run.finish();
    assert_eq!(run.stdout(), format!("Cpus_allowed_list:\t{last}\n"));
}

#[test]
fn another_user_is_that_user_with_its_groups() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let mut run = Run::new(&["id"]);
    run.command.cwd = "/".into();
    run.command.user = Some(User::find("nobody").unwrap());
    run.finish();
    let expected = std::process::Command::new("id").arg("nobody").output().unwrap();
    assert_eq!(run.stdout(), String::from_utf8(expected.stdout).unwrap());
}

#[test]
fn input_of_any_size_arrives() {
    let mut run = Run::new(&["wc", "-c"]);
    run.command.stdin = Stdin::Text(vec![b'x'; 5_000_000]);
    run.finish();
    assert_eq!(run.stdout().trim(), "5000000");
    // A process that does not read it is not held up.
    let mut run = Run::new(&["true"]);
    run.command.stdin = Stdin::Text(vec![b'x'; 5_000_000]);
    assert_eq!(run.finish().exit.unwrap().status, Status::Code(0));
    let mut run = Run::new(&["cat"]);
    run.finish();
    assert_eq!(run.stdout(), "");
    fs::write(run.path("input"), "from a file").unwrap();
    run.command.stdin = Stdin::File(run.path("input"));
    run.finish();
    assert_eq!(run.stdout(), "from a file");
}

#[test]
fn a_name_is_a_program_of_path_or_a_path() {
    let mut run = Run::new(&["true"]);
    file(&mut run, "#!/bin/sh\n", 0o644);
    let base = run.directory.path();
    let find = |program: &str, path: &str| resolve(OsStr::new(program), OsStr::new(path), base);
    let missing = |program: &str| Err(ResolveError::NotFound(OsString::from(program)));
    assert_eq!(find("sh", "/no/such/place:/bin:/usr/bin"), Ok("/bin/sh".into()));
    assert_eq!(find("sh", ""), missing("sh"));
    assert_eq!(find("", PATH), missing(""));
    assert_eq!(find("./sh", PATH), missing("./sh"));
    assert_eq!(find("./program", PATH), Err(ResolveError::NotExecutable(base.join("./program"))));
    assert_eq!(find("/tmp", PATH), Err(ResolveError::NotExecutable("/tmp".into())));
    // Relative directories of PATH are relative to the base; one that may not be executed does not hide another.
    assert_eq!(find("program", "/bin:."), Err(ResolveError::NotExecutable(base.join("./program"))));
    fs::create_dir(base.join("bin")).unwrap();
    fs::copy("/bin/true", base.join("bin/program")).unwrap();
    assert_eq!(find("program", ".:bin"), Ok(base.join("bin/program")));
    assert_eq!(find("bin/program", ""), Ok(base.join("bin/program")));
}
