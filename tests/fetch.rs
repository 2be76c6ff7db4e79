//! One request, one answer, against a server that follows a script: raw bytes on a socket, nothing of HTTP in between.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bakeoff::fetch::{self, Answer, Body, Error, Fetcher, Progress, Request, Scheme, Target};
use bytes::Bytes;

const LONG: Duration = Duration::from_secs(20);
static NEVER: AtomicBool = AtomicBool::new(false);

/// A server for one connection; its thread ends with what the script returns.
fn serve<T: Send + 'static>(script: impl FnOnce(TcpStream) -> T + Send + 'static) -> (Target, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::local(listener.local_addr().unwrap().port());
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        script(stream)
    });
    (target, server)
}

/// Reads the head of a request, to the empty line.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Answers one request with these bytes, then closes.
fn answer_with(bytes: &'static [u8]) -> Target {
    serve(move |mut stream| {
        read_head(&mut stream);
        stream.write_all(bytes).unwrap();
    })
    .0
}

fn get(target: &Target) -> Result<Answer, Error> {
    Fetcher::new().unwrap().fetch(&Request::get(target.clone(), "/json"), LONG, &NEVER)
}

fn pairs(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_whole_answer_with_its_headers_and_digest() {
    let target = answer_with(
        b"HTTP/1.1 203 Whatever\r\nServer: x\r\nSet-Cookie: a=1\r\nContent-Length: 3\r\nSet-Cookie: b=2\r\n\
          X-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\nX-Empty:\r\n\r\nabc",
    );
    let answer = get(&target).unwrap();
    assert_eq!((answer.status, answer.length(), &answer.body[..]), (203, 3, &b"abc"[..]));
    // The test vector of FIPS 180-2 for "abc".
    assert_eq!(answer.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let expected = [
        ("server", "x"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("content-length", "3"),
        ("x-latin", "café"),
        ("x-utf8", "café"),
        ("x-empty", ""),
    ];
    assert_eq!(pairs(&answer.headers), expected);
    assert_eq!((answer.header("SET-cookie"), answer.header("date")), (Some("a=1"), None));
}

#[test]
fn the_request_is_sent_as_given_and_the_connection_dropped() {
    let (target, server) = serve(|mut stream| {
        let head = read_head(&mut stream);
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        // The end of the stream: the client is gone although nobody said `close`.
        let rest = stream.read(&mut [0; 1]).unwrap();
        (head, body, rest)
    });
    let request = Request {
        method: "PURGE".to_owned(),
        path: "/a%20b?c=d&e".to_owned(),
        headers: vec![("X-One".to_owned(), "1".to_owned()), ("x-one".to_owned(), "2".to_owned())],
        body: Body::Whole(Bytes::from_static(b"12345")),
        ..Request::get(target.clone(), "/")
    };
    let answer = Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap();
    assert_eq!(answer.status, 200);
    let (head, body, rest) = server.join().unwrap();
    let expected =
        format!("PURGE /a%20b?c=d&e HTTP/1.1\r\nhost: {target}\r\nx-one: 1\r\nx-one: 2\r\ncontent-length: 5\r\n\r\n");
    assert_eq!((head, &body, rest), (expected, b"12345", 0));
}

#[test]
fn a_host_that_is_given_replaces_the_usual_one_and_a_get_has_no_length() {
    let (target, server) = serve(|mut stream| {
        let head = read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        head
    });
    let headers = vec![("Host".to_owned(), "example.org".to_owned())];
    let request = Request { headers, ..Request::get(target, "/") };
    let answer = Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap();
    assert_eq!((answer.status, answer.length()), (204, 0));
    assert_eq!(server.join().unwrap(), "GET / HTTP/1.1\r\nhost: example.org\r\n\r\n");
}

/// Sends `bytes` in chunks and returns the body as it was on the wire, with the time at which each byte came.
fn upload(method: &str, bytes: &'static [u8], size: usize, delay: Duration) -> (String, Vec<u8>, Vec<Instant>) {
    let (target, server) = serve(|mut stream| {
        let head = read_head(&mut stream);
        let (mut body, mut times) = (Vec::new(), Vec::new());
        while !body.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            body.push(byte[0]);
            times.push(Instant::now());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        (head, body, times)
    });
    let body = Body::Chunked { bytes: Bytes::from_static(bytes), size: NonZeroUsize::new(size).unwrap(), delay };
    let request = Request { method: method.to_owned(), body, ..Request::get(target, "/up") };
    assert_eq!(Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap().status, 200);
    server.join().unwrap()
}

#[test]
fn a_chunked_body_is_chunks_of_that_size_on_the_wire() {
    let (head, body, _) = upload("POST", b"abcdefghijklmnopqrstuvwxyz", 10, Duration::ZERO);
    assert!(head.contains("\r\ntransfer-encoding: chunked\r\n") && !head.contains("content-length"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), "A\r\nabcdefghij\r\nA\r\nklmnopqrst\r\n6\r\nuvwxyz\r\n0\r\n\r\n");
    // Also with a method that seldom has a body, and with no byte at all.
    let (_, body, _) = upload("GET", b"xy", 16, Duration::ZERO);
    assert_eq!(String::from_utf8(body).unwrap(), "2\r\nxy\r\n0\r\n\r\n");
    let (head, body, _) = upload("POST", b"", 16, Duration::ZERO);
    assert!(head.contains("chunked"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), "0\r\n\r\n");
}

#[test]
fn the_delay_is_between_chunks_and_each_is_sent_at_once() {
    let delay = Duration::from_millis(50);
    let (_, body, times) = upload("PUT", b"aabbcc", 2, delay);
    assert_eq!(String::from_utf8(body).unwrap(), "2\r\naa\r\n2\r\nbb\r\n2\r\ncc\r\n0\r\n\r\n");
    let at = |position: usize| times[position];
    // Each chunk takes 7 bytes. The reader is late at times, so that a gap can look shorter than it was.
    let gaps = [at(7) - at(6), at(14) - at(13)];
    assert!(gaps.iter().all(|gap| *gap >= delay / 2), "{gaps:?}");
    assert!(at(20) - at(0) >= delay * 2 - delay / 2);
    // The end follows the last chunk without a delay.
    assert!(at(25) - at(20) < delay, "{:?}", at(25) - at(20));
}

#[test]
fn bodies_in_chunks_and_bodies_to_the_end_of_the_connection_are_whole() {
    let target = answer_with(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n7\r\n, world\r\n0\r\nX-Trailer: 1\r\n\r\n",
    );
    let answer = get(&target).unwrap();
    assert_eq!(&answer.body[..], b"hello, world");
    assert_eq!(pairs(&answer.headers), [("transfer-encoding", "chunked")]);
    let answer = get(&answer_with(b"HTTP/1.1 200 OK\r\n\r\nto the end")).unwrap();
    assert_eq!(&answer.body[..], b"to the end");
    let answer = get(&answer_with(b"HTTP/1.0 404 Not Found\r\n\r\nold")).unwrap();
    assert_eq!((answer.status, &answer.body[..]), (404, &b"old"[..]));
}

#[test]
fn informational_answers_are_passed_over() {
    let target = answer_with(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let answer = get(&target).unwrap();
    assert_eq!((answer.status, &answer.body[..], answer.header("link")), (200, &b"ok"[..], None));
}

#[test]
fn an_answer_to_head_has_no_body_whatever_its_length_says() {
    let target = answer_with(b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n");
    let request = Request { method: "HEAD".to_owned(), ..Request::get(target, "/json") };
    let answer = Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap();
    assert_eq!((answer.length(), answer.header("content-length")), (0, Some("29")));
    assert_eq!(answer.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn an_early_answer_to_an_endless_upload_is_an_answer() {
    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").unwrap();
        // Reads nothing more, and stays until the client has gone.
        thread::sleep(Duration::from_millis(300));
    });
    let body = Body::Whole(Bytes::from(vec![b'x'; 32 << 20]));
    let request = Request { method: "POST".to_owned(), body, ..Request::get(target, "/") };
    let answer = Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap();
    assert_eq!((answer.status, &answer.body[..]), (413, &b"no"[..]));
}

/// A port on which nothing listens, and none will for a while.
fn closed_port() -> u16 {
    bakeoff::observe::port::free_port().unwrap()
}

#[test]
fn a_port_without_a_server_refuses() {
    let target = Target::local(closed_port());
    let error = get(&target).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("{target} refused the connection"));
}

/// Fetches with a short limit and returns how far it came.
fn times_out(target: Target, limit: Duration) -> (Progress, String) {
    let start = Instant::now();
    let error = Fetcher::new().unwrap().fetch(&Request::get(target, "/"), limit, &NEVER).unwrap_err();
    assert!(start.elapsed() >= limit && start.elapsed() < LONG);
    let text = error.to_string();
    match error {
        Error::Timeout { progress, .. } => (progress, text),
        other => panic!("{other:?}"),
    }
}

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn a_silent_server_times_out_and_it_is_said_how_far_it_came() {
    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nConte").unwrap();
        stream.read(&mut [0; 1])
    });
    let address = target.to_string();
    let (progress, text) = times_out(target, SHORT);
    assert_eq!(progress, Progress::Connected);
    assert_eq!(text, format!("{address} gave no whole answer within 200ms: connected, no head of an answer"));

    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 500 Oh\r\nContent-Length: 10\r\n\r\nhalf").unwrap();
        stream.read(&mut [0; 1])
    });
    let address = target.to_string();
    let (progress, text) = times_out(target, SHORT);
    assert_eq!(progress, Progress::Head { status: 500, body: 4 });
    let expected = "a head with status 500 and 4 bytes of body had come";
    assert_eq!(text, format!("{address} gave no whole answer within 200ms: {expected}"));
}

