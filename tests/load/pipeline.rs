//! Several requests under way on one connection: each answer is timed alone, and what ends the connection ends all.

use super::{MS, good, run_on};
use crate::faulty::{Act, Delivery, Faulty};
use bakeoff::load::{Counts, Stop};
use std::time::Duration;

#[test]
fn every_answer_meets_its_request_however_it_comes() {
    for delivery in [Delivery::Whole, Delivery::Bytes, Delivery::Cut] {
        for pipeline in [2, 7, 64] {
            let server = Faulty::start(delivery, |asked| match asked.number % 10 {
                0 => Act::Answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
                _ => Act::Answer(good()),
            });
            let outcome = run_on(&server, |options| {
                (options.connections, options.pipeline) = (2, pipeline);
                options.stop = Stop::Count(198);
            });
            // With the two of the opening, 200 requests: twenty tens, whichever of them are in the opening.
            let (opening, counts) = (outcome.opening, outcome.counts);
            assert_eq!((counts.started, opening.status + counts.status), (198, 20), "{delivery:?} {pipeline}");
            assert_eq!((counts.ok + counts.status, outcome.reconnects), (198, 0));
        }
    }
}

/// The server takes 20 ms for each, one after the other: with four under way, each waits for three.
#[test]
fn an_answer_is_timed_from_when_its_request_was_sent() {
    let server = Faulty::start(Delivery::Whole, |_| {
        std::thread::sleep(Duration::from_millis(20));
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| {
        (options.connections, options.pipeline) = (1, 4);
        options.stop = Stop::Count(40);
    });
    let p50 = outcome.latency.quantile(0.5).unwrap();
    assert!((80 * MS..120 * MS).contains(&p50), "{p50}");
    assert!(outcome.latency.min().unwrap() >= 20 * MS);
}

/// Each tenth request on a connection ends it; those behind it were sent, and are not sent again.
#[test]
fn the_end_of_a_connection_ends_all_that_was_sent_on_it() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.on_connection {
        10 => Act::Last(good()),
        _ => Act::Answer(good()),
    });
    let mut options = super::options(&server.url());
    (options.connections, options.pipeline) = (1, 4);
    let outcome = super::run(options);
    assert_eq!((outcome.counts.started, outcome.counts.ok + outcome.counts.reset), (100, 100));
    assert!(outcome.counts.reset > 0 && outcome.reconnects > 0, "{:?}", outcome.counts);
    // What the server has read is opening + window but for those that it never took up.
    let unread = outcome.opening.started + outcome.counts.started - server.seen();
    assert!(unread <= outcome.counts.reset, "{unread} {:?}", outcome.counts);
}

#[test]
fn a_timeout_ends_all_that_was_sent_behind_it() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        5 => Act::Silence,
        _ => Act::Answer(good()),
    });
    let mut options = super::options(&server.url());
    (options.connections, options.pipeline) = (1, 4);
    options.timeout = Duration::from_millis(300);
    let outcome = super::run(options);
    // The three behind it have no answer in time either, and cannot have one: their connection is gone.
    assert_eq!(outcome.counts, Counts { started: 100, ok: 96, timeout: 4, ..Counts::default() });
    assert_eq!(outcome.reconnects, 1);
}
