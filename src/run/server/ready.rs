//! How a server is known to be ready: it accepts, it answers, it prints, or a command says so.
//!
//! It is asked at once and then in every `interval`; between, its exit and signals are waited for.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::super::blame::Logs;
use super::super::effects::Trouble;
use super::super::fill::Names;
use super::super::job::{self, Job};
use super::super::site::{Site, Spot};
use super::super::{tls, wait};
use super::Fleet;
use crate::diagnostic::Code;
use crate::fetch::{self, Fetcher, Request, Target};
use crate::plan::{Pattern, Process, ReadyWhen, Server, Stdout};

/// The longest that one connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until a server is ready and gives the time at which it was seen to be.
pub(super) fn wait(fleet: &mut Fleet, site: &Site<'_>, server: &Server) -> Result<Instant, Trouble> {
    let began = fleet.live(server).and_then(|live| live.process.as_ref().map(crate::process::Process::started));
    let deadline = began.unwrap_or_else(Instant::now) + server.ready.timeout;
    let mut asker = Asker::new(site, server)?;
    let mut known: Option<String> = None;
    loop {
        let has_time = deadline.saturating_duration_since(Instant::now()) >= PATIENCE;
        if site.options.interrupt.count() > 0 {
            return Err(Trouble::Interrupted);
        }
        match asker.ask(fleet, deadline)? {
            Ok(()) => return Ok(Instant::now()),
            // What is asked shortly before the end may be cut short, and then says less than what is known.
            Err(why) if has_time || known.is_none() => known = Some(why),
            Err(_) => {}
        }
        if let Some(live) = fleet.live(server)
            && live.exited()
        {
            return Err(live.death(site, server, "before it was ready"));
        }
        if let Some(trouble) = fleet.gone(site) {
            return Err(trouble);
        }
        if Instant::now() >= deadline {
            let why = known.unwrap_or_default();
            let unready = fleet.live(server).map(|live| live.unready(site, server, &why));
            return Err(unready.map_or(Trouble::Interrupted, Trouble::from));
        }
        let mut fds = fleet.fds();
        fds.push(site.options.interrupt.fd());
        wait::until(&fds, Some(deadline.min(Instant::now() + server.ready.interval)));
    }
}

struct Asker<'a> {
    site: &'a Site<'a>,
    server: &'a Server,
    fetcher: Option<Fetcher>,
    /// How much of stdout and stderr was searched.
    seen: [u64; 2],
}

impl<'a> Asker<'a> {
    fn new(site: &'a Site<'a>, server: &'a Server) -> Result<Self, Trouble> {
        let fetcher = match server.ready.when {
            ReadyWhen::Http { .. } => Some(
                Fetcher::new()
                    .map_err(|error| super::failure(Code::ServerNotReady, server.ready.origin, error.to_string()))?,
            ),
            _ => None,
        };
        Ok(Self { site, server, fetcher, seen: [0; 2] })
    }

    /// Asks once; why it is not ready yet is a phrase.
    fn ask(&mut self, fleet: &Fleet, deadline: Instant) -> Result<Result<(), String>, Trouble> {
        let address = fleet.address(self.server);
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let target = match address {
            Some(address) => match (&address.url, address.port) {
                (Some(url), _) => url.parse::<Target>().map_err(|error| error.to_string()),
                (None, Some(port)) => Ok(Target::local(port)),
                (None, None) => Err("it has no port".to_owned()),
            },
            None => Err("it is not started".to_owned()),
        };
        let outcome = match &self.server.ready.when {
            ReadyWhen::Tcp => target.and_then(|target| connect(&target, left.min(PATIENCE))),
            ReadyWhen::Http { path, status } => target.and_then(|target| {
                let dir = address.map(|address| address.dir.as_path()).unwrap_or(&self.site.run_dir);
                let names = self.site.names(dir, &fleet.addresses, None);
                self.trust(&names)?;
                self.get(target, &names.fill(path), *status, left)
            }),
            ReadyWhen::Output(pattern) => {
                let logs =
                    fleet.index(self.server).and_then(|index| fleet.lives.get(index)).map(|live| live.logs.clone());
                self.printed(&logs.unwrap_or_default(), pattern)
            }
            ReadyWhen::Command(process) => return self.command(fleet, process, left),
        };
        Ok(outcome)
    }

