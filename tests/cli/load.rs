//! `bakeoff load` as a user has it: what it prints, how it ends.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use bakeoff::cli::SchemaKind;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use super::program::{bakeoff, result, run, scenario, stderr};

/// Answers requests that have no body with their path, and counts them; `/missing` is not found, `/never` is not answered.
fn serve(stream: impl Read + Write, seen: &AtomicU64) {
    let mut stream = BufReader::new(stream);
    let mut path = None;
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        if line == "\r\n" {
            seen.fetch_add(1, SeqCst);
            let path = path.take().unwrap();
            let status = if path == "/missing" { "404 Not Found" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{path}", path.len());
            if path != "/never" && stream.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        line.clear();
    }
}

/// A server for as long as the test lives.
fn server() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = Arc::clone(&counter);
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || serve(stream, &counter));
        }
    });
    (address, seen)
}

fn document(arguments: &[&str]) -> (Json, Option<i32>) {
    let output = run(&[&["load", "--json"], arguments].concat());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let json: Json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{}", stderr(&output)));
    let schema: Json = serde_json::from_str(&SchemaKind::Load.text()).unwrap();
    let errors: Vec<String> =
        jsonschema::draft7::new(&schema).unwrap().iter_errors(&json).map(|e| e.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    (json, output.status.code())
}

#[test]
fn the_document_has_what_the_server_has_counted() {
    let (address, seen) = server();
    let url = format!("http://{address}/hello");
    for engine in ["epoll", "auto"] {
        let before = seen.load(SeqCst);
        let (json, code) = document(&[&url, "-c", "4", "-n", "1000", "--engine", engine, "--bytes", "6", "-t", "2"]);
        assert_eq!(code, Some(0));
        let number = |path: &str| json.pointer(path).unwrap_or_else(|| panic!("{path}")).as_u64();
        assert_eq!((number("/requests/started"), number("/requests/ok")), (Some(1000), Some(1000)));
        assert_eq!((number("/opening/ok"), number("/latency/count")), (Some(4), Some(1000)));
        assert_eq!(seen.load(SeqCst) - before, 1004);
        assert_eq!(json["generator"]["threads"].as_array().unwrap().len(), 2);
        assert_eq!((&json["ending"], &json["address"]), (&Json::from("whole"), &Json::from(address.to_string())));
        let elapsed = json["elapsed"].as_f64().unwrap();
        assert!((json["throughput"].as_f64().unwrap() * elapsed - 1000.0).abs() < 1e-6);
        assert_eq!(json.get("pace"), None, "a closed loop has no pace");
        if engine == "epoll" {
            assert_eq!(json["generator"]["engine"], "epoll");
        }
    }
}

#[test]
fn an_open_loop_says_how_it_kept_its_times() {
    let (address, seen) = server();
    let (json, code) = document(&[&format!("http://{address}/"), "-c", "4", "-r", "200", "-d", "1s", "--no-spin"]);
    assert_eq!(code, Some(0));
    let pace = &json["pace"];
    assert_eq!((&pace["due"], &pace["rate"]), (&Json::from(200), &Json::from(200.0)));
    let late = json["generator"]["lateness"]["count"].as_u64().unwrap();
    assert_eq!(pace["sent"].as_u64(), Some(late));
    assert_eq!(late + pace["backlog"].as_u64().unwrap() + pace["expired"].as_u64().unwrap(), 200);
    assert_eq!(seen.load(SeqCst), late + 4);
}

#[test]
fn errors_are_counted_shown_and_end_with_one() {
    let (address, _) = server();
    let url = format!("http://{address}/missing");
    let (json, code) = document(&[&url, "-n", "20", "-c", "2"]);
    assert_eq!((code, &json["requests"]["errors"]["status"]), (Some(1), &Json::from(20)));
    assert_eq!((&json["kept"][0]["status"], json["kept"].as_array().unwrap().len()), (&Json::from(404), 10));
    assert_eq!(json["kept"][0]["body"], "L21pc3Npbmc=", "`/missing` by coreutils' base64");
    assert_eq!(document(&[&url, "-n", "20", "--status", "200,404"]).1, Some(0));
    let output = run(&["load", &url, "-n", "20", "-c", "2"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("20 started, 0 ok, 20 status"), "{text}");
    assert!(text.contains("the status 404 was not expected\n  status 404, 1 header\n  /missing\n"), "{text}");
}

#[test]
fn the_summary_has_percentiles_and_a_histogram_and_nothing_else_is_said() {
    let (address, _) = server();
    let output = run(&["load", &format!("http://{address}/"), "-n", "2000"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    for part in ["server          127.0.0.1:", "2,000 started, 2,000 ok\n", "\n  p50 ", "\n  p99 ", "\nup to\n", "█"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // 2,000 requests leave fewer than ten beyond p99.9.
    assert!(!text.contains("p99.9"), "{text}");
    let (_, rows) = text.split_once("\nup to\n").unwrap();
    let bins = rows.lines().take_while(|line| line.contains("s ")).filter_map(|line| line.split_whitespace().nth(2));
    let sum: u64 = bins.map(|count| count.replace(',', "").parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 2000, "{text}");
}

#[test]
fn a_unix_socket_is_reached_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = Arc::clone(&counter);
            thread::spawn(move || serve(stream, &counter));
        }
    });
    let (json, code) =
        document(&["http://localhost/x", "--unix-socket", path.to_str().unwrap(), "-n", "100", "-c", "2"]);
    assert_eq!((code, &json["requests"]["ok"]), (Some(0), &Json::from(100)));
    assert_eq!((&json["address"], seen.load(SeqCst)), (&Json::from(path.to_str().unwrap()), 102));
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let (address, _) = server();
    let url = format!("http://{address}/");
    let arguments = ["load", "--json", &url, "-d", "1m"];
    let mut child = bakeoff(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(json["ending"], "stopped");
    assert!(json["requests"]["ok"].as_u64().unwrap() > 0);
    assert!(json["elapsed"].as_f64().unwrap() < 30.0);
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let (address, _) = server();
    let (good, never) = (format!("http://{address}/"), format!("http://{address}/never"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{closed}/");
    let cases: [(&[&str], i32, &str); 19] = [
        (&[&nobody], 3, "no connection got an answer"),
        (&[&never, "--timeout", "200ms"], 3, "no connection got an answer"),
        (&["http://no.such.name.invalid/"], 3, "leads to no address"),
        (&["ftp://localhost/"], 2, "it begins neither with"),
        (&[&good, "-c", "0"], 2, "`connections` must be 1 to 65535"),
        (&[&good, "-c", "70000"], 2, "`connections` must be 1 to 65535"),
        (&[&good, "-r", "0"], 2, "`rate` must be above 0"),
        (&[&good, "-r", "nan"], 2, "`rate` must be above 0"),
        (&[&good, "-n", "0"], 2, "`count` must be at least 1"),
        (&[&good, "-d", "0s"], 2, "`duration` must be longer than nothing"),
        (&[&good, "-d", "soon"], 2, "soon"),
        (&[&good, "-d", "1s", "-n", "5"], 2, "cannot be used with"),
        (&[&good, "-t", "11"], 2, "at most one per connection"),
        (&[&good, "--pipeline", "2", "--no-keep-alive"], 2, "needs connections that are kept"),
        (&[&good, "-H", "no colon"], 2, "write NAME: VALUE"),
        (&[&good, "--insecure"], 2, "needs a URL that begins with https://"),
        (&[&good, "--no-spin"], 2, "--rate"),
        (&["https://localhost/", "--ca", "Cargo.toml"], 2, "holds no certificate"),
        (&[&good, "--body-file", "no-such-file"], 3, "reading the body's file"),
    ];
    for (arguments, code, reason) in cases {
        let began = Instant::now();
        let output = run(&[&["load"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty() && began.elapsed() < Duration::from_secs(30), "{arguments:?}");
    }
}

#[test]
fn a_body_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    std::fs::write(&path, b"\x00\xff body").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut bytes, mut stream) = (Vec::new(), listener.accept().unwrap().0);
        while !bytes.ends_with(b"body") {
            let mut some = [0; 4096];
            let count = stream.read(&mut some).unwrap();
            assert!(count > 0, "{bytes:?}");
            bytes.extend_from_slice(&some[..count]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
        bytes
    });
    // The server ends after the opening's request: the one of the window finds nobody.
    let file = path.to_str().unwrap();
    let output = run(&["load", &url, "-n", "1", "-c", "1", "-m", "PUT", "-H", "X-Y: z", "--body-file", file]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let sent = server.join().unwrap();
    let text = String::from_utf8_lossy(&sent);
    assert!(text.starts_with("PUT /x HTTP/1.1\r\n") && text.contains("X-Y: z\r\n"), "{text}");
    assert!(text.contains("Content-Length: 7\r\n") && sent.ends_with(b"\r\n\r\n\x00\xff body"), "{text}");
}

/// Each connection gets a beginning, then the same bytes for as long as it takes them. The limit of the memory is the
/// kernel's: above it an allocation fails, and the load with it.
#[test]
fn an_answer_without_end_costs_its_timeout_and_no_memory() {
    let chunk = [&b"1000\r\n"[..], &[b'x'; 4096], b"\r\n"].concat();
    let cases: [(&str, &[u8], &str); 4] = [
        ("HTTP/1.1 200 OK\r\n", b"X-Header: and another one\r\n", "protocol"),
        ("HTTP/1.1 200 OK\r\nX-Long: ", b"and so on and on ", "protocol"),
        ("HTTP/1.1 200 OK\r\n\r\n", b"a body without an end ", "timeout"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &chunk, "timeout"),
    ];
    for (beginning, again, kind) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let block = again.repeat(100_000 / again.len());
        thread::spawn(move || {
            let first = Arc::new(AtomicU64::new(0));
            for mut stream in listener.incoming().flatten() {
                let (first, block) = (Arc::clone(&first), block.clone());
                thread::spawn(move || {
                    let mut line = [0; 4096];
                    // The opening is answered, the window is not.
                    while stream.read(&mut line).is_ok_and(|bytes| bytes > 0) && first.fetch_add(1, SeqCst) < 2 {
                        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                    }
                    let _ = stream.write_all(beginning.as_bytes());
                    while stream.write_all(&block).is_ok() {}
                });
            }
        });
        let limited = "ulimit -d 49152; exec \"$0\" load \"$1\" --json -c 2 -n 2 --timeout 1s";
        let began = Instant::now();
        let output = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_bakeoff"), &url]).output().unwrap();
        let json: Json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!((output.status.code(), &json["requests"]["errors"][kind]), (Some(1), &Json::from(2)), "{json}");
        // Far more came than there was memory for.
        assert!(kind == "protocol" || json["received"].as_u64().unwrap() > 100_000_000, "{json}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// The most memory that a load with so many connections held, as the kernel says while it lives.
fn peak(url: &str, connections: u64, engine: &str) -> u64 {
    let (connections, count) = (connections.to_string(), (5 * connections).to_string());
    let mut child = bakeoff(&["load", url, "-c", &connections, "-n", &count, "--engine", engine, "--timeout", "60s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = line.map_or(peak, |kib| kib.parse::<u64>().unwrap() * 1024);
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    peak
}

/// 4 KiB of memory, at most.
fn is_cheap(connections: u64) {
    let (address, _) = server();
    let url = format!("http://{address}/");
    for engine in ["epoll", "auto"] {
        let (few, many) = (peak(&url, 100, engine), peak(&url, connections, engine));
        let each = many.saturating_sub(few) / (connections - 100);
        assert!(few > 1 << 20 && each < 4096, "{engine}: {few} B with 100, {many} B with {connections}: {each} B each");
    }
}

#[test]
fn a_connection_costs_little_memory() {
    is_cheap(1000);
}

#[test]
#[ignore = "its server has ten thousand threads"]
fn ten_thousand_connections_cost_little_memory_each() {
    is_cheap(10_000);
}

#[test]
fn more_connections_than_open_files_are_refused_before_anything_is_sent() {
    let (address, seen) = server();
    let limited = "ulimit -n 64; exec \"$0\" load \"$1\" -c 100 -n 100";
    let url = format!("http://{address}/");
    let output = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_bakeoff"), &url]).output().unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), seen.load(SeqCst)), (Some(3), 0), "{said}");
    assert!(said.contains("this process may have 64 (see `ulimit -Hn`)"), "{said}");
}

/// In a network of its own, in which a client may choose from ten ports.
#[test]
fn running_out_of_local_ports_is_the_fault_of_the_generator() {
    let network = |script: &str, scenario: &str, out: &str| {
        Command::new("unshare")
            .args(["-rn", "sh", "-c", script, env!("CARGO_BIN_EXE_bakeoff"), scenario, out])
            .output()
            .unwrap()
    };
    if !network("ip link set lo up", "", "").status.success() {
        eprintln!("not shown here: no network namespace, or no `ip` of iproute2");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "format = 1\nname = \"ports\"\n[servers.a]\nbuiltin = {}\n\
        [loads.l]\nrequest = \"GET /json\"\nconnections = 20\ncount = 1000\n\
        [measures.m]\nservers = [\"a\"]\nload = \"l\"\n";
    let (scenario, out) = (scenario(folder.path(), text), folder.path().join("out"));
    let limited = "ip link set lo up && echo 50000 50009 > /proc/sys/net/ipv4/ip_local_port_range && \
        exec \"$0\" run \"$1\" --out \"$2\"";
    let output = network(limited, &scenario, out.to_str().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let failure = &result(&out)["failures"][0];
    assert_eq!(failure["code"], "load-failed");
    let said = failure["rendered"].as_str().unwrap();
    assert!(said.contains("no local port left") && said.contains("reason: generator-ports"), "{said}");
}
