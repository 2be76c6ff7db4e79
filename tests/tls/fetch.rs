//! One request over TLS: who is believed, what is offered, and how each failure is told.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bakeoff::fetch::{ALPN, Answer, Error, Fetcher, Progress, Request, Scheme, Target};
use bakeoff::trust::Trust;

use super::secure::{Authority, Handshake, Identity, LOCAL, Secure, read_head};
use super::{LONG, NEVER, file, ok};

fn fetch(target: Target, trust: &Trust) -> Result<Answer, Error> {
    let fetcher = Fetcher::new().unwrap().trusting(trust.config(ALPN).unwrap());
    fetcher.fetch(&Request::get(target, "/json"), LONG, &NEVER)
}

fn target(server: &Secure) -> Target {
    server.url().parse().unwrap()
}

/// Fetches `/json`, believing the certificates of this text.
fn believing(pem: &str, target: Target) -> Result<Answer, Error> {
    let (_folder, path) = file(pem);
    fetch(target, &Trust::Authority(path))
}

/// What is said of TLS that does not come about.
fn refused(result: Result<Answer, Error>) -> String {
    match result {
        Err(Error::Tls { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// A server that shows this certificate and answers `ok`.
fn server(identity: &Identity) -> Secure {
    Secure::start(identity, &["http/1.1"], |_| ok("ok"))
}

#[test]
fn what_an_authority_vouches_for_is_believed() {
    let authority = Authority::new("a");
    let server = Secure::start(&authority.issue(&LOCAL), &["h2", "http/1.1"], ok);
    let target = target(&server);
    let answer = believing(&authority.pem(), target.clone()).unwrap();
    assert_eq!(answer.status, 200);
    let head = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(head, format!("GET /json HTTP/1.1\r\nhost: {}", server.address));
    // By its name too, which is told to the server, as an address is not (RFC 6066).
    believing(&authority.pem(), Target { host: "localhost".to_owned(), ..target }).unwrap();
    let handshake = |name: Option<&str>| Handshake {
        name: name.map(str::to_owned),
        protocol: Some("http/1.1".to_owned()),
        is_whole: true,
    };
    assert_eq!(server.handshakes(), [handshake(None), handshake(Some("localhost"))]);
}

#[test]
fn a_large_answer_and_one_without_a_protocol_agreed_on() {
    let authority = Authority::new("a");
    let server = Secure::start(&authority.issue(&LOCAL), &[], |_| ok(&"x".repeat(1 << 20)));
    let answer = believing(&authority.pem(), target(&server)).unwrap();
    assert_eq!(answer.length(), 1 << 20);
    assert_eq!(server.handshakes()[0].protocol, None);
}

#[test]
fn no_session_is_resumed() {
    let authority = Authority::new("a");
    let server = server(&authority.issue(&LOCAL));
    let (_folder, path) = file(&authority.pem());
    let tls = Trust::Authority(path).config(ALPN).unwrap();
    for _ in 0..3 {
        let fetcher = Fetcher::new().unwrap().trusting(Arc::clone(&tls));
        fetcher.fetch(&Request::get(target(&server), "/"), LONG, &NEVER).unwrap();
    }
    assert_eq!(server.handshakes().iter().filter(|handshake| handshake.is_whole).count(), 3);
}

#[test]
fn what_nobody_vouches_for_is_not_believed() {
    let server = server(&Authority::new("a").issue(&LOCAL));
    let said = refused(believing(&Authority::new("b").pem(), target(&server)));
    assert_eq!(said, "the certificate is not trusted: its issuer is unknown");
    let said = refused(believing(&Authority::new("a").pem(), target(&server)));
    let expected = "the certificate is not trusted: an authority of its issuer's name is known, but with another key";
    assert_eq!(said, expected);
    assert_eq!(server.handshakes(), []);
    fetch(target(&server), &Trust::Anything).unwrap();
}

#[test]
fn a_server_without_the_key_of_its_certificate_is_never_believed() {
    let authority = Authority::new("a");
    let server = server(&authority.issue(&LOCAL).with_another_key());
    let expected = "the other side does not have the key of the certificate that it shows";
    assert_eq!(refused(believing(&authority.pem(), target(&server))), expected);
    assert_eq!(refused(fetch(target(&server), &Trust::Anything)), expected);
}

#[test]
fn a_certificate_that_cannot_be_read_is_one_all_the_same_where_any_will_do() {
    let authority = Authority::new("a");
    let server = server(&authority.issue(&LOCAL).showing(b"\x30\x00"));
    fetch(target(&server), &Trust::Anything).unwrap();
    assert_eq!(refused(believing(&authority.pem(), target(&server))), "the certificate cannot be read");
}

#[test]
fn an_error_names_the_address() {
    let server = server(&Authority::new("a").issue(&LOCAL));
    let error = believing(&Authority::new("b").pem(), target(&server)).unwrap_err();
    let expected = format!("no TLS with {}: the certificate is not trusted: its issuer is unknown", server.address);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_has_expired_is_not_believed() {
    let authority = Authority::new("a");
    let server = server(&authority.issue_expired());
    let said = refused(believing(&authority.pem(), target(&server)));
    assert_eq!(said, "the certificate has expired: it was valid until 2020-01-01T00:00:00Z");
    fetch(target(&server), &Trust::Anything).unwrap();
}

#[test]
fn what_is_for_another_name_is_not_believed() {
    let authority = Authority::new("a");
    let said = |names: &[&str], host: &str| {
        let server = server(&authority.issue(names));
        let target = Target { host: host.to_owned(), ..target(&server) };
        fetch(target.clone(), &Trust::Anything).unwrap();
        refused(believing(&authority.pem(), target))
    };
    let expected = "the certificate is not valid for localhost: it is for a.example, *.b.example, 10.0.0.1";
    assert_eq!(said(&["a.example", "*.b.example", "10.0.0.1"], "localhost"), expected);
    assert_eq!(said(&["localhost"], "127.0.0.1"), "the certificate is not valid for 127.0.0.1: it is for localhost");
    let expected = "the certificate is not valid for localhost: it names no host as a subject alternative name";
    assert_eq!(said(&[], "localhost"), expected);
    let expected = "the certificate is not valid for localhost: it is for a, b, c, d, e and 2 more";
    assert_eq!(said(&["a", "b", "c", "d", "e", "f", "g"], "localhost"), expected);
}

#[test]
fn a_certificate_of_the_file_itself_is_believed() {
    for is_authority in [false, true] {
        let identity = Identity::self_signed(&LOCAL, is_authority);
        let server = server(&identity);
        believing(&identity.pem(), target(&server)).unwrap();
        // But not another one of the same name.
        refused(believing(&Identity::self_signed(&LOCAL, is_authority).pem(), target(&server)));
    }
    // One that another vouches for, too.
    let identity = Authority::new("a").issue(&LOCAL);
    believing(&identity.pem(), target(&server(&identity))).unwrap();
    let with_another = format!("{}{}", Authority::new("a").pem(), identity.pem());
    believing(&with_another, target(&server(&identity))).unwrap();
    // Its name is looked at all the same, and its time.
    let identity = Identity::self_signed(&["a.example"], true);
    let said = refused(believing(&identity.pem(), target(&server(&identity))));
    assert_eq!(said, "the certificate is not valid for 127.0.0.1: it is for a.example");
    let identity = Authority::new("a").issue_expired();
    let said = refused(believing(&identity.pem(), target(&server(&identity))));
    assert!(said.starts_with("the certificate has expired"), "{said}");
}

#[test]
fn a_server_that_speaks_another_protocol_only() {
    let authority = Authority::new("a");
    let server = Secure::start(&authority.issue(&LOCAL), &["h2"], |_| Vec::new());
    let said = refused(believing(&authority.pem(), target(&server)));
    assert_eq!(said, "the other side speaks none of the protocols that were offered");
}

/// A server for one connection without TLS.
fn plain<T: Send + 'static>(script: impl FnOnce(TcpStream) -> T + Send + 'static) -> (Target, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || script(listener.accept().unwrap().0));
    (Target { scheme: Scheme::Https, ..Target::local(port) }, server)
}

#[test]
fn a_server_without_tls() {
    for answer in ["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 smtp\r\n"] {
        let (target, _server) = plain(move |mut stream| {
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
            stream.read(&mut [0; 1])
        });
        assert_eq!(refused(fetch(target, &Trust::Anything)), "the other side does not speak TLS", "{answer}");
    }
}

#[test]
fn a_server_that_ends_the_handshake() {
    let (target, _server) = plain(|mut stream| stream.read(&mut [0; 4096]).unwrap());
    let address = target.to_string();
    let error = fetch(target, &Trust::Anything).unwrap_err();
    assert!(matches!(error, Error::Closed { progress: Progress::Handshake, .. }), "{error:?}");
    let expected = format!("{address} closed the connection too early: connected, the TLS handshake not done");
    assert_eq!(error.to_string(), expected);

    // Closed with unread bytes in its queue, a socket sends a reset.
    let (target, _server) = plain(|stream| stream.peek(&mut [0; 1]).unwrap());
    let error = fetch(target, &Trust::Anything).unwrap_err();
    assert!(matches!(error, Error::Reset { progress: Progress::Handshake, .. }), "{error:?}");

    // A fatal alert (RFC 8446, 6): 40 is `handshake_failure`, 70 `protocol_version`.
    for (alert, expected) in [
        (40, "the other side refused with the alert HandshakeFailure"),
        (70, "there is no version of TLS in common: 1.2 and 1.3 are spoken here"),
    ] {
        let (target, _server) = plain(move |mut stream| {
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(&[21, 3, 3, 0, 2, 2, alert]).unwrap();
            stream.read(&mut [0; 1])
        });
        assert_eq!(refused(fetch(target, &Trust::Anything)), expected);
    }
}

#[test]
fn a_server_that_is_silent_in_the_handshake() {
    let (target, _server) = plain(|mut stream| {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.read(&mut [0; 1])
    });
    let (address, limit) = (target.to_string(), Duration::from_millis(200));
    let fetcher = Fetcher::new().unwrap().trusting(Trust::Anything.config(ALPN).unwrap());
    let start = Instant::now();
    let error = fetcher.fetch(&Request::get(target, "/"), limit, &NEVER).unwrap_err();
    assert!(start.elapsed() >= limit && start.elapsed() < LONG);
    let expected = format!("{address} gave no whole answer within 200ms: connected, the TLS handshake not done");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_connection_that_breaks_after_the_handshake() {
    let authority = Authority::new("a");
    let ends = |answer: &'static [u8]| {
        let server = Secure::with_sessions(&authority.issue(&LOCAL), &[], move |mut session| {
            read_head(&mut session).unwrap();
            session.write_all(answer).unwrap();
            session.flush().unwrap();
        });
        believing(&authority.pem(), target(&server)).unwrap_err()
    };
    let error = ends(b"");
    assert!(matches!(error, Error::Closed { progress: Progress::Connected, .. }), "{error:?}");
    let error = ends(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    assert!(matches!(error, Error::Closed { progress: Progress::Head { status: 200, .. }, .. }), "{error:?}");
    // Without a length the end of the body is that of the connection: one that TLS does not announce may be anyone's.
    let error = ends(b"HTTP/1.1 200 OK\r\n\r\nhalf");
    assert!(matches!(error, Error::Closed { progress: Progress::Head { status: 200, .. }, .. }), "{error:?}");
}

#[test]
fn an_end_that_is_announced_ends_a_body() {
    let authority = Authority::new("a");
    let server = Secure::with_sessions(&authority.issue(&LOCAL), &[], |mut session| {
        read_head(&mut session).unwrap();
        session.write_all(b"HTTP/1.1 200 OK\r\n\r\nto the end").unwrap();
        session.conn.send_close_notify();
        session.flush().unwrap();
    });
    assert_eq!(&believing(&authority.pem(), target(&server)).unwrap().body[..], b"to the end");
}

#[test]
fn without_a_trust_nothing_is_believed() {
    let server = server(&Authority::new("a").issue(&LOCAL));
    let result = Fetcher::new().unwrap().fetch(&Request::get(target(&server), "/"), LONG, &NEVER);
    assert_eq!(refused(result), "nothing says which certificates are trusted");
}
