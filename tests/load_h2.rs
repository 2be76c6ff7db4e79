//! The load generator over HTTP/2, against a server whose every fault is known.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/tls.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod secure;
#[path = "support/h2_server.rs"]
mod server;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use bakeoff::load::{
    self, Body, Counts, Engine, Error, Expect, Kind, Options, Outcome, Part, Protocol, Request, Stop, Target,
};
use bakeoff::trust::Trust;
use h2::Reason;
use http::Response;
use secure::{Authority, LOCAL, Secure};
use server::{Act, Asked, Manner, Server};

const MS: u64 = 1_000_000;

fn options(url: &str) -> Options {
    let (target, path) = Target::parse(url).unwrap();
    Options {
        connections: 4,
        pipeline: 2,
        stop: Stop::Count(100),
        protocol: Protocol::Http2,
        ..Options::new(target, Request::get(path))
    }
}

fn run(options: Options) -> Outcome {
    load::start(options).unwrap().finish().unwrap()
}

fn head(status: u16) -> Response<()> {
    Response::builder().status(status).body(()).unwrap()
}

fn good() -> Act {
    Act::Answer(head(200), b"hello".to_vec())
}

fn every_tenth(asked: &Asked, otherwise: impl FnOnce() -> Act) -> Act {
    if asked.number.is_multiple_of(10) { otherwise() } else { good() }
}

/// Runs, and holds the books against what the server has seen.
fn run_on(server: &Server, change: impl FnOnce(&mut Options)) -> Outcome {
    let mut options = options(&server.url());
    change(&mut options);
    let connections = options.connections as u64;
    let outcome = run(options);
    assert_eq!((outcome.protocol, outcome.engine), (Protocol::Http2, "epoll"));
    assert_eq!(outcome.opening.started, connections);
    assert_eq!(server.seen(), outcome.opening.started + outcome.counts.started);
    assert_eq!(outcome.latency.count(), outcome.counts.ok);
    assert_eq!(outcome.seconds.iter().map(|second| second.ok).sum::<u64>(), outcome.counts.ok);
    outcome
}

/// What 100 requests came to of which, the opening's with them, every tenth gets this.
fn tenth(act: impl Fn() -> Act + Send + Sync + 'static) -> (Counts, String) {
    let server = Server::start(Manner::default(), move |asked| every_tenth(asked, &act));
    let outcome = run_on(&server, |options| options.timeout = Duration::from_millis(300));
    let kept = outcome.kept.first().map(|kept| kept.reason.clone()).unwrap_or_default();
    // 104 requests hold ten tenths, none of them among the first four.
    assert_eq!(outcome.opening.ok, 4);
    (outcome.counts, kept)
}

#[test]
fn good_answers_of_every_size_are_ok() {
    for size in [0, 1, 29, 16 << 10, 1 << 20] {
        let server = Server::start(Manner::default(), move |_| Act::Answer(head(200), vec![b'x'; size]));
        let outcome = run_on(&server, |options| options.requests[0].expect.bytes = Some(size as u64));
        assert_eq!(outcome.counts, Counts { started: 100, ok: 100, ..Counts::default() }, "{size}");
        assert!(outcome.received >= 100 * size as u64);
        assert_eq!((outcome.connect.count(), outcome.reconnects), (4, 0));
    }
}

#[test]
fn what_goes_wrong_has_its_own_name() {
    let base = Counts { started: 100, ok: 90, ..Counts::default() };
    let (counts, why) = tenth(|| Act::Answer(head(500), b"oops".to_vec()));
    assert_eq!((counts, why.as_str()), (Counts { status: 10, ..base }, "the status 500 was not expected"));

    let (counts, why) = tenth(|| Act::Reset(Reason::REFUSED_STREAM));
    assert_eq!(counts, Counts { reset: 10, ..base });
    assert!(why.contains("REFUSED_STREAM"), "{why}");

    let (counts, why) = tenth(|| Act::Cut(head(200), b"hel".to_vec(), Reason::INTERNAL_ERROR));
    assert_eq!(counts, Counts { body: 10, ..base });
    assert!(why.contains("after 3 body bytes") && why.contains("INTERNAL_ERROR"), "{why}");

    let (counts, why) = tenth(|| Act::Silence);
    assert_eq!((counts, why.as_str()), (Counts { timeout: 10, ..base }, "no whole answer in time"));
}

