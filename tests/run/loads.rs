//! Loads of every kind in a whole run: what they send, what becomes of it, and what is said of the generator.

use std::time::Duration;

use super::{Ran, Stage};

#[path = "../../benches/load/minimal.rs"]
mod minimal;

#[path = "../support/h2_server.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod h2_server;

/// The port that a server of this program is to listen on.
const PORT: &str = "MINIMAL_SERVER_PORT";

/// Not a test: this program, started as a server that costs less than any generator.
#[test]
#[ignore = "it serves until it is ended"]
fn the_minimal_server() {
    if let Ok(port) = std::env::var(PORT) {
        minimal::run(port.parse().unwrap());
    }
}

/// Not a test: this program, started as a server that speaks HTTP/2 alone.
#[test]
#[ignore = "it serves until it is ended"]
fn the_server_of_http_2() {
    if let Ok(port) = std::env::var(PORT) {
        let _server = h2_server::Server::start_on(port.parse().unwrap(), h2_server::Manner::default(), |asked| {
            let status = if asked.head.uri().path() == "/json" { 200 } else { 404 };
            let head = http::Response::builder().status(status).body(()).unwrap();
            h2_server::Act::Answer(head, b"hello".to_vec())
        });
        loop {
            std::thread::park();
        }
    }
}

/// A server that is this program, started as one of the tests above.
fn own_server(name: &str, test: &str) -> String {
    let own = std::env::current_exe().unwrap();
    format!(
        "[servers.{name}]\ncommand = [{:?}, \"--exact\", \"loads::{test}\", \"--ignored\", \"--nocapture\"]\n\
         env = {{ {PORT} = \"{{{{ port }}}}\" }}\n",
        own.to_str().unwrap()
    )
}

#[test]
fn a_load_over_http_2() {
    let servers = own_server("two", "the_server_of_http_2");
    let ran = under(
        &servers,
        "request = \"GET /json\"\nprotocol = \"h2\"\nconnections = 2\npipeline = 4\ncount = 500\nexpect = { bytes = 5 }",
    );
    let run = ran.runs()[0];
    let metric = |name: &str| run.metrics[name];
    assert_eq!((metric("requests"), metric("errors.total"), metric("in_flight")), (500.0, 0.0, 0.0));
}

/// Runs a load with these lines on servers with those.
fn under(servers: &str, load: &str) -> Ran {
    let ran = Stage::new().run(&format!(
        "{servers}\n[loads.l]\n{load}\n[measures.m]\nservers = [\"*\"]\nload = \"l\"\nwarmup = 0\nstarts = 1\n"
    ));
    ran.well();
    ran
}

