//! From a log to what is made of it: the fold, the files, the report and the screen.

#![expect(clippy::unwrap_used, reason = "a test may panic: its helpers too")]

#[path = "results/files.rs"]
mod files;
#[path = "results/fold.rs"]
mod fold;
#[path = "results/log.rs"]
mod log;
#[path = "results/progress.rs"]
mod progress;
#[path = "results/report.rs"]
mod report;
