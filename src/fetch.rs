//! One HTTP request, one whole answer: for probes and readiness.
