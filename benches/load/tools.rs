//! The generators that are compared: how each is asked for the same.

use std::path::PathBuf;
use std::time::Duration;

/// The program under measurement.
pub(crate) const BAKEOFF: &str = env!("CARGO_BIN_EXE_bakeoff");

/// The one that others are compared with.
pub(crate) const WRK: &str = "wrk";

/// A generator, and how it is called.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// `URL`, `SECONDS` and `CONNECTIONS` stand for what they say.
    arguments: &'static str,
}

const fn tool(name: &'static str, arguments: &'static str) -> Tool {
    Tool { name, arguments }
}

/// All that are known. The name up to a space is that of the program.
pub(crate) const TOOLS: [Tool; 8] = [
    tool(WRK, "-t1 -cCONNECTIONS -dSECONDSs URL"),
    tool("bakeoff (epoll)", "load -cCONNECTIONS -dSECONDSs --engine epoll --quiet URL"),
    tool("bakeoff (io_uring)", "load -cCONNECTIONS -dSECONDSs --engine io_uring --quiet URL"),
    tool("autocannon", "-cCONNECTIONS -dSECONDS URL"),
    tool("oha", "--no-tui -cCONNECTIONS -zSECONDSs URL"),
    tool("h2load", "--h1 -t1 -cCONNECTIONS -DSECONDS URL"),
    tool("ab", "-k -q -cCONNECTIONS -tSECONDS -n100000000 URL"),
    tool("bakeoff (epoll, 16 pipelined)", "load -cCONNECTIONS -dSECONDSs --pipeline 16 --engine epoll --quiet URL"),
];

impl Tool {
    /// Its argument vector, if it is installed.
    pub(crate) fn command(&self, url: &str, connections: usize, window: Duration) -> Option<Vec<String>> {
        let program = self.name.split(' ').next()?;
        let program = if program == "bakeoff" { PathBuf::from(BAKEOFF) } else { find(program)? };
        let fill = |argument: &str| {
            let argument = argument.replace("URL", url).replace("CONNECTIONS", &connections.to_string());
            argument.replace("SECONDS", &window.as_secs().to_string())
        };
        let arguments = self.arguments.split(' ').map(fill);
        Some(std::iter::once(program.to_string_lossy().into_owned()).chain(arguments).collect())
    }

    /// Whether its figures stand beside those of the others: pipelining is another kind of load.
    pub(crate) fn is_comparable(&self) -> bool {
        !self.name.contains("pipelined")
    }
}

/// Looks a program up in PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
