//! The embedded reference server as a process of its own: this same program in a hidden mode.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use super::super::blame::Logs;
use super::super::site::Site;
use crate::plan::Builtin;
use crate::process::{self, Output, Stdin};
use crate::serve;

/// The argument that asks for this mode. Behind it stand the port, the delay in nanoseconds and, where it is set, the
/// length of `/json` in bytes.
pub const WORD: &str = "__serve";

/// Enters the hidden mode if the program was started in it: for `main`, right after the launcher's.
#[must_use]
pub fn builtin_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let served = options(&arguments.collect::<Vec<_>>())
        .and_then(|options| serve::run(&options, &mut std::io::stdout()).map_err(|error| error.to_string()));
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // It stands in the log of the server, and from there in the diagnostic.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
    })
}

fn options(arguments: &[OsString]) -> Result<serve::Options, String> {
    let number = |index: usize| -> Option<u64> { arguments.get(index)?.to_str()?.parse().ok() };
    let port = number(0).and_then(|port| u16::try_from(port).ok());
    match (port, number(1)) {
        (Some(port), Some(delay)) => Ok(serve::Options { port, delay: Duration::from_nanos(delay), body: number(2) }),
        _ => Err(format!("{WORD} is no command of its own")),
    }
}

/// How it is launched.
pub(super) fn command(site: &Site<'_>, builtin: &Builtin, port: u16, logs: &Logs) -> process::Command {
    let mut argv = vec!["bakeoff".to_owned(), WORD.to_owned(), port.to_string(), builtin.delay.as_nanos().to_string()];
    argv.extend(builtin.body.map(|body| body.to_string()));
    process::Command {
        program: site.options.launcher.clone(),
        argv: argv.into_iter().map(OsString::from).collect(),
        env: site.bare_environment().into_iter().collect(),
        cwd: site.scenario_dir.clone(),
        stdin: Stdin::Null,
        stdout: logs.stdout.clone().map_or(Output::Null, Output::Log),
        stderr: Output::Log(logs.stderr.clone()),
        cpus: builtin.cpus.clone(),
        user: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_back() {
        let read = |arguments: &[&str]| options(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        let plain = serve::Options { port: 8080, delay: Duration::ZERO, body: None };
        assert_eq!(read(&["8080", "0"]), Ok(plain));
        let shaped = serve::Options { port: 1, delay: Duration::from_millis(1), body: Some(65536) };
        assert_eq!(read(&["1", "1000000", "65536"]), Ok(shaped));
        assert!(read(&["x", "0"]).is_err());
        assert!(read(&[]).is_err());
    }
}
