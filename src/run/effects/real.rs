//! The effects as they are: thin, over the modules that know how.

use std::path::PathBuf;
use std::time::Duration;

use super::{Down, Effects, Note, Probed, Run, Seconds, Trouble, Up};
use crate::diagnostic::Code;
use crate::event::{InputFile, MachineFacts, Metrics, SetupStep, ToolFact};
use crate::plan::{Command, Expect, Load, Probe, Server, Stdout, Step, Tool, Workspace};
use crate::run::blame::failure;
use crate::run::job::{self, Blamed, Job};
use crate::run::server::Fleet;
use crate::run::site::{Site, Spot};
use crate::run::window::Window;
use crate::run::{command, inputs, machine, probe, tls, wait, workspace};

/// How many lines of a tool are recorded.
const TOOL_LINES: usize = 5;
/// How long a recorded line may be, in characters.
const TOOL_LINE: usize = 500;

/// Does what is asked.
pub(in crate::run) struct Real<'a> {
    site: &'a Site<'a>,
    fleet: Fleet,
    /// The directory of the command's run, and whether it is a workspace.
    open: Option<(PathBuf, bool)>,
}

impl<'a> Real<'a> {
    pub(in crate::run) fn new(site: &'a Site<'a>) -> Self {
        Self { site, fleet: Fleet::default(), open: None }
    }

    /// Where processes without an entry of their own are run.
    fn ground(&self) -> Spot<'_> {
        Spot { names: self.site.names(&self.site.run_dir, &[], None), cwd: &self.site.scenario_dir }
    }

    /// Where the processes of a command's run are run.
    fn spot(&self) -> Spot<'_> {
        let (dir, cwd) = match &self.open {
            Some((dir, true)) => (dir, dir),
            Some((dir, false)) => (dir, &self.site.scenario_dir),
            None => (&self.site.run_dir, &self.site.scenario_dir),
        };
        Spot { names: self.site.names(dir, &self.fleet.addresses, None), cwd }
    }
}

