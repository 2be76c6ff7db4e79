//! The reference server, as a process of its own, spoken to over raw sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bakeoff::serve::{self, Error, Options};
use rustix::process::{Pid, Signal, kill_process};

const LONG: Duration = Duration::from_secs(20);

/// What the test binary does when it is started once more by [`Server::start`].
#[test]
#[ignore = "started by the other tests, as a process of its own"]
fn serve_as_the_environment_says() {
    let Ok(options) = std::env::var("SERVE") else { return };
    let numbers: Vec<Option<u64>> = options.split(',').map(|number| number.parse().ok()).collect();
    let delay = Duration::from_micros(numbers[1].unwrap());
    let options = Options { port: numbers[0].unwrap() as u16, delay, body: numbers[2] };
    serve::run(&options, &mut std::io::stderr()).unwrap();
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(options: &Options) -> Server {
        Server::through_shell("exec \"$0\" \"$@\"", options)
    }

    /// Started by a shell that first does something of its own.
    fn through_shell(shell: &str, options: &Options) -> Server {
        let body = options.body.map(|length| length.to_string()).unwrap_or_default();
        let mut child = Command::new("sh")
            .args(["-c", shell])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "serve_as_the_environment_says", "--nocapture"])
            .env("SERVE", format!("{},{},{body}", options.port, options.delay.as_micros()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.strip_prefix("listening on 127.0.0.1:").and_then(|port| port.strip_suffix('\n'));
        let port = port.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        Server { child, port }
    }

    fn plain() -> Server {
        Server::start(&Options::default())
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn get(&self, path: &str) -> Answer {
        self.connect().ask("GET", path, &[])
    }

    fn signal(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// One request and its answer; the connection stays.
    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        self.send(format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{length}\r\n").as_bytes());
        self.send(body);
        self.read(method != "HEAD")
    }

    fn read(&mut self, has_body: bool) -> Answer {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed after {lines:?}");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        let pair = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers = lines[1..].iter().map(|line| pair(line).unwrap()).collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        if has_body && let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut answer.body).unwrap();
        }
        answer
    }
}

#[test]
fn json_is_29_bytes_of_json() {
    let answer = Server::plain().get("/json");
    assert_eq!((answer.status, answer.body.as_slice()), (200, &br#"{"message":"hello","ok":true}"#[..]));
    assert_eq!(answer.body.len(), 29);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some("29"));
    let names: Vec<_> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "content-length", "date"]);
}

#[test]
fn json_of_another_length_is_json_of_that_length() {
    for length in [29, 1, 65536, 3_000_000] {
        let server = Server::start(&Options { body: Some(length), ..Options::default() });
        let answer = server.get("/json");
        assert_eq!((answer.status, answer.body.len() as u64), (200, length));
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap();
        // The other routes are as ever.
        assert_eq!(server.get("/bytes/7").body.len(), 7);
    }
}

#[test]
fn bytes_are_as_many_as_asked_for() {
    let server = Server::plain();
    let mut client = server.connect();
    for length in [0, 1, 29, 65535, 65536, 10_000_000] {
        let answer = client.ask("GET", &format!("/bytes/{length}"), b"");
        assert_eq!((answer.status, answer.body.len()), (200, length));
        assert_eq!(answer.header("content-length"), Some(length.to_string().as_str()));
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    }
    let largest = client.ask("HEAD", "/bytes/1073741824", b"");
    assert_eq!((largest.status, largest.header("content-length")), (200, Some("1073741824")));
    for path in
        ["/bytes/1073741825", "/bytes/99999999999999999999", "/bytes/-1", "/bytes/+1", "/bytes/", "/bytes/x", "/bytes"]
    {
        assert_eq!(client.ask("GET", path, b"").status, 404, "{path}");
    }
}

