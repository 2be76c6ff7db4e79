//! The life of a server: port, steps before, start, ready, idle values, end values, stop, steps after, and the proof that
//! the one that answers is the one that was started.
//!
//! In: a server of the plan whose needs are up. Out: a [`Live`] one, and at its end a [`Down`]. `server/ready` knows how
//! one is known to be ready, `server/proof` whose a port is, `server/builtin` is the embedded server as a process.

pub(super) mod builtin;
mod proof;
mod ready;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::blame::{Logs, failure, with_output};
use super::effects::{Down, Note, Trouble, Up};
use super::fill::Address;
use super::job::{self, told};
use super::site::{Site, Spot};
use super::{Interrupt, wait};
use crate::diagnostic::{Code, Diagnostic};
use crate::event::Metrics;
use crate::observe::cpu::{CpuSample, ThreadSample, processors};
use crate::observe::memory::{Memory, pss_of, rss_of};
use crate::observe::port::free_port;
use crate::plan::{self, Launch, Port, Server, Stdout};
use crate::process::{Process, Signal};

/// How long a connection that broke may be ahead of the news that its server has exited.
const NEWS: Duration = Duration::from_millis(100);

/// A server from the moment it is about to be started.
#[derive(Debug)]
pub(super) struct Live {
    /// Its process; none where it runs already, has not been started, or was stopped.
    process: Option<Process>,
    logs: Logs,
    /// Whether its process is meant to go on: an end then is a failure.
    serving: bool,
    /// The highest sum of resident memory over its tree that was seen, in bytes.
    tree_peak: Option<u64>,
}

/// The servers that are up, and those that are about to be: each beside its address.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// Where they are, in the order of their starts.
    pub(super) addresses: Vec<Address>,
    lives: Vec<Live>,
}

impl Fleet {
    fn index(&self, server: &Server) -> Option<usize> {
        self.addresses.iter().position(|address| address.id == server.identity.id)
    }

    fn live(&mut self, server: &Server) -> Option<&mut Live> {
        let index = self.index(server)?;
        self.lives.get_mut(index)
    }

    /// What is known of a server that is up.
    pub(super) fn address(&self, server: &Server) -> Option<&Address> {
        self.addresses.get(self.index(server)?)
    }

    /// The CPU time that a server's tree has used. Its launcher adopts orphans, and is no part of the tree itself.
    pub(super) fn cpu(&mut self, server: &Server) -> Option<CpuSample> {
        let process = self.live(server)?.process.as_ref()?;
        CpuSample::of_tree(process.launcher_id(), &process.tree())
    }

    /// The CPU time that each thread of a server's tree has used.
    pub(super) fn threads(&mut self, server: &Server) -> Option<ThreadSample> {
        ThreadSample::of_tree(&self.live(server)?.process.as_ref()?.tree())
    }

    /// The processors that a server's main process may use.
    pub(super) fn processors(&mut self, server: &Server) -> Option<Vec<usize>> {
        processors(self.live(server)?.process.as_ref()?.id())
    }

