use std::time::{Duration, Instant};

use bakeoff::process::{Ended, Exit, Status};

use crate::Run;

fn exit(ended: Ended) -> Exit {
    assert!(!ended.killed && !ended.lost && ended.left.is_empty() && ended.log_errors.is_empty(), "{ended:?}");
    ended.exit.unwrap()
}

#[test]
fn the_exit_status_is_the_childs() {
    let status = |script| exit(Run::shell(script).finish()).status;
    assert_eq!(status("exit 0"), Status::Code(0));
    assert_eq!(status("exit 3"), Status::Code(3));
    assert_eq!(status("kill -TERM $$"), Status::Signal(15));
    assert_eq!(status("kill -KILL $$"), Status::Signal(9));
}

#[test]
fn the_peak_is_that_of_a_program_which_fills_200_mb() {
    let run = Run::python(
        "b = b'x' * 200_000_000\nprint([line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line][0])",
    );
    let exit = exit(run.finish());
    let own = run.stdout().trim().parse::<f64>().unwrap() * 1024.0;
    assert!((200_000_000..260_000_000).contains(&exit.rss_peak), "{exit:?}");
    assert!((exit.rss_peak as f64 / own - 1.0).abs() < 0.02, "{exit:?}, but itself says {own}");
}

/// What a launcher may hold, in bytes. It touches a few pages of its program, but kernels from 6.18 on map the whole of the
/// page cache's pieces around them, up to 2 MiB each, of a program that is 25 MB large in a debug build.
const FLOOR: u64 = 16 << 20;

#[test]
fn the_peak_of_a_small_program_is_not_that_of_who_started_it() {
    let held = vec![1_u8; 500_000_000];
    let exit = exit(Run::new(&["true"]).finish());
    assert_eq!(held.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>(), held.len().div_ceil(4096));
    assert!(exit.rss_peak < FLOOR, "{exit:?}");
    assert!((256 << 10..FLOOR).contains(&exit.rss_floor), "{exit:?}");
    assert!(exit.rss_peak + (512 << 10) > exit.rss_floor, "{exit:?}");
}

#[test]
fn cpu_time_is_what_the_child_says_of_itself() {
    let run = Run::python(
        "import os\nt = 0\nwhile t < 0.4: t = os.times().user\nfor i in range(3000): os.listdir('/')\n\
         t = os.times()\nprint(t.user, t.system)",
    );
    let exit = exit(run.finish());
    let text = run.stdout();
    let own = text.split_whitespace().map(|number| number.parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert!((exit.user.as_secs_f64() - own[0]).abs() < 0.05, "{exit:?}, but itself says {text}");
    assert!((exit.system.as_secs_f64() - own[1]).abs() < 0.05, "{exit:?}, but itself says {text}");
    assert!(exit.wall >= Duration::from_millis(400), "{exit:?}");
}

#[test]
fn what_a_process_waited_for_counts_and_what_it_left_does_not() {
    let busy = "python3 -c 'import os\nwhile os.times().user < 0.3: pass'";
    let waited = exit(Run::shell(&format!("{busy}; exit 0")).finish());
    assert!(waited.user >= Duration::from_millis(290), "{waited:?}");
    let left = Run::shell(&format!("{busy} & exit 0")).finish().exit.unwrap();
    assert!(left.user < Duration::from_millis(150) && left.wall < waited.wall, "{left:?}");
}

#[test]
fn switches_are_counted() {
    let sleeper = exit(Run::python("import time\nfor i in range(200): time.sleep(0.0005)").finish());
    assert!((200..1000).contains(&sleeper.voluntary_switches), "{sleeper:?}");
}

#[test]
fn wall_time_is_of_the_right_size() {
    let shortest = (0..10).map(|_| exit(Run::new(&["true"]).finish()).wall).min().unwrap();
    assert!(shortest > Duration::from_micros(20) && shortest < Duration::from_millis(20), "{shortest:?}");
    let slept = (0..3).map(|_| exit(Run::new(&["sleep", "0.2"]).finish()).wall).min().unwrap();
    assert!(slept >= Duration::from_millis(200) && slept < Duration::from_millis(500), "{slept:?}");
}

#[test]
fn the_start_is_the_spawn() {
    let before = Instant::now();
    let run = Run::new(&["sleep", "0.1"]);
    let mut process = run.launch();
    let after = Instant::now();
    assert!(before <= process.started() && process.started() <= after);
    process.wait(None, None).unwrap();
    let wall = process.poll_exit().unwrap().unwrap().wall;
    assert!(process.started() + wall <= Instant::now());
}
