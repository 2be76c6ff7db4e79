//! What a server may do to an answer, in every shape of answer: whole, a byte at a time, cut at every place, with a long
//! head, with a long body; in both modes. The counts must be those of what was done, whatever the shape and the mode.

use super::run_on;
use crate::faulty::{Act, Asked, Delivery, Faulty};
use bakeoff::load::{Counts, Options};
use std::time::Duration;

/// How answers are made and sent: none of this may change a count.
#[derive(Clone, Copy, Debug)]
struct Shape {
    delivery: Delivery,
    head: usize,
    body: usize,
}

const SHAPES: [Shape; 5] = [
    Shape { delivery: Delivery::Whole, head: 0, body: 29 },
    Shape { delivery: Delivery::Bytes, head: 0, body: 29 },
    Shape { delivery: Delivery::Cut, head: 0, body: 29 },
    Shape { delivery: Delivery::Whole, head: 16 * 1024, body: 29 },
    Shape { delivery: Delivery::Whole, head: 0, body: 1024 * 1024 },
];

impl Shape {
    /// An answer with these header lines and a body of which `share` is sent.
    fn answer_part(self, head: &str, share: usize) -> Vec<u8> {
        let mut text = head.to_owned();
        let filler = "X-Filler: 0123456789012345678901234567890123456789\r\n";
        for _ in 0..self.head.div_ceil(filler.len()) {
            text.push_str(filler);
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len() + share, b'x');
        bytes
    }

    /// A good answer.
    fn good(self) -> Vec<u8> {
        self.answer_part(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", self.body), self.body)
    }
}

/// Runs a script in every shape and in both modes; 100 requests must come to `expected`.
fn in_every_shape(script: fn(Shape, &Asked) -> Act, change: fn(&mut Options), expected: Counts) {
    in_modes(&[as_is, open], script, change, expected);
}

/// An open loop with connections enough for ten of 100 requests to be without an answer, and none to wait.
fn open(options: &mut Options) {
    (options.connections, options.rate) = (20, Some(200.0));
}

fn in_modes(modes: &[fn(&mut Options)], script: fn(Shape, &Asked) -> Act, change: fn(&mut Options), expected: Counts) {
    for mode in modes {
        std::thread::scope(|scope| {
            for shape in SHAPES {
                scope.spawn(move || {
                    let server = Faulty::start(shape.delivery, move |asked| script(shape, asked));
                    let outcome = run_on(&server, |options| {
                        mode(options);
                        change(options);
                    });
                    let how = if outcome.pace.is_some() { "open" } else { "closed" };
                    assert_eq!(outcome.counts, Counts { started: 100, ..expected }, "{shape:?}, {how}");
                });
            }
        });
    }
}

/// The same for a fault of every tenth request, however many connections.
fn every_tenth(script: fn(Shape, &Asked) -> Act, change: fn(&mut Options), expected: Counts) {
    in_every_shape(script, change, Counts { ok: 90, ..expected });
}

fn as_is(_: &mut Options) {}

#[test]
fn good_answers_are_ok() {
    let all = Counts { ok: 100, ..Counts::default() };
    in_every_shape(|shape, _| Act::Answer(shape.good()), as_is, all);
}

#[test]
fn a_body_that_ends_with_its_connection_is_ok() {
    let all = Counts { ok: 100, ..Counts::default() };
    in_every_shape(|shape, _| Act::Last(shape.answer_part("HTTP/1.1 200 OK\r\n", shape.body)), as_is, all);
}

#[test]
fn a_request_that_gets_no_answer_is_a_reset_and_is_not_sent_again() {
    let script = |shape: Shape, asked: &Asked| match asked.number % 10 {
        0 => Act::Last(Vec::new()),
        _ => Act::Answer(shape.good()),
    };
    every_tenth(script, as_is, Counts { reset: 10, ..Counts::default() });
}

#[test]
fn a_body_cut_short_is_a_fault_of_the_body() {
    let script = |shape: Shape, asked: &Asked| match asked.number % 10 {
        0 => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", shape.body);
            Act::Last(shape.answer_part(&head, shape.body / 2))
        }
        _ => Act::Answer(shape.good()),
    };
    every_tenth(script, as_is, Counts { body: 10, ..Counts::default() });
}

#[test]
fn a_chunked_body_cut_short_is_a_fault_of_the_body() {
    let script = |shape: Shape, asked: &Asked| {
        let mut bytes = shape.answer_part("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", 0);
        bytes.extend_from_slice(format!("{:x};name=\"value\"\r\n", shape.body).as_bytes());
        bytes.resize(bytes.len() + shape.body, b'x');
        if asked.number.is_multiple_of(10) {
            return Act::Last(bytes);
        }
        bytes.extend_from_slice(b"\r\n0\r\nTrailer: here\r\n\r\n");
        Act::Answer(bytes)
    };
    every_tenth(script, as_is, Counts { body: 10, ..Counts::default() });
}

#[test]
fn a_request_that_is_never_answered_times_out() {
    let script = |shape: Shape, asked: &Asked| match asked.number % 10 {
        0 => Act::Silence,
        _ => Act::Answer(shape.good()),
    };
    let short = |options: &mut Options| options.timeout = Duration::from_secs(2);
    every_tenth(script, short, Counts { timeout: 10, ..Counts::default() });
}

#[test]
fn an_early_hint_is_not_the_answer() {
    let script = |shape: Shape, _: &Asked| {
        let hint = shape.answer_part("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n", 0);
        Act::Answer([hint, shape.good()].concat())
    };
    in_every_shape(script, as_is, Counts { ok: 100, ..Counts::default() });
}

#[test]
fn not_modified_has_no_body_whatever_its_length_says() {
    let script = |shape: Shape, _: &Asked| {
        Act::Answer(shape.answer_part(&format!("HTTP/1.1 304 Not Modified\r\nContent-Length: {}\r\n", shape.body), 0))
    };
    let wanted = |options: &mut Options| options.requests[0].expect.status = vec![304];
    in_every_shape(script, wanted, Counts { ok: 100, ..Counts::default() });
}

#[test]
fn no_content_and_answers_to_head_have_no_body() {
    let script = |shape: Shape, asked: &Asked| {
        let status = if asked.number.is_multiple_of(2) { "204 No Content" } else { "200 OK" };
        Act::Answer(shape.answer_part(&format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", shape.body), 0))
    };
    let head = |options: &mut Options| options.requests[0].request.method = "HEAD".to_owned();
    in_every_shape(script, head, Counts { ok: 100, ..Counts::default() });
}

/// On one connection, so that each surplus byte meets exactly one request: its own, or the one sent after it. In an open
/// loop it may come when no request is out, and then is nobody's.
#[test]
fn a_byte_after_a_whole_answer_is_a_fault_of_protocol() {
    let script = |shape: Shape, asked: &Asked| {
        let mut bytes = shape.good();
        if asked.number.is_multiple_of(10) {
            bytes.push(b'x');
        }
        Act::Answer(bytes)
    };
    let alone = |options: &mut Options| options.connections = 1;
    in_modes(&[as_is], script, alone, Counts { ok: 90, protocol: 10, ..Counts::default() });
}

#[test]
fn a_status_that_is_not_expected_is_counted_as_such() {
    let script = |shape: Shape, asked: &Asked| {
        let status = if asked.number.is_multiple_of(10) { "302 Found\r\nLocation: /elsewhere" } else { "200 OK" };
        Act::Answer(shape.answer_part(&format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", shape.body), shape.body))
    };
    every_tenth(script, as_is, Counts { status: 10, ..Counts::default() });
}
