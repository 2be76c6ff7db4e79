//! The embedded reference server.
