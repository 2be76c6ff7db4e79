//! Statistics of the values of runs: pure functions over numbers, each with its source.
//!
//! In: finite values, one a replicate. Out: summaries, intervals, ratios; never NaN, never an infinity.
//! To add a statistic, write the values that another program computes for it as tests, then the function, and raise
//! [`VERSION`] if the same log now gives another figure or verdict.

mod fewest;

use std::ops::RangeInclusive;

use thiserror::Error;

pub use fewest::fewest_runs;

/// Raised whenever the same log would give another figure or verdict. It stands in every result as `statistics`.
pub const VERSION: u32 = 2;

/// Why values have no statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// There are none.
    #[error("there are no values")]
    Empty,
    /// One is NaN or infinite, or they are so large that a statistic of them is.
    #[error("a value is no finite number")]
    NotFinite,
}

/// What is told of a set of values, in their unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many.
    pub n: usize,
    /// The smallest.
    pub min: f64,
    /// The first quartile, Hyndman-Fan type 7.
    pub q1: f64,
    /// The median.
    pub median: f64,
    /// The third quartile, Hyndman-Fan type 7.
    pub q3: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation with n − 1; one value has none.
    pub sd: Option<f64>,
    /// The median of the distances from the median, unscaled.
    pub mad: f64,
}

/// An interval of the median.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its lower end: a value.
    pub low: f64,
    /// Its upper end: a value.
    pub high: f64,
    /// The probability, at least 0.95, with which such an interval holds the median.
    pub coverage: f64,
}

/// The summary of values.
///
/// # Errors
/// No value, or one that is not finite.
pub fn summary(values: &[f64]) -> Result<Summary, Refused> {
    let values = sorted(values)?;
    let n = values.len();
    // Welford, Technometrics 4 (1962): exact where all values are equal.
    let (mut mean, mut squares) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let distance = value - mean;
        mean += distance / real(index + 1);
        squares += distance * (value - mean);
    }
    let median = type7(&values, 0.5);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let summary = Summary {
        n,
        min: values[0],
        q1: type7(&values, 0.25),
        median,
        q3: type7(&values, 0.75),
        max: values[n - 1],
        mean,
        sd: (n > 1).then(|| (squares / real(n - 1)).sqrt()),
        mad: type7(&distances, 0.5),
    };
    let computed = [summary.q1, summary.median, summary.q3, summary.mean, summary.mad, summary.sd.unwrap_or(0.0)];
    if computed.iter().all(|value| value.is_finite()) { Ok(summary) } else { Err(Refused::NotFinite) }
}

/// The quantile `q` (0 to 1) of values by type 7 of Hyndman and Fan, The American Statistician 50 (1996).
///
/// # Errors
/// No value, or one that is not finite.
pub fn quantile(values: &[f64], q: f64) -> Result<f64, Refused> {
    let quantile = type7(&sorted(values)?, q.clamp(0.0, 1.0));
    if quantile.is_finite() { Ok(quantile) } else { Err(Refused::NotFinite) }
}

/// The median of values.
///
/// # Errors
/// No value, or one that is not finite.
pub fn median(values: &[f64]) -> Result<f64, Refused> {
    quantile(values, 0.5)
}

/// An interval that holds the median with a probability of at least 0.95: two of the values themselves, by the binomial
/// distribution of how many lie below it (Conover, Practical Nonparametric Statistics, 3.2). `None` for fewer than 6.
///
/// # Errors
/// No value, or one that is not finite.
pub fn median_interval(values: &[f64]) -> Result<Option<Interval>, Refused> {
    let values = sorted(values)?;
    Ok(median_ranks(values.len()).map(|(rank, coverage)| Interval {
        low: values[rank - 1],
        high: values[values.len() - rank],
        coverage,
    }))
}

/// The largest rank j with P(Bin(n, ½) ≤ j − 1) ≤ 0.025, and the coverage of [x(j), x(n + 1 − j)].
fn median_ranks(n: usize) -> Option<(usize, f64)> {
    let mut log_mass = -real(n) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut found = None;
    for below in 0..n / 2 {
        tail += log_mass.exp();
        if tail > 0.025 {
            break;
        }
        found = Some((below + 1, 1.0 - 2.0 * tail));
        log_mass += (real(n - below) / real(below + 1)).ln();
    }
    found
}

/// `subject / baseline`; `None` where the baseline is not above zero, or where the quotient is no finite number.
#[must_use]
pub fn ratio(subject: f64, baseline: f64) -> Option<f64> {
    (baseline > 0.0).then(|| subject / baseline).filter(|ratio| ratio.is_finite())
}

/// Whether two ranges, from the smallest to the largest value each, share a value.
#[must_use]
pub fn ranges_overlap(a: RangeInclusive<f64>, b: RangeInclusive<f64>) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

