//! Statistics: pure functions, each with its source.

mod fewest;

pub use fewest::fewest_runs;