#[test]
fn a_drip_does_not_outlast_the_limit() {
    for start in ["", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"] {
        let (target, _server) = serve(move |mut stream| {
            read_head(&mut stream);
            let _ = stream.write_all(start.as_bytes());
            let drip = if start.is_empty() { "H" } else { "x" };
            // Ends when the client has gone, or after ten seconds.
            for _ in 0..1000 {
                if stream.write_all(drip.as_bytes()).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        let start = Instant::now();
        let error = Fetcher::new().unwrap().fetch(&Request::get(target, "/"), SHORT, &NEVER).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. } | Error::Protocol { .. }), "{error:?}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn endless_answers_end_by_a_bound() {
    let endless = |head: &'static str, line: &'static str| {
        let (target, _server) = serve(move |mut stream| {
            read_head(&mut stream);
            let _ = stream.write_all(head.as_bytes());
            let block = line.repeat(1000);
            while stream.write_all(block.as_bytes()).is_ok() {}
        });
        let fetcher = Fetcher::new().unwrap().with_bound(1 << 20);
        fetcher.fetch(&Request::get(target.clone(), "/"), LONG, &NEVER).unwrap_err()
    };
    let error = endless("HTTP/1.1 200 OK\r\n", "x-header: and another one\r\n");
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    let error = endless("HTTP/1.1 200 OK\r\nx-long: ", "and so on and on ");
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    let error = endless("HTTP/1.1 200 OK\r\n\r\n", "body without an end");
    assert!(matches!(error, Error::TooLarge { bound: 1_048_576, .. }), "{error:?}");
    assert!(error.to_string().ends_with(" answered with a body larger than 1048576 bytes"), "{error}");
    let error = endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "5\r\nhello\r\n");
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    // A length alone is enough, not a byte of it needs to come.
    let target = answer_with(b"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n");
    let fetcher = Fetcher::new().unwrap().with_bound(1 << 20);
    let error = fetcher.fetch(&Request::get(target, "/"), LONG, &NEVER).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    // And at the bound itself all is well.
    let target = answer_with(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour");
    let answer = Fetcher::new().unwrap().with_bound(4).fetch(&Request::get(target, "/"), LONG, &NEVER).unwrap();
    assert_eq!(answer.length(), 4);
}

#[test]
fn informational_answers_without_end_end_by_the_limit() {
    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        let block = "HTTP/1.1 102 Processing\r\n\r\n".repeat(100);
        while stream.write_all(block.as_bytes()).is_ok() {}
    });
    assert_eq!(times_out(target, SHORT).0, Progress::Connected);
}

