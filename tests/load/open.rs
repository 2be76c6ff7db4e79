//! Requests at a rate: when they are due, how late they are, what becomes of those that cannot be sent.

use super::{MS, good, options, run, run_on};
use crate::faulty::{Act, Delivery, Faulty};
use bakeoff::load::{self, Limit, Options, ServerCpu, Stop};
use std::time::Duration;

/// A server that slept, with nothing else to do.
const IDLE: Option<ServerCpu> = Some(ServerCpu { runnable: 0.0, cores: 0.0, processors: 1 });

#[test]
fn every_request_of_a_rate_that_can_be_met_is_sent() {
    for (threads, spin) in [(1, true), (1, false), (3, false)] {
        let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
        let outcome = run_on(&server, |options| {
            (options.threads, options.spin) = (threads, spin);
            options.rate = Some(500.0);
            options.stop = Stop::Duration(Duration::from_millis(1000));
        });
        let pace = outcome.pace.unwrap();
        assert_eq!((pace.due, pace.rate), (500, 500.0));
        // On a machine that stands still the last of them may be left over.
        assert_eq!(pace.lateness.count() + pace.backlog + pace.expired, 500);
        assert!(outcome.counts.ok >= 400, "{:?}", outcome.counts);
        assert_eq!(outcome.elapsed, Duration::from_secs(1));
        // The schedule is one: requests are not sent before they are due, nor all at the end.
        assert!(outcome.seconds[0].ok >= 400);
    }
}

/// Timers in whole milliseconds would be half of one late in the middle. Where others take the processors, it is tried again.
#[test]
fn a_thread_that_sleeps_until_a_request_is_due_wakes_within_a_fraction_of_a_millisecond() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let mut seen = Vec::new();
    let in_time = (0..5).any(|_| {
        let stop = Stop::Duration(Duration::from_millis(500));
        let outcome = run(Options { spin: false, rate: Some(700.0), stop, ..options(&server.url()) });
        seen.push(outcome.pace.unwrap().lateness.quantile(0.5).unwrap());
        seen.last().unwrap() < &(MS / 4)
    });
    assert!(in_time, "{seen:?}");
}

/// One request of 300 ms holds up those that are due meanwhile: they are late by what they had to wait.
#[test]
fn latency_counts_from_when_a_request_was_due() {
    let server = Faulty::start(Delivery::Whole, |asked| {
        if asked.number == 20 {
            std::thread::sleep(Duration::from_millis(300));
        }
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| {
        options.connections = 1;
        options.rate = Some(100.0);
        options.stop = Stop::Count(100);
    });
    assert_eq!(outcome.counts.ok, 100);
    // 30 are due in the pause; 20 of them in its first 200 ms, and so with more than 100 ms to wait.
    let late = outcome.latency.count() - outcome.latency.up_to(100 * MS);
    assert!((18..=60).contains(&late), "{late}");
    assert!(outcome.latency.max().unwrap() >= 300 * MS);
    let lateness = &outcome.pace.as_ref().unwrap().lateness;
    assert_eq!(lateness.count(), 100);
    assert!(lateness.max().unwrap() >= 280 * MS, "{lateness:?}");

    // The same in a closed loop: one request alone was slow.
    let server = Faulty::start(Delivery::Whole, |asked| {
        if asked.number == 20 {
            std::thread::sleep(Duration::from_millis(300));
        }
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| options.connections = 1);
    assert!(outcome.latency.count() - outcome.latency.up_to(250 * MS) == 1, "{:?}", outcome.latency);
}

#[test]
fn a_rate_above_what_the_server_can_do_is_its_saturation() {
    let server = Faulty::start(Delivery::Whole, |_| {
        std::thread::sleep(Duration::from_millis(10));
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| {
        options.connections = 1;
        options.rate = Some(1000.0);
        options.stop = Stop::Duration(Duration::from_millis(1000));
    });
    let pace = outcome.pace.as_ref().unwrap();
    assert_eq!((pace.due, pace.expired), (1000, 0));
    assert_eq!(pace.lateness.count() + pace.backlog, 1000);
    assert!(pace.backlog >= 890, "100 answers of 10 ms fit into a second: {}", pace.backlog);
    let limits = outcome.limits(None, IDLE);
    assert!(matches!(limits[..], [Limit::Saturated { backlog, .. }] if backlog == pace.backlog), "{limits:?}");
}

/// While connections pause because nobody is there, requests are due and find none.
#[test]
fn what_finds_no_connection_in_time_has_expired() {
    let mut server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let mut options = options(&server.url());
    (options.connections, options.rate) = (2, Some(200.0));
    options.timeout = Duration::from_millis(50);
    options.stop = Stop::Duration(Duration::from_millis(1500));
    let running = load::start(options).unwrap();
    while running.progress().ok < 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.die();
    let outcome = running.finish().unwrap();
    let pace = outcome.pace.as_ref().unwrap();
    assert!(pace.expired > 20, "pauses grow to more than 50 ms: {:?}", outcome.counts);
    assert!(outcome.counts.timeout >= pace.expired);
    assert_eq!(pace.due, 300);
    assert_eq!(outcome.counts.started + pace.backlog, 300);
    assert!(outcome.counts.started <= pace.lateness.count() + pace.expired + outcome.counts.connect);
}

#[test]
fn a_count_at_a_rate_to_which_nothing_is_answered_ends() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        1 => Act::Answer(good()),
        _ => Act::Silence,
    });
    let mut options = options(&server.url());
    (options.connections, options.rate) = (1, Some(1000.0));
    options.timeout = Duration::from_millis(200);
    options.stop = Stop::Count(1_000_000);
    let began = std::time::Instant::now();
    let outcome = run(options);
    assert_eq!(outcome.counts.ok, 0);
    assert!(began.elapsed() < Duration::from_secs(5));
}
