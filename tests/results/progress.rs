//! What the screen shows while a run goes on.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use bakeoff::event::{Event, Warning};
use bakeoff::progress::{Progress, Screen};
use indicatif::{ProgressDrawTarget, TermLike};

use crate::log::{self, Log};

/// A screen that can be read.
#[derive(Clone, Debug, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Shown {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn add(&self, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TermLike for Shown {
    fn width(&self) -> u16 {
        120
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(&format!("{text}\n"))
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn shown(log: &Log, quiet: bool) -> String {
    let screen = Shown::default();
    let mut progress = Progress::new(Screen::Plain(Box::new(screen.clone())), quiet);
    log.lines.iter().for_each(|line| progress.observe(line));
    screen.text()
}

#[test]
fn a_line_for_each_run() {
    insta::assert_snapshot!("servers-progress.txt", shown(&log::servers(), false));
    insta::assert_snapshot!("commands-progress.txt", shown(&log::commands(), false));
    insta::assert_snapshot!("failed-progress.txt", shown(&log::failed(), false));
}

#[test]
fn quiet_shows_what_failed_and_warnings_alone() {
    assert_eq!(shown(&log::commands(), true), "");
    insta::assert_snapshot!(shown(&log::servers(), true), @"warning: throughput:bun-serve:closed-100#2: throughput times mean latency is 88.0, but there were 100 connections");
    insta::assert_snapshot!(shown(&log::failed(), true), @r"
    error[server-exited]: the server exited with 1
     --> bench.toml:12:1
    \u{1b}[2J
    throughput:bun-serve:closed-100 start 2/3: failed: the server exited with 1 while it should serve
    ");
}

#[test]
fn a_server_that_nothing_drives_has_a_line_a_start() {
    let mut log = log::servers();
    let Event::Started(started) = &mut log.lines[0].event else { panic!() };
    let group = &mut started.design.groups[0];
    (group.runs, group.warmup, group.report) = (0, 0, vec!["startup".to_owned()]);
    log.lines.retain(|line| !matches!(line.event, Event::RunStarted(_) | Event::RunEnded(_) | Event::Sample(_)));
    let text = shown(&log, false);
    assert!(text.contains("\nthroughput:node-http:closed-100 start 1/3: startup 40 ms\n"), "{text}");
}

#[test]
fn text_of_a_process_does_not_move_the_cursor() {
    let mut log = log::commands();
    let text = "a\u{1b}[2Jb\rc".to_owned();
    log.add(0.1, Event::Warning(Warning { code: "x".to_owned(), text, cell: None, turn: None }));
    let text = shown(&log, true);
    assert_eq!(text, "warning: a\\u{1b}[2Jb\\rc\n");
}

#[test]
fn a_terminal_has_a_bar_with_the_time_that_is_left() {
    let screen = Shown::default();
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
    let mut progress = Progress::new(Screen::Terminal(target), false);
    let log = log::servers();
    let end = log.lines.iter().position(|line| matches!(&line.event, Event::RunEnded(_))).unwrap();
    for line in &log.lines[..end] {
        std::thread::sleep(std::time::Duration::from_millis(5));
        progress.observe(line);
    }
    // Three runs of 10 s in each of six starts, of which 1.4 s are gone.
    let text = screen.text();
    let draws: Vec<&str> = text.split("░░░░░░░░░░░░░░░░░░░░ ").map(str::trim_end).collect();
    assert!(draws.iter().any(|draw| draw.ends_with("setup: npm ci (3.250 s)")), "{draws:#?}");
    let last = "0/6 throughput:node-http:closed-100 start 1/3 warm-up 1/1, 1 s of 10 s, about 2 min 59 s left";
    assert_eq!(draws.last(), Some(&last), "{draws:#?}");
    // Nothing is drawn but by an event.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(screen.text(), text);
}