#[test]
fn a_connection_that_ends_early_is_closed_or_reset() {
    let early = |bytes: &'static [u8]| get(&answer_with(bytes)).unwrap_err();
    let error = early(b"");
    assert!(matches!(error, Error::Closed { progress: Progress::Connected, .. }), "{error:?}");
    assert!(
        error.to_string().ends_with(" closed the connection too early: connected, no head of an answer"),
        "{error}"
    );
    let error = early(b"HTTP/1.1 200 OK\r\nContent-");
    assert!(matches!(error, Error::Closed { progress: Progress::Connected, .. }), "{error:?}");
    let error = early(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    assert!(matches!(error, Error::Closed { progress: Progress::Head { status: 200, .. }, .. }), "{error:?}");
    let error = early(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    assert!(matches!(error, Error::Closed { progress: Progress::Head { status: 200, .. }, .. }), "{error:?}");

    // Closed with unread bytes in its queue, a socket sends a reset.
    let (target, _server) = serve(|stream| {
        stream.peek(&mut [0; 1]).unwrap();
    });
    let error = get(&target).unwrap_err();
    assert!(matches!(error, Error::Reset { progress: Progress::Connected, .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("{target} reset the connection: connected, no head of an answer"));
}

#[test]
fn what_is_no_http_is_a_protocol_error_that_says_why() {
    let garbage: [&'static [u8]; 8] = [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    ];
    for bytes in garbage {
        let target = answer_with(bytes);
        let error = get(&target).unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{:?} {error:?}", String::from_utf8_lossy(bytes));
        assert!(error.to_string().starts_with(&format!("{target} did not answer in http/1.1: ")), "{error}");
    }
}

#[test]
fn a_flag_ends_the_wait() {
    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        stream.read(&mut [0; 1])
    });
    let flag = AtomicBool::new(false);
    let start = Instant::now();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(SHORT);
            flag.store(true, Ordering::Relaxed);
        });
        Fetcher::new().unwrap().fetch(&Request::get(target, "/"), LONG, &flag).unwrap_err()
    });
    assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
    assert!(start.elapsed() >= SHORT && start.elapsed() < Duration::from_secs(5));
}

