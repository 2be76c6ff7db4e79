//! The load generator against a server whose every fault is known: what is counted must be what was done.
//!
//! The file is built twice: as `load` it takes io_uring where the kernel permits it, as `load_epoll` epoll.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/faulty.rs"]
mod faulty;
#[path = "load/mix.rs"]
mod mix;
#[path = "load/open.rs"]
mod open;
#[path = "load/pipeline.rs"]
mod pipeline;
#[path = "load/table.rs"]
mod table;

use bakeoff::load::{
    self, Address, Body, Counts, Ending, Engine, Error, Kind, Limit, Options, Outcome, Request, Stop, Target,
};
use faulty::{Act, Asked, Delivery, Faulty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn options(url: &str) -> Options {
    let (target, path) = Target::parse(url).unwrap();
    let engine = if env!("CARGO_CRATE_NAME") == "load_epoll" { Engine::Epoll } else { uring() };
    Options { connections: 4, stop: Stop::Count(100), engine, ..Options::new(target, Request::get(path)) }
}

/// io_uring, where the kernel permits it.
fn uring() -> Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    *ENGINE.get_or_init(|| {
        let (target, path) = Target::parse("http://127.0.0.1:1/").unwrap();
        let options = Options { engine: Engine::IoUring, ..Options::new(target, Request::get(path)) };
        match load::start(options) {
            Err(Error::Uring(_)) => Engine::Auto,
            _ => Engine::IoUring,
        }
    })
}

fn run(options: Options) -> Outcome {
    load::start(options).unwrap().finish().unwrap()
}

/// A good answer of 68 bytes: 17 of the first line, 20 of the length, 2 of the empty line, 29 of the body.
fn good() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"message\":\"hello\",\"ok\":true}".to_vec()
}

/// Runs, and holds the books against what the server has seen.
fn run_on(server: &Faulty, change: impl FnOnce(&mut Options)) -> Outcome {
    let mut options = options(&server.url());
    change(&mut options);
    let connections = options.connections as u64;
    let outcome = run(options);
    assert_eq!(outcome.opening.started, connections);
    let never_sent = outcome.counts.connect + outcome.pace.as_ref().map_or(0, |pace| pace.expired);
    assert_eq!(server.seen(), outcome.opening.started + outcome.counts.started - never_sent);
    assert_eq!(outcome.latency.count(), outcome.counts.ok);
    assert_eq!(outcome.seconds.iter().map(|second| second.ok).sum::<u64>(), outcome.counts.ok);
    assert_eq!(outcome.seconds.iter().map(|second| second.errors).sum::<u64>(), outcome.counts.errors());
    outcome
}

#[test]
fn what_is_taken_by_itself_is_the_cheapest_that_keeps_the_times() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let closed = if uring() == Engine::IoUring { "io_uring" } else { "epoll" };
    for (rate, engine) in [(None, closed), (Some(1000.0), "epoll")] {
        assert_eq!(run(Options { engine: Engine::Auto, rate, ..options(&server.url()) }).engine, engine);
    }
}

#[test]
fn every_answer_with_surplus_is_a_fault_of_protocol() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Answer([&good()[..], b"HTTP/1.1 200 OK\r\n"].concat()));
    let outcome = run_on(&server, |_| {});
    assert_eq!((outcome.counts.protocol, outcome.opening.protocol), (100, 4));
    assert_eq!(outcome.kept.len(), 10);
}

#[test]
fn a_body_of_another_size_than_expected_is_a_fault_of_the_body() {
    let server = Faulty::start(Delivery::Whole, |asked| {
        let body = if asked.number.is_multiple_of(10) { "four" } else { "three" };
        Act::Answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
    });
    let outcome = run_on(&server, |options| options.requests[0].expect.bytes = Some(5));
    assert_eq!((outcome.counts.ok, outcome.counts.body), (90, 10));
    assert_eq!(outcome.kept[0].reason, "the body has 4 bytes, 5 were expected");
}

