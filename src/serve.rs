//! The embedded reference server.
//!
//! In: [`Options`] and a place for the one line that says where it listens. Out: nothing; [`run`] serves until the process
//! is told to end. It listens on 127.0.0.1 alone, keeps no log, and no request ends it.
//!
//! | route | answer |
//! | --- | --- |
//! | `/json` | `{"message":"hello","ok":true}`, or a JSON text of the length that the options ask for |
//! | `/bytes/N` | N bytes, at most 1 GiB |
//! | `/echo` | the body of the request, at most 64 MiB, with its content type |
//! | `/status/N` | status N (200 to 599), no body |
//! | `/` | a line of text |
//!
//! To add a route, add it to `routes::answer` and to this table.

mod alarm;
mod content;
mod routes;

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::task::LocalSet;

use alarm::Alarm;
use routes::Routes;

/// How many connections may wait to be accepted: a load that opens thousands at once must not wait for the kernel to try
/// the handshake again, a second later. The kernel takes the smaller of this and `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// How long accepting pauses when the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What the server is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The port on 127.0.0.1; 0 lets the kernel choose.
    pub port: u16,
    /// How long every answer is held back, counted from when the whole request was read. Zero: not at all. An answer
    /// goes out when the kernel's high resolution timer fires, typically under 0.1 ms late on an idle core.
    pub delay: Duration,
    /// The length of the answer of `/json` in bytes, when it is not to be the usual 29.
    pub body: Option<u64>,
}

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken, or may not be used.
    #[error("the built-in server cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port asked for.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The line that says where it listens could not be written.
    #[error("the built-in server cannot say that it listens: {0}")]
    Announce(io::Error),
    /// The runtime, the timer or the signal handlers could not be made.
    #[error("the built-in server cannot start: {0}")]
    Start(io::Error),
}

/// Serves until SIGTERM or SIGINT arrives, then drops every connection and returns. Once it listens it writes one line,
/// `listening on 127.0.0.1:PORT`, to `announce`. It raises the soft limit of open files to the hard one.
///
/// # Errors
/// When it cannot start to listen; never once it has.
pub fn run(options: &Options, announce: &mut dyn Write) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    raise_open_files();
    LocalSet::new().block_on(&runtime, async {
        let mut stop = Stop::new().map_err(Error::Start)?;
        let (listener, port) = listen(options.port).map_err(|source| Error::Listen { port: options.port, source })?;
        let alarm =
            if options.delay.is_zero() { None } else { Some(Alarm::start(options.delay).map_err(Error::Start)?) };
        let routes = Rc::new(Routes::new(options.body, alarm));
        writeln!(announce, "listening on 127.0.0.1:{port}").and_then(|()| announce.flush()).map_err(Error::Announce)?;
        tokio::select! {
            () = accept(&listener, routes) => {}
            () = stop.wait() => {}
        }
        Ok(())
    })
}

fn listen(port: u16) -> io::Result<(TcpListener, u16)> {
    let socket = TcpSocket::new_v4()?;
    // A server that is started again meets connections of its predecessor that are still closing.
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let listener = socket.listen(BACKLOG)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

async fn accept(listener: &TcpListener, routes: Rc<Routes>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::task::spawn_local(converse(stream, Rc::clone(&routes)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// One connection, to its end. What a client does wrong is answered by hyper (400 and the like) and ends here.
async fn converse(stream: TcpStream, routes: Rc<Routes>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| async { Ok::<_, Infallible>(routes.answer(request).await) });
    let _ = http1::Builder::new()
        .pipeline_flush(true)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The end of a pipe into which the handlers of SIGTERM and SIGINT write.
struct Stop {
    pipe: UnixStream,
    handlers: Vec<signal_hook::SigId>,
}

impl Stop {
    fn new() -> io::Result<Self> {
        let (read, write) = std::os::unix::net::UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let mut stop = Stop { pipe: UnixStream::from_std(read)?, handlers: Vec::new() };
        for signal in [SIGTERM, SIGINT] {
            stop.handlers.push(low_level::pipe::register(signal, write.try_clone()?)?);
        }
        Ok(stop)
    }

    async fn wait(&mut self) {
        let _ = self.pipe.read_u8().await;
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}

/// Every connection is a file: a load of some thousand connections must not fail by the usual soft limit of 1024. Where
/// the limit cannot be raised it stays, and accepting pauses when it is reached.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