#[test]
fn requests_that_cannot_be_sent_are_refused_before_anything_is() {
    let good = Request::get(Target::local(closed_port()), "/");
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let chunked = Body::Chunked { bytes: Bytes::new(), size: NonZeroUsize::MIN, delay: Duration::ZERO };
    let bad = [
        Request { path: "json".to_owned(), ..good.clone() },
        Request { path: "/a b".to_owned(), ..good.clone() },
        Request { method: "G T".to_owned(), ..good.clone() },
        Request { headers: header("a b", "x"), ..good.clone() },
        Request { headers: header("a", "x\r\ny: z"), ..good.clone() },
        Request { headers: header("content-length", "5"), body: chunked, ..good.clone() },
    ];
    for request in bad {
        let error = Fetcher::new().unwrap().fetch(&request, LONG, &NEVER).unwrap_err();
        assert!(matches!(error, Error::Request { .. }), "{request:?} {error:?}");
    }
}

#[test]
fn targets_are_read_from_urls() {
    let read = |url: &str| url.parse::<Target>().map_err(|e| e.to_string());
    let target = |scheme, host: &str, port| Ok(Target { scheme, host: host.to_owned(), port });
    assert_eq!(read("http://127.0.0.1:8080"), target(Scheme::Http, "127.0.0.1", 8080));
    assert_eq!(read("http://localhost/"), target(Scheme::Http, "localhost", 80));
    assert_eq!(read("http://[::1]:99"), target(Scheme::Http, "::1", 99));
    assert_eq!(read("https://example.org"), target(Scheme::Https, "example.org", 443));
    assert_eq!(read("https://[::1]:8443/"), target(Scheme::Https, "::1", 8443));
    assert_eq!(read("ftp://a:1"), Err("the url ftp://a:1 begins neither with http:// nor with https://".to_owned()));
    for bad in
        ["", "localhost:80", "http://", "http://a:b", "http://a:99999", "http://a:0", "http://a:1/path", "http://u@a:1"]
    {
        assert!(read(bad).is_err(), "{bad}");
    }
}

/// As RFC 9112, 3.2, has it: the host and, where it is not the usual one of the scheme, the port.
#[test]
fn the_host_header_has_the_port_unless_it_is_the_usual_one() {
    let authority = |url: &str| url.parse::<Target>().unwrap().authority();
    assert_eq!(authority("http://example.org:80"), "example.org");
    assert_eq!(authority("https://example.org"), "example.org");
    assert_eq!(authority("https://example.org:80"), "example.org:80");
    assert_eq!(authority("https://[::1]:443"), "[::1]");
    assert_eq!(authority("http://[::1]:8080"), "[::1]:8080");
}

#[test]
fn a_name_of_this_machine_is_resolved() {
    let (target, _server) = serve(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    assert_eq!(get(&Target { host: "localhost".to_owned(), ..target }).unwrap().status, 200);
    // A label of more than 63 letters: no name server is asked.
    let error = get(&Target { host: "x".repeat(64), ..Target::local(80) }).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[test]
fn connecting_tells_whether_something_listens() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    fetch::connect(address, LONG).unwrap();
    assert_eq!(fetch::answers(address.port()), Some(address));
    drop(listener);
    let error = fetch::connect(address, LONG).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert_eq!(fetch::answers(closed_port()), None);
    // Not every machine has IPv6.
    if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        let address = listener.local_addr().unwrap();
        assert_eq!(fetch::answers(address.port()), Some(address));
    }
}

#[test]
fn a_connection_of_a_port_with_itself_is_no_server() {
    // The kernel goes through its range for clients, those of one parity first: within so many attempts one of the
    // connections meets itself.
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let port = first + 76;
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        return;
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for _ in 0..20_000 {
        let result = fetch::connect(address, LONG);
        assert!(matches!(result, Err(Error::Refused { .. })), "{result:?}");
    }
}