#[test]
fn servers_that_end_their_connections_are_normal() {
    let answers: [fn(&Asked) -> Act; 4] = [
        |_| Act::Last(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        |_| Act::Last(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        |asked| match asked.on_connection {
            5 => Act::Last(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec()),
            _ => Act::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        },
        |_| Act::Answer(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok".to_vec()),
    ];
    // With one connection, the opening's request is the first of five.
    for (answer, reconnects) in answers.into_iter().zip([100, 100, 20, 0]) {
        let server = Faulty::start(Delivery::Whole, answer);
        let outcome = run_on(&server, |options| options.connections = 1);
        assert_eq!((outcome.counts.ok, outcome.reconnects), (100, reconnects));
        assert_eq!(outcome.connect.count(), 1 + reconnects);
    }
}

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own() {
    let server = Faulty::start(Delivery::Whole, |asked| {
        assert!(asked.on_connection == 1 && asked.head.contains("Connection: close"), "{}", asked.head);
        Act::Last(good())
    });
    let outcome = run_on(&server, |options| options.keep_alive = false);
    assert_eq!((outcome.counts.ok, outcome.reconnects, outcome.connect.count()), (100, 100, 104));
}

#[test]
fn a_server_that_sleeps_100_ms_shows_100_ms() {
    let server = Faulty::start(Delivery::Whole, |_| {
        std::thread::sleep(Duration::from_millis(100));
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| options.stop = Stop::Duration(Duration::from_millis(1450)));
    let p50 = outcome.latency.quantile(0.5).unwrap();
    assert!((100 * MS..115 * MS).contains(&p50), "{p50}");
    assert!(outcome.latency.min().unwrap() >= 100 * MS);
    assert_eq!(outcome.elapsed, Duration::from_millis(1450));
    assert_eq!(outcome.throughput(), outcome.counts.ok as f64 / 1.45);
    assert_eq!(outcome.in_flight.len(), 4);
    let concurrency = outcome.concurrency().unwrap();
    assert!((3.0..4.1).contains(&concurrency), "{concurrency}");
    assert_eq!(outcome.seconds.iter().map(|second| second.length.as_millis()).collect::<Vec<_>>(), [1000, 450]);
    // It slept nearly all the time.
    assert!(outcome.generator_share() < 0.5, "{}", outcome.generator_share());
}

/// Throughput times mean latency is the number of connections, each of which waits nearly all the time (Little, 1961).
#[test]
fn littles_law_is_held_against_the_connections() {
    let server = Faulty::start(Delivery::Whole, |_| {
        std::thread::sleep(Duration::from_millis(5));
        Act::Answer(good())
    });
    let outcome = run_on(&server, |options| options.stop = Stop::Count(400));
    assert_eq!(outcome.limits(Some(4.0), None), []);
    assert!(matches!(outcome.limits(Some(5.0), None)[..], [Limit::Little { expected: 5.0, .. }]), "{outcome:?}");
    // At the end of 12 requests, connections that have no more to send weigh too much.
    let few = run(Options { stop: Stop::Count(12), ..options(&server.url()) });
    assert_eq!(few.limits(Some(5.0), None), []);
}

#[test]
fn what_has_no_answer_at_the_end_is_in_flight_with_its_age() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.on_connection {
        1 => Act::Answer(good()),
        _ => Act::Silence,
    });
    let began = Instant::now();
    let outcome = run_on(&server, |options| options.stop = Stop::Duration(Duration::from_millis(400)));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(outcome.counts, Counts { started: 4, in_flight: 4, ..Counts::default() });
    assert_eq!(outcome.latency.quantile(0.5), None);
    for age in outcome.in_flight {
        assert!((200..=400).contains(&age.as_millis()), "{age:?}");
    }
}

#[test]
fn a_timeout_acts_at_once_while_the_server_is_silent() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        1 => Act::Answer(good()),
        _ => Act::Silence,
    });
    let outcome = run_on(&server, |options| {
        options.connections = 1;
        options.timeout = Duration::from_millis(100);
        options.stop = Stop::Duration(Duration::from_millis(1050));
    });
    assert!((5..=10).contains(&outcome.counts.timeout), "{:?}", outcome.counts);
    // Each on a connection of its own: the first of them was that of the opening.
    assert_eq!(outcome.reconnects, outcome.counts.started - 1);
    assert_eq!(outcome.kept[0].kind, Kind::Timeout);
    assert!(outcome.kept[0].at >= Duration::from_millis(100));
}

