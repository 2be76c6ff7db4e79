//! Durations, sizes and CPU sets: read from text, and every number shown to people.
//!
//! In: the literals of the scenario language and of the command line (`"1m30s"`, `"64KiB"`, `"0-3,6"`). Out: `Duration`,
//! bytes, CPU numbers; and, the other way, text of a fixed number of significant digits in [`show`].
//! To add a unit, add a row to the table of its kind; to show a new kind of number, add it to [`show`] and nowhere else.

pub mod show;

use std::time::Duration;

/// A duration read from text. The unit is required: `ns us ms s m h`, several parts may follow each other.
///
/// # Errors
/// One phrase that says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u128); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let mut total: u128 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("a duration is a number and a unit, such as \"250ms\"".to_owned());
    }
    while !rest.is_empty() {
        let (number, unit, after) = number_and_unit(rest);
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(|| {
            let units = "ns, us, ms, s, m or h";
            if unit.is_empty() {
                format!("`{text}` lacks a unit: {units}")
            } else {
                format!("`{unit}` is no unit of time: {units}")
            }
        })?;
        let part = scaled(number, scale).ok_or_else(|| format!("`{text}` is no duration"))?;
        total = total.checked_add(part).ok_or_else(|| format!("`{text}` is too long"))?;
        rest = after;
    }
    let nanos = u64::try_from(total).map_err(|_| format!("`{text}` is too long"))?;
    Ok(Duration::from_nanos(nanos))
}

/// A number of bytes read from text: a whole number, or a number and one of `B kB MB GB KiB MiB GiB`.
///
/// # Errors
/// One phrase that says what is wrong with the text.
pub fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u128); 8] = [
        ("", 1),
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    let (number, unit, after) = number_and_unit(text.trim());
    if !after.is_empty() || number.is_empty() {
        return Err(format!("`{text}` is no size: write a whole number of bytes, or such as \"64KiB\""));
    }
    let scale = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
        .ok_or_else(|| format!("`{unit}` is no unit of size: B, kB, MB, GB, KiB, MiB or GiB"))?;
    scaled(number, scale)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| format!("`{text}` is no whole number of bytes"))
}

/// CPU numbers read from Linux notation (`"0-3,6"`), sorted, each once; at most CPU 4095.
///
/// # Errors
/// One phrase that says what is wrong with the text.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("`{text}` is no set of CPUs: write such as \"0-3,6\"");
    let mut cpus = std::collections::BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last > 4095 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus.into_iter().collect())
}

/// The base unit of a unit, and how much of it one is: `ms` is 0.001 of `s`. `None` for units that are not scaled.
#[must_use]
pub fn base(unit: &str) -> Option<(&'static str, f64)> {
    const UNITS: [(&str, &str, f64); 14] = [
        ("ns", "s", 1e-9),
        ("us", "s", 1e-6),
        ("µs", "s", 1e-6),
        ("ms", "s", 1e-3),
        ("s", "s", 1.0),
        ("m", "s", 60.0),
        ("h", "s", 3600.0),
        ("B", "B", 1.0),
        ("kB", "B", 1e3),
        ("MB", "B", 1e6),
        ("GB", "B", 1e9),
        ("KiB", "B", 1024.0),
        ("MiB", "B", 1_048_576.0),
        ("GiB", "B", 1_073_741_824.0),
    ];
    UNITS.iter().find(|(name, ..)| *name == unit).map(|(_, base, scale)| (*base, *scale))
}

/// Splits `12.5ms3s` into the number, its unit, and what follows.
fn number_and_unit(text: &str) -> (&str, &str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    (number, unit.trim(), after)
}

/// `number × scale`, exactly: `None` where the text is no number or the product is no whole number.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let plain = number.replace('_', "");
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain.as_str(), ""));
    if whole.is_empty() || plain.ends_with('.') || fraction.len() > 12 {
        return None;
    }
    let ten = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(scale)?;
    (product % ten == 0).then_some(product / ten)
}

/// Serde of a [`Duration`] as a number of seconds: the base unit of every file that bakeoff writes.
pub mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    /// Writes the duration in seconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    /// Reads a duration in seconds.
    ///
    /// # Errors
    /// Negative or too large numbers, and those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2 h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        for wrong in ["", "10", "10x", "s", "1..5s", "-1s", "1.5ns", "99999999999h", "1s 5"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("1.5kB"), Ok(1_500));
        assert_eq!(parse_size("2 GiB"), Ok(1 << 31));
        for wrong in ["", "KiB", "1.5", "64kb", "-1B", "1KiB2", "99999999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpu_sets() {
        assert_eq!(parse_cpus("0-3,6"), Ok(vec![0, 1, 2, 3, 6]));
        assert_eq!(parse_cpus("1,0,1"), Ok(vec![0, 1]));
        for wrong in ["", "a", "3-1", "0-", "0,,1", "0-99999999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }
}
