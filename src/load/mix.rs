//! Which request is sent next: in come the parts of a load and a seed, out come draws by weight.
//!
//! The opening takes the parts in turn. The window draws them, thread by thread from a stream of its own, so that a run
//! with the same seed and threads sends the same sequence whatever the server does.

use super::{Expect, Options};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A part of a load as it is judged.
#[derive(Debug)]
pub(super) struct Judged {
    /// Its name in a mix.
    pub(super) name: Option<String>,
    /// Which answers are good.
    pub(super) expect: Expect,
    /// Whether its answers have no body (RFC 9112, 6.3).
    pub(super) bodiless: bool,
}

/// All parts.
#[derive(Debug)]
pub(super) struct Mix {
    parts: Vec<Judged>,
    /// For each part the share of all weights that it and those before it have; the last is 1.
    bounds: Vec<f64>,
    seed: u64,
}

impl Mix {
    /// The parts of checked options.
    pub(super) fn new(options: &Options) -> Self {
        let judged = |part: &super::Part| Judged {
            name: part.name.clone(),
            expect: part.expect.clone(),
            bodiless: part.request.method == "HEAD",
        };
        let parts = options.requests.iter().map(judged).collect();
        let all: f64 = options.requests.iter().map(|part| part.weight).sum();
        let mut sum = 0.0;
        let mut bounds: Vec<f64> = options.requests.iter().map(|part| (sum += part.weight, sum / all).1).collect();
        bounds.iter_mut().last().into_iter().for_each(|last| *last = 1.0);
        Self { parts, bounds, seed: options.seed }
    }

    /// The parts, in the order of the options.
    pub(super) fn parts(&self) -> &[Judged] {
        &self.parts
    }

    /// A part.
    pub(super) fn part(&self, index: usize) -> &Judged {
        &self.parts[index]
    }

    /// The draws of a thread.
    pub(super) fn draws(&self, thread: usize) -> Draws {
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        generator.set_stream(thread as u64);
        Draws { bounds: self.bounds.clone(), generator }
    }
}

/// One thread's draws from a mix.
#[derive(Debug)]
pub(super) struct Draws {
    bounds: Vec<f64>,
    generator: ChaCha8Rng,
}

impl Draws {
    /// The next part.
    pub(super) fn next(&mut self) -> usize {
        if self.bounds.len() == 1 {
            return 0;
        }
        // 53 random bits as a number of 0 to below 1.
        let draw = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.bounds.partition_point(|&bound| bound <= draw).min(self.bounds.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Part, Request, Target};

    fn mix(weights: &[f64], seed: u64) -> Mix {
        let (target, _) = Target::parse("http://127.0.0.1:1").unwrap();
        let mut options = Options::new(target, Request::get("/"));
        options.seed = seed;
        let part = |&weight: &f64| Part { weight, ..options.requests[0].clone() };
        options.requests = weights.iter().map(part).collect();
        Mix::new(&options)
    }

    #[test]
    fn parts_are_drawn_by_weight() {
        let mut draws = mix(&[1.0, 2.0, 7.0], 1).draws(0);
        let mut drawn = [0u32; 3];
        (0..100_000).for_each(|_| drawn[draws.next()] += 1);
        // Ten standard deviations of a binomial draw, √(n·p·(1 − p)).
        for (count, share) in drawn.into_iter().zip([0.1, 0.2, 0.7]) {
            let deviation = (100_000.0_f64 * share * (1.0 - share)).sqrt();
            assert!((f64::from(count) - 100_000.0 * share).abs() < 10.0 * deviation, "{drawn:?}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_and_threads_draw_apart() {
        let drawn = |seed, thread| {
            let mut draws = mix(&[1.0, 1.0], seed).draws(thread);
            (0..64).map(|_| draws.next()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7, 0), drawn(7, 0));
        assert_ne!(drawn(7, 0), drawn(8, 0));
        assert_ne!(drawn(7, 0), drawn(7, 1));
    }
}
