//! The HTTP load generator: knows URLs, connections and clocks; nothing of scenarios.
//!
//! In go [`Options`], out comes an [`Outcome`] in which every request that was started has an end with a name. [`start`]
//! checks, resolves and starts the threads; [`Running`] is looked at, stopped and finished. A thread is a plain one that
//! owns its connections, histograms and counters; what threads share is in `task`.
//!
//! To add another time to send, extend `schedule`; another way a request can end, [`Kind`] and `fault`; another framing,
//! `response`; another way to move bytes, an `engine`; another protocol, a module beside `worker` and `h2`, which share `books`.

mod books;
mod chunked;
mod connection;
mod engine;
mod fault;
mod files;
mod generator;
mod h2;
mod latency;
mod limits;
mod mix;
mod options;
mod outcome;
mod request;
mod response;
mod running;
mod schedule;
mod series;
mod tally;
mod target;
mod task;
mod worker;

pub use fault::Kind;
pub use generator::Thread;
pub use latency::Latency;
pub use limits::{Limit, ServerCpu};
pub use options::{Engine, Expect, Options, Part, Protocol, Stop};
pub use outcome::{Ending, Named, Outcome, Pace};
pub use request::{Body, Request};
pub use running::{Progress, Running};
pub use series::Second;
pub use tally::{Counts, Kept};
pub use target::{Address, Target};

use crate::trust::server_name;
use engine::epoll::Epoll;
use engine::tls::Tls;
use engine::uring::Uring;
use request::Wire;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use worker::Worker;

/// Why a load could not be started, or has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a URL that names a server.
    #[error("{url:?} is not the URL of a server: {why}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is not known which certificates to believe.
    #[error(transparent)]
    Trust(#[from] crate::trust::Error),
    /// An option, or a part of the request, cannot be.
    #[error("{what} {why}")]
    Invalid {
        /// Which option, with its value where that helps.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name of the server leads to no address.
    #[error("the name {host:?} leads to no address: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The generator has used up its local ports.
    #[error("this machine has no local port left for another connection to {address}")]
    Ports {
        /// The server's address.
        address: SocketAddr,
    },
    /// The generator may not open as many files as it needs connections.
    #[error("the load needs {wanted} open files, and this process may have {limit} (see `ulimit -Hn`)")]
    Descriptors {
        /// How many it may open.
        limit: u64,
        /// How many it needs.
        wanted: u64,
    },
    /// The system, or this process, has no file left.
    #[error("no file is left for another connection")]
    Files,
    /// `io_uring` was asked for, and is not to be had.
    #[error("io_uring is not permitted here: {0}")]
    Uring(io::Error),
    /// Not one connection of the opening got an answer.
    #[error("no connection got an answer from {address}: {why}")]
    Unanswered {
        /// The server's address.
        address: Address,
        /// What became of the first request.
        why: String,
    },
    /// The load was stopped before its window began.
    #[error("stopped before the window began")]
    Stopped,
    /// The books do not balance: a fault of the generator, whose figures must not be used.
    #[error("the generator lost count of its requests: {counts:?}, {recorded} latencies")]
    Conservation {
        /// The counters that do not add up.
        counts: Box<Counts>,
        /// How many latencies the histogram holds.
        recorded: u64,
    },
    /// The worker died of a fault of its own.
    #[error("the load generator failed: {0}")]
    Panicked(String),
    /// A system call of the generator's own failed.
    #[error("{doing}: {source}")]
    System {
        /// What the generator was about to do.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A histogram could not be written.
    #[error("a histogram cannot be written: {0}")]
    Encode(String),
}

impl Error {
    /// A stable word for results: `generator-…` where the generator, not the server, is at fault.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Url { .. } | Self::Trust(_) | Self::Invalid { .. } => "load-invalid",
            Self::Resolve { .. } => "load-unresolved",
            Self::Ports { .. } => "generator-ports",
            Self::Uring(_) => "generator-engine",
            Self::Descriptors { .. } | Self::Files => "generator-descriptors",
            Self::Unanswered { .. } => "load-unanswered",
            Self::Stopped => "load-stopped",
            Self::Conservation { .. } | Self::Panicked(_) | Self::Encode(_) => "generator-fault",
            Self::System { .. } => "generator-system",
        }
    }

    /// Names the deed of a failed system call.
    fn system(doing: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System { doing, source: errno.into() }
    }
}