    /// Can be read when one of the servers has exited.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.lives.iter().filter_map(|live| Some(live.process.as_ref()?.fd())).collect()
    }

    /// Keeps the highest sum of resident memory over a server's tree and gives that of now, in bytes.
    pub(super) fn sample_memory(&mut self, server: &Server) -> Option<u64> {
        let live = self.live(server)?;
        let sum = rss_of(&live.process.as_ref()?.tree())?;
        live.tree_peak = live.tree_peak.max(Some(sum));
        Some(sum)
    }

    /// The failure of a server that has exited although it should be serving.
    pub(super) fn gone(&mut self, site: &Site<'_>) -> Option<Trouble> {
        for (address, live) in self.addresses.iter().zip(&mut self.lives) {
            let Some(server) = site.plan.server(&address.id) else { continue };
            if live.serving && live.exited() {
                return Some(live.death(site, server, "while it should be serving"));
            }
        }
        None
    }

    /// The same, a moment later: what broke a connection may be known before the exit is.
    pub(super) fn gone_soon(&mut self, site: &Site<'_>) -> Option<Trouble> {
        let until = Instant::now() + NEWS;
        loop {
            let gone = self.gone(site);
            if gone.is_some() || Instant::now() >= until {
                return gone;
            }
            wait::until(&self.fds(), Some(until));
        }
    }

    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    /// When a step fails, its port is taken, it exits, does not get ready in time, or another answers in its place.
    pub(super) fn start(&mut self, site: &Site<'_>, server: &Server) -> Result<Up, Trouble> {
        let id = &server.identity.id;
        let dir = site.directory(id).map_err(|error| {
            let message = format!("no directory for `{id}` can be made: {error}");
            failure(Code::WorkspaceFailed, server.identity.origin, message)
        })?;
        let (port, url) = match (&server.launch, server.port) {
            (Launch::Running(url), _) => (port_of(url), Some(url.trim_end_matches('/').to_owned())),
            (_, Port::None) => (None, None),
            (_, Port::Fixed(port)) => (Some(port), Some(local(server, port))),
            (_, Port::Auto) => {
                let port =
                    free_port().map_err(|error| failure(Code::PortTaken, server.identity.origin, error.to_string()))?;
                (Some(port), Some(local(server, port)))
            }
        };
        self.addresses.push(Address { id: id.clone(), port, url, dir });
        self.lives.push(Live { process: None, logs: Logs::default(), serving: false, tree_peak: None });
        self.steps(site, server, &server.before, false)?;
        if matches!(server.launch, Launch::Running(_)) {
            ready::wait(self, site, server)?;
            return Ok(Up { port, ..Up::default() });
        }
        if let Some(port) = port {
            proof::free(site.plan, server, port)?;
        }
        self.launch(site, server)?;
        let when = ready::wait(self, site, server)?;
        self.up(site, server, when)
    }

    fn launch(&mut self, site: &Site<'_>, server: &Server) -> Result<(), Trouble> {
        let Some(index) = self.index(server) else { return Ok(()) };
        let address = &self.addresses[index];
        let logs = site.logs(&server.identity.id, Stdout::File);
        let names = site.names(&address.dir, &self.addresses, None);
        let (command, origin) = match &server.launch {
            Launch::Process(process) => {
                let spot = Spot { names, cwd: &site.scenario_dir };
                (site.command(process, spot, &logs)?, process.origin)
            }
            Launch::Builtin(builtin) => {
                (builtin::command(site, builtin, address.port.unwrap_or_default(), &logs), server.identity.origin)
            }
            Launch::Running(_) => return Ok(()),
        };
        let process = site.launcher.launch(&command).map_err(|error| {
            let code = if job::missing(&error) { Code::ProgramMissing } else { Code::ServerExited };
            failure(code, origin, error.to_string())
        })?;
        self.lives[index] = Live { process: Some(process), logs, serving: true, tree_peak: None };
        Ok(())
    }

    /// What is taken when a server is ready, and the proof that it is the one that was started.
    fn up(&mut self, site: &Site<'_>, server: &Server, when: Instant) -> Result<Up, Trouble> {
        let Some(index) = self.index(server) else { return Ok(Up::default()) };
        let (live, port) = (&mut self.lives[index], self.addresses[index].port);
        let Some(process) = &live.process else { return Ok(Up::default()) };
        let idle = Memory::of(process.id());
        let tree = process.tree();
        let mut up = Up { port, ..Up::default() };
        up.metrics.insert("startup".to_owned(), when.saturating_duration_since(process.started()).as_secs_f64());
        if let Some(idle) = idle {
            up.metrics.insert("rss.idle".to_owned(), bytes(idle.resident));
        }
        if let Ok(Some(pss)) = pss_of(&tree) {
            up.metrics.insert("pss.idle".to_owned(), bytes(pss));
        }
        live.tree_peak = rss_of(&tree);
        if let Some(port) = port
            && let Err(trouble) = proof::ours(server, port, &tree, &mut up.notes)
        {
            // It may have exited, and another one answered.
            return Err(self.gone_soon(site).unwrap_or(trouble));
        }
        self.gone(site).map_or(Ok(up), Err)
    }

    /// The end values of a server.
    pub(super) fn rest(&mut self, server: &Server) -> (Metrics, Vec<Note>) {
        let (mut metrics, mut notes) = (Metrics::new(), Vec::new());
        self.sample_memory(server);
        let Some(live) = self.live(server) else { return (metrics, notes) };
        let Some(process) = &live.process else { return (metrics, notes) };
        let tree = process.tree();
        if let Some(memory) = Memory::of(process.id()) {
            metrics.insert("rss.peak".to_owned(), bytes(memory.peak));
        }
        if let Some(peak) = live.tree_peak {
            metrics.insert("rss.tree.peak".to_owned(), bytes(peak));
        }
        if let Ok(Some(pss)) = pss_of(&tree) {
            metrics.insert("pss.end".to_owned(), bytes(pss));
        }
        if tree.len() > 1 {
            let text = format!(
                "`{}` has {} processes: rss.peak and rss.idle are those of the main one alone",
                server.identity.id,
                tree.len()
            );
            notes.push(Note::new("rss-tree", text));
        }
        (metrics, notes)
    }

    /// Stops the server, which is the last that was started, and runs its steps after.
    pub(super) fn stop(&mut self, site: &Site<'_>, server: &Server) -> Down {
        let mut down = Down::default();
        if self.index(server).is_none() {
            return down;
        }
        self.end(site, server, &mut down);
        let steps = self.steps(site, server, &server.after, true);
        if let Err(trouble) = steps {
            down.trouble.get_or_insert(trouble);
        }
        if let Some(index) = self.index(server) {
            let address = self.addresses.remove(index);
            self.lives.remove(index);
            if !site.options.keep
                && let Err(error) = super::workspace::remove(&address.dir)
            {
                down.notes
                    .push(Note::new("not-removed", format!("{} cannot be removed: {error}", address.dir.display())));
            }
        }
        down
    }

    fn end(&mut self, site: &Site<'_>, server: &Server, down: &mut Down) {
        let port = self.address(server).and_then(|address| address.port);
        let interrupt = &site.options.interrupt;
        let Some(live) = self.live(server) else { return };
        if live.serving && live.exited() {
            down.trouble = Some(live.death(site, server, "while it should be serving"));
        }
        live.serving = false;
        let Some(mut process) = live.process.take() else { return };
        wait_for_exit(&mut process, server, interrupt);
        let ended = process.end();
        site.settle(&live.logs);
        let id = &server.identity.id;
        if ended.killed && interrupt.count() < 2 {
            let grace = crate::units::show::span(server.stop.grace.as_secs_f64());
            down.notes.push(Note::new("server-killed", format!("`{id}` did not stop within {grace} and was killed")));
        }
        if !ended.left.is_empty() {
            let text = format!("`{id}` left processes behind, which were ended: {}", job::list(&ended.left));
            down.notes.push(Note::new("left-behind", text));
        }
        let incomplete = |error| Note::new("log-incomplete", format!("`{id}`: {error}"));
        down.notes.extend(ended.log_errors.iter().map(incomplete));
        if let Err(trouble) = proof::gone(server, port, &ended) {
            down.trouble.get_or_insert(trouble);
        }
    }

    fn steps(&self, site: &Site<'_>, server: &Server, steps: &[plan::Step], cleans: bool) -> Result<(), Trouble> {
        let Some(address) = self.address(server) else { return Ok(()) };
        let names = site.names(&address.dir, &self.addresses, None);
        let spot = Spot { names, cwd: &site.scenario_dir };
        let mut outcome = Ok(());
        for step in steps {
            let done = job::step(site, step, spot, Code::StepFailed, cleans).map(drop);
            // Of steps that clean up, one that fails does not keep the next from its work.
            outcome = outcome.and(done);
            if outcome.is_err() && !cleans {
                break;
            }
        }
        outcome
    }
}

