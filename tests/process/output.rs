use std::fs;
use std::time::Duration;

use bakeoff::process::{LogError, Output, Status, Stream, Waited, ending};

use crate::{Run, stat};

#[test]
fn a_flood_is_bounded_on_disk_and_in_memory() {
    let lines = 25_000_000_u64;
    let run = Run::new(&["seq", &lines.to_string()]);
    let mut process = run.launch();
    process.wait(None, None).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", process.launcher_id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let ended = process.end();
    assert_eq!(ended.exit.unwrap().status, Status::Code(0));
    assert!(peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() < 24 << 10, "{peak}");
    // n - 9…9 more numbers have each further digit.
    let total = (0..8).map(|digits| 1 + lines - 10_u64.pow(digits)).sum::<u64>() + lines;
    let kept = 1 << 20;
    let text = run.stdout();
    let (head, tail) = text.split_at(kept);
    let marker = format!("\n[… {} bytes left out …]\n", total - 2 * kept as u64);
    assert!(head.starts_with("1\n2\n3\n"));
    let tail = tail.strip_prefix(&marker).unwrap();
    assert_eq!(tail.len(), kept);
    let numbers = tail.lines().rev().take(100_000).map(|line| line.parse::<u64>().unwrap());
    assert!(numbers.eq((lines - 99_999..=lines).rev()));
}

#[test]
fn what_is_within_the_bounds_is_whole() {
    let run = Run::new(&["seq", "300000"]);
    run.finish();
    let expected = (1..=300_000).map(|number| format!("{number}\n")).collect::<String>();
    assert!(expected.len() > 3 << 19 && expected.len() < 2 << 20);
    assert!(run.stdout() == expected, "{} bytes of {}", run.stdout().len(), expected.len());
}

#[test]
fn the_streams_are_apart_and_one_can_be_nowhere() {
    let mut run = Run::shell("echo out; echo err >&2");
    run.finish();
    let stderr = || fs::read_to_string(run.path("stderr")).unwrap();
    assert_eq!((run.stdout().as_str(), stderr().as_str()), ("out\n", "err\n"));
    run.command.stdout = Output::Null;
    run.command.argv[2] = "x=$(readlink /proc/$$/fd/1); echo $x >&2".into();
    run.finish();
    assert_eq!(fs::read_to_string(run.path("stderr")).unwrap(), "/dev/null\n");
}

#[test]
fn the_head_can_be_read_while_the_process_runs() {
    let run = Run::shell("echo ready; exec sleep 60");
    let mut process = run.launch();
    assert_eq!(run.first_lines(), "ready\n");
    assert_eq!(process.poll_exit(), Ok(None));
}

#[test]
fn a_process_that_closes_its_output_is_waited_for_in_sleep() {
    let run = Run::shell("echo first; exec >&- 2>&-; sleep 0.5; exit 4");
    let mut process = run.launch();
    assert_eq!(process.wait(None, None), Ok(Waited::Exited));
    let [user, system] = [11, 12].map(|field| stat(process.launcher_id()).unwrap()[field].parse::<u32>().unwrap());
    assert!(user + system <= 5, "{user} + {system} ticks of 10 ms for nothing");
    let exit = process.end().exit.unwrap();
    assert_eq!(exit.status, Status::Code(4));
    assert!(exit.wall >= Duration::from_millis(500));
    assert_eq!(run.stdout(), "first\n");
}

#[test]
fn a_full_disk_does_not_hold_the_process_up() {
    let mut run = Run::new(&["seq", "1000000"]);
    run.command.stdout = Output::Log("/dev/full".into());
    let ended = run.finish();
    assert_eq!(ended.exit.unwrap().status, Status::Code(0));
    assert_eq!(ended.log_errors, [LogError { stream: Stream::Stdout, errno: 28 }]);
    assert_eq!(
        ended.log_errors[0].to_string(),
        "the log of its stdout could not be written: No space left on device (os error 28)"
    );
}

#[test]
fn the_end_of_a_log_is_safe_to_show() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    fs::write(&log, b"one\ntwo\r\n\x1b[31mthree\tx\xff\x07\nvier \xc3\xa4 \xe2\x80\xae").unwrap();
    let shown = ending(&log, 3).unwrap();
    assert_eq!(shown, ["two", "\\x1b[31mthree\tx\u{fffd}\\x07", "vier ä \\u{202e}"]);
    assert_eq!(ending(&log, 9).unwrap().len(), 4);
    fs::write(&log, "x".repeat(1 << 20) + "\nlast\n").unwrap();
    assert_eq!(ending(&log, 1).unwrap(), ["last"]);
    assert!(ending(&log, 2).unwrap()[0].len() <= 64 << 10);
    assert!(ending(&directory.path().join("none"), 1).is_err());
}
