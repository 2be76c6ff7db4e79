//! Holes to strings: what only a run knows, filled into the texts of a plan.

use std::path::{Path, PathBuf};

use crate::plan::{Hole, Place, ServerField, Text, Value};

/// What is known of a server once it is about to start.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// Its id.
    pub(super) id: String,
    /// Where it listens, if it does.
    pub(super) port: Option<u16>,
    /// Its URL, where it listens.
    pub(super) url: Option<String>,
    /// Its directory.
    pub(super) dir: PathBuf,
}

/// What holes may mean at some moment of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    /// The scenario's folder.
    pub(super) scenario_dir: &'a Path,
    /// The directory of the run.
    pub(super) run_dir: &'a Path,
    /// The directory of the process in whose strings the holes stand.
    pub(super) dir: &'a Path,
    /// The servers that are up, or about to be.
    pub(super) servers: &'a [Address],
    /// The server that is measured.
    pub(super) subject: Option<&'a str>,
}

impl Names<'_> {
    /// The string. A plan has no hole that cannot be filled where it stands; one that cannot stays visible, in braces.
    pub(super) fn fill(&self, text: &Text) -> String {
        text.fill(|hole| self.hole(hole).unwrap_or_else(|| hole.to_string()))
    }

    /// A path; a relative one is taken from `base`.
    pub(super) fn path(&self, text: &Text, base: &Path) -> PathBuf {
        base.join(self.fill(text))
    }

    /// A value as JSON.
    pub(super) fn json(&self, value: &Value) -> serde_json::Value {
        value.json(&mut |hole| self.hole(hole).unwrap_or_else(|| hole.to_string()))
    }

    fn hole(&self, hole: &Hole) -> Option<String> {
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        let subject = || self.server(self.subject?);
        match hole {
            Hole::Place(Place::ScenarioDir) => path(self.scenario_dir),
            Hole::Place(Place::RunDir) => path(self.run_dir),
            Hole::Place(Place::Dir) => path(self.dir),
            Hole::Port(id) => Some(self.server(id)?.port?.to_string()),
            Hole::Url(id) => self.server(id)?.url.clone(),
            Hole::Dir(id) => path(&self.server(id)?.dir),
            Hole::Server(ServerField::Name) => self.subject.map(str::to_owned),
            Hole::Server(ServerField::Port) => Some(subject()?.port?.to_string()),
            Hole::Server(ServerField::Url) => subject()?.url.clone(),
            Hole::Claim(_) => None,
        }
    }

    fn server(&self, id: &str) -> Option<&Address> {
        self.servers.iter().find(|server| server.id == id)
    }
}
