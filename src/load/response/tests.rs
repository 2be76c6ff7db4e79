use super::*;
use proptest::prelude::*;

const RESET: Broken = Broken::System(rustix::io::Errno::CONNRESET);

const SURPLUS: Fault = Fault::Protocol("bytes came after a whole answer");

/// What an answer comes to: its status and content length, or the fault.
type Read = Result<(u16, u64), Fault>;

/// Reads a stream in the given pieces, then sees its end.
fn read_in<'a>(method: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = Reader::default();
    let mut whole = false;
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        // After a whole answer nothing may come.
        let taken = if whole { Some(0) } else { reader.feed(piece, method == "HEAD")? };
        if taken.is_some_and(|taken| taken < piece.len()) {
            return Err(SURPLUS);
        }
        whole = taken.is_some();
    }
    if !whole {
        reader.end()?;
    }
    Ok(reader.answer().unwrap())
}

/// Reads a stream whole, cut in two at every place, and one byte at a time: each must come to the same.
fn read(method: &str, stream: &[u8]) -> Read {
    let expected = read_in(method, [stream]);
    for at in 0..=stream.len() {
        let (one, two) = stream.split_at(at);
        assert_eq!(read_in(method, [one, two]), expected, "cut at {at}");
    }
    assert_eq!(read_in(method, stream.chunks(1)), expected, "one byte at a time");
    expected
}

fn protocol(method: &str, stream: &[u8]) -> &'static str {
    match read(method, stream) {
        Err(Fault::Protocol(why)) => why,
        other => panic!("{other:?} for {:?}", String::from_utf8_lossy(stream)),
    }
}

#[test]
fn bodies_end_where_their_framing_says() {
    for (stream, answer) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", (200, 3)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, 0)),
        ("HTTP/1.1 200\r\ncontent-length: 3, 3\r\nContent-Length: 3\r\n\r\nabc", (200, 3)),
        ("HTTP/1.1 404 Not Found\ncontent-length:1\n\nx", (404, 1)),
        ("HTTP/1.1 200 OK\r\n\r\nto the end", (200, 10)),
        ("HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n", (200, 0)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nto the end", (200, 10)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (200, 3)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 9\r\n\r\nA;x=\"y;z\"\r\n0123456789\r\n0b \t;q\r\n0123456789\n\r\n000;last\r\nX: y\r\nZ:\r\n\r\n",
            (200, 21),
        ),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", (204, 0)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", (304, 0)),
        ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", (304, 0)),
        ("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", (200, 1)),
        (
            "HTTP/1.1 100 Continue\r\nContent-Length: 7\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 0\r\n\r\n",
            (201, 0),
        ),
    ] {
        assert_eq!(read("GET", stream.as_bytes()), Ok(answer), "{stream:?}");
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    for head in ["Content-Length: 5", "Transfer-Encoding: chunked", "X: no framing"] {
        assert_eq!(read("HEAD", format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes()), Ok((200, 0)));
    }
    assert_eq!(read("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"), Err(SURPLUS));
}

#[test]
fn fewer_bytes_than_promised_are_a_fault_of_the_body() {
    let short = Fault::Short { got: 2, promised: 5 };
    assert_eq!(read("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"), Err(short));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, got) in
        [("", 0), ("5", 0), ("5\r\n12", 2), ("2\r\n12\r\n", 2), ("2\r\n12\r\n0\r\n", 2), ("0\r\nX: y\r\n", 0)]
    {
        assert_eq!(read("GET", format!("{head}{body}").as_bytes()), Err(Fault::Unfinished { got }), "{body:?}");
    }
}