impl Effects for Real<'_> {
    fn machine(&mut self) -> MachineFacts {
        machine::facts(&self.site.run_dir)
    }

    fn inputs(&mut self) -> Result<(Vec<InputFile>, Vec<Note>), Trouble> {
        inputs::check(self.site)?;
        Ok(inputs::all(self.site))
    }

    fn setup(&mut self, step: &Step) -> Result<SetupStep, Trouble> {
        let done = job::step(self.site, step, self.ground(), Code::SetupFailed, false)?;
        let wall = done.as_ref().and_then(job::Done::exit).map(|exit| exit.wall.as_secs_f64());
        Ok(SetupStep { step: job::line(&step.process), skipped: done.is_none(), wall })
    }

    fn tool(&mut self, tool: &Tool) -> Result<ToolFact, Trouble> {
        let process = &tool.process;
        let name = format!("tool-{}", tool.name);
        let job = Job {
            process,
            spot: self.ground(),
            name: &name,
            stdout: Stdout::File,
            cleans: false,
            code: Code::ToolFailed,
        };
        let done = job::run(self.site, job)?;
        let named = format!("the tool `{}`", tool.name);
        if let Some(trouble) =
            done.failure(self.site, Blamed { code: Code::ToolFailed, name: &named, process }, &[&tool.expect])
        {
            return Err(trouble);
        }
        let [stdout, stderr] = done.logs.read();
        let text = if stdout.trim_ascii().is_empty() { stderr } else { stdout };
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| !line.trim().is_empty()).take(TOOL_LINES);
        let exit = done.exit().map(|exit| exit.status);
        Ok(ToolFact {
            tool: tool.name.clone(),
            command: process.argv.iter().map(|argument| self.ground().names.fill(argument)).collect(),
            exit: if let Some(crate::process::Status::Code(code)) = exit { code } else { -1 },
            lines: lines.map(|line| line.chars().take(TOOL_LINE).collect()).collect(),
        })
    }

    fn start(&mut self, server: &Server) -> Result<Up, Trouble> {
        self.fleet.start(self.site, server)
    }

    fn rest(&mut self, server: &Server) -> (Metrics, Vec<Note>) {
        self.fleet.rest(server)
    }

    fn stop(&mut self, server: &Server) -> Down {
        self.fleet.stop(self.site, server)
    }

    fn probe(&mut self, server: &Server, probe: &Probe) -> Probed {
        let interrupt = &self.site.options.interrupt;
        if interrupt.count() > 0 {
            return Probed {
                error: Some("interrupted".to_owned()),
                trouble: Some(Trouble::Interrupted),
                ..Probed::default()
            };
        }
        let address = self.fleet.address(server).cloned();
        let Some((address, url)) = address.and_then(|address| address.url.clone().map(|url| (address, url))) else {
            let text = format!("the server `{}` has no port that a probe could be sent to", server.identity.id);
            let trouble = failure(Code::ProbeFailed, probe.request_origin, text.clone()).into();
            return Probed { error: Some(text), trouble: Some(trouble), ..Probed::default() };
        };
        let names = self.site.names(&address.dir, &self.fleet.addresses, Some(&address.id));
        let tls = match tls::trust(server, &names).map(|trust| self.site.tls(&trust)).transpose() {
            Ok(tls) => tls,
            Err(error) => {
                let trouble = tls::unreadable(server, &error).into();
                return Probed { error: Some(error.to_string()), trouble: Some(trouble), ..Probed::default() };
            }
        };
        let mut probed = probe::send(probe, (&url, tls), &names, interrupt.flag());
        if probed.answer.is_none() && !command::interrupted(probed.trouble.as_ref()) {
            probed.trouble = self.fleet.gone_soon(self.site).or(probed.trouble);
        }
        probed
    }

    fn load(&mut self, server: &Server, load: &Load, length: Option<Duration>, seconds: &mut Seconds<'_>) -> Run {
        if self.site.options.interrupt.count() > 0 {
            return Run::failed(Trouble::Interrupted);
        }
        Window { site: self.site, server, load, length }.run(&mut self.fleet, seconds)
    }

    fn open(&mut self, command: &Command, workspace: Option<&Workspace>) -> Result<(), Trouble> {
        let origin = workspace.and_then(|workspace| workspace.origin).unwrap_or(command.process.origin);
        let failed = |error: String| failure(Code::WorkspaceFailed, origin, format!("no workspace: {error}"));
        let dir = self.site.directory(&command.identity.id).map_err(|error| failed(error.to_string()))?;
        self.open = Some((dir.clone(), workspace.is_some()));
        let Some(workspace) = workspace else { return Ok(()) };
        let names = self.site.names(&dir, &[], None);
        let root = &self.site.scenario_dir;
        let from = workspace.from.as_ref().map_or_else(|| root.clone(), |from| names.path(from, root));
        let copied: Vec<String> = workspace.copy.iter().map(|name| names.fill(name)).collect();
        workspace::copy(root, &from, &copied, &dir).map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    fn step(&mut self, step: &Step, cleans: bool) -> Result<(), Trouble> {
        job::step(self.site, step, self.spot(), Code::StepFailed, cleans).map(drop)
    }

    fn command(&mut self, command: &Command, expect: &[&Expect]) -> Run {
        command::run(self.site, command, self.spot(), expect)
    }

    fn close(&mut self) -> Down {
        let mut down = Down::default();
        if let Some((dir, _)) = self.open.take()
            && !self.site.options.keep
            && let Err(error) = workspace::remove(&dir)
        {
            down.notes.push(Note::new("not-removed", format!("{} cannot be removed: {error}", dir.display())));
        }
        down
    }

    fn pause(&mut self, time: Duration) -> Result<(), Trouble> {
        let interrupt = &self.site.options.interrupt;
        let until = wait::after(time);
        while interrupt.count() == 0 {
            if until.is_some_and(|until| until <= std::time::Instant::now()) {
                return Ok(());
            }
            wait::until(&[interrupt.fd()], until);
        }
        Err(Trouble::Interrupted)
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.site.options.interrupt.signal()
    }
}
