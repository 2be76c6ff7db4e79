//! Loads over TLS, with each engine: the counts are those of plain ones, and what TLS adds has its place among them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use bakeoff::load::{self, Counts, Engine, Error, Options, Outcome, Request, Stop, Target};
use bakeoff::trust::Trust;

use super::secure::{Authority, Identity, LOCAL, Secure, Session, read_head};
use super::{file, ok};

/// A server of this machine that is vouched for, and who vouches.
fn vouched() -> (Authority, Identity) {
    let authority = Authority::new("private");
    let identity = authority.issue(&LOCAL);
    (authority, identity)
}

/// Runs 100 requests on three connections with each engine.
fn each(url: &str, authority: &Authority, change: impl Fn(&mut Options)) -> Vec<Result<Outcome, Error>> {
    let (_folder, path) = file(&authority.pem());
    let run = |engine| {
        let (target, path_of_url) = Target::parse(url).unwrap();
        let mut options = Options {
            connections: 3,
            stop: Stop::Count(100),
            trust: Trust::Authority(path.clone()),
            engine,
            ..Options::new(target, Request::get(path_of_url))
        };
        change(&mut options);
        load::start(options).and_then(load::Running::finish)
    };
    [Engine::Epoll, Engine::Auto].map(run).into_iter().collect()
}

fn good(ends: Vec<Result<Outcome, Error>>, expected: Counts) {
    for outcome in ends {
        let outcome = outcome.unwrap();
        assert_eq!(
            outcome.counts,
            Counts { started: 100, ..expected },
            "{}: {:?}",
            outcome.engine,
            outcome.kept.first()
        );
    }
}

#[test]
fn requests_over_tls_are_counted_as_others() {
    let (authority, identity) = vouched();
    let server = Secure::start(&identity, &["http/1.1"], |_| ok("hello"));
    good(each(&server.url(), &authority, |_| {}), Counts { ok: 100, ..Counts::default() });
    let handshakes = server.handshakes();
    assert_eq!(handshakes.len(), 6);
    assert!(handshakes.iter().all(|handshake| handshake.protocol.as_deref() == Some("http/1.1")));
}

#[test]
fn each_connection_has_a_whole_handshake_that_is_part_of_connecting() {
    let (authority, identity) = vouched();
    let server = Secure::start(&identity, &[], |_| ok("hello"));
    for outcome in each(&server.url(), &authority, |options| options.keep_alive = false) {
        let outcome = outcome.unwrap();
        assert_eq!((outcome.counts.ok, outcome.reconnects, outcome.connect.count()), (100, 100, 103));
        // What is timed from when connecting began holds the handshake.
        assert!(outcome.latency.min().unwrap() >= outcome.connect.min().unwrap());
    }
    assert_eq!(server.handshakes().iter().filter(|handshake| handshake.is_whole).count(), 206);
}

#[test]
fn long_bodies_come_whole_in_both_directions() {
    let (authority, identity) = vouched();
    let body = "x".repeat(1 << 20);
    let server = Secure::with_sessions(&identity, &[], move |mut session| {
        while let Some(head) = read_head(&mut session) {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let mut sent = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            session.read_exact(&mut sent).unwrap();
            assert!(sent.iter().all(|&byte| byte == b'y'));
            if session.write_all(&ok(&body)).and_then(|()| session.flush()).is_err() {
                break;
            }
        }
    });
    let change = |options: &mut Options| {
        options.requests[0].request.method = "POST".to_owned();
        options.requests[0].request.body = load::Body::Sized(vec![b'y'; 300_000]);
        options.requests[0].expect.bytes = Some(1 << 20);
    };
    good(each(&server.url(), &authority, change), Counts { ok: 100, ..Counts::default() });
}

/// Answers each connection's first request with a body that its end delimits, and ends it with `end`.
fn until_closed(identity: &Identity, end: fn(&mut Session)) -> Secure {
    Secure::with_sessions(identity, &[], move |mut session| {
        if read_head(&mut session).is_some() {
            let _ = session.write_all(b"HTTP/1.1 200 OK\r\n\r\nto the end").and_then(|()| session.flush());
            end(&mut session);
        }
    })
}

#[test]
fn an_end_that_is_announced_is_one_and_another_is_a_broken_connection() {
    let (authority, identity) = vouched();
    let announced = until_closed(&identity, |session| {
        session.conn.send_close_notify();
        let _ = session.flush();
    });
    good(each(&announced.url(), &authority, |_| {}), Counts { ok: 100, ..Counts::default() });
    let cut = until_closed(&identity, |session| {
        let _ = session.sock.shutdown(Shutdown::Both);
    });
    for end in each(&cut.url(), &authority, |_| {}) {
        // Each request of the opening has a head, so the window is opened, and every answer in it is cut.
        let outcome = end.unwrap();
        assert_eq!(outcome.counts.reset, 100);
        assert!(outcome.kept[0].reason.ends_with("close_notify of TLS"), "{}", outcome.kept[0].reason);
    }
}

#[test]
fn who_is_not_believed_is_not_sent_a_request() {
    let (authority, _) = vouched();
    let server = Secure::start(&Authority::new("other").issue(&LOCAL), &[], |_| panic!("a request was sent"));
    for end in each(&server.url(), &authority, |_| {}) {
        let error = end.unwrap_err().to_string();
        assert!(error.ends_with("the certificate is not trusted: its issuer is unknown"), "{error}");
    }
    let change = |options: &mut Options| options.trust = Trust::Anything;
    let server = Secure::start(&Authority::new("other").issue(&LOCAL), &[], |_| ok("hello"));
    good(each(&server.url(), &authority, change), Counts { ok: 100, ..Counts::default() });
}

#[test]
fn a_handshake_that_does_not_come_to_an_end_is_no_connection() {
    let (authority, _) = vouched();
    for answer in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming().take(6) {
                let mut stream = stream.unwrap();
                stream.write_all(answer).unwrap();
                kept.push(stream);
            }
            std::thread::sleep(Duration::from_secs(5));
        });
        let began = std::time::Instant::now();
        for end in each(&url, &authority, |options| options.timeout = Duration::from_millis(300)) {
            let error = end.unwrap_err().to_string();
            let why = if answer.is_empty() { "no connection in time" } else { "the other side does not speak TLS" };
            assert!(error.ends_with(why), "{error}");
        }
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
