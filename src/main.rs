//! The `bakeoff` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    bakeoff::cli::main()
}
