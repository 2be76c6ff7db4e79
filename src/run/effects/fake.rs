//! Effects that only say what they would do, into a journal.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::{Down, Effects, Note, Probed, Run, Seconds, Trouble, Up};
use crate::diagnostic::{Code, Diagnostic};
use crate::event::{Answer, InputFile, MachineFacts, Metrics, SetupStep, ToolFact};
use crate::plan::{Command, Expect, Load, Probe, Server, Step, Tool, Workspace};
use crate::run::job::line;

pub(in crate::run) type Journal = Rc<RefCell<Vec<String>>>;

/// Writes a journal.
#[derive(Default)]
pub(in crate::run) struct Fake {
    pub(in crate::run) journal: Journal,
    /// Entries at which something fails.
    pub(in crate::run) failing: Vec<(&'static str, Code)>,
    /// The entry at which a signal comes.
    pub(in crate::run) signal_at: Option<&'static str>,
    pub(in crate::run) signalled: bool,
}

impl Fake {
    fn does(&mut self, entry: String) -> Option<Trouble> {
        let code = self.failing.iter().find(|(failing, _)| *failing == entry).map(|(_, code)| *code);
        self.signalled |= self.signal_at == Some(entry.as_str());
        self.journal.borrow_mut().push(entry.clone());
        if self.signalled {
            return Some(Trouble::Interrupted);
        }
        code.map(|code| Diagnostic::bare(code, format!("{entry} failed")).into())
    }

    fn try_to(&mut self, entry: String) -> Result<(), Trouble> {
        self.does(entry).map_or(Ok(()), Err)
    }
}

fn metrics(values: &[(&str, f64)]) -> Metrics {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

impl Effects for Fake {
    fn machine(&mut self) -> MachineFacts {
        self.does("look at the machine".to_owned());
        MachineFacts::default()
    }

    fn inputs(&mut self) -> Result<(Vec<InputFile>, Vec<Note>), Trouble> {
        self.does("look at the inputs".to_owned());
        Ok((Vec::new(), Vec::new()))
    }

    fn setup(&mut self, step: &Step) -> Result<SetupStep, Trouble> {
        let step = line(&step.process);
        self.try_to(format!("set up {step}"))?;
        Ok(SetupStep { step, skipped: false, wall: None })
    }

    fn tool(&mut self, tool: &Tool) -> Result<ToolFact, Trouble> {
        self.try_to(format!("ask {}", tool.name))?;
        Ok(ToolFact { tool: tool.name.clone(), command: Vec::new(), exit: 0, lines: Vec::new() })
    }

    fn start(&mut self, server: &Server) -> Result<Up, Trouble> {
        self.try_to(format!("start {}", server.identity.id))?;
        Ok(Up { port: Some(1), metrics: metrics(&[("rss.idle", 10.0)]), notes: Vec::new() })
    }

    fn rest(&mut self, server: &Server) -> (Metrics, Vec<Note>) {
        self.does(format!("end values of {}", server.identity.id));
        (metrics(&[("rss.peak", 100.0)]), Vec::new())
    }

    fn stop(&mut self, server: &Server) -> Down {
        let trouble = self.does(format!("stop {}", server.identity.id));
        Down { notes: Vec::new(), trouble: trouble.filter(|trouble| matches!(trouble, Trouble::Failed(_))) }
    }

    fn probe(&mut self, server: &Server, probe: &Probe) -> Probed {
        let trouble = self.does(format!("probe {} {}", server.identity.id, probe.identity.id));
        let (headers, sha256, head) = (Vec::new(), String::new(), String::new());
        let answer = trouble.is_none().then_some(Answer { status: 200, headers, bytes: 0, sha256, head });
        Probed { answer, trouble, ..Probed::default() }
    }

    fn load(&mut self, server: &Server, load: &Load, length: Option<Duration>, seconds: &mut Seconds<'_>) -> Run {
        let length = length.map(|length| format!(" for {length:?}")).unwrap_or_default();
        let trouble = self.does(format!("load {} {}{length}", server.identity.id, load.identity.id));
        seconds(1.0, metrics(&[("requests", 3.0)]));
        Run { metrics: metrics(&[("errors.total", 3.0)]), trouble, ..Run::default() }
    }

    fn open(&mut self, command: &Command, workspace: Option<&Workspace>) -> Result<(), Trouble> {
        let workspace = if workspace.is_some() { " with a workspace" } else { "" };
        self.try_to(format!("open {}{workspace}", command.identity.id))
    }

    fn step(&mut self, step: &Step, cleans: bool) -> Result<(), Trouble> {
        let line = line(&step.process);
        self.try_to(if cleans { format!("clean up {line}") } else { format!("step {line}") })
    }

    fn command(&mut self, command: &Command, _: &[&Expect]) -> Run {
        let trouble = self.does(format!("run {}", command.identity.id));
        Run { metrics: metrics(&[("wall", 1.0)]), trouble, ..Run::default() }
    }

    fn close(&mut self) -> Down {
        self.does("close".to_owned());
        Down::default()
    }

    fn pause(&mut self, time: Duration) -> Result<(), Trouble> {
        self.try_to(format!("pause {time:?}"))
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.signalled.then_some("SIGTERM")
    }
}
