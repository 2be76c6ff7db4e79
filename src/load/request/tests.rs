use super::*;
use crate::load::Target;

fn wire(request: Request, keep_alive: bool) -> Result<Wire, Error> {
    Wire::new(&Target::parse("http://127.0.0.1:8080").unwrap().0, &request, keep_alive)
}

fn text(request: Request, keep_alive: bool) -> String {
    String::from_utf8(wire(request, keep_alive).unwrap().bytes).unwrap()
}

fn with(headers: &[(&str, &str)]) -> Request {
    let own = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Request { headers: own.collect(), ..Request::get("/") }
}

#[test]
fn a_request_is_written_out() {
    assert_eq!(text(Request::get("/a?b"), true), "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
    assert_eq!(text(Request::get("/"), false), "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n\r\n");
    let named = with(&[("HOST", "a"), ("X", "ü")]);
    assert_eq!(text(named, true), "GET / HTTP/1.1\r\nHOST: a\r\nX: ü\r\n\r\n");
    let kept = with(&[("Host", "a"), ("connection", "keep-alive")]);
    assert_eq!(text(kept, false), "GET / HTTP/1.1\r\nHost: a\r\nconnection: keep-alive\r\n\r\n");
}

#[test]
fn bodies_are_framed() {
    let post = |body| Request { method: "POST".to_owned(), body, ..with(&[("Host", "a")]) };
    assert_eq!(text(post(Body::None), true), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        text(post(Body::Sized(b"xyz".to_vec())), true),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz"
    );
    let chunked = |bytes: &[u8], delay| Body::Chunked { bytes: bytes.to_vec(), size: 10, delay };
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let at_once = text(post(chunked(b"0123456789ab", Duration::ZERO)), true);
    assert_eq!(at_once, format!("{head}a\r\n0123456789\r\n2\r\nab\r\n0\r\n\r\n"));
    assert_eq!(text(post(chunked(b"", Duration::ZERO)), true), format!("{head}0\r\n\r\n"));
}

#[test]
fn pauses_stand_between_chunks() {
    let body = Body::Chunked { bytes: b"abcde".to_vec(), size: 2, delay: Duration::from_millis(1) };
    let wire = wire(Request { body, ..with(&[("Host", "a")]) }, true).unwrap();
    let mut pieces = Vec::new();
    let mut position = 0;
    while position < wire.bytes.len() {
        let end = wire.piece_end(position);
        pieces.push(String::from_utf8(wire.bytes[position..end].to_vec()).unwrap());
        position = end;
    }
    assert_eq!(wire.pause, 1_000_000);
    assert!(pieces[0].ends_with("\r\n\r\n2\r\nab\r\n"), "{pieces:?}");
    assert_eq!(pieces[1..], ["2\r\ncd\r\n", "1\r\ne\r\n0\r\n\r\n"]);
}

#[test]
fn nothing_can_be_smuggled_in() {
    for method in ["", "GE T", "GET\r\n", "CONNECT", "GÉT"] {
        assert!(wire(Request { method: method.to_owned(), ..Request::get("/") }, true).is_err(), "{method:?}");
    }
    for path in ["", "x", "/ x", "/\r\nx", "/\0", "/ü", "/#f", "/\u{7f}"] {
        assert!(wire(Request::get(path), true).is_err(), "{path:?}");
    }
    for (name, value) in [
        ("", "x"),
        ("a b", "x"),
        ("a:", "x"),
        ("a\r\nb", "x"),
        ("a", "x\r\ny: z"),
        ("a", "x\ny"),
        ("a", "x\0"),
        ("Content-Length", "3"),
        ("transfer-encoding", "chunked"),
        ("Connection", "upgrade, Close"),
    ] {
        assert!(wire(with(&[(name, value)]), true).is_err(), "{name:?}: {value:?}");
    }
    let error = wire(with(&[("a", "x\r\ny: z")]), true).unwrap_err();
    assert_eq!(error.to_string(), r#"the value "x\r\ny: z" of the header "a" holds a control character"#);
    let none = Body::Chunked { bytes: Vec::new(), size: 0, delay: Duration::ZERO };
    assert!(wire(Request { body: none, ..Request::get("/") }, true).is_err());
}
