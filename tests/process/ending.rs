use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use bakeoff::process::{LaunchError, Lost, Signal, Status, Waited, adopt_orphans, end_orphans};

use crate::{Run, eventually, launcher, lives, names};

/// A program that leaves its session and its parent twice over, and sleeps.
const DAEMON: &str = "import os, time
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
print(os.getpid(), flush=True)
time.sleep(300)";

fn pid(text: &str) -> u32 {
    text.trim().parse().unwrap()
}

#[test]
fn a_descendant_that_holds_the_output_is_named_and_ended() {
    let run = Run::shell("setsid sleep 300 & echo $!");
    let begun = Instant::now();
    let ended = run.finish();
    assert!(begun.elapsed() < crate::SOON);
    assert_eq!(ended.exit.unwrap().status, Status::Code(0));
    assert!(!ended.killed && ended.survivors.is_empty());
    assert_eq!(names(&ended.left), ["sleep"]);
    assert_eq!(ended.held_output, ended.left);
    assert!(!lives(ended.left[0].pid));
}

#[test]
fn a_daemon_is_a_member_of_the_tree_until_it_is_ended() {
    let run = Run::python(DAEMON);
    let mut process = run.launch();
    assert_eq!(process.wait(None, None), Ok(Waited::Exited));
    let daemon = pid(&run.first_lines());
    eventually("the daemon alone", || (process.tree() == [daemon]).then_some(()));
    let ended = process.end();
    assert_eq!(ended.left.iter().map(|one| one.pid).collect::<Vec<_>>(), [daemon]);
    assert!(!lives(daemon));
}

#[test]
fn descendants_that_come_to_their_end_by_themselves_are_no_fault() {
    let ended = Run::shell("(sleep 0.01; echo late) & exit 0").finish();
    assert!(ended.left.is_empty() && ended.held_output.is_empty(), "{ended:?}");
}

#[test]
fn what_they_still_write_is_kept() {
    let run = Run::shell("(sleep 0.01; echo late) & exit 0");
    run.finish();
    assert_eq!(run.stdout(), "late\n");
}

#[test]
fn a_signal_is_enough_for_a_process_that_heeds_it() {
    let run = Run::shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    let process = run.launch();
    run.first_lines();
    let ended = process.stop(Signal::TERM, crate::SOON, None);
    assert!(!ended.killed);
    assert_eq!(ended.exit.unwrap().status, Status::Code(7));
    assert_eq!(run.stdout(), "ready\nbye\n");
}

#[test]
fn one_that_does_not_is_killed_with_its_tree() {
    let run = Run::shell("trap '' TERM; sleep 300 & echo ready; wait; while :; do sleep 0.01; done");
    let process = run.launch();
    run.first_lines();
    let tree = process.tree();
    assert_eq!(tree.len(), 2, "the shell and a sleep");
    let ended = process.stop(Signal::TERM, Duration::from_millis(200), None);
    assert!(ended.killed && ended.left.is_empty(), "{ended:?}");
    assert_eq!(ended.exit.unwrap().status, Status::Signal(9));
    assert!(!tree.into_iter().any(lives));
}

#[test]
fn a_stopped_process_is_waited_for_and_killed() {
    let run = Run::shell("kill -STOP $$; exit 0");
    let mut process = run.launch();
    assert_eq!(process.wait(Some(Instant::now() + Duration::from_millis(100)), None), Ok(Waited::TimedOut));
    let ended = process.stop(Signal::TERM, Duration::from_millis(100), None);
    assert!(ended.killed);
    assert_eq!(ended.exit.unwrap().status, Status::Signal(9));
}

#[test]
fn a_child_that_stops_its_launcher_gains_nothing() {
    let run = Run::shell("setsid sleep 300 & kill -STOP $PPID; exit 3");
    // It may be stopped before it has said that the child runs, or after.
    let mut process = run.launch();
    let waited = process.wait(Some(Instant::now() + Duration::from_millis(300)), None).unwrap();
    assert!(matches!(waited, Waited::TimedOut | Waited::Exited));
    let ended = process.end();
    assert_eq!(ended.exit.unwrap().status, Status::Code(3));
    assert_eq!(names(&ended.left), ["sleep"]);
    assert!(!ended.lost && !lives(ended.left[0].pid));
}

#[test]
fn a_wait_stops_when_it_is_told_to() {
    let run = Run::new(&["sleep", "300"]);
    let mut process = run.launch();
    let (read, write) = std::io::pipe().unwrap();
    drop(write);
    assert_eq!(process.wait(None, Some(read.as_fd())), Ok(Waited::Stopped));
    let begun = Instant::now();
    let ended = process.stop(Signal::CONT, Duration::from_secs(300), Some(read.as_fd()));
    assert!(begun.elapsed() < Duration::from_secs(5) && ended.killed && !ended.lost, "{ended:?}");
}

