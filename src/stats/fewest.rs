//! How many runs it takes until a difference could be shown at all.
//!
//! The smallest two-sided p that n runs can give: `2/2ⁿ` for n pairs (Wilcoxon signed rank; all signs equal), and
//! `2/C(2n, n)` for n runs on each side (Mann-Whitney; complete separation). Times the size of the family (Holm's first
//! step) it must not exceed α = 0.05.

const ALPHA: f64 = 0.05;

/// The fewest runs of each subject with which a difference could be shown at 5 %, for `family` comparisons with one
/// baseline; `paired` where runs are interleaved.
#[must_use]
pub fn fewest_runs(paired: bool, family: u64) -> u64 {
    let mut smallest_p = 2.0_f64;
    let mut runs = 0_u64;
    #[expect(clippy::cast_precision_loss, reason = "the loop ends long before 2^53 runs")]
    while smallest_p * (family.max(1) as f64) > ALPHA {
        runs += 1;
        let n = runs as f64;
        // C(2n, n) = C(2n − 2, n − 1) · 2(2n − 1)/n
        smallest_p /= if paired { 2.0 } else { 2.0 * (2.0 * n - 1.0) / n };
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.14: the smallest p of `wilcoxon` is 2/2ⁿ: n = 5 .0625, n = 6 .03125, n = 7 .015625, n = 8 .0078125; of
    /// `mannwhitneyu(method="exact")` n = 3 .1, n = 4 .0285714, n = 5 .0079365.
    #[test]
    fn fewest() {
        assert_eq!(fewest_runs(true, 1), 6);
        assert_eq!(fewest_runs(true, 3), 7);
        assert_eq!(fewest_runs(true, 4), 8);
        assert_eq!(fewest_runs(false, 1), 4);
        assert_eq!(fewest_runs(false, 2), 5);
    }
}
