//! Several requests, drawn by weight: each has its own expectation and its own figures.

use super::run_on;
use crate::faulty::{Act, Delivery, Faulty};
use bakeoff::load::{Expect, Options, Part, Request, Stop};

fn part(name: &str, weight: f64, method: &str, expect: Expect) -> Part {
    let request = Request { method: method.to_owned(), ..Request::get(format!("/{name}")) };
    Part { name: Some(name.to_owned()), weight, request, expect }
}

/// Three requests, of which one is good with 404 and one has no body in its answer.
fn mixed(options: &mut Options) {
    options.requests = vec![
        part("often", 8.0, "GET", Expect::default()),
        part("missing", 1.0, "GET", Expect { status: vec![404], bytes: Some(4) }),
        part("head", 1.0, "HEAD", Expect::default()),
    ];
    options.stop = Stop::Count(2000);
}

/// Answers as the request says; `HEAD` with a length and no body.
fn server() -> Faulty {
    Faulty::start(Delivery::Whole, |asked| {
        let answer: &[u8] = match asked.head.split(' ').nth(1).unwrap() {
            "/missing" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
            "/head" => b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\noften",
        };
        Act::Answer(answer.to_vec())
    })
}

#[test]
fn each_request_of_a_mix_has_its_own_expectation_and_figures() {
    for (threads, pipeline, rate) in [(1, 1, None), (2, 1, None), (1, 8, None), (2, 1, Some(20_000.0))] {
        let server = server();
        let outcome = run_on(&server, |options| {
            mixed(options);
            (options.threads, options.pipeline, options.rate) = (threads, pipeline, rate);
        });
        assert_eq!((outcome.counts.started, outcome.counts.ok), (2000, 2000));
        let names: Vec<&str> = outcome.requests.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["often", "missing", "head"]);
        let started: Vec<u64> = outcome.requests.iter().map(|named| named.counts.started).collect();
        assert_eq!(started.iter().sum::<u64>(), 2000);
        // Binomial with 2000 draws of 0.1: 200 ± 13.4; six deviations either way.
        assert!((120..=280).contains(&started[1]) && (120..=280).contains(&started[2]), "{started:?}");
        for named in &outcome.requests {
            assert_eq!((named.counts.ok, named.latency.count()), (named.counts.started, named.counts.started));
        }
        let sum: u128 = outcome.requests.iter().map(|named| named.latency.sum()).sum();
        assert_eq!(sum, outcome.latency.sum());
    }
}

#[test]
fn an_expectation_that_is_not_met_is_counted_with_its_request() {
    let server = server();
    let outcome = run_on(&server, |options| {
        mixed(options);
        options.requests[1].expect = Expect { status: vec![404], bytes: Some(5) };
    });
    let [often, missing, head] = &outcome.requests[..] else { panic!("{:?}", outcome.requests) };
    assert_eq!((often.counts.errors(), head.counts.errors()), (0, 0));
    assert_eq!((missing.counts.body, missing.latency.count()), (missing.counts.started, 0));
    assert_eq!(outcome.counts.body, missing.counts.started);
}
