//! One of the load's connections: in come wishes for a stream, out come streams, over a connection that is made when there
//! is none, and made again when it has ended.
//!
//! Those who wait for the same connection fail together when it cannot be made; then the link pauses, twice as long each
//! time. A connection on which a request timed out, and which has said nothing since that was sent, gets no new requests.
//! Others that are under way on it keep their chance, for as long as a timeout.

use super::Thread;
use super::form::Form;
use crate::load::Error;
use crate::load::connection::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::load::engine::{self, Broken};
use crate::load::fault::Fault;
use crate::load::target::Address;
use crate::trust::phrase;
use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;

/// The longest head of an answer, as in HTTP/1.1.
const LONGEST_HEAD: u32 = 64 * 1024;

/// How much of the answers may be on its way: to one request, and on one connection. Bodies are taken up as they come.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;

/// How many streams that were given up are remembered, so that what still comes on them is passed over.
const REMEMBERED: usize = 1024;

/// Why there is no stream.
pub(super) enum Refusal {
    /// For this request.
    Fault(Fault),
    /// The generator cannot go on.
    Fatal(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

impl From<Broken> for Refusal {
    fn from(broken: Broken) -> Self {
        Self::Fault(Fault::Connect(broken))
    }
}

/// A connection that takes requests.
struct Live {
    sender: SendRequest<Bytes>,
    line: Rc<Line>,
}

/// What is known of a connection, by those who use it.
#[derive(Default)]
pub(super) struct Line {
    /// When something last came.
    heard: Cell<u64>,
    retired: Cell<bool>,
    retirement: Notify,
}

/// A stream: where the answer comes, where the body goes, and the connection it is on.
pub(super) type Stream = ((ResponseFuture, SendStream<Bytes>), Rc<Line>);

/// A place for a connection.
pub(super) struct Link {
    live: Mutex<Option<Live>>,
    dialing: Cell<bool>,
    /// How often no connection could be made, and why the last time.
    failures: Cell<u64>,
    fault: RefCell<Fault>,
    /// When the pause is over, and how long the next one is.
    again: Cell<u64>,
    pause: Cell<u64>,
    /// Whether a connection that gets no new requests is still there.
    draining: Rc<Cell<bool>>,
}

impl Link {
    /// One without a connection.
    pub(super) fn new() -> Self {
        Self {
            live: Mutex::new(None),
            dialing: Cell::new(false),
            failures: Cell::new(0),
            fault: RefCell::new(Fault::Closed),
            again: Cell::new(0),
            pause: Cell::new(FIRST_PAUSE),
            draining: Rc::default(),
        }
    }

    /// When its pause is over; it may be already.
    pub(super) fn again(&self) -> u64 {
        self.again.get()
    }

    /// Whether a connection is being made.
    pub(super) fn is_dialing(&self) -> bool {
        self.dialing.get()
    }

    /// Begins a request on a stream of its own, once the server takes another one, or fails by the deadline.
    pub(super) async fn stream(&self, thread: &Rc<Thread>, form: &Form, deadline: u64) -> Result<Stream, Refusal> {
        let at = tokio::time::Instant::from_std(thread.task.clock.instant(deadline));
        let before = self.failures.get();
        let Ok(mut live) = timeout_at(at, self.live.lock()).await else {
            let fault = if self.is_dialing() { Fault::ConnectTimeout } else { Fault::Timeout };
            return Err(Refusal::Fault(fault));
        };
        if self.failures.get() != before {
            return Err(Refusal::Fault(self.fault.borrow().clone()));
        }
        loop {
            live.take_if(|live| live.line.retired.get());
            let Live { sender, line } = match &mut *live {
                Some(live) => live,
                empty => empty.insert(self.dial(thread, at).await?),
            };
            let Ok(open) = timeout_at(at, poll_fn(|context| sender.poll_ready(context))).await else {
                return Err(Refusal::Fault(Fault::Timeout));
            };
            // A connection that has ended takes nothing: the request goes on the next one, it was not sent on this.
            let sent = open.and_then(|()| sender.send_request(form.head.clone(), form.body.is_empty()));
            let Ok(halves) = sent else {
                *live = None;
                continue;
            };
            let line = Rc::clone(line);
            if !thread.task.keep_alive {
                *live = None;
            }
            return Ok((halves, line));
        }
    }

    /// A request that was sent at a time is over without an answer.
    pub(super) fn timed_out(&self, line: &Line, sent: u64) {
        if line.heard.get() < sent && !line.retired.get() && !self.draining.get() {
            self.draining.set(true);
            line.retired.set(true);
            line.retirement.notify_one();
        }
    }

    /// Makes a connection, or says why there is none, and pauses.
    async fn dial(&self, thread: &Rc<Thread>, at: tokio::time::Instant) -> Result<Live, Refusal> {
        let clock = thread.task.clock;
        let dialed = clock.now();
        thread.books.borrow_mut().tally.connections += 1;
        self.dialing.set(true);
        let made = timeout_at(at, self.connect(thread)).await;
        self.dialing.set(false);
        let now = clock.now();
        let made = made.unwrap_or(Err(Refusal::Fault(Fault::ConnectTimeout)));
        match &made {
            Ok(_) => {
                self.pause.set(FIRST_PAUSE);
                let mut books = thread.books.borrow_mut();
                if now < books.schedule.until {
                    books.connect.record(now - dialed);
                }
            }
            Err(Refusal::Fault(fault)) => {
                self.failures.set(self.failures.get() + 1);
                self.fault.replace(fault.clone());
                let pause = self.pause.get();
                self.again.set(now.saturating_add(pause));
                self.pause.set((pause * 2).min(LONGEST_PAUSE));
            }
            Err(Refusal::Fatal(_)) => {}
        }
        made
    }

    /// A connection on which the preface was sent.
    async fn connect(&self, thread: &Rc<Thread>) -> Result<Live, Refusal> {
        let plain = socket(&thread.task.address, thread.ephemeral).await?;
        let inner = match &thread.secured {
            None => plain,
            Some(secured) => {
                let connector = TlsConnector::from(Arc::clone(&secured.config));
                let stream = connector.connect(secured.name.clone(), plain).await;
                let stream = stream.map_err(|error| untrusted(&error))?;
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(Broken::Tls("the server did not choose h2 (by ALPN)".to_owned()).into());
                }
                Box::pin(stream)
            }
        };
        let line = Rc::<Line>::default();
        let metered = Metered { inner, thread: Rc::clone(thread), line: Rc::clone(&line) };
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LONGEST_HEAD)
            .max_local_error_reset_streams(None)
            .max_concurrent_reset_streams(REMEMBERED)
            // Until the server has said how many it takes, a second one might be refused.
            .initial_max_send_streams(1)
            .handshake(metered)
            .await
            .map_err(|error| Broken::Tls(error.to_string()))?;
        let (own, draining) = (Rc::clone(&line), Rc::clone(&self.draining));
        let patience = Duration::from_nanos(thread.task.timeout);
        tokio::task::spawn_local(async move {
            let overstayed = async {
                own.retirement.notified().await;
                tokio::time::sleep(patience).await;
            };
            tokio::select! {
                // What ended it, its streams say.
                _ = connection => {}
                () = overstayed => {}
            }
            if own.retired.get() {
                draining.set(false);
            }
        });
        Ok(Live { sender, line })
    }
}

