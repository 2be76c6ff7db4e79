//! Runs as they are: real processes, real sockets, the program itself as launcher and as reference server.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

#[path = "support/planned.rs"]
mod planned;

#[path = "run/commands.rs"]
mod commands;
#[path = "run/loads.rs"]
mod loads;
#[path = "run/servers.rs"]
mod servers;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bakeoff::diagnostic::Diagnostic;
use bakeoff::event::{Event, Failed, Metrics, Outcome, RunEnded, TurnEnded, Warning};
use bakeoff::run::{Ended, Fatal, Interrupt, Options, execute, refuse};

use planned::planned;

/// The program under test.
const BAKEOFF: &str = env!("CARGO_BIN_EXE_bakeoff");

/// A folder for a scenario and all that a run of it leaves.
struct Stage {
    folder: tempfile::TempDir,
    keep: bool,
}

/// What came of a run.
struct Ran {
    events: Vec<Event>,
    ended: Result<Ended, Fatal>,
    took: Duration,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["scenario", "work", "logs"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, keep: false }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file of the scenario.
    fn write(&self, name: &str, text: &str) {
        let path = self.path("scenario").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, scenario: &str) -> Ran {
        self.watched(scenario, |_, _| ())
    }

    /// Runs it; `watch` sees every event and may interrupt.
    fn watched(&self, scenario: &str, mut watch: impl FnMut(&Event, &Interrupt)) -> Ran {
        let (plan, sources) = planned(&self.path("scenario"), &scenario.replace("BAKEOFF", BAKEOFF));
        assert_eq!(refuse(&plan), [], "the test uses what is not executed yet");
        let options = Options {
            scenario_dir: self.path("scenario"),
            work_dir: self.path("work"),
            keep: self.keep,
            logs: self.path("logs"),
            launcher: PathBuf::from(BAKEOFF),
            interrupt: Interrupt::new().unwrap(),
        };
        let events = RefCell::new(Vec::new());
        let began = Instant::now();
        let ended = execute(&plan, &sources, &options, &mut |event| {
            watch(&event, &options.interrupt);
            events.borrow_mut().push(event);
            Ok(())
        });
        let ran = Ran { events: events.into_inner(), ended, took: began.elapsed() };
        assert_eq!(below(&self.path("")), Vec::<String>::new(), "processes are left");
        let left = std::fs::read_dir(self.path("work")).unwrap().count();
        assert_eq!(left, usize::from(self.keep), "the directory of the run");
        assert!(matches!(ran.events.last(), Some(Event::Finished { .. })));
        ran
    }

    /// All that the processes printed.
    fn logs(&self) -> String {
        let files = std::fs::read_dir(self.path("logs")).unwrap();
        files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
    }
}

impl Ran {
    fn failures(&self) -> Vec<&Failed> {
        self.events
            .iter()
            .filter_map(|event| if let Event::Failed(failed) = event { Some(failed) } else { None })
            .collect()
    }

    /// The one failure.
    fn failure(&self, code: &str) -> &Failed {
        let failures = self.failures();
        let [failed] = failures.as_slice() else { panic!("not one failure: {failures:#?}") };
        assert_eq!(failed.code, code, "{}", failed.rendered);
        failed
    }

    fn runs(&self) -> Vec<&RunEnded> {
        let mut runs = Vec::new();
        for event in &self.events {
            if let Event::RunEnded(run) = event {
                runs.push(run.as_ref());
            }
        }
        runs
    }

    fn turns(&self) -> Vec<&TurnEnded> {
        self.events
            .iter()
            .filter_map(|event| if let Event::TurnEnded(turn) = event { Some(turn) } else { None })
            .collect()
    }

    fn warnings(&self) -> Vec<&Warning> {
        let alone =
            self.events.iter().filter_map(|event| if let Event::Warning(one) = event { Some(one) } else { None });
        alone.chain(self.runs().into_iter().flat_map(|run| &run.warnings)).collect()
    }

    fn warned(&self, code: &str) -> &Warning {
        let found = self.warnings().into_iter().find(|warning| warning.code == code);
        found.unwrap_or_else(|| panic!("no warning {code}: {:#?}", self.warnings()))
    }

    /// Whether all went well.
    #[track_caller]
    fn well(&self) {
        let shown: Vec<&str> = self.failures().iter().map(|failed| failed.rendered.as_str()).collect();
        assert!(shown.is_empty(), "{}", shown.join("\n"));
        assert_eq!(self.ended.as_ref().unwrap(), &Ended { failed: false, interrupted: None });
        assert!(self.turns().iter().all(|turn| turn.outcome == Outcome::Ok));
        let finite = |metrics: &Metrics| metrics.values().all(|value| value.is_finite());
        assert!(self.runs().iter().all(|run| finite(&run.metrics)));
    }

    fn stopped(&self) -> &Diagnostic {
        match &self.ended {
            Err(Fatal::Stopped(diagnostic)) => diagnostic,
            other => panic!("it was not stopped: {other:?}"),
        }
    }
}

/// The processes whose working directory lies below a folder: those of a run, and of its servers.
fn below(folder: &Path) -> Vec<String> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = pids.filter(|pid| std::fs::read_link(pid.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)));
    inside
        .map(|pid| std::fs::read_to_string(pid.path().join("cmdline")).unwrap_or_default().replace('\0', " "))
        .collect()
}
