//! TLS: what is believed, one request over it, and runs with servers that speak it.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

#[path = "tls/fetch.rs"]
mod fetch;
#[path = "tls/load.rs"]
mod load;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod program;
#[path = "tls/run.rs"]
mod run;
#[path = "support/tls.rs"]
mod secure;
#[path = "tls/trust.rs"]
mod trust;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(20);
static NEVER: AtomicBool = AtomicBool::new(false);

/// A file with this text, in a folder of its own.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