/// What a connection reads from and writes to.
trait Bytestream: AsyncRead + AsyncWrite {}

impl<S: AsyncRead + AsyncWrite> Bytestream for S {}

/// A socket that is connected.
async fn socket(address: &Address, ephemeral: bool) -> Result<Pin<Box<dyn Bytestream>>, Refusal> {
    let descriptor = engine::socket(address, true)?;
    match address.connect(&descriptor) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(engine::refused(errno, address)?.into()),
    }
    let watching = |source| Error::System { doing: "watching a socket", source };
    let broken = |error: io::Error| Broken::System(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    match address {
        Address::Unix(_) => {
            let stream = UnixStream::from_std(descriptor.into()).map_err(watching)?;
            stream.writable().await.map_err(watching)?;
            stream.take_error().map_err(watching)?.map_or(Ok(()), |error| Err(broken(error)))?;
            Ok(Box::pin(stream))
        }
        Address::Tcp(_) => {
            let twin: Option<OwnedFd> = if ephemeral { descriptor.try_clone().ok() } else { None };
            let stream = TcpStream::from_std(descriptor.into()).map_err(watching)?;
            stream.writable().await.map_err(watching)?;
            stream.take_error().map_err(watching)?.map_or(Ok(()), |error| Err(broken(error)))?;
            if twin.is_some_and(|twin| engine::is_own(&twin)) {
                return Err(Broken::Itself.into());
            }
            Ok(Box::pin(stream))
        }
    }
}

/// What a failed handshake of TLS means.
fn untrusted(error: &io::Error) -> Broken {
    match (phrase(error), Errno::from_io_error(error)) {
        (Some(why), _) => Broken::Tls(why),
        (None, Some(errno)) => Broken::System(errno),
        (None, None) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Broken::Tls("the connection ended in the handshake".to_owned())
        }
        (None, None) => Broken::Tls(error.to_string()),
    }
}

/// A byte stream of which it is known how much came, and when.
struct Metered {
    inner: Pin<Box<dyn Bytestream>>,
    thread: Rc<Thread>,
    line: Rc<Line>,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.inner.as_mut().poll_read(context, buffer))?;
        let came = buffer.filled().len() - before;
        if came > 0 {
            self.line.heard.set(self.thread.heard(came));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.inner.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
