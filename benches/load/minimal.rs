//! The least HTTP server that there can be: one thread, epoll, the same 29 bytes to whatever ends in an empty line.
//!
//! It counts requests, and answers `COUNT` with how many there were: a figure that no generator has a say in.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, sockopt};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// The answer: what Bun.serve and Express say of such a body, without their other headers.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n{\"message\":\"hello\",\"ok\":true}";

/// The same for a client of HTTP/1.0, such as ab, which else waits for the end of the connection.
const KEPT: &[u8] =
    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n\
    {\"message\":\"hello\",\"ok\":true}";

/// How a request ends.
const END: &[u8] = b"\r\n\r\n";

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Serves on a port, which it tells on stdout, until its parent ends; 0 is a free one.
pub(crate) fn run(port: u16) {
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
    rustix::net::listen(&socket, BACKLOG).unwrap();
    let listener = TcpListener::from(socket);
    let mut out = std::io::stdout();
    writeln!(out, "{}", listener.local_addr().unwrap().port()).unwrap();
    out.flush().unwrap();
    serve(&listener);
}

fn serve(listener: &TcpListener) {
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let watch = |socket: BorrowedFd<'_>| {
        epoll::add(&epoll, socket, EventData::new_u64(socket.as_raw_fd() as u64), EventFlags::IN).unwrap();
    };
    let listening = std::os::fd::AsFd::as_fd(listener);
    watch(listening);
    let mut open: Vec<Option<OwnedFd>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let mut buffer = vec![0; 64 * 1024];
    let mut count = 0;
    loop {
        events.clear();
        if epoll::wait(&epoll, spare_capacity(&mut events), None).is_err() {
            continue;
        }
        for event in &events {
            let number = event.data.u64() as usize;
            if number == listening.as_raw_fd() as usize {
                let Ok(socket) = rustix::net::accept(listener) else { continue };
                sockopt::set_tcp_nodelay(&socket, true).unwrap();
                watch(std::os::fd::AsFd::as_fd(&socket));
                let number = socket.as_raw_fd() as usize;
                open.resize_with(open.len().max(number + 1), || None);
                open[number] = Some(socket);
                continue;
            }
            let Some(socket) = &open[number] else { continue };
            match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) if length > 0 => answer(socket, &buffer[..length], &mut count),
                _ => open[number] = None,
            }
        }
    }
}

/// Answers every request that ends in `input`: each, sent by one write, comes in one read.
fn answer(socket: &OwnedFd, input: &[u8], count: &mut u64) {
    if input.starts_with(b"COUNT") {
        let _ = rustix::net::send(socket, format!("{count}\n").as_bytes(), SendFlags::NOSIGNAL);
        return;
    }
    let requests = input.windows(END.len()).filter(|window| *window == END).count();
    *count += requests as u64;
    let line = input.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    let whole = if input[..line].ends_with(b"1.0") { KEPT } else { ANSWER };
    let sent = if requests == 1 {
        rustix::net::send(socket, whole, SendFlags::NOSIGNAL)
    } else {
        rustix::net::send(socket, &whole.repeat(requests), SendFlags::NOSIGNAL)
    };
    // Answers are so small that they fit; a client that is gone shows when it is read from.
    let _ = sent;
}