#[test]
fn echo_gives_back_body_and_type() {
    let server = Server::plain();
    let mut client = server.connect();
    let body: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
    let answer = client.ask("POST", "/echo", &body);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
    assert!(answer.body == body);
    client.send(b"PUT /echo HTTP/1.1\r\nhost: x\r\ncontent-type: text/x\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let answer = client.read(true);
    assert_eq!((answer.header("content-type"), answer.body.as_slice()), (Some("text/x"), &b"abcde"[..]));
    assert_eq!(client.ask("GET", "/echo", b"").body, b"");
}

#[test]
fn an_echo_that_is_too_large_is_refused_and_the_server_goes_on() {
    let server = Server::plain();
    let mut client = server.connect();
    client.send(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 67108865\r\n\r\n");
    assert_eq!(client.read(true).status, 413);
    // In chunks the length shows only on the way.
    let mut client = server.connect();
    client.send(b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    let stream = client.stream.get_mut();
    // The server answers and closes in the middle of it, so that writing may fail.
    let sent = (0..80).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent >= 63, "{sent}");
    assert_eq!(server.get("/json").status, 200);
}

#[test]
fn status_and_unknown_paths() {
    let server = Server::plain();
    let mut client = server.connect();
    for status in [200, 204, 301, 304, 404, 418, 500, 599] {
        let answer = client.ask("GET", &format!("/status/{status}"), b"");
        assert_eq!((answer.status, answer.body.len()), (status, 0));
    }
    for path in ["/status/199", "/status/600", "/status/0200x", "/status/", "/nowhere", "/json/", "//"] {
        assert_eq!(client.ask("GET", path, b"").status, 404, "{path}");
    }
    let root = client.ask("GET", "/", b"");
    assert_eq!((root.status, root.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(!root.body.is_empty());
    assert_eq!(client.ask("GET", "/json?a=b", b"").body.len(), 29);
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let server = Server::plain();
    let mut client = server.connect();
    for path in ["/json", "/", "/bytes/100000", "/nowhere"] {
        let head = client.ask("HEAD", path, b"");
        // The next answer on the same connection is in its place: no body came.
        let get = client.ask("GET", path, b"");
        assert_eq!(head.status, get.status);
        for name in ["content-type", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{path}");
        }
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(&Options { delay: Duration::from_micros(200), ..Options::default() });
    let mut client = server.connect();
    let requests: String = (1..=50).map(|n| format!("GET /bytes/{n} HTTP/1.1\r\nhost: x\r\n\r\n")).collect();
    client.send(requests.as_bytes());
    for n in 1..=50 {
        assert_eq!(client.read(true).body.len(), n);
    }
}

#[test]
fn a_client_that_has_closed_its_side_still_gets_its_answer() {
    let server = Server::start(&Options { delay: Duration::from_millis(20), ..Options::default() });
    let mut client = server.connect();
    client.send(b"GET /json HTTP/1.1\r\nhost: x\r\n\r\n");
    client.stream.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(true).body.len(), 29);
}

#[test]
fn faulty_clients_do_not_end_it() {
    let server = Server::plain();
    let faulty: [&[u8]; 6] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ];
    for bytes in faulty {
        let mut client = server.connect();
        client.send(bytes);
        // Answered with a status of 400 or closed: at any rate the connection ends.
        let _ = client.stream.get_mut().shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(bytes));
    }
    // A head without end, a half request, a client that takes nothing of what it asked for.
    let mut client = server.connect();
    let _ = client.stream.get_mut().write_all("x".repeat(1 << 20).as_bytes());
    server.connect().send(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf");
    server.connect().send(b"GET /bytes/100000000 HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(server.get("/json").body.len(), 29);
}

/// The median time of an answer of `/json`, over one connection.
fn median_time(delay: Duration) -> Duration {
    let server = Server::start(&Options { delay, ..Options::default() });
    let mut client = server.connect();
    let mut times: Vec<Duration> = (0..101)
        .map(|_| {
            let start = Instant::now();
            client.ask("GET", "/json", b"");
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[0] >= delay, "{:?}", times[0]);
    times[50]
}

#[test]
fn a_delay_is_never_shorter_and_not_rounded_to_milliseconds() {
    let (none, fine, coarse) =
        (median_time(Duration::ZERO), median_time(Duration::from_micros(300)), median_time(Duration::from_millis(5)));
    assert!(coarse < Duration::from_millis(20), "{coarse:?}");
    // A timer of whole milliseconds would make 1 to 2 ms of the fine one.
    assert!(fine < coarse / 4, "{none:?} {fine:?} {coarse:?}");
}

#[test]
fn delays_of_many_connections_run_side_by_side() {
    let delay = Duration::from_millis(100);
    let server = Server::start(&Options { delay, ..Options::default() });
    let mut clients: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    let start = Instant::now();
    for client in &mut clients {
        client.send(b"GET /json HTTP/1.1\r\nhost: x\r\n\r\n");
        // Some go away while they wait.
    }
    clients.truncate(40);
    for client in &mut clients {
        assert_eq!(client.read(true).body.len(), 29);
    }
    assert!(start.elapsed() >= delay && start.elapsed() < delay * 20, "{:?}", start.elapsed());
}

#[test]
fn term_and_int_end_it_with_exit_0_also_while_answers_wait() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&Options { delay: Duration::from_secs(60), ..Options::default() });
        let mut client = server.connect();
        client.send(b"GET /json HTTP/1.1\r\nhost: x\r\n\r\n");
        let port = server.port;
        let start = Instant::now();
        let status = server.signal(signal);
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{signal:?}");
        assert!(start.elapsed() < Duration::from_secs(10));
        // Its port is free for another at once.
        let again = Server::start(&Options { port, ..Options::default() });
        assert_eq!(again.get("/json").status, 200);
    }
}

#[test]
fn it_listens_on_the_ipv4_loopback_address_alone() {
    let server = Server::plain();
    let listeners = bakeoff::observe::socket::listeners(server.port).unwrap();
    let addresses: Vec<_> = listeners.iter().map(|listener| listener.address).collect();
    assert_eq!(addresses, [SocketAddr::from((Ipv4Addr::LOCALHOST, server.port))]);
    assert!(bakeoff::observe::socket::owner(listeners[0].inode, &[server.child.id()]).is_some());
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut said = Vec::new();
    let error = serve::run(&Options { port, ..Options::default() }, &mut said).unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("the built-in server cannot listen on 127.0.0.1:{port}: ")));
    assert!(said.is_empty());
}

#[test]
fn many_connections_may_wait_to_be_accepted() {
    let server = Server::plain();
    // Stopped, it accepts none; the kernel makes them all the same, as many as may wait.
    kill_process(Pid::from_child(&server.child), Signal::STOP).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let waiting: Vec<_> = (0..500).map(|_| TcpStream::connect_timeout(&address, LONG / 20).unwrap()).collect();
    kill_process(Pid::from_child(&server.child), Signal::CONT).unwrap();
    assert_eq!(server.get("/json").status, 200);
    drop(waiting);
}

#[test]
fn the_usual_limit_of_open_files_does_not_hold_it_back() {
    // The soft limit that it starts with is far below what it needs.
    let server = Server::through_shell("ulimit -Sn 64; exec \"$0\" \"$@\"", &Options::default());
    let mut clients: Vec<Client> = (0..200).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET", "/json", b"").body.len(), 29);
    }
}
