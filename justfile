# What the gate runs, a recipe each; `just ci` is all of it.

# The formatting is as rustfmt has it.
fmt:
    cargo fmt --check

# No warning of the compiler or of clippy.
lint:
    cargo clippy --all-targets -- -D warnings

# The documentation builds, private items included, without a warning.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items

# Every test. Some run real servers: npm and its registry are used where there is an npm.
test:
    cargo test

# All of the above, in the order of the gate.
ci: fmt lint doc test

# What a request costs the load generator, beside wrk, oha and autocannon where they are installed: `just bench-load --compare`.
bench-load *arguments:
    cargo bench --bench load -- {{arguments}}
