//! The `bakeoff` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = bakeoff::process::launcher::launcher_main() {
        return code;
    }
    ExitCode::SUCCESS
}
