//! A scripted HTTP server that is as faulty as a test wants: a script says what each request gets, and how a stream of
//! bytes is cut into writes. It counts the requests that it has read whole.
//!
//! It shares no code with the crate, so that a mistake there is not repeated here.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request that was read whole.
pub(crate) struct Asked {
    /// Which it is of all, from 1.
    pub(crate) number: u64,
    /// Which it is on its connection, from 1.
    pub(crate) on_connection: u64,
    /// Its head, without the empty line.
    pub(crate) head: String,
    /// Its body, without framing.
    pub(crate) body: Vec<u8>,
}

/// What a request gets.
pub(crate) enum Act {
    /// These bytes; the connection stays.
    Answer(Vec<u8>),
    /// These bytes, then the end of the connection.
    Last(Vec<u8>),
    /// Nothing, for as long as the client stays.
    Silence,
}

/// How bytes are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// All in one write.
    Whole,
    /// A write for each.
    Bytes,
    /// In two writes with a millisecond between them, cut where the number of the request says: over enough requests
    /// everywhere.
    Cut,
}

struct Inner {
    script: Box<dyn Fn(&Asked) -> Act + Send + Sync>,
    delivery: Delivery,
    seen: AtomicU64,
    over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// A server on a free port of the loopback.
pub(crate) struct Faulty {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    accepting: Option<JoinHandle<()>>,
}

impl Faulty {
    /// Starts one.
    pub(crate) fn start(delivery: Delivery, script: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", delivery, script)
    }

    /// Starts one on an address.
    pub(crate) fn start_on(
        address: &str,
        delivery: Delivery,
        script: impl Fn(&Asked) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Box::new(script),
            delivery,
            seen: AtomicU64::new(0),
            over: AtomicBool::new(false),
            streams: Mutex::new(Vec::new()),
        });
        let its = Arc::clone(&inner);
        let accepting = std::thread::spawn(move || accept(&listener, &its));
        Self { address, inner, accepting: Some(accepting) }
    }

    /// How many requests it has read whole.
    pub(crate) fn seen(&self) -> u64 {
        self.inner.seen.load(SeqCst)
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Dies: every connection ends, and new ones are refused.
    pub(crate) fn die(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            self.inner.over.store(true, SeqCst);
            let _ = TcpStream::connect(self.address);
            accepting.join().unwrap();
            for stream in self.inner.streams.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.die();
    }
}

fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    while let Ok((stream, _)) = listener.accept() {
        if inner.over.load(SeqCst) {
            break;
        }
        stream.set_nodelay(true).unwrap();
        inner.streams.lock().unwrap().push(stream.try_clone().unwrap());
        let inner = Arc::clone(inner);
        std::thread::spawn(move || serve(stream, &inner));
    }
}

fn serve(mut stream: TcpStream, inner: &Inner) {
    let mut unread = Vec::new();
    let mut on_connection = 0;
    while let Some((head, body)) = read_request(&mut stream, &mut unread) {
        on_connection += 1;
        let number = inner.seen.fetch_add(1, SeqCst) + 1;
        match (inner.script)(&Asked { number, on_connection, head, body }) {
            Act::Answer(bytes) => write(&mut stream, inner.delivery, number, &bytes),
            Act::Last(bytes) => {
                write(&mut stream, inner.delivery, number, &bytes);
                break;
            }
            Act::Silence => {
                while stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0) {}
                break;
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Writes as asked; a client that is gone shows when it is read from.
fn write(stream: &mut TcpStream, delivery: Delivery, number: u64, bytes: &[u8]) {
    match delivery {
        Delivery::Whole => {
            let _ = stream.write_all(bytes);
        }
        Delivery::Bytes => bytes.chunks(1).for_each(|byte| {
            let _ = stream.write_all(byte);
        }),
        Delivery::Cut => {
            let (first, rest) = bytes.split_at(number as usize % bytes.len().max(1));
            let _ = stream.write_all(first);
            std::thread::sleep(std::time::Duration::from_millis(1));
            let _ = stream.write_all(rest);
        }
    }
}

/// Reads one request; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let head = loop {
        if let Some(head) = take_to(unread, b"\r\n\r\n") {
            break String::from_utf8(head).unwrap();
        }
        more(stream, unread)?;
    };
    let value = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let mut body = Vec::new();
    if let Some(length) = value("content-length") {
        body = take(stream, unread, length.parse().unwrap())?;
    } else if value("transfer-encoding").is_some() {
        loop {
            let size = loop {
                if let Some(line) = take_to(unread, b"\r\n") {
                    break usize::from_str_radix(std::str::from_utf8(&line).unwrap(), 16).unwrap();
                }
                more(stream, unread)?;
            };
            body.extend(take(stream, unread, size)?);
            assert_eq!(take(stream, unread, 2)?, b"\r\n");
            if size == 0 {
                break;
            }
        }
    }
    Some((head, body))
}

fn take(stream: &mut TcpStream, unread: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    while unread.len() < length {
        more(stream, unread)?;
    }
    let rest = unread.split_off(length);
    Some(std::mem::replace(unread, rest))
}

fn take_to(unread: &mut Vec<u8>, end: &[u8]) -> Option<Vec<u8>> {
    let at = unread.windows(end.len()).position(|window| window == end)?;
    let taken = unread[..at].to_vec();
    unread.drain(..at + end.len());
    Some(taken)
}

fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 65536];
    match stream.read(&mut buffer) {
        Ok(0) | Err(_) => None,
        Ok(bytes) => {
            unread.extend_from_slice(&buffer[..bytes]);
            Some(())
        }
    }
}