/// The codes of a run's warnings.
fn codes(ran: &Ran) -> Vec<&str> {
    ran.warnings().iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn an_open_loop_of_a_mix_has_figures_for_each_request() {
    let ran = under(
        "[servers.a]\nbuiltin = {}\n[servers.b]\nbuiltin = {}",
        r#"
        rate = 400
        duration = "500ms"
        connections = 4
        threads = 2
        requests = [
            { name = "get", path = "/json", weight = 3, expect = { bytes = 29 } },
            { name = "none", path = "/status/204", expect = { status = [204] } },
            { name = "bad", path = "/status/404" },
        ]
        "#,
    );
    let runs = ran.runs();
    let [a, b] = runs.as_slice() else { panic!("{runs:?}") };
    for run in [a, b] {
        let metric = |name: &str| run.metrics[name];
        // 400 a second for half a second.
        assert_eq!((metric("requests") + metric("generator.backlog"), metric("elapsed")), (200.0, 0.5));
        let of = |metric: &str| ["get", "none", "bad"].map(|name| run.metrics[&format!("{metric}[{name}]")]);
        assert_eq!(of("requests").iter().sum::<f64>(), metric("requests"));
        assert_eq!(
            (of("errors.status")[..2].iter().sum::<f64>(), of("errors.status")[2]),
            (0.0, metric("errors.total"))
        );
        assert!(of("requests")[0] > of("requests")[1] && metric("latency.max[get]") > 0.0);
        assert!(run.histograms.contains_key("latency[get]") && run.histograms.contains_key("generator.lateness"));
        assert!(metric("generator.sent") > 0.9 && metric("generator.lateness.p50") < 0.1);
        assert_eq!(metric("generator.threads"), 2.0);
        assert!(!run.metrics.contains_key("latency.p50[bad]") && !run.metrics.contains_key("generator.cpu[get]"));
    }
    // Drawn from one seed: both servers were asked for the same.
    let started =
        |run: &bakeoff::event::RunEnded| ["get", "none", "bad"].map(|name| run.metrics[&format!("requests[{name}]")]);
    if a.metrics["generator.backlog"] + b.metrics["generator.backlog"] == 0.0 {
        assert_eq!(started(a), started(b));
    }
}

#[test]
fn a_rate_that_the_server_cannot_meet_is_its_saturation() {
    let ran = under(
        "[servers.slow]\nbuiltin = { delay = \"20ms\" }",
        "rate = 500\nduration = \"1s\"\nconnections = 2\nrequest = \"GET /json\"",
    );
    let runs = ran.runs();
    let metrics = &runs[0].metrics;
    // Two connections can carry 100 a second.
    assert!(metrics["throughput"] <= 100.0 && metrics["throughput"] > 20.0, "{metrics:?}");
    assert!(metrics["generator.sent"] < 0.3 && metrics["generator.backlog"] >= 350.0, "{metrics:?}");
    // The later a request was due, the longer it waited: up to about the whole window.
    assert!(metrics["latency.max"] > 0.5, "{metrics:?}");
    let codes = codes(&ran);
    assert!(codes.contains(&"saturated") && !codes.contains(&"generator-bound"), "{codes:?}");
}

#[test]
fn pipelined_requests_go_out_together() {
    let ran = under(
        "[servers.slow]\nbuiltin = { delay = \"5ms\" }",
        "duration = \"1s\"\nconnections = 2\npipeline = 8\nrequest = \"GET /json\"",
    );
    let runs = ran.runs();
    let metrics = &runs[0].metrics;
    assert_eq!(metrics["errors.total"], 0.0);
    // Eight are under way on each of two connections.
    let concurrency = metrics["throughput"] * metrics["latency.mean"];
    assert!((14.0..=16.5).contains(&concurrency), "{metrics:?}");
}

#[test]
fn processors_that_were_divided_are_not_shared() {
    let load = "count = 100\nrequest = \"GET /json\"\n";
    let server = "[servers.s]\nbuiltin = {}\n";
    assert!(codes(&under(server, load)).contains(&"shared-cores"));
    if std::thread::available_parallelism().unwrap().get() > 1 {
        let (server, load) = (format!("{server}cpus = \"1\""), format!("{load}cpus = \"0\""));
        assert!(!codes(&under(&server, &load)).contains(&"shared-cores"));
    }
}

#[test]
fn a_count_to_which_no_answer_comes_is_given_up() {
    let ran = Stage::new().run(
        r#"
        [servers.mute]
        shell = "BAKEOFF __serve {{ port }} 0 & sleep 0.7; kill -STOP $!; wait"
        stop = { grace = "100ms" }
        [loads.l]
        request = "GET /json"
        count = 1000000000
        connections = 2
        timeout = "300ms"
        [measures.m]
        servers = ["mute"]
        load = "l"
        starts = 1
        warmup = 0
        "#,
    );
    let failed = ran.failure("load-failed");
    assert!(failed.message.ends_with("was given up: no answer came for 600 ms"), "{}", failed.message);
    let run = ran.runs()[0];
    assert!(run.metrics["requests"] > 2.0 && run.metrics["errors.timeout"] >= 2.0, "{:?}", run.metrics);
    assert!(ran.took < Duration::from_secs(20));
}

/// Where others leave the machine no processor, neither side is the limit: then it is tried again.
#[test]
fn a_server_faster_than_one_generator_thread_shows_that_it_was_the_limit() {
    let server = own_server("fast", "the_minimal_server");
    let mut seen = Vec::new();
    let is_told = (0..8).any(|_| {
        let ran = under(&server, "connections = 64\nduration = \"1s\"\nrequest = \"GET /\"\n");
        seen.push(ran.runs()[0].metrics.clone());
        codes(&ran).contains(&"generator-bound")
    });
    assert!(is_told, "{seen:?}");
}

/// What one thread can just not do is easy for two. Where others leave the machine no processor, it is tried again.
#[test]
fn more_threads_lift_the_limit_of_the_generator() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let server = own_server("fast", "the_minimal_server");
    let load =
        |more: &str| under(&server, &format!("connections = 64\nduration = \"1s\"\nrequest = \"GET /\"\n{more}"));
    let mut seen = Vec::new();
    let is_lifted = (0..8).any(|_| {
        let rate = 1.1 * load("").runs()[0].metrics["throughput"];
        let [one, two] = [1, 2].map(|threads| load(&format!("rate = {rate}\nthreads = {threads}\n")));
        seen.extend([&one, &two].map(|ran| ran.runs()[0].metrics.clone()));
        codes(&one).contains(&"generator-bound") && !codes(&two).contains(&"generator-bound")
    });
    assert!(is_lifted, "{seen:?}");
}