#[test]
fn a_silent_opening_fails_after_one_timeout() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Silence);
    let mut options = options(&server.url());
    options.timeout = Duration::from_millis(200);
    let began = Instant::now();
    let error = load::start(options).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error}");
    assert!(error.to_string().ends_with("no whole answer in time"), "{error}");
    assert!((200..2000).contains(&began.elapsed().as_millis()));
}

/// Of the connections that a server does not take, the kernel holds one or two; others wait until their time is over.
#[test]
fn a_connection_that_is_not_made_in_time_is_counted_as_such() {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while stream.read(&mut [0; 4096]).unwrap() > 0 {
            stream.write_all(&good()).unwrap();
        }
    });
    let mut options = options(&format!("http://{address}"));
    options.connections = 6;
    options.timeout = Duration::from_millis(300);
    options.stop = Stop::Count(1);
    let outcome = run(options);
    assert_eq!((outcome.opening.ok, outcome.counts.ok), (1, 1));
    assert!(outcome.opening.connect >= 3, "{:?}", outcome.opening);
    assert_eq!(outcome.opening.errors(), 5);
    server.join().unwrap();
}

#[test]
fn a_server_that_answers_some_of_the_opening_is_measured() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        1..=3 => Act::Last(Vec::new()),
        _ => Act::Answer(good()),
    });
    let outcome = run_on(&server, |_| {});
    assert_eq!(outcome.opening, Counts { started: 4, ok: 1, reset: 3, ..Counts::default() });
    assert_eq!((outcome.counts.ok, outcome.reconnects), (100, 3));
}

#[test]
fn nobody_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = load::start(options(&format!("http://{address}"))).unwrap().finish().unwrap_err();
    assert_eq!(error.reason(), "load-unanswered");
    let text = format!("no connection got an answer from {address}: no connection: Connection refused");
    assert!(error.to_string().starts_with(&text), "{error}");
}

#[test]
fn a_server_that_dies_is_tried_again_with_pauses() {
    let mut server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let mut options = options(&server.url());
    options.stop = Stop::Duration(Duration::from_millis(1000));
    let running = load::start(options).unwrap();
    while running.progress().ok < 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.die();
    let outcome = running.finish().unwrap();
    assert!(outcome.counts.ok >= 10);
    // Each request that was under way ends once; then pauses of 10, 20, 40 … ms leave room for 7 in a second.
    assert!((4..=8).contains(&outcome.counts.reset), "{:?}", outcome.counts);
    assert!((4..=28).contains(&outcome.counts.connect), "{:?}", outcome.counts);
    let refused = outcome.kept.iter().find(|kept| kept.kind == Kind::Connect).unwrap();
    assert!(refused.reason.starts_with("no connection: Connection refused"), "{}", refused.reason);
    assert_eq!(outcome.address, Address::Tcp(server.address));
}

#[test]
fn a_server_that_comes_back_is_measured_on() {
    let mut first = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let mut options = options(&first.url());
    options.stop = Stop::Count(100_000);
    let address = first.address.to_string();
    let running = load::start(options).unwrap();
    while running.progress().ok < 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    first.die();
    let before = running.progress().ok;
    let _second = Faulty::start_on(&address, Delivery::Whole, |_| Act::Answer(good()));
    while running.progress().ok <= before + 100 {
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stop();
    assert_eq!(running.finish().unwrap().ending, Ending::Stopped);
}

#[test]
fn faulty_answers_are_kept_to_be_read() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        50 => {
            let body = "e".repeat(5000);
            Act::Answer(format!("HTTP/1.1 503 Busy\r\nX-Why: full\r\nContent-Length: 5000\r\n\r\n{body}").into_bytes())
        }
        60 => Act::Last(b"SSH-2.0-other\r\n".to_vec()),
        _ => Act::Answer(good()),
    });
    let outcome = run_on(&server, |_| {});
    assert_eq!((outcome.counts.status, outcome.counts.protocol, outcome.kept.len()), (1, 1, 2));
    let busy = &outcome.kept[0];
    assert_eq!(
        (busy.kind, busy.status, busy.reason.as_str()),
        (Kind::Status, Some(503), "the status 503 was not expected")
    );
    assert_eq!(busy.headers[0], ("X-Why".to_owned(), "full".to_owned()));
    assert_eq!(busy.body, vec![b'e'; 1024]);
    let other = &outcome.kept[1];
    assert_eq!((other.kind, other.status, other.body.as_slice()), (Kind::Protocol, None, &b"SSH-2.0-other\r\n"[..]));
}

