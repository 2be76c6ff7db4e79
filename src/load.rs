//! The HTTP load generator: knows URLs, connections and clocks; nothing of scenarios.