#[test]
fn a_length_that_is_not_kept_is_no_http_2() {
    let long = |length: &str| Response::builder().header("content-length", length).body(()).unwrap();
    let (counts, _) = tenth(move || Act::Answer(long("9"), b"hello".to_vec()));
    // The head was good, so the fault is one of the body.
    assert_eq!(counts, Counts { started: 100, ok: 90, body: 10, ..Counts::default() });
}

#[test]
fn a_connection_that_ends_takes_all_its_requests_with_it() {
    let server = Server::start(Manner::default(), |asked| every_tenth(asked, || Act::Hang));
    let outcome = run(Options { connections: 1, pipeline: 1, ..options(&server.url()) });
    // The first of 101 is the opening's.
    assert_eq!(outcome.counts, Counts { started: 100, ok: 90, reset: 10, ..Counts::default() });
    assert_eq!(outcome.reconnects, 10);
    assert_eq!(server.seen(), 101);
}

#[test]
fn a_server_that_sends_its_clients_away_is_normal() {
    let server = Server::start(Manner::default(), |asked| match asked.on_connection {
        5 => Act::Last(head(200), b"hello".to_vec()),
        _ => good(),
    });
    let outcome = run_on(&server, |options| (options.connections, options.pipeline) = (1, 1));
    assert_eq!(outcome.counts, Counts { started: 100, ok: 100, ..Counts::default() });
    assert_eq!(outcome.reconnects, 20);
    assert_eq!(server.lengths()[..20], [5; 20]);
}

#[test]
fn answers_without_a_body_may_tell_a_length() {
    let server = Server::start(Manner::default(), |_| {
        let head = Response::builder().status(304).header("content-length", "29").body(()).unwrap();
        Act::Answer(head, Vec::new())
    });
    let outcome = run_on(&server, |options| options.requests[0].expect.status = vec![304]);
    assert_eq!(outcome.counts, Counts { started: 100, ok: 100, ..Counts::default() });
}

#[test]
fn a_pipeline_is_streams_at_once_and_a_limit_of_the_server_is_kept() {
    let late = |_: &Asked| Act::Late(Duration::from_millis(20), head(200), b"hello".to_vec());
    for (limit, most) in [(None, 8), (Some(3), 3)] {
        let server = Server::start(Manner { streams: limit, tls: None }, late);
        let outcome = run_on(&server, |options| (options.connections, options.pipeline) = (2, 8));
        assert_eq!(outcome.counts, Counts { started: 100, ok: 100, ..Counts::default() });
        assert_eq!(server.busiest(), most);
    }
}

#[test]
fn a_server_that_sleeps_100_ms_shows_100_ms_in_both_modes() {
    let late = |_: &Asked| Act::Late(Duration::from_millis(100), head(200), b"hello".to_vec());
    for rate in [None, Some(50.0)] {
        let server = Server::start(Manner::default(), late);
        let outcome = run_on(&server, |options| {
            (options.rate, options.stop) = (rate, Stop::Duration(Duration::from_millis(1450)));
        });
        let p50 = outcome.latency.quantile(0.5).unwrap();
        assert!((100 * MS..120 * MS).contains(&p50), "{rate:?}: {p50}");
        assert!(outcome.latency.min().unwrap() >= 99 * MS);
        assert_eq!(outcome.counts.errors(), 0);
        assert_eq!(outcome.counts.in_flight, outcome.in_flight.len() as u64);
        assert!(outcome.counts.in_flight > 0);
        // A rate of 50 over 1.45 s: due are the times 0, 20, … 1440 ms.
        assert_eq!(outcome.pace.map(|pace| (pace.due, pace.backlog, pace.expired)), rate.map(|_| (73, 0, 0)));
    }
}