#[test]
fn bodies_are_sent_whole() {
    let content: Vec<u8> = (0..3_000_000u32).map(|byte| (byte % 251) as u8).collect();
    let bodies = [
        Body::Sized(content.clone()),
        Body::Chunked { bytes: content.clone(), size: 70_000, delay: Duration::ZERO },
        Body::Chunked { bytes: content[..50].to_vec(), size: 10, delay: Duration::from_millis(10) },
    ];
    for body in bodies {
        let sent = if let Body::Chunked { size: 10, .. } = body { 50 } else { content.len() };
        let expected = content[..sent].to_vec();
        let server = Faulty::start(Delivery::Whole, move |asked| {
            let status = if asked.body == expected { "200 OK" } else { "400 Bad" };
            Act::Answer(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes())
        });
        let outcome = run_on(&server, |options| {
            options.requests[0].request = Request { method: "POST".to_owned(), body, ..Request::get("/") };
            options.stop = Stop::Count(10);
        });
        assert_eq!(outcome.counts.ok, 10);
        // Four pauses between five chunks are part of the latency.
        assert!(sent > 50 || outcome.latency.min().unwrap() >= 40 * MS);
    }
}

/// The largest body there may be, in one piece and in chunks of 1 MiB.
#[test]
fn a_body_of_100_mib_is_sent_whole() {
    let content: Vec<u8> = (0..=250).collect::<Vec<u8>>().repeat((100 << 20) / 251);
    let content = [&content[..], &vec![0; (100 << 20) - content.len()]].concat();
    let bodies =
        [Body::Sized(content.clone()), Body::Chunked { bytes: content.clone(), size: 1 << 20, delay: Duration::ZERO }];
    let content = Arc::new(content);
    for body in bodies {
        let expected = Arc::clone(&content);
        let server = Faulty::start(Delivery::Whole, move |asked| {
            let status = if asked.body == *expected { "200 OK" } else { "400 Bad" };
            Act::Answer(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes())
        });
        let outcome = run_on(&server, |options| {
            options.requests[0].request = Request { method: "PUT".to_owned(), body, ..Request::get("/") };
            (options.connections, options.stop) = (1, Stop::Count(1));
        });
        assert_eq!((outcome.opening.ok, outcome.counts.ok), (1, 1), "{:?}", outcome.kept);
    }
}

/// The server answers the head alone and ends the connection while the body is still on its way.
#[test]
fn an_answer_before_the_request_is_sent_counts_and_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut held = Vec::new();
        for _ in 0..6 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
            stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").unwrap();
            held.push(stream);
        }
    });
    let mut options = options(&format!("http://{address}"));
    options.connections = 1;
    options.stop = Stop::Count(5);
    options.requests[0].request =
        Request { method: "PUT".to_owned(), body: Body::Sized(vec![0; 64 << 20]), ..Request::get("/") };
    let outcome = run(options);
    assert_eq!((outcome.counts.status, outcome.reconnects), (5, 5));
    server.join().unwrap();
}

