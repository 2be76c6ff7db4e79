//! What many rounds come to, and how it is shown.

use crate::process::Used;

/// What became of a tool, round by round.
pub(crate) type Rounds = [Result<Used, String>];

/// CPU of the process per request, in µs.
pub(crate) fn cpu(used: &Used) -> f64 {
    used.cpu / used.requests as f64 * 1e6
}

/// What a request costs the generator's core, in µs, whoever worked there: what a process has not on its own account is in it.
pub(crate) fn core(used: &Used) -> f64 {
    used.busy / used.rate * 1e6
}

/// A figure in each round that went well.
pub(crate) fn each(rounds: &Rounds, figure: impl Fn(&Used) -> f64) -> Vec<f64> {
    rounds.iter().flatten().map(figure).collect()
}

/// The ratios of a figure to that of another tool, in each round in which both went well.
pub(crate) fn ratios(rounds: &Rounds, base: &Rounds, figure: impl Fn(&Used) -> f64) -> Vec<f64> {
    let both = rounds.iter().zip(base).filter_map(|(own, base)| own.as_ref().ok().zip(base.as_ref().ok()));
    both.map(|(own, base)| figure(own) / figure(base)).collect()
}

/// The median; `None` of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// The greatest; 0 of nothing.
pub(crate) fn most(values: Vec<f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

/// A number with so many digits after the point, or a dash.
pub(crate) fn shown(value: Option<f64>, digits: usize) -> String {
    value.filter(|value| value.is_finite()).map_or("—".to_owned(), |value| format!("{value:.digits$}"))
}

/// The least and the greatest.
pub(crate) fn range(values: &[f64]) -> String {
    let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
    ends.map_or("—".to_owned(), |(least, most)| format!("({least:.3} … {most:.3})"))
}

/// Lines in columns: the first to the left, the others to the right.
pub(crate) fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let padded = |line: &[String; N]| {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let gap = " ".repeat(width(column) - cell.chars().count());
            if column == 0 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(padded).collect()
}