#[test]
fn an_end_before_the_head_is_no_answer() {
    for stream in ["", "H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "HTTP/1.1 103 E\r\n\r\n"]
    {
        assert_eq!(read("GET", stream.as_bytes()), Err(Fault::Closed), "{stream:?}");
    }
}

#[test]
fn a_broken_connection_makes_no_answer_whole() {
    let broken = |stream: &[u8]| {
        let mut reader = Reader::default();
        assert_eq!(reader.feed(stream, false), Ok(None));
        reader.broken(RESET)
    };
    assert_eq!(broken(b"HTTP/1.1 200 OK\r\n"), Fault::Broken(RESET));
    assert_eq!(broken(b"HTTP/1.1 200 OK\r\n\r\nto the end"), Fault::Broken(RESET));
    assert_eq!(broken(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"), Fault::Short { got: 1, promised: 2 });
}

#[test]
fn what_is_no_answer_of_http_is_a_fault_of_protocol() {
    for stream in [
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "xHTTP/1.1 200 OK\r\n\r\n",
        "\x15\x03\x01\x00\x02\x02",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nspaced : x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nx",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        protocol("GET", stream.as_bytes());
    }
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "x\r\n",
        "\r\n",
        ";x\r\n",
        "-1\r\n",
        "11111111111111111\r\n",
        "1\nx",
        "1\r\nxy",
        "1;\n",
        "1\r\nx\r\r",
        "0\r\n\n",
        "0\r\nX\n",
    ] {
        protocol("GET", format!("{head}{body}").as_bytes());
    }
}

#[test]
fn a_whole_answer_ends_before_what_comes_after_it() {
    for stream in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\nx",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n",
    ] {
        assert_eq!(read("GET", stream.as_bytes()), Err(SURPLUS));
    }
}

#[test]
fn heads_are_long_up_to_a_bound() {
    let of = |length: usize, filler: &str| {
        let begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
        let mut head = begin.to_owned();
        while head.len() + filler.len() + 2 <= length {
            head.push_str(filler);
        }
        head + "\r\n"
    };
    for filler in ["a:b\r\n", "x-filler: 0123456789012345678901234567890123456789\r\n"] {
        for length in [16 * 1024, LONGEST_HEAD] {
            let head = of(length, filler);
            assert_eq!(read_in("GET", [head.as_bytes()]), Ok((200, 0)));
            assert_eq!(read_in("GET", head.as_bytes().chunks(1)), Ok((200, 0)));
        }
        let beyond = of(LONGEST_HEAD + 100, filler);
        let fault = Err(Fault::Protocol("the head is longer than 64 KiB"));
        assert_eq!(read_in("GET", [beyond.as_bytes()]), fault);
        assert_eq!(read_in("GET", beyond.as_bytes().chunks(1)), fault);
    }
}

#[test]
fn connections_persist_as_the_head_says() {
    let persists = |head: &str| {
        let mut reader = Reader::default();
        let stream = format!("{head}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(reader.feed(stream.as_bytes(), false), Ok(Some(stream.len())));
        reader.is_persistent()
    };
    assert!(persists("HTTP/1.1 200 OK"));
    assert!(persists("HTTP/1.0 200 OK\r\nConnection: Keep-Alive"));
    assert!(persists("HTTP/1.1 200 OK\r\nConnection: upgrade"));
    assert!(!persists("HTTP/1.0 200 OK"));
    assert!(!persists("HTTP/1.1 200 OK\r\nConnection: x, Close"));
    assert!(!persists("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nconnection: close"));
}

#[test]
fn what_was_read_can_be_shown() {
    let mut reader = Reader::default();
    let body = "y".repeat(3000);
    let stream = format!("HTTP/1.1 500 No\r\nX-Why: because\r\nContent-Length: 3000\r\n\r\n{body}");
    for piece in stream.as_bytes().chunks(700) {
        reader.feed(piece, false).unwrap();
    }
    let shown = reader.excerpt();
    assert_eq!(shown.status, Some(500));
    assert_eq!(shown.headers[0], ("X-Why".to_owned(), "because".to_owned()));
    assert_eq!(shown.body, vec![b'y'; 1024]);
    reader.reset();
    reader.feed(b"SSH-2.0-x", false).unwrap_err();
    assert_eq!(reader.excerpt(), Excerpt { status: None, headers: Vec::new(), body: b"SSH-2.0-x".to_vec() });
}

/// Cuts a stream at the given places.
fn cut<'a>(stream: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|place| place.index(stream.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces: Vec<&[u8]> = Vec::new();
    for place in places {
        pieces.push(&stream[from..place]);
        from = place;
    }
    pieces.push(&stream[from..]);
    pieces
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..6),
        hints in 0..3usize,
        chunked in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n".repeat(hints).into_bytes();
        let content = chunks.concat();
        if chunked {
            stream.extend_from_slice(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for chunk in &chunks {
                stream.extend_from_slice(format!("{:X};n=v\r\n", chunk.len()).as_bytes());
                stream.extend_from_slice(chunk);
                stream.extend_from_slice(b"\r\n");
            }
            stream.extend_from_slice(b"0\r\nTrailer: t\r\n\r\n");
        } else {
            stream.extend_from_slice(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len()).as_bytes());
            stream.extend_from_slice(&content);
        }
        prop_assert_eq!(read_in("GET", cut(&stream, &places)), Ok((200, content.len() as u64)));
    }

    #[test]
    fn answers_one_after_another_are_told_apart(
        answers in prop::collection::vec((prop::sample::select(vec![200u16, 204, 304, 404]), 0..300u64, any::<bool>()), 1..9),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (status, length, chunked) in answers {
            let body = "z".repeat(length as usize);
            let bodiless = [204, 304].contains(&status);
            let (framing, body) = match (bodiless, chunked && length > 0) {
                (true, _) => (format!("Content-Length: {length}"), String::new()),
                (false, true) => ("Transfer-Encoding: chunked".to_owned(), format!("{length:x}\r\n{body}\r\n0\r\n\r\n")),
                (false, false) => (format!("Content-Length: {length}"), body),
            };
            stream.extend_from_slice(format!("HTTP/1.1 {status} X\r\n{framing}\r\n\r\n{body}").as_bytes());
            expected.push((status, if bodiless { 0 } else { length }));
        }
        let (mut reader, mut read) = (Reader::default(), Vec::new());
        for mut piece in cut(&stream, &places) {
            while let Some(taken) = if piece.is_empty() { None } else { reader.feed(piece, false).unwrap() } {
                read.push(reader.answer().unwrap());
                reader.reset();
                piece = &piece[taken..];
            }
        }
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_bytes_make_it_panic(
        valid in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]),
        noise in prop::collection::vec(any::<u8>(), 0..400),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream = [valid.as_bytes(), &noise].concat();
        let in_pieces = read_in("GET", cut(&stream, &places));
        prop_assert_eq!(in_pieces, read_in("GET", [stream.as_slice()]));
    }
}