#[test]
fn a_stop_ends_the_window_at_once_and_says_so() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.on_connection {
        1..=5 => Act::Answer(good()),
        _ => Act::Silence,
    });
    let mut options = options(&server.url());
    options.stop = Stop::Duration(Duration::from_secs(100));
    options.timeout = Duration::from_secs(100);
    let running = load::start(options).unwrap();
    while running.progress().ok < 16 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let progress = running.progress();
    assert!(!progress.opening && progress.errors == 0 && progress.elapsed > Duration::ZERO);
    assert!(!is_done(&running, 0));
    running.stop();
    assert!(is_done(&running, 10));
    let outcome = running.finish().unwrap();
    assert!(outcome.ending == Ending::Stopped && outcome.elapsed < Duration::from_secs(50));
    assert_eq!(outcome.counts, Counts { started: 20, ok: 16, in_flight: 4, ..Counts::default() });
}

#[test]
fn a_stop_in_the_opening_leaves_no_outcome() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Silence);
    let running = load::start(options(&server.url())).unwrap();
    assert!(running.progress().opening);
    running.stop();
    assert!(matches!(running.finish(), Err(Error::Stopped)));
}

#[test]
fn dropping_a_load_stops_it() {
    let server = Faulty::start(Delivery::Whole, |asked| match asked.number {
        1..=4 => Act::Answer(good()),
        _ => Act::Silence,
    });
    let mut options = options(&server.url());
    options.stop = Stop::Duration(Duration::from_secs(100));
    let running = load::start(options).unwrap();
    while server.seen() < 8 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    drop(running);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_load_is_readable_when_it_is_done() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let running = load::start(options(&server.url())).unwrap();
    assert!(is_done(&running, 20));
    let progress = running.progress();
    assert_eq!((progress.started, progress.ok, progress.errors), (100, 100, 0));
    let outcome = running.finish().unwrap();
    assert_eq!(outcome.ending, Ending::Whole);
    assert_eq!(outcome.received, 6800);
}

#[test]
fn exactly_count_requests_are_started() {
    let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    for (connections, count) in [(1, 1), (10, 3), (7, 1000), (50, 50)] {
        let before = server.seen();
        let mut options = options(&server.url());
        options.connections = connections;
        options.stop = Stop::Count(count);
        let outcome = run(options);
        assert_eq!((outcome.counts.started, outcome.counts.ok), (count, count));
        assert_eq!(server.seen() - before, connections as u64 + count);
    }
}

#[test]
fn ipv6_and_names_lead_to_the_server() {
    let server = Faulty::start_on("[::1]:0", Delivery::Whole, |asked| {
        assert!(asked.head.contains("Host: [::1]:") || asked.head.contains("Host: localhost:"), "{}", asked.head);
        Act::Answer(good())
    });
    let outcome = run_on(&server, |_| {});
    assert_eq!((outcome.counts.ok, outcome.address), (100, Address::Tcp(server.address)));

    let server = Faulty::start(Delivery::Whole, |_| Act::Answer(good()));
    let outcome = run(options(&format!("http://localhost:{}/", server.address.port())));
    assert_eq!((outcome.counts.ok, outcome.address), (100, Address::Tcp(server.address)));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_sent() {
    let refused: [fn(&mut Options); 9] = [
        |options| options.connections = 0,
        |options| options.connections = 70_000,
        |options| options.stop = Stop::Count(0),
        |options| options.stop = Stop::Duration(Duration::ZERO),
        |options| options.timeout = Duration::ZERO,
        |options| options.timeout = Duration::from_secs(4000),
        |options| options.requests[0].expect.status = vec![20],
        |options| options.requests[0].request.path = "/ HTTP/1.1\r\nX: y".to_owned(),
        |options| options.requests[0].request.headers.push(("X".to_owned(), "y\r\nZ: z".to_owned())),
    ];
    for change in refused {
        let mut options = options("http://127.0.0.1:9");
        change(&mut options);
        let error = load::start(options).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert_eq!(error.reason(), "load-invalid");
    }
}

/// Whether a load is done within so many seconds.
fn is_done(running: &load::Running, seconds: i64) -> bool {
    let patience = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(&running.fd(), PollFlags::IN)], Some(&patience)).unwrap() == 1
}
