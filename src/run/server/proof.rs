//! The proof that the server that answers is the one that was started: free before, ours when ready, gone after.

use super::super::blame::failure;
use super::super::effects::{Note, Trouble};
use super::super::job;
use super::origin;
use crate::diagnostic::Code;
use crate::fetch;
use crate::observe::socket::{Holder, Listener, Ownership};
use crate::plan::{Plan, Port, Server};
use crate::process::Ended;

/// Before the start nothing answers on the port.
pub(super) fn free(plan: &Plan, server: &Server, port: u16) -> Result<(), Trouble> {
    let foreign = Ownership::of(port, &[]).map(|ownership| ownership.foreign).unwrap_or_default();
    if foreign.is_empty() && fetch::answers(port).is_none() {
        return Ok(());
    }
    let message = format!("port {port} is taken before `{}` is started, {}", server.identity.id, by(&foreign));
    let diagnostic = failure(Code::PortTaken, server.identity.origin, message);
    let fixed = matches!(server.port, Port::Fixed(_));
    let shared = plan.servers.iter().filter(|other| other.port == server.port).count() > 1;
    let help = match shared {
        true => "end that process: other servers of this scenario use the port too, but never at the same time",
        false => "end that process, or leave `port` out to have a free one chosen",
    };
    Err(diagnostic.maybe_help(fixed.then(|| help.to_owned())).into())
}

/// When it is ready, the listening socket belongs to its tree, and takes connections from this machine alone.
pub(super) fn ours(server: &Server, port: u16, tree: &[u32], notes: &mut Vec<Note>) -> Result<(), Trouble> {
    let id = &server.identity.id;
    let wrong = |what: String| Err(failure(Code::ServerNotOurs, origin(server), what).into());
    match Ownership::of(port, tree) {
        Err(error) => wrong(format!("whose port {port} is cannot be known: {error}")),
        Ok(ownership) if ownership.is_ours() => {
            if !ownership.is_loopback_only() {
                let text = format!("`{id}` listens beyond loopback: others on the network can reach it");
                notes.push(Note::new("not-loopback", text));
            }
            Ok(())
        }
        Ok(ownership) if ownership.foreign.is_empty() => {
            wrong(format!("nothing that `{id}` started listens on port {port}, although something answers there"))
        }
        Ok(ownership) => {
            wrong(format!("another process than `{id}` answers on port {port}, {}", by(&ownership.foreign)))
        }
    }
}

/// After the stop the tree is gone and the port is free.
pub(super) fn gone(server: &Server, port: Option<u16>, ended: &Ended) -> Result<(), Trouble> {
    let id = &server.identity.id;
    let wrong = |what: String| Err(failure(Code::ServerLeftBehind, origin(server), what).into());
    if !ended.survivors.is_empty() {
        return wrong(format!("processes of `{id}` could not be ended: {}", job::list(&ended.survivors)));
    }
    let Some(port) = port else { return Ok(()) };
    let foreign = Ownership::of(port, &[]).map(|ownership| ownership.foreign).unwrap_or_default();
    if foreign.is_empty() && fetch::answers(port).is_none() {
        return Ok(());
    }
    wrong(format!("port {port} is still taken after `{id}` was stopped, {}", by(&foreign)))
}

/// Who holds a port.
fn by(foreign: &[(Listener, Vec<Holder>)]) -> String {
    let held = foreign.iter().flat_map(|(_, holders)| holders);
    let mut names: Vec<String> = held.map(|holder| format!("{} (pid {})", holder.name, holder.pid)).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        "by a process that cannot be seen from here".to_owned()
    } else {
        format!("by {}", names.join(", "))
    }
}