#[test]
fn an_open_loop_above_what_streams_carry_has_a_backlog() {
    let late = |_: &Asked| Act::Late(Duration::from_millis(50), head(200), b"hello".to_vec());
    let server = Server::start(Manner::default(), late);
    let outcome = run_on(&server, |options| {
        (options.connections, options.pipeline) = (1, 2);
        (options.rate, options.stop) = (Some(200.0), Stop::Duration(Duration::from_secs(1)));
    });
    // Two at once for 50 ms each are 40 in a second.
    assert!((30..=40).contains(&outcome.counts.ok), "{:?}", outcome.counts);
    let pace = outcome.pace.unwrap();
    assert_eq!(pace.due, outcome.counts.started + pace.backlog);
    assert!(pace.backlog > 100 && !outcome.was_free);
}

#[test]
fn bodies_arrive_whole_and_as_they_were_cut() {
    let body: Vec<u8> = (0..5 << 20).map(|i: usize| (i % 251) as u8).collect();
    let delay = Duration::ZERO;
    for sent in [Body::Sized(body.clone()), Body::Chunked { bytes: body.clone(), size: 100_000, delay }] {
        let expected = body.clone();
        let server = Server::start(Manner::default(), move |asked| {
            let right = asked.body == expected && asked.head.method() == "POST" && asked.head.headers()["x-a"] == "b";
            Act::Answer(head(if right { 200 } else { 400 }), Vec::new())
        });
        let outcome = run_on(&server, |options| {
            (options.connections, options.stop) = (2, Stop::Count(6));
            let request = &mut options.requests[0].request;
            (request.method, request.body) = ("POST".to_owned(), sent);
            request.headers.push(("X-A".to_owned(), "b".to_owned()));
        });
        assert_eq!(outcome.counts, Counts { started: 6, ok: 6, ..Counts::default() });
    }
}

#[test]
fn a_pause_between_pieces_is_made() {
    let server = Server::start(Manner::default(), |asked| {
        Act::Answer(head(if asked.pieces == 3 { 200 } else { 400 }), Vec::new())
    });
    let outcome = run_on(&server, |options| {
        options.stop = Stop::Count(4);
        let delay = Duration::from_millis(30);
        options.requests[0].request.body = Body::Chunked { bytes: b"abcdef".to_vec(), size: 2, delay };
    });
    assert_eq!(outcome.counts.ok, 4);
    assert!(outcome.latency.min().unwrap() >= 60 * MS);
}

#[test]
fn a_mix_has_its_own_figures() {
    let server = Server::start(Manner::default(), |asked| match asked.head.uri().path() {
        "/a" => good(),
        _ => Act::Answer(head(404), Vec::new()),
    });
    let outcome = run_on(&server, |options| {
        let part = |name: &str, path: &str, status: Vec<u16>| Part {
            name: Some(name.to_owned()),
            weight: 1.0,
            request: Request::get(path.to_owned()),
            expect: Expect { status, bytes: None },
        };
        options.requests = vec![part("a", "/a", vec![200]), part("b", "/b", vec![404])];
    });
    assert_eq!(outcome.counts.ok, 100);
    let named: Vec<_> = outcome.requests.iter().map(|named| (named.name.as_str(), named.counts.ok)).collect();
    assert!(named[0].1 > 20 && named[1].1 > 20 && named[0].1 + named[1].1 == 100, "{named:?}");
}

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own() {
    let server = Server::start(Manner::default(), |_| good());
    let outcome = run_on(&server, |options| (options.keep_alive, options.pipeline) = (false, 1));
    assert_eq!((outcome.counts.ok, outcome.reconnects, outcome.connect.count()), (100, 100, 104));
    assert!(server.lengths().iter().all(|&length| length == 1));
}

#[test]
fn threads_share_connections_and_requests() {
    let server = Server::start(Manner::default(), |_| good());
    let outcome = run_on(&server, |options| options.threads = 2);
    assert_eq!((outcome.counts.ok, outcome.threads.len()), (100, 2));
}

