//! Servers: how they are started, known to be ready, and stopped.

use std::time::Duration;

use super::decode::{CaptureName, Keyed, table};
use super::field::Field;
use super::http::UrlBase;
use super::kinds::{Argv, JsonPath, LongerThanZero, Pattern, Port, Size, Status, UrlPath};
use super::process::{Expand, Process, References, Step};
use super::value::Text;
use super::words::{At, Signal};

table! {
    /// A server: exactly one of `command`, `shell`, `builtin` and `url`.
    Server {
        ..process: Process,
        ..expand: Expand,
        /// Where it listens: `"auto"` (default: a free port for each start), a number, or `"none"`.
        port: Field<Port>,
        /// Servers that are started before it and stopped after it, afresh for every start.
        needs: References,
        /// Steps before it is started.
        before: Vec<Step>,
        /// Steps after it is stopped.
        after: Vec<Step>,
        /// How it is known to be ready. Default: it accepts a TCP connection.
        ready: Ready,
        /// How it is stopped.
        stop: Stop,
        /// The embedded reference server.
        builtin: Builtin,
        /// The URL of a server that runs already, such as `"http://127.0.0.1:8080"`.
        url: Field<UrlBase>,
        /// TLS: `{}` for the system's roots.
        tls: Tls,
        /// Values that the server itself tells.
        capture: Keyed<CaptureName, ServerCapture>,
        /// Caches it uses.
        caches: References,
    }
}

table! {
    /// How a server is known to be ready: one of `tcp`, `http`, `output` and `command`.
    Ready {
        /// It accepts a TCP connection.
        tcp: Field<bool>,
        /// It answers this path.
        http: Field<UrlPath>,
        /// The status that the answer to `http` must have. Default 200.
        status: Field<Status>,
        /// It prints what matches this.
        output: Field<Pattern>,
        /// This command exits 0.
        command: Field<Argv>,
        /// When it is given up. Default 30s.
        timeout: Field<LongerThanZero>,
        /// How often it is asked. Default 1ms.
        interval: Field<LongerThanZero>,
    }
}

table! {
    /// How a server is stopped.
    Stop {
        /// The signal. Default `"TERM"`.
        signal: Field<Signal>,
        /// How long it may take before its whole tree is killed. Default 5s.
        grace: Field<Duration>,
    }
}

table! {
    /// The embedded reference server. `/json` answers 29 bytes, `{"message":"hello","ok":true}`.
    Builtin {
        /// Every answer is this late.
        delay: Field<Duration>,
        /// `/json` answers this many bytes.
        body: Field<Size>,
    }
}

table! {
    /// TLS of a server: its URL is https.
    Tls {
        /// A file with the certificates to trust, relative to the scenario's folder.
        ca: Field<Text>,
        /// True where no certificate is checked, which is reported.
        insecure: Field<bool>,
    }
}

table! {
    /// A value that a server tells: by `output`, or by `http` with `json`.
    ServerCapture {
        /// A pattern that finds it in what the server prints.
        output: Field<Pattern>,
        /// The path that is asked for it.
        http: Field<UrlPath>,
        /// A JSON path that finds it in the answer.
        json: Field<JsonPath>,
        /// When: `"idle"`, or `"after"` the last run (default).
        at: Field<At>,
        /// Its unit.
        unit: Field<String>,
    }
}
