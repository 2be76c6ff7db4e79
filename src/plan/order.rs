//! In which order the turns of a group are executed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest as _, Sha256};

use super::{Order, Turn};
use crate::event::{CellId, Phase};

/// What the order is a function of.
#[derive(Debug, Clone, Copy)]
pub struct Schedule<'a> {
    /// The group's id.
    pub group: &'a str,
    /// Its order.
    pub order: Order,
    /// Warm-up rounds (of commands; the warm-ups of a server lie within each start).
    pub warmup: u64,
    /// Measured rounds.
    pub rounds: u64,
    /// The seed of the plan.
    pub seed: u64,
}

/// The turns of a group with these cells.
#[must_use]
pub fn turns(cells: &[CellId], schedule: Schedule<'_>) -> Vec<Turn> {
    let phases = [(Phase::Warmup, schedule.warmup), (Phase::Measured, schedule.rounds)];
    let turn = |cell: usize, phase: Phase, round: u64| {
        let mark = if phase == Phase::Warmup { "w" } else { "" };
        Turn { id: format!("{}#{mark}{round}", cells[cell]), cell, phase, round }
    };
    let mut turns = Vec::new();
    if schedule.order == Order::Grouped {
        for cell in 0..cells.len() {
            for (phase, rounds) in phases {
                turns.extend((1..=rounds).map(|round| turn(cell, phase, round)));
            }
        }
        return turns;
    }
    for (phase, rounds) in phases {
        for round in 1..=rounds {
            turns.extend(
                permutation(cells.len(), phase, round, schedule).into_iter().map(|cell| turn(cell, phase, round)),
            );
        }
    }
    turns
}

/// The order of the cells within one round.
fn permutation(cells: usize, phase: Phase, round: u64, schedule: Schedule<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    match schedule.order {
        Order::Balanced if round.is_multiple_of(2) => order.reverse(),
        Order::Shuffled => shuffle(&mut order, &mut generator(schedule, phase, round)),
        Order::Balanced | Order::Alternating | Order::Grouped => {}
    }
    order
}

/// A generator that is a pure function of seed, group, phase and round.
fn generator(schedule: Schedule<'_>, phase: Phase, round: u64) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(schedule.seed.to_le_bytes());
    hash.update([u8::from(phase == Phase::Measured)]);
    hash.update(round.to_le_bytes());
    hash.update(schedule.group.as_bytes());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// Fisher and Yates, from the end; the index is drawn by rejection, so that every permutation is equally likely.
fn shuffle(items: &mut [usize], generator: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let count = last as u64 + 1;
        let limit = u64::MAX - u64::MAX % count;
        let draw = std::iter::repeat_with(|| generator.next_u64()).find(|draw| *draw < limit).unwrap_or_default();
        items.swap(last, usize::try_from(draw % count).unwrap_or(last));
    }
}

/// The seed that a scenario has by default: from its name.
#[must_use]
pub fn default_seed(name: &str) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    // 53 bits, so that JSON readers that know only doubles keep it whole.
    digest.iter().take(8).fold(0_u64, |seed, byte| seed << 8 | u64::from(*byte)) >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: Order, warmup: u64, rounds: u64) -> String {
        let cells = ["a".to_owned(), "b".to_owned()];
        let schedule = Schedule { group: "g", order, warmup, rounds, seed: 7 };
        turns(&cells, schedule).iter().map(|turn| turn.id.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn orders() {
        assert_eq!(order(Order::Balanced, 1, 3), "a#w1 b#w1 a#1 b#1 b#2 a#2 a#3 b#3");
        assert_eq!(order(Order::Alternating, 0, 2), "a#1 b#1 a#2 b#2");
        assert_eq!(order(Order::Grouped, 1, 2), "a#w1 a#1 a#2 b#w1 b#1 b#2");
    }

    #[test]
    fn shuffles_depend_on_seed_group_and_round_alone() {
        let cells: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let of = |group, seed| turns(&cells, Schedule { group, order: Order::Shuffled, warmup: 0, rounds: 2, seed });
        assert_eq!(of("g", 1), of("g", 1));
        assert_ne!(of("g", 1), of("g", 2));
        assert_ne!(of("g", 1), of("h", 1));
        let turns = of("g", 1);
        let (first, second) = turns.split_at(20);
        assert_ne!(first.iter().map(|t| t.cell).collect::<Vec<_>>(), second.iter().map(|t| t.cell).collect::<Vec<_>>());
        let mut seen: Vec<usize> = first.iter().map(|turn| turn.cell).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }

    /// 6 permutations of 3, each about a sixth of 6,000 draws: 5 standard deviations are 144.
    #[test]
    fn every_permutation_is_equally_likely() {
        let cells: Vec<String> = (0..3).map(|n| n.to_string()).collect();
        let schedule = Schedule { group: "g", order: Order::Shuffled, warmup: 0, rounds: 6000, seed: 3 };
        let mut seen = std::collections::BTreeMap::new();
        for round in turns(&cells, schedule).chunks(3) {
            *seen.entry(round.iter().map(|turn| turn.cell).collect::<Vec<_>>()).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (1000_i32 - count).abs() < 144), "{seen:?}");
    }
}