#[test]
fn several_are_waited_for_in_one_poll() {
    let runs = [Run::new(&["true"]), Run::new(&["sleep", "300"]), Run::shell("sleep 0.1; exit 2")];
    let mut processes = runs.each_ref().map(Run::launch);
    let mut exited = Vec::new();
    while exited.len() < 2 {
        let mut fds = processes.each_ref().map(|one| PollFd::from_borrowed_fd(one.fd(), PollFlags::IN));
        let fds = fds.iter_mut().enumerate().filter(|(index, _)| !exited.contains(index));
        let (indices, mut fds): (Vec<_>, Vec<_>) = fds.map(|(index, fd)| (index, fd.clone())).unzip();
        assert!(poll(&mut fds, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap() > 0);
        let ready = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>();
        for (index, ready) in indices.into_iter().zip(ready) {
            assert_eq!(processes[index].poll_exit().unwrap().is_some(), ready);
            exited.extend(ready.then_some(index));
        }
    }
    exited.sort_unstable();
    assert_eq!(exited, [0, 2]);
}

#[test]
fn a_dropped_process_is_gone_with_its_tree() {
    let run = Run::shell("setsid sleep 300 & echo ready; wait");
    let process = run.launch();
    run.first_lines();
    let all = [process.tree(), vec![process.launcher_id()]].concat();
    assert!(all.len() == 3 && all.iter().all(|pid| lives(*pid)), "{all:?}");
    drop(process);
    assert!(!all.into_iter().any(lives));
}

#[test]
fn processes_that_flee_by_forking_are_caught() {
    // 32 at once, each of which lives only to start the next. By themselves they end after a while.
    let run = Run::python(
        "import os, time
end = time.time() + 60
for i in range(5): os.fork()
print('fleeing', flush=True)
while time.time() < end:
    if os.fork(): os._exit(0)",
    );
    let mut process = run.launch();
    assert_eq!(process.wait(None, None), Ok(Waited::Exited));
    eventually("32 of them", || (run.stdout().lines().count() == 32).then_some(()));
    let launcher = process.launcher_id();
    let ended = process.end();
    assert!(!ended.left.is_empty() && !ended.lost, "{ended:?}");
    assert!(ended.survivors.is_empty(), "{ended:?}");
    assert!(!lives(launcher));
    let script = run.command.argv[2].to_str().unwrap();
    assert_eq!(running(script), 0);
}

/// How many processes there are with this argument.
fn running(argument: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|one| fs::read_to_string(one.path().join("cmdline")).is_ok_and(|all| all.contains(argument)))
        .count()
}

/// Runs one of the tests below in a process of its own, which is given a directory to work in.
fn owner(test: &str, directory: &Path) -> Command {
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", &format!("process::ending::{test}"), "--include-ignored"]).env("OWNED", directory);
    owner.stdout(Stdio::null());
    owner
}

#[test]
#[ignore = "the other half of the next test"]
fn owner_to_be_killed() {
    let Some(directory) = std::env::var_os("OWNED") else { return };
    let run = Run::shell(&format!("python3 -c '{DAEMON}'; sleep 300"));
    let process = run.launch();
    run.first_lines();
    // Before the sleep there is the program that becomes a daemon, with its children on their way.
    let sleeps = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    let all = eventually("the daemon and a sleep", || {
        Some(process.tree()).filter(|tree| tree.len() == 3 && tree.iter().any(sleeps))
    });
    let pids = [all, vec![process.launcher_id()]].concat();
    fs::write(Path::new(&directory).join("part"), format!("{pids:?}")).unwrap();
    fs::rename(Path::new(&directory).join("part"), Path::new(&directory).join("pids")).unwrap();
    sleep(Duration::from_secs(300));
}

#[test]
fn nothing_outlives_an_owner_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut owner = owner("owner_to_be_killed", directory.path()).spawn().unwrap();
    let pids = eventually("the owner's processes", || fs::read_to_string(directory.path().join("pids")).ok());
    let pids = pids.trim_matches(['[', ']']).split(", ").map(pid).collect::<Vec<_>>();
    assert!(pids.len() == 4 && pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("their end", || (!pids.iter().any(|pid| lives(*pid))).then_some(()));
}

#[test]
#[ignore = "the other half of the next test"]
fn owner_whose_launcher_is_killed() {
    if std::env::var_os("OWNED").is_none() {
        return;
    }
    adopt_orphans().unwrap();
    let bystander = Run::new(&["sleep", "300"]);
    let mut bystander = bystander.launch();
    let run = Run::shell("setsid sleep 299.25 & sleep 0.3; kill -KILL $PPID; exec sleep 299.25");
    let mut process = run.launch();
    assert_eq!(process.wait(None, None), Err(Lost));
    let own = process.id();
    let ended = process.end();
    assert!(ended.lost && ended.exit.is_none() && ended.survivors.is_empty(), "{ended:?}");
    assert!(ended.left.iter().any(|one| one.pid == own), "{ended:?}");
    assert!(ended.left.len() == 2 && ended.left.iter().all(|one| !lives(one.pid)), "{ended:?}");
    // At once, so that it may come before the launcher's first word.
    for _ in 0..20 {
        let run = Run::shell("setsid sleep 299.25 & kill -KILL $PPID; exec sleep 299.25");
        drop(launcher().launch(&run.command).inspect_err(|error| assert!(matches!(error, LaunchError::Lost(_)))));
    }
    assert_eq!(running("299.25"), 0);
    assert_eq!(bystander.poll_exit(), Ok(None));
    assert_eq!(end_orphans(), (vec![], vec![]));
    assert!(lives(bystander.id()) && lives(bystander.launcher_id()));
}

#[test]
fn a_child_that_kills_its_launcher_does_not_escape() {
    let directory = tempfile::tempdir().unwrap();
    assert!(owner("owner_whose_launcher_is_killed", directory.path()).status().unwrap().success());
}
