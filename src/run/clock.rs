//! The wall clock: the one place that reads it. Durations come from the monotonic clock, elsewhere.

use std::time::SystemTime;

/// The time now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place where the wall clock is read")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// A time as events hold it: UTC, RFC 3339, to the second.
#[must_use]
pub fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// A time as it stands in names of directories: `20260102T030405Z`.
#[must_use]
pub fn stamp(time: SystemTime) -> String {
    utc(time).chars().filter(|character| !matches!(character, '-' | ':')).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// The values are those of `date -u -d @1767323045 +%FT%TZ`.
    #[test]
    fn times_are_written_in_utc() {
        let time = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        assert_eq!(utc(time), "2026-01-02T03:04:05Z");
        assert_eq!(stamp(time), "20260102T030405Z");
    }
}
