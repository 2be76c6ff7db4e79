//! The `bakeoff` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Launchers and the embedded server are this program in other roles: before anything else, so that they stay small.
    if let Some(code) = bakeoff::process::launcher::launcher_main() {
        return code;
    }
    if let Some(code) = bakeoff::run::builtin_main() {
        return code;
    }
    bakeoff::cli::main()
}