/// Answers of a server that has none of HTTP/2.
fn other(bytes: &'static [u8]) -> Result<Outcome, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
            kept.push(stream);
        }
    });
    let timeout = Duration::from_millis(300);
    load::start(Options { timeout, ..options(&url) }).and_then(load::Running::finish)
}

#[test]
fn over_tls_the_server_must_choose_it() {
    let authority = Authority::new("private");
    let identity = authority.issue(&LOCAL);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    let trust = Trust::Authority(path);

    let tls = Some(identity.config(&["h2", "http/1.1"]));
    let server = Server::start(Manner { tls, ..Manner::default() }, |asked| {
        Act::Answer(head(if asked.head.uri().scheme_str() == Some("https") { 200 } else { 400 }), b"hello".to_vec())
    });
    let outcome = run_on(&server, |options| options.trust = trust.clone());
    assert_eq!(outcome.counts, Counts { started: 100, ok: 100, ..Counts::default() });

    // What is not believed gets no request.
    let error = load::start(options(&server.url())).and_then(load::Running::finish).unwrap_err().to_string();
    assert!(error.contains("certificate") && server.seen() == 104, "{error}");

    // One that agrees on nothing, and one that wants another protocol.
    for (protocols, why) in [(&[][..], "did not choose h2"), (&["http/1.1"], "none of the protocols that were offered")]
    {
        let server = Secure::start(&identity, protocols, |_| Vec::new());
        let options = Options { trust: trust.clone(), ..options(&server.url()) };
        let error = load::start(options).and_then(load::Running::finish).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_connection_that_says_nothing_is_replaced_after_a_timeout() {
    // Both streams of the first connection get nothing, those of the next answers.
    let silent = AtomicU64::new(2);
    let server = Server::start(Manner::default(), move |asked| {
        let hears = asked.number > 1 && silent.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        if hears { Act::Silence } else { good() }
    });
    let outcome = run_on(&server, |options| {
        (options.connections, options.timeout) = (1, Duration::from_millis(200));
    });
    assert_eq!(outcome.counts, Counts { started: 100, ok: 98, timeout: 2, ..Counts::default() });
    assert_eq!(outcome.reconnects, 1);
}

#[test]
fn servers_that_do_not_speak_it_fail_the_opening() {
    let began = Instant::now();
    let error = other(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap_err().to_string();
    assert!(error.starts_with("no connection got an answer") && error.contains("HTTP/2"), "{error}");
    let error = other(b"").unwrap_err().to_string();
    assert!(error.contains("no whole answer in time"), "{error}");
    let error = load::start(options("http://127.0.0.1:1/")).and_then(load::Running::finish).unwrap_err().to_string();
    assert!(error.contains("Connection refused"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_server_that_falls_silent_ends_a_count() {
    let server = Server::start(Manner::default(), |asked| if asked.number <= 14 { good() } else { Act::Silence });
    let began = Instant::now();
    let outcome = run(Options { timeout: Duration::from_millis(200), ..options(&server.url()) });
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(outcome.counts.ok, 10);
    assert!(outcome.counts.timeout > 0);
    assert_eq!(outcome.kept[0].kind, Kind::Timeout);
}

#[test]
fn what_http_2_has_not_is_refused_before_anything_is_sent() {
    let refused = |change: fn(&mut Options)| {
        let mut options = options("http://127.0.0.1:1/");
        change(&mut options);
        load::start(options).and_then(load::Running::finish).unwrap_err().to_string()
    };
    let error = refused(|options| {
        options.requests[0].request.headers.push(("Upgrade".to_owned(), "h2c".to_owned()));
    });
    assert!(error.contains("\"Upgrade\"") && error.contains("HTTP/2"), "{error}");
    let error = refused(|options| options.requests[0].request.headers.push(("TE".to_owned(), "gzip".to_owned())));
    assert!(error.contains("trailers"), "{error}");
    let error = refused(|options| options.engine = Engine::IoUring);
    assert!(error.contains("io_uring"), "{error}");
}
