//! Comparisons from files: a TOML scenario becomes a plan, the plan is executed, what happened is a log of events, and
//! results and reports are folded from that log alone.
//!
//! ```text
//! text ──load──▶ Scenario ──expand──▶ Plan ──run──▶ Events ──fold──▶ Results ──render──▶ report
//! ```
//!
//! The rooms and their levels stand in `docs/architecture.md`; `tests/layering.rs` holds the code to them.

#[cfg(test)]
extern crate self as bakeoff;

pub mod cli;
pub mod diagnostic;
pub mod event;
pub mod expr;
pub mod fetch;
pub mod load;
pub mod observe;
pub mod plan;
pub mod process;
pub mod progress;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod serve;
pub mod stats;
pub mod trust;
pub mod units;
