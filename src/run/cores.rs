//! Whether a load generator and a server may get in each other's way: in come both as planned, out comes a yes or no.

use crate::load::Target;
use crate::plan::{Cell, Launch, Load, Plan, Server};

/// Whether the load and the server of a cell, if it has both, may run on the same processors of this machine.
pub(super) fn are_shared(plan: &Plan, cell: &Cell) -> bool {
    let load = cell.driver.as_ref().and_then(|driver| plan.load(driver));
    load.zip(plan.server(&cell.subject)).is_some_and(|(load, server)| share(load, server))
}

/// They do unless both are bound to some, and none is of both, or the server is elsewhere.
fn share(load: &Load, server: &Server) -> bool {
    let bound = match &server.launch {
        Launch::Process(process) => &process.cpus,
        Launch::Builtin(builtin) => &builtin.cpus,
        Launch::Running(url) => return is_here(url),
    };
    load.cpus.is_empty() || bound.is_empty() || load.cpus.iter().any(|cpu| bound.contains(cpu))
}

/// Whether a URL leads to this machine, as far as its text tells.
fn is_here(url: &str) -> bool {
    let host = Target::parse(url).map(|(target, _)| target.host().to_owned()).unwrap_or_default();
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::planned::planned;
    use super::*;

    /// Whether they are shared, of a server and a load with these lines.
    fn shared(server: &str, load: &str) -> bool {
        let text = format!(
            "[servers.s]\n{server}\n[loads.l]\nrequest = \"GET /\"\nduration = \"1s\"\n{load}\n\
             [measures.m]\nservers = [\"s\"]\nload = \"l\"\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let (plan, _) = planned(folder.path(), &text);
        are_shared(&plan, &plan.groups[0].cells[0])
    }

    #[test]
    fn processors_are_divided_when_both_are_bound_apart() {
        let builtin = "builtin = {}\ncpus = \"0\"";
        assert!(shared("builtin = {}", ""));
        assert!(shared(builtin, "") && shared("builtin = {}", "cpus = \"1\"") && shared(builtin, "cpus = \"0-1\""));
        assert!(!shared(builtin, "cpus = \"1\""));
        assert!(!shared("command = [\"true\"]\ncpus = \"2,3\"", "cpus = \"0-1\""));
    }

    #[test]
    fn a_server_elsewhere_shares_none() {
        let runs = |url: &str| shared(&format!("url = \"{url}\""), "");
        assert!(runs("http://localhost:1") && runs("http://127.0.0.2:1") && runs("http://[::1]:1"));
        assert!(!runs("http://192.0.2.1:80") && !runs("http://example.test"));
    }
}