/// Checks the options, resolves the server's name, and starts the threads.
///
/// # Errors
/// An option or a part of the request that cannot be, a name without an address, or a refusal of the system. What goes
/// wrong later is told by [`Running::finish`].
pub fn start(options: Options) -> Result<Running, Error> {
    options.check()?;
    let messages = Messages::new(&options)?;
    let mix = mix::Mix::new(&options);
    let address = options.target.resolve(options.timeout)?;
    let files = files::OpenFiles::allow(options.connections * messages.descriptors())?;
    let secured = options.target.is_tls().then(|| Secured::new(&options)).transpose()?;
    let uring = wants_uring(options.engine, options.rate.is_some())?;
    Running::spawn(task::Task::new(options, mix, address)?, files, move |task, thread| {
        generator::settle_down(&task.cpus_of(thread))?;
        let wires = match &messages {
            Messages::Http1(wires) => wires,
            Messages::Http2(forms) => return h2::run(task, thread, forms, secured.as_ref()),
        };
        let (address, connections) = (task.address.clone(), task.connections_of(thread));
        if uring {
            let engine = Uring::new(address, connections, task.stopping.as_fd())?;
            work(task, wires, thread, (engine, secured.as_ref()))
        } else {
            let engine = Epoll::new(address, connections, task.stopping.as_fd())?;
            work(task, wires, thread, (engine, secured.as_ref()))
        }
    })
}

/// The requests of a load as its protocol has them.
#[derive(Clone)]
enum Messages {
    Http1(Arc<[Wire]>),
    Http2(Arc<[h2::Form]>),
}

impl Messages {
    /// Checks and writes out every request.
    fn new(options: &Options) -> Result<Self, Error> {
        let requests = options.requests.iter().map(|part| &part.request);
        match options.protocol {
            Protocol::Http1 => {
                let wires = requests.map(|request| Wire::new(&options.target, request, options.keep_alive));
                wires.collect::<Result<_, _>>().map(Self::Http1)
            }
            Protocol::Http2 => {
                let forms = requests.map(|request| h2::Form::new(&options.target, request));
                forms.collect::<Result<_, _>>().map(Self::Http2)
            }
        }
    }

    /// How many files a connection may have open: in HTTP/2 the one before it may still be ending.
    fn descriptors(&self) -> usize {
        match self {
            Self::Http1(_) => 1,
            Self::Http2(_) => 2,
        }
    }
}

/// Whether io_uring is to be used: where it is asked for, and for a closed loop where the choice is free and the kernel permits
/// it. Its sends leave some 10 µs later, which an open loop would count.
fn wants_uring(engine: Engine, is_open: bool) -> Result<bool, Error> {
    match engine {
        Engine::Epoll => Ok(false),
        Engine::Auto => Ok(!is_open && Uring::permitted().is_ok()),
        Engine::IoUring => Uring::permitted().map(|()| true).map_err(Error::Uring),
    }
}

/// Does a thread's work with an engine, over TLS where that is asked for.
fn work(
    task: &Arc<task::Task>,
    wires: &[Wire],
    thread: usize,
    (engine, secured): (impl engine::Engine, Option<&Secured>),
) -> Result<books::Share, Error> {
    match secured {
        None => Worker::new(task, wires, thread, engine).run(),
        Some(Secured { config, name }) => {
            let connections = task.connections_of(thread);
            let engine = Tls::new(engine, connections, Arc::clone(config), name.clone());
            Worker::new(task, wires, thread, engine).run()
        }
    }
}

/// What TLS connections to a target are made with.
#[derive(Clone)]
struct Secured {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Secured {
    fn new(options: &Options) -> Result<Self, Error> {
        let config = options.trust.config(&[options.protocol.name().as_bytes()])?;
        Ok(Self { config, name: server_name(options.target.host())? })
    }
}
