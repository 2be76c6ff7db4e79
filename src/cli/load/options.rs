//! The arguments of `load`: in comes what was written on the command line, out come the options of a load.
//!
//! What an option may be is checked by the load itself; here stands only what a command line adds: files, and text to be
//! taken apart.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::load::{Body, Engine, Error, Expect, Limit, Options, Outcome, Part, Protocol, Request, Stop, Target};
use crate::trust::Trust;
use crate::units::{parse_cpus, parse_duration};

/// The largest body, in bytes.
const LARGEST: u64 = 100 << 20;

/// Which load.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("stop").args(["duration", "requests"]))]
#[command(group = clap::ArgGroup::new("content").args(["body", "body_file"]))]
#[command(group = clap::ArgGroup::new("trust").args(["ca", "insecure"]))]
pub(super) struct Wishes {
    /// Such as http://127.0.0.1:8080/json
    #[arg(value_name = "URL")]
    url: String,

    /// Connections, over all threads
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    connections: usize,

    /// How long, such as 10s or 1m [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// How many requests, in place of a duration
    #[arg(short = 'n', long, value_name = "N")]
    requests: Option<u64>,

    /// Threads of the generator
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// Requests a second over all connections, each at its time whatever the server does (an open loop); latency counts
    /// from when a request was due [default: each connection sends when it has its answer]
    #[arg(short, long, value_name = "N")]
    rate: Option<f64>,

    /// Requests under way on a connection: behind each other, with --h2 on streams of their own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: usize,

    /// When a request without an answer is given up
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,

    /// A connection of its own for every request
    #[arg(long)]
    no_keep_alive: bool,

    /// Speak HTTP/2: to https:// when the server chooses it, to http:// without asking (prior knowledge)
    #[arg(long, visible_alias = "http2", help_heading = "Connection")]
    h2: bool,

    /// The method
    #[arg(short, long, value_name = "METHOD", default_value = "GET", help_heading = "Request")]
    method: String,

    /// A header; may be given more than once
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header, help_heading = "Request")]
    header: Vec<(String, String)>,

    /// The body as text
    #[arg(short, long, value_name = "TEXT", help_heading = "Request")]
    body: Option<String>,

    /// The body from a file, at most 100 MiB
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    body_file: Option<PathBuf>,

    /// Statuses of good answers, such as 200,404 [default: 200 to 299]
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Request")]
    status: Vec<u16>,

    /// How many bytes the body of a good answer has [default: any]
    #[arg(long, value_name = "N", help_heading = "Request")]
    bytes: Option<u64>,

    /// Connect to this socket; the URL tells the Host header and the path
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    unix_socket: Option<PathBuf>,

    /// Believe what the certificates of this PEM file vouch for, in place of the system's
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    ca: Option<PathBuf>,

    /// Believe any certificate
    #[arg(long, help_heading = "Connection")]
    insecure: bool,

    /// Processors that the threads are dealt, such as 1 or 0-3,6 [default: any]
    #[arg(long, value_name = "SET", value_parser = cpus, help_heading = "Generator")]
    cpus: Option<Cpus>,

    /// How sockets are driven
    #[arg(long, value_enum, default_value_t = EngineName::Auto, help_heading = "Generator")]
    engine: EngineName,

    /// Sleep until a request of an open loop is due: less CPU, some 50 µs later
    #[arg(long, requires = "rate", help_heading = "Generator")]
    no_spin: bool,
}

/// Numbers of processors.
#[derive(Debug, Clone)]
struct Cpus(Vec<usize>);

/// How sockets are driven.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum EngineName {
    /// io_uring for a closed loop where the kernel permits it, else epoll
    Auto,
    /// Readiness, and a system call for each send and receive
    Epoll,
    /// Submissions and completions in batches
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
}

fn cpus(text: &str) -> Result<Cpus, String> {
    parse_cpus(text).map(Cpus)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Wishes {
    /// The options of the load.
    pub(super) fn options(&self) -> Result<Options, Error> {
        let (target, path) = Target::parse(&self.url)?;
        if !target.is_tls() && (self.ca.is_some() || self.insecure) {
            let what = if self.insecure { "`--insecure`" } else { "`--ca`" };
            return Err(Error::Invalid { what: what.to_owned(), why: "needs a URL that begins with https://" });
        }
        let target = match &self.unix_socket {
            Some(path) => target.at_socket(path),
            None => target,
        };
        let request =
            Request { method: self.method.clone(), path, headers: self.header.clone(), body: self.content()? };
        let expect = Expect { status: self.status.clone(), bytes: self.bytes };
        let plain = Options::new(target, request.clone());
        Ok(Options {
            requests: vec![Part { name: None, weight: 1.0, request, expect }],
            connections: self.connections,
            stop: match (self.requests, self.duration) {
                (Some(count), _) => Stop::Count(count),
                (None, Some(duration)) => Stop::Duration(duration),
                (None, None) => plain.stop,
            },
            rate: self.rate,
            pipeline: self.pipeline,
            timeout: self.timeout,
            keep_alive: !self.no_keep_alive,
            protocol: if self.h2 { Protocol::Http2 } else { Protocol::Http1 },
            trust: match &self.ca {
                Some(path) => Trust::Authority(path.clone()),
                None if self.insecure => Trust::Anything,
                None => Trust::System,
            },
            threads: self.threads,
            cpus: self.cpus.clone().map(|cpus| cpus.0).unwrap_or_default(),
            engine: match self.engine {
                EngineName::Auto => Engine::Auto,
                EngineName::Epoll => Engine::Epoll,
                EngineName::IoUring => Engine::IoUring,
            },
            spin: !self.no_spin,
            ..plain
        })
    }

    /// The body that is sent.
    fn content(&self) -> Result<Body, Error> {
        if let Some(text) = &self.body {
            return Ok(Body::Sized(text.clone().into_bytes()));
        }
        self.body_file.as_deref().map_or(Ok(Body::None), |path| read(path).map(Body::Sized))
    }

    /// The signs that the figures are not, or not only, the server's.
    pub(super) fn limits(&self, outcome: &Outcome) -> Vec<Limit> {
        let concurrency = (!self.no_keep_alive).then_some((self.connections * self.pipeline) as f64);
        outcome.limits(concurrency, None)
    }
}

/// A body from a file.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let refused = |why| Error::Invalid { what: format!("the body {}", path.display()), why };
    let unreadable = |source| Error::System { doing: "reading the body's file", source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST { Err(refused("is larger than 100 MiB")) } else { Ok(bytes) }
}
