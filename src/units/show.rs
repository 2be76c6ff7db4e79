//! Numbers for people: the one place that decides scale, digits and unit names.
//!
//! A [`Scale`] is chosen once for a column, from its largest value, so that a column reads in one unit.

/// How the values of one column are shown: divided by `divisor`, with the unit's name.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// What a value in base units is divided by.
    pub divisor: f64,
    /// The unit's name, empty for a plain number.
    pub unit: String,
}

const TIME: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
const BYTES: [(f64, &str); 4] = [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];

impl Scale {
    /// The scale under which the largest of `values` (base units) has a whole part.
    #[must_use]
    pub fn of(unit: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let largest = values.into_iter().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let (table, suffix): (&[(f64, &str)], &str) = match unit {
            "s" => (&TIME, ""),
            "B" => (&BYTES, ""),
            "B/s" => (&BYTES, "/s"),
            "1" => return Self { divisor: 1.0, unit: String::new() },
            other => return Self { divisor: 1.0, unit: other.to_owned() },
        };
        let last = table.len() - 1;
        let (divisor, name) = if largest == 0.0 {
            if unit == "s" { table[0] } else { table[last] }
        } else {
            table.iter().copied().find(|(divisor, _)| largest >= *divisor).unwrap_or(table[last])
        };
        Self { divisor, unit: format!("{name}{suffix}") }
    }

    /// The number alone, four significant digits, thousands separated.
    #[must_use]
    pub fn number(&self, value: f64) -> String {
        significant(value / self.divisor, 4)
    }

    /// The number with its unit.
    #[must_use]
    pub fn value(&self, value: f64) -> String {
        let number = self.number(value);
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }
}

/// One value in base units, scaled for itself.
#[must_use]
pub fn value(unit: &str, value: f64) -> String {
    Scale::of(unit, [value]).value(value)
}

/// A duration in seconds as a person says it: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`.
#[must_use]
pub fn span(seconds: f64) -> String {
    if seconds < 60.0 {
        return value("s", seconds);
    }
    let whole = seconds.round();
    let (hours, minutes, rest) = ((whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor(), whole % 60.0);
    match (hours > 0.0, rest > 0.0) {
        (true, _) => format!("{hours} h {minutes} min"),
        (false, true) => format!("{minutes} min {rest} s"),
        (false, false) => format!("{minutes} min"),
    }
}

/// A ratio to the baseline: three decimals at most, and never `1.00` for what is not exactly one.
#[must_use]
pub fn ratio(value: f64) -> String {
    if value == 1.0 || value == 0.0 {
        return format!("{value}");
    }
    for digits in 2..=6 {
        let text = format!("{value:.digits$}");
        if text.parse::<f64>().is_ok_and(|shown| shown != 1.0 && shown != 0.0) {
            return text;
        }
    }
    format!("{value:e}")
}

/// `digits` significant digits, thousands separated by commas; whole numbers keep all their digits.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value == value.trunc() && value.abs() < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    let magnitude = value.abs().log10().floor();
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite f64 lies within ±324")]
    let decimals = (digits - 1 - magnitude as i32).clamp(0, 12);
    grouped(&format!("{value:.*}", usize::try_from(decimals).unwrap_or(0)))
}

/// A whole number, thousands separated by commas.
#[must_use]
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Text from a scenario or a process on one line: control characters, and those that reorder or hide what stands beside
/// them, are shown escaped (`\n`, `\u{1b}`).
#[must_use]
pub fn visible(text: &str) -> String {
    const HIDDEN: [std::ops::RangeInclusive<char>; 5] = [
        '\u{200b}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2060}'..='\u{2069}',
        '\u{061c}'..='\u{061c}',
        '\u{feff}'..='\u{feff}',
    ];
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || HIDDEN.iter().any(|hidden| hidden.contains(&c)) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A number of bytes with its unit.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "four digits of it are shown")]
pub fn bytes(bytes: u64) -> String {
    value("B", bytes as f64)
}

/// A number of things: `1 run`, `6 runs`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_values() {
        assert_eq!(value("s", 0.001_234_5), "1.234 ms");
        assert_eq!(value("s", 12.0), "12 s");
        assert_eq!(value("B", 52_428_800.0), "50 MiB");
        assert_eq!(value("B", 1000.0), "1,000 B");
        assert_eq!(value("B/s", 2048.0), "2 KiB/s");
        assert_eq!(value("1/s", 123_456.78), "123,457 1/s");
        assert_eq!(value("1", 0.25), "0.2500");
        assert_eq!(value("s", 0.0), "0 s");
    }

    #[test]
    fn a_column_reads_in_one_unit() {
        let scale = Scale::of("s", [0.000_9, 0.012]);
        assert_eq!((scale.value(0.000_9), scale.value(0.012)), ("0.9000 ms".to_owned(), "12 ms".to_owned()));
    }

    #[test]
    fn ratios_of_a_difference_never_read_one() {
        assert_eq!(ratio(2.36), "2.36");
        assert_eq!(ratio(1.0), "1");
        assert_eq!(ratio(1.0004), "1.0004");
        assert_eq!(ratio(0.999_96), "0.99996");
    }

    #[test]
    fn text_that_cannot_move_the_cursor() {
        assert_eq!(visible("a\u{1b}[31m\nb\u{202e}\u{9b}ü|"), "a\\u{1b}[31m\\nb\\u{202e}\\u{9b}ü|");
    }

    #[test]
    fn spans() {
        assert_eq!(span(0.85), "850 ms");
        assert_eq!(span(250.0), "4 min 10 s");
        assert_eq!(span(7500.0), "2 h 5 min");
    }
}
