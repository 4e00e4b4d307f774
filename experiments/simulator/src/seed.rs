// SPDX-License-Identifier: Apache-2.0
//! Random generators. Each user has its own, seeded by the scenario's seed and the user's name, so that additional users or draws do not
//! change the draws of others.

use softswitch_random::Rng;

/// Returns the seed of the user `name`.
pub fn derive(seed: u64, name: &str) -> u64 {
    name.bytes().fold(Rng::new(seed).next(), |state, byte| {
        Rng::new(state ^ u64::from(byte)).next()
    })
}

/// Returns the generator of the user `name`.
pub fn generator(seed: u64, name: &str) -> Rng {
    Rng::new(derive(seed, name))
}

/// Returns a random number in the open interval (0, 1), on a grid of 2^-53.
pub fn unit(rng: &mut Rng) -> f64 {
    ((rng.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_depends_on_seed_and_name() {
        let draw = |seed, name| generator(seed, name).next();
        assert_eq!(draw(1, "link"), draw(1, "link"));
        assert_ne!(draw(1, "link"), draw(2, "link"));
        assert_ne!(draw(1, "link"), draw(1, "linl"));
        assert_ne!(draw(1, "ab"), draw(1, "ba"));
    }

    #[test]
    fn unit_draw_excludes_both_ends() {
        let mut rng = Rng::new(3);
        assert!(
            (0..100_000)
                .map(|_| unit(&mut rng))
                .all(|u| 0.0 < u && u < 1.0)
        );
    }
}
