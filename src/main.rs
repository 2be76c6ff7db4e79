//! The `bakeoff` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A launcher is this program in another role: before anything else, so that it stays small.
    if let Some(code) = bakeoff::process::launcher::launcher_main() {
        return code;
    }
    if let Some(code) = bakeoff::run::builtin_main() {
        return code;
    }
    bakeoff::cli::main()
}