    /// Reads which certificates to believe. A server may write them when it starts: until it has, it is not ready.
    fn trust(&mut self, names: &Names<'_>) -> Result<(), String> {
        let Some(trust) = tls::trust(self.server, names) else { return Ok(()) };
        let tls = self.site.tls(&trust).map_err(|error| error.to_string())?;
        self.fetcher = self.fetcher.take().map(|fetcher| fetcher.trusting(tls));
        Ok(())
    }

    fn get(&self, target: Target, path: &str, status: u16, left: Duration) -> Result<(), String> {
        let Some(fetcher) = &self.fetcher else { return Err("it cannot be asked".to_owned()) };
        let answer = fetcher.fetch(&Request::get(target, path), left, self.site.options.interrupt.flag());
        match answer {
            Ok(answer) if answer.status == status => Ok(()),
            Ok(answer) => Err(format!("`{path}` answered with status {}, not {status}", answer.status)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Searches what it printed, when there is more of it. The head of a log is written as it comes.
    fn printed(&mut self, logs: &Logs, pattern: &Pattern) -> Result<(), String> {
        for (log, seen) in logs.stdout.iter().chain([&logs.stderr]).zip(&mut self.seen) {
            let length = std::fs::metadata(log).map_or(0, |file| file.len());
            if length != *seen {
                *seen = length;
                if std::fs::read(log).is_ok_and(|text| pattern.regex().is_match(&text)) {
                    return Ok(());
                }
            }
        }
        Err(format!("it printed nothing that matches `{}`", pattern.source()))
    }

    fn command(&self, fleet: &Fleet, process: &Process, left: Duration) -> Result<Result<(), String>, Trouble> {
        let dir = fleet.address(self.server).map_or(self.site.run_dir.as_path(), |address| &address.dir);
        let spot = Spot { names: self.site.names(dir, &fleet.addresses, None), cwd: &self.site.scenario_dir };
        let bounded =
            Process { timeout: Some(process.timeout.map_or(left, |timeout| timeout.min(left))), ..process.clone() };
        let name = format!("{}-ready", self.server.identity.id);
        let job = Job {
            process: &bounded,
            spot,
            name: &name,
            stdout: Stdout::File,
            cleans: false,
            code: Code::ServerNotReady,
        };
        let done = job::run(self.site, job)?;
        if done.cause == job::Cause::Interrupted {
            return Err(Trouble::Interrupted);
        }
        for log in done.logs.stdout.iter().chain([&done.logs.stderr]) {
            // It may be asked a thousand times a second: only the answer counts.
            let _ = std::fs::remove_file(log);
        }
        let exit = done.exit().map(|exit| exit.status);
        Ok(match exit {
            Some(crate::process::Status::Code(0)) if done.cause == job::Cause::Exited => Ok(()),
            _ => Err(format!("`{}` {}", job::line(process), job::told(&done.ended))),
        })
    }
}

fn connect(target: &Target, timeout: Duration) -> Result<(), String> {
    let addresses = match target.host.as_str() {
        "127.0.0.1" => vec![SocketAddr::from((Ipv4Addr::LOCALHOST, target.port))],
        host => std::net::ToSocketAddrs::to_socket_addrs(&(host, target.port))
            .map_err(|error| format!("the name {host} leads nowhere: {error}"))?
            .collect(),
    };
    let mut why = "its name leads to no address".to_owned();
    for address in addresses {
        match fetch::connect(address, timeout) {
            Ok(()) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}
