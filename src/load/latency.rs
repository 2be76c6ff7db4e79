//! A distribution of times: in come nanoseconds, out come quantiles and exact moments.
//!
//! An HdrHistogram holds the shape; least, greatest, sum and sum of squares are kept beside it, exactly.

use super::Error;
use super::options::LONGEST_TIMEOUT;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::fmt;

/// Significant digits of the histogram of a window.
pub(super) const DIGITS: u8 = 3;

/// Recorded times, in ns.
#[derive(Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
    least: u64,
    greatest: u64,
    sum: u128,
    squares: u128,
}

impl Latency {
    /// An empty one whose quantiles have so many significant digits.
    pub(super) fn new(digits: u8) -> Self {
        let reach = 2 * u64::try_from(LONGEST_TIMEOUT.as_nanos()).unwrap_or(u64::MAX / 2);
        let histogram = Histogram::new_with_bounds(1, reach, digits).expect("the bounds are constants that fit");
        Self { histogram, least: u64::MAX, greatest: 0, sum: 0, squares: 0 }
    }

    /// Adds a time, in ns.
    pub(super) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.least = self.least.min(ns);
        self.greatest = self.greatest.max(ns);
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
    }

    /// One that is to absorb others.
    pub(super) fn none() -> Self {
        Self::new(1)
    }

    /// Takes over all that another holds: as it is where nothing is held yet.
    pub(super) fn absorb(&mut self, other: Self) {
        if self.count() == 0 { *self = other } else { self.add(&other) }
    }

    /// Adds all that another holds, whose quantiles are to be as exact.
    pub(super) fn add(&mut self, other: &Self) {
        // Only a histogram of a wider range could refuse; all reach equally far.
        let _ = self.histogram.add(&other.histogram);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Empties it.
    pub(super) fn reset(&mut self) {
        self.histogram.reset();
        (self.least, self.greatest, self.sum, self.squares) = (u64::MAX, 0, 0, 0);
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The least time, exact, in ns.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.least)
    }

    /// The greatest time, exact, in ns.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.greatest)
    }

    /// The sum of all times, exact, in ns.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The sum of the squares of all times, exact, in ns².
    pub fn sum_of_squares(&self) -> u128 {
        self.squares
    }

    /// The mean, in ns.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The standard deviation of the sample (n − 1), in ns; none for fewer than two times.
    pub fn stddev(&self) -> Option<f64> {
        let mean = self.mean()?;
        let count = self.count() as f64;
        let scatter = self.squares as f64 - mean * mean * count;
        (count > 1.0).then(|| (scatter.max(0.0) / (count - 1.0)).sqrt())
    }

    /// The smallest recorded time that at least ⌈qN⌉ of the N times do not exceed, in ns, for q of 0 to 1. It is exact
    /// to the histogram's digits, never under the least time nor over the greatest.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let exact = q * count as f64;
        let near = exact.round();
        // q·N as a float may lie a hair over the whole number that it is.
        let rank = if (exact - near).abs() <= 1e-12 * exact { near } else { exact.ceil() }.max(1.0);
        let value = self.histogram.value_at_quantile((rank - 0.5) / count as f64);
        Some(value.clamp(self.least, self.greatest))
    }

    /// How many times are not over `ns`, to the histogram's digits.
    pub fn up_to(&self, ns: u64) -> u64 {
        match (self.min(), self.max()) {
            (Some(least), Some(greatest)) if (least..greatest).contains(&ns) => self.histogram.count_between(0, ns),
            (Some(least), _) if ns >= least => self.count(),
            _ => 0,
        }
    }

    /// The histogram as results hold it: HdrHistogram V2, deflated, in base64.
    ///
    /// # Errors
    /// [`Error::Encode`] if the histogram cannot be written.
    pub fn to_v2_deflate_base64(&self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes);
        written.map_err(|error| Error::Encode(error.to_string()))?;
        Ok(STANDARD.encode(bytes))
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} times of {:?} to {:?} ns", self.count(), self.min(), self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    fn of(times: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::new(DIGITS);
        times.into_iter().for_each(|time| latency.record(time));
        latency
    }

    #[test]
    fn an_empty_one_has_no_figures() {
        let empty = of([]);
        assert_eq!((empty.min(), empty.max(), empty.quantile(0.5)), (None, None, None));
        assert_eq!((empty.mean(), empty.stddev(), empty.count()), (None, None, 0));
    }

    #[test]
    fn quantiles_are_of_the_rank_that_is_at_least_qn() {
        let hundred = of(1..=100);
        for (q, value) in [(0.0, 1), (0.01, 1), (0.011, 2), (0.07, 7), (0.5, 50), (0.505, 51), (0.99, 99), (1.0, 100)] {
            assert_eq!(hundred.quantile(q), Some(value), "{q}");
        }
        assert_eq!(of([7]).quantile(0.5), Some(7));
        assert_eq!(of([1, 2]).quantile(0.5), Some(1));
        assert_eq!(hundred.quantile(1.1), None);
        assert_eq!(hundred.quantile(f64::NAN), None);
    }

    #[test]
    fn quantiles_never_leave_the_exact_ends() {
        let one = of([1_234_567_891]);
        assert_eq!((one.quantile(0.0), one.quantile(1.0)), (Some(1_234_567_891), Some(1_234_567_891)));
        let beyond = of([1, 8_000_000_000_000]);
        assert_eq!(beyond.max(), Some(8_000_000_000_000));
        assert_eq!(beyond.sum(), 8_000_000_000_001);
    }

    /// The values of STATISTICS' table in units of 100 ns, and their sample deviation as computed outside.
    #[test]
    fn moments_are_exact() {
        let five = of([1020, 1040, 1010, 1090, 1030]);
        assert_eq!(five.mean(), Some(1038.0));
        assert!((five.stddev().unwrap() - 31.144_823_0).abs() < 1e-6);
        assert_eq!(five.sum_of_squares(), 1020 * 1020 + 1040 * 1040 + 1010 * 1010 + 1090 * 1090 + 1030 * 1030);
        assert_eq!(of([5]).stddev(), None);
        assert_eq!(of([5, 5, 5]).stddev(), Some(0.0));
    }

    #[test]
    fn a_written_histogram_reads_back() {
        let latency = of([1000, 2000, 2000, 3_000_000]);
        let bytes = STANDARD.decode(latency.to_v2_deflate_base64().unwrap()).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((read.len(), read.count_at(2000)), (4, 2));
    }

    #[test]
    fn adding_is_as_recording_all_in_one() {
        let (mut one, other) = (of([5, 9_000_000_000_000]), of([3, 7, 7_200_000_000_000]));
        let all = of([5, 9_000_000_000_000, 3, 7, 7_200_000_000_000]);
        one.add(&other);
        assert_eq!((one.count(), one.min(), one.max(), one.sum()), (5, all.min(), all.max(), all.sum()));
        assert_eq!(one.sum_of_squares(), all.sum_of_squares());
        for q in [0.0, 0.2, 0.5, 0.9, 1.0] {
            assert_eq!(one.quantile(q), all.quantile(q), "{q}");
        }
        one.add(&of([]));
        assert_eq!((one.count(), one.min()), (5, Some(3)));
    }

    #[test]
    fn a_reset_one_is_as_new() {
        let mut latency = of([9, 10]);
        latency.reset();
        latency.record(3);
        assert_eq!((latency.count(), latency.min(), latency.max(), latency.sum()), (1, Some(3), Some(3), 3));
    }
}