fn sorted(values: &[f64]) -> Result<Vec<f64>, Refused> {
    if values.is_empty() {
        return Err(Refused::Empty);
    }
    if !values.iter().all(|value| value.is_finite()) {
        return Err(Refused::NotFinite);
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    Ok(values)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ q ≤ 1: an index within the values")]
fn type7(sorted: &[f64], q: f64) -> f64 {
    let place = q * real(sorted.len() - 1);
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

#[expect(clippy::cast_precision_loss, reason = "numbers of runs lie far below 2^53")]
const fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal but for the last places of a binary number.
    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1e-3)
    }

    /// Hyndman-Fan type 7 by hand; R and numpy have it as their default.
    #[test]
    fn quantiles() {
        let four = [1.0, 2.0, 3.0, 4.0];
        for (q, right) in [(0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (0.9, 3.7)] {
            assert!(close(quantile(&four, q).unwrap(), right), "{q}");
        }
        let five = [50.0, 15.0, 40.0, 20.0, 35.0];
        for (q, right) in [(0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.5, 35.0), (1.0, 50.0), (0.0, 15.0)] {
            assert!(close(quantile(&five, q).unwrap(), right), "{q}");
        }
    }

    /// Computed with numpy 2.4.6 (`quantile`, `mean`, `median`) and Python's `statistics.stdev`.
    #[test]
    fn summaries() {
        let cases: [(&[f64], [f64; 8]); 4] = [
            (&[10.2, 10.4, 10.1, 10.9, 10.3], [10.1, 10.2, 10.3, 10.4, 10.9, 10.38, 0.311_448_230_047_949, 0.1]),
            (&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], [1.0, 1.75, 3.5, 5.25, 9.0, 3.875, 2.748_376_143_938_713, 2.0]),
            (
                &[41_234.5, 40_100.0, 42_000.25],
                [
                    40_100.0,
                    40_667.25,
                    41_234.5,
                    41_617.375,
                    42_000.25,
                    41_111.583_333_333_336,
                    956.069_503_662_434_3,
                    765.75,
                ],
            ),
            (&[-3.0, 0.0, 3.0, 0.001], [-3.0, -0.75, 0.0005, 0.750_75, 3.0, 0.000_25, 2.449_489_793_814_213_7, 1.5]),
        ];
        for (values, right) in cases {
            let s = summary(values).unwrap();
            assert_eq!(s.n, values.len());
            let got = [s.min, s.q1, s.median, s.q3, s.max, s.mean, s.sd.unwrap(), s.mad];
            for (got, right) in got.into_iter().zip(right) {
                assert!((got - right).abs() <= 1e-9 * right.abs().max(1e-3), "{values:?}: {got} is not {right}");
            }
        }
    }

    #[test]
    fn one_value_has_no_deviation_and_equal_ones_have_none_to_speak_of() {
        let one = summary(&[7.5]).unwrap();
        assert_eq!(
            (one.n, one.min, one.median, one.max, one.mean, one.sd, one.mad),
            (1, 7.5, 7.5, 7.5, 7.5, None, 0.0)
        );
        let equal = summary(&[0.1; 7]).unwrap();
        assert_eq!((equal.mean, equal.sd, equal.mad, equal.q1), (0.1, Some(0.0), 0.0, 0.1));
    }

    /// The binomial distribution as scipy 1.17.1 has it (`binom.cdf`).
    #[test]
    fn intervals_of_the_median() {
        let cases = [
            (6, 1, 0.968_75),
            (7, 1, 0.984_375),
            (9, 2, 0.960_937_5),
            (10, 2, 0.978_515_625),
            (15, 4, 0.964_843_75),
            (20, 6, 0.958_610_534_667_968_8),
            (30, 10, 0.957_226_054_742_932_3),
            (100, 40, 0.964_799_799_782_295_1),
            (1500, 712, 0.953_238_920_217_705_6),
        ];
        for (n, rank, coverage) in cases {
            let (got, got_coverage) = median_ranks(n).unwrap();
            assert_eq!(got, rank, "n = {n}");
            assert!((got_coverage - coverage).abs() < 1e-10, "n = {n}: {got_coverage}");
        }
        for n in 1..=5 {
            assert_eq!(median_ranks(n), None);
        }
        let interval = median_interval(&[5.0, 1.0, 9.0, 3.0, 8.0, 2.0, 7.0, 4.0, 6.0]).unwrap().unwrap();
        assert_eq!((interval.low, interval.high), (2.0, 8.0));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(summary(&[]), Err(Refused::Empty));
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(summary(&[1.0, wrong]), Err(Refused::NotFinite));
            assert_eq!(median(&[wrong]), Err(Refused::NotFinite));
            assert_eq!(median_interval(&[wrong; 8]), Err(Refused::NotFinite));
        }
        assert_eq!(summary(&[f64::MAX, f64::MIN]), Err(Refused::NotFinite));
    }

    #[test]
    fn ratios_and_ranges() {
        // The medians of 10.2, 10.4, 10.1, 10.9, 10.3 and of 9.7, 9.9, 10.0, 9.6, 9.8, divided by hand.
        assert!(close(ratio(9.8, 10.3).unwrap(), 0.951_456_310_679_611_7));
        assert_eq!((ratio(1.0, 0.0), ratio(1.0, -2.0), ratio(0.0, 2.0)), (None, None, Some(0.0)));
        assert_eq!(ratio(f64::MAX, f64::MIN_POSITIVE), None);
        assert!(!ranges_overlap(1.0..=2.0, 2.5..=3.0));
        assert!(ranges_overlap(1.0..=2.5, 2.5..=3.0));
        assert!(ranges_overlap(2.6..=2.7, 2.5..=3.0));
    }
}
