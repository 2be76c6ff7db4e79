//! Percentiles: which metrics are one, how many requests one needs, and those of all requests pooled.

use std::collections::BTreeMap;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use super::fold::FoldError;
use super::rows::Run;

/// A percentile as its metric's name says: `latency.p999`, of one request of a mix `latency.p999[get]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Percentile {
    /// The metric that it is one of, and the name of its histogram: `latency`, `latency[get]`.
    pub stem: String,
    /// The quantile is `numerator / denominator`.
    pub numerator: u64,
    /// A power of ten.
    pub denominator: u64,
}

impl Percentile {
    /// The percentile that a metric of that name is, if it is one.
    #[must_use]
    pub fn of(metric: &str) -> Option<Self> {
        let (name, request) = metric.find('[').map_or((metric, ""), |at| metric.split_at(at));
        let (stem, digits) = name.rsplit_once(".p")?;
        if !(2..=9).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let denominator = 10_u64.pow(u32::try_from(digits.len()).ok()?);
        Some(Self { stem: format!("{stem}{request}"), numerator: digits.parse().ok()?, denominator })
    }

    /// Whether so many requests are enough to show it: N (1 − q) ≥ 10.
    #[must_use]
    pub const fn is_shown(&self, requests: u64) -> bool {
        requests.saturating_mul(self.denominator - self.numerator) >= self.denominator.saturating_mul(10)
    }

    /// The name of a metric beside this one: `latency.min`, `requests[get]`.
    fn beside(&self, name: &str) -> String {
        let (stem, request) = self.stem.find('[').map_or((self.stem.as_str(), ""), |at| self.stem.split_at(at));
        if name == "requests" { format!("{name}{request}") } else { format!("{stem}.{name}{request}") }
    }
}

/// The histograms of a cell's runs: per name those of all runs as one, and the fewest values that one run has.
#[derive(Default)]
pub(super) struct Pool {
    merged: BTreeMap<String, (Histogram<u64>, u64)>,
}

impl Pool {
    /// Adds the histograms of a run.
    ///
    /// # Errors
    /// A histogram that cannot be read.
    pub(super) fn add(&mut self, run: &Run) -> Result<(), FoldError> {
        for (name, text) in &run.histograms {
            let unreadable = |why| {
                let (turn, name) = (run.turn.clone(), name.clone());
                FoldError::Histogram { turn, index: run.index, name, why }
            };
            let histogram = read(text).map_err(unreadable)?;
            let count = histogram.len();
            match self.merged.get_mut(name) {
                Some((merged, fewest)) => {
                    merged.add(&histogram).map_err(|error| unreadable(error.to_string()))?;
                    *fewest = count.min(*fewest);
                }
                None => drop(self.merged.insert(name.clone(), (histogram, count))),
            }
        }
        Ok(())
    }

    /// The percentile in seconds over all requests, within the exact extremes that the runs tell; an empty one has none.
    pub(super) fn pooled(&self, percentile: &Percentile, runs: &[&Run]) -> Option<f64> {
        let (histogram, _) = self.merged.get(&percentile.stem)?;
        let rank = (u128::from(histogram.len()) * u128::from(percentile.numerator))
            .div_ceil(u128::from(percentile.denominator))
            .max(1);
        let mut below = 0_u128;
        let step = histogram.iter_recorded().find(|step| {
            below += u128::from(step.count_since_last_iteration());
            below >= rank
        })?;
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a latency: below 2^53 for 100 days")]
        let seconds = step.value_iterated_to() as f64 / 1e9;
        let of = |name: &str| {
            let name = percentile.beside(name);
            runs.iter().filter_map(move |run| run.metrics.get(&name).copied())
        };
        let seconds = of("max").reduce(f64::max).map_or(seconds, |max| seconds.min(max));
        Some(of("min").reduce(f64::min).map_or(seconds, |min| seconds.max(min)))
    }

    /// The fewest requests that one run's percentile was made of, where that is known.
    pub(super) fn fewest(&self, percentile: &Percentile, runs: &[&Run]) -> Option<u64> {
        if let Some((_, fewest)) = self.merged.get(&percentile.stem) {
            return Some(*fewest);
        }
        let name = percentile.beside("requests");
        let counted = runs.iter().filter_map(|run| run.metrics.get(&name).copied()).reduce(f64::min);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of requests; saturates")]
        counted.map(|count| count as u64)
    }
}

fn read(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let histogram: Result<Histogram<u64>, _> = Deserializer::new().deserialize(&mut Cursor::new(bytes));
    let mut histogram = histogram.map_err(|error| format!("{error:?}"))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let of = |name| Percentile::of(name).map(|p| (p.stem, p.numerator, p.denominator));
        assert_eq!(of("latency.p50"), Some(("latency".to_owned(), 50, 100)));
        assert_eq!(of("latency.p999"), Some(("latency".to_owned(), 999, 1000)));
        assert_eq!(of("generator.lateness.p99"), Some(("generator.lateness".to_owned(), 99, 100)));
        assert_eq!(of("latency.p99[get]"), Some(("latency[get]".to_owned(), 99, 100)));
        for other in ["latency.max", "wall", "latency.p", "latency.p9x", "rss.peak", "a.p5"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_percentile_needs_ten_requests_beyond_it() {
        for (name, needed) in [("l.p50", 20), ("l.p90", 100), ("l.p99", 1000), ("l.p999", 10_000)] {
            let percentile = Percentile::of(name).unwrap();
            assert!(percentile.is_shown(needed), "{name}");
            assert!(!percentile.is_shown(needed - 1), "{name}");
        }
    }
}
