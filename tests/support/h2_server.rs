//! A scripted HTTP/2 server, made of the `h2` crate and of nothing of this one: a script says what each request gets. It
//! counts the requests whose head and body it has read whole.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// A request that was read whole.
pub(crate) struct Asked {
    /// Which it is of all, from 1.
    pub(crate) number: u64,
    /// Which it is on its connection, from 1.
    pub(crate) on_connection: u64,
    /// Its head.
    pub(crate) head: Request<()>,
    /// Its body.
    pub(crate) body: Vec<u8>,
    /// In how many pieces that came.
    pub(crate) pieces: usize,
}

/// What a request gets.
pub(crate) enum Act {
    /// This head, then this body.
    Answer(Response<()>, Vec<u8>),
    /// The same, after a time.
    Late(Duration, Response<()>, Vec<u8>),
    /// The same, then a request to go away: the connection takes no more.
    Last(Response<()>, Vec<u8>),
    /// This head, this much of the body, then the end of the stream for this reason.
    Cut(Response<()>, Vec<u8>, Reason),
    /// The end of the stream for this reason, without a head.
    Reset(Reason),
    /// The end of the connection.
    Hang,
    /// Nothing, for as long as the client stays.
    Silence,
}

/// How a server takes requests.
#[derive(Clone, Default)]
pub(crate) struct Manner {
    /// How many streams it takes at once on a connection; any number where absent.
    pub(crate) streams: Option<u32>,
    /// How it speaks TLS, if it does.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
}

struct Inner {
    script: Box<dyn Fn(&Asked) -> Act + Send + Sync>,
    manner: Manner,
    seen: AtomicU64,
    busiest: AtomicU64,
    lengths: Mutex<Vec<u64>>,
}

/// A server of the loopback.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one on a free port.
    pub(crate) fn start(manner: Manner, script: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        Self::start_on(0, manner, script)
    }

    /// Starts one.
    pub(crate) fn start_on(port: u16, manner: Manner, script: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Box::new(script),
            manner,
            seen: AtomicU64::new(0),
            busiest: AtomicU64::new(0),
            lengths: Mutex::default(),
        });
        let (over, ended) = oneshot::channel();
        let its = Arc::clone(&inner);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(&listener, &its) => {}
                    _ = ended => {}
                }
            });
        });
        Self { address, inner, over: Some(over), thread: Some(thread) }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.inner.manner.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// How many requests it has read whole.
    pub(crate) fn seen(&self) -> u64 {
        self.inner.seen.load(SeqCst)
    }

    /// The most requests that one connection had under way at once.
    pub(crate) fn busiest(&self) -> u64 {
        self.inner.busiest.load(SeqCst)
    }

    /// How many requests came on each connection that has ended.
    pub(crate) fn lengths(&self) -> Vec<u64> {
        self.inner.lengths.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let inner = Arc::clone(inner);
        tokio::spawn(async move {
            match inner.manner.tls.clone() {
                None => serve(stream, inner).await,
                Some(tls) => {
                    // A client that does not believe the certificate ends it.
                    let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else { return };
                    serve(stream, inner).await;
                }
            }
        });
    }
}

/// What became of a connection by one of its requests.
#[derive(PartialEq)]
enum Wish {
    GoAway,
    Hang,
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, inner: Arc<Inner>) {
    let mut builder = server::Builder::new();
    if let Some(streams) = inner.manner.streams {
        builder.max_concurrent_streams(streams);
    }
    let Ok(mut connection) = builder.handshake(stream).await else { return };
    let (wish, mut wishes) = tokio::sync::mpsc::unbounded_channel();
    let busy = Arc::new(AtomicU64::new(0));
    let mut count = 0;
    loop {
        tokio::select! {
            biased;
            wished = wishes.recv() => match wished {
                Some(Wish::GoAway) => connection.graceful_shutdown(),
                _ => break,
            },
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { break };
                count += 1;
                let under_way = busy.fetch_add(1, SeqCst) + 1;
                inner.busiest.fetch_max(under_way, SeqCst);
                let (inner, wish, busy) = (Arc::clone(&inner), wish.clone(), Arc::clone(&busy));
                tokio::spawn(async move {
                    answer(request, respond, count, &inner, &wish).await;
                    busy.fetch_sub(1, SeqCst);
                });
            }
        }
    }
    inner.lengths.lock().unwrap().push(count);
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    on_connection: u64,
    inner: &Inner,
    wish: &tokio::sync::mpsc::UnboundedSender<Wish>,
) {
    let (head, mut stream) = request.into_parts();
    let (mut body, mut pieces) = (Vec::new(), 0);
    while let Some(data) = stream.data().await {
        let Ok(data) = data else { return };
        pieces += usize::from(!data.is_empty());
        body.extend_from_slice(&data);
        let _ = stream.flow_control().release_capacity(data.len());
    }
    let number = inner.seen.fetch_add(1, SeqCst) + 1;
    let asked = Asked { number, on_connection, head: Request::from_parts(head, ()), body, pieces };
    match (inner.script)(&asked) {
        Act::Answer(head, body) => whole(respond, head, body).await,
        Act::Late(pause, head, body) => {
            tokio::time::sleep(pause).await;
            whole(respond, head, body).await;
        }
        Act::Last(head, body) => {
            let _ = wish.send(Wish::GoAway);
            whole(respond, head, body).await;
        }
        Act::Cut(head, body, reason) => {
            let Ok(mut stream) = respond.send_response(head, false) else { return };
            send(&mut stream, body, false).await;
            // What was queued goes out before the stream ends.
            tokio::time::sleep(Duration::from_millis(5)).await;
            stream.send_reset(reason);
        }
        Act::Reset(reason) => respond.send_reset(reason),
        Act::Hang => drop(wish.send(Wish::Hang)),
        Act::Silence => std::future::pending().await,
    }
}

async fn whole(mut respond: SendResponse<Bytes>, head: Response<()>, body: Vec<u8>) {
    // The client may have gone.
    let Ok(mut stream) = respond.send_response(head, body.is_empty()) else { return };
    if !body.is_empty() {
        send(&mut stream, body, true).await;
    }
}

async fn send(stream: &mut SendStream<Bytes>, body: Vec<u8>, ends: bool) {
    let mut body = Bytes::from(body);
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let Some(Ok(room)) = poll_fn(|context| stream.poll_capacity(context)).await else { return };
        let part = body.split_to(room.min(body.len()));
        if stream.send_data(part, ends && body.is_empty()).is_err() {
            return;
        }
    }
}
