//! The `bakeoff` program.

fn main() {}