impl Live {
    fn exited(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| !matches!(process.poll_exit(), Ok(None)))
    }

    /// The failure of a server that has exited. What is left of its tree is ended, so that its log is whole.
    fn death(&mut self, site: &Site<'_>, server: &Server, when: &str) -> Trouble {
        self.serving = false;
        let ended = self.process.take().map(Process::end).unwrap_or_default();
        site.settle(&self.logs);
        let message = format!("the server `{}` {} {when}", server.identity.id, told(&ended));
        let mut diagnostic = failure(Code::ServerExited, origin(server), message);
        let well = ended.exit.as_ref().is_some_and(|exit| exit.status == crate::process::Status::Code(0));
        if well && !ended.left.is_empty() {
            diagnostic = diagnostic.help("run it in the foreground: the process that is started must be the server");
        }
        with_output(diagnostic, &self.logs, &site.secrets).into()
    }

    fn unready(&self, site: &Site<'_>, server: &Server, last: &str) -> Diagnostic {
        let timeout = crate::units::show::span(server.ready.timeout.as_secs_f64());
        let message = format!("the server `{}` was not ready within {timeout}", server.identity.id);
        let diagnostic = failure(Code::ServerNotReady, server.ready.origin, message).label(last);
        if self.process.is_some() { with_output(diagnostic, &self.logs, &site.secrets) } else { diagnostic }
    }
}

/// Asks a server to stop and gives it its grace, which a second signal ends.
fn wait_for_exit(process: &mut Process, server: &Server, interrupt: &Interrupt) {
    process.signal(signal(server.stop.signal));
    let until = wait::after(server.stop.grace);
    while matches!(process.poll_exit(), Ok(None)) && interrupt.count() < 2 {
        if until.is_some_and(|until| until <= Instant::now()) {
            return;
        }
        wait::until(&[process.fd(), interrupt.fd()], until);
    }
}

/// Where a server's command stands.
fn origin(server: &Server) -> plan::Origin {
    match &server.launch {
        Launch::Process(process) => process.origin,
        Launch::Builtin(_) | Launch::Running(_) => server.identity.origin,
    }
}

fn local(server: &Server, port: u16) -> String {
    let scheme = if server.is_secure() { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}")
}

/// The port of a server that runs already.
fn port_of(url: &str) -> Option<u16> {
    url.parse::<crate::fetch::Target>().ok().map(|target| target.port)
}

fn signal(signal: plan::Signal) -> Signal {
    match signal {
        plan::Signal::Hup => Signal::HUP,
        plan::Signal::Int => Signal::INT,
        plan::Signal::Quit => Signal::QUIT,
        plan::Signal::Kill => Signal::KILL,
        plan::Signal::Usr1 => Signal::USR1,
        plan::Signal::Usr2 => Signal::USR2,
        plan::Signal::Term => Signal::TERM,
    }
}

/// Bytes as a metric.
#[expect(clippy::cast_precision_loss, reason = "2^53 bytes are more memory than there is")]
pub(super) fn bytes(bytes: u64) -> f64 {
    bytes as f64
}
