// SPDX-License-Identifier: Apache-2.0
//! Policies that assign a request to a real server (QDSR, section 2.1).

use serde::Deserialize;

/// Policy that chooses one of several real servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// In turn, in the ratio of the weights.
    RoundRobin,
    /// At random, in the ratio of the weights.
    Random,
    /// The one with the fewest active requests of this balancer, divided by its weight.
    LeastLoad,
    /// The one with the least load at a connection's first request, and the same one for all its later requests. The
    /// responses of a connection then share one congestion control, as if the balancer sent them.
    PerConnection,
    /// By host and path, so that each real server caches its share. If one leaves, the others keep their requests
    /// (rendezvous hashing). The shares have the ratio of the weights.
    ConsistentHash,
}

/// A real server to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// [`hash`] of the name.
    pub hash: u64,
    /// Active requests.
    pub load: u64,
    /// Share of the requests, relative to the other candidates; at least 1.
    pub weight: u32,
}

/// Inputs of a policy besides the candidates.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Number of earlier choices.
    pub turn: u64,
    /// A random number.
    pub random: u64,
    /// [`hash`] of the request's host and path.
    pub key: u64,
}

impl Policy {
    /// Return the index of the chosen candidate; `None` if there are no candidates.
    pub fn choose(self, candidates: &[Candidate], draw: Draw) -> Option<usize> {
        let count = candidates.len() as u64;
        if count == 0 {
            return None;
        }
        // Position of the rotation, so that equal candidates take turns.
        let next = (draw.turn % count) as usize;
        let mut indices = 0..candidates.len();
        match self {
            Self::RoundRobin => nth_turn(candidates, draw.turn),
            Self::Random => {
                let total: u64 = candidates.iter().map(Candidate::share).sum();
                let mut rest = draw.random % total;
                indices.find(|i| {
                    let share = candidates[*i].share();
                    let is_chosen = rest < share;
                    rest = rest.wrapping_sub(share);
                    is_chosen
                })
            }
            Self::LeastLoad | Self::PerConnection => {
                let from_next = indices.map(|i| (next + i) % candidates.len());
                from_next.min_by_key(|i| candidates[*i].relative_load())
            }
            Self::ConsistentHash => {
                let scores = indices.map(|i| (i, candidates[i].score(draw.key)));
                let best = scores.max_by(|(_, a), (_, b)| a.total_cmp(b));
                best.map(|(i, _)| i)
            }
        }
    }
}

impl Candidate {
    fn share(&self) -> u64 {
        u64::from(self.weight)
    }

    /// Return the load that one more request would cause, divided by the weight.
    fn relative_load(&self) -> u128 {
        (u128::from(self.load + 1) << 32) / u128::from(self.weight)
    }

    /// Return the score for a request: the candidate with the highest one gets it (weighted rendezvous hashing).
    fn score(&self, key: u64) -> f64 {
        // Between 0 and 1, without either.
        let uniform = ((mix(key ^ self.hash) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        f64::from(self.weight) / -uniform.ln()
    }
}

/// Return whose turn it is. Each candidate has as many turns as its weight, spread over rounds.
fn nth_turn(candidates: &[Candidate], turn: u64) -> Option<usize> {
    let total: u64 = candidates.iter().map(Candidate::share).sum();
    let mut rest = (turn % total) as usize;
    for round in 0..candidates.iter().map(|candidate| candidate.weight).max()? {
        let mut members = (0..candidates.len()).filter(|i| candidates[*i].weight > round);
        match members.nth(rest) {
            Some(i) => return Some(i),
            None => {
                rest -= candidates
                    .iter()
                    .filter(|candidate| candidate.weight > round)
                    .count()
            }
        }
    }
    None
}

/// Return the FNV-1a hash, finalized by [`mix`]. It is the same in every build of the balancer.
pub fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let octets = parts.into_iter().flatten();
    mix(octets.fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// Apply the finalizer of MurmurHash3: every bit of the result depends on every bit of `n`.
const fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    n = (n ^ n >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ n >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Policy; 5] = [
        Policy::RoundRobin,
        Policy::Random,
        Policy::LeastLoad,
        Policy::PerConnection,
        Policy::ConsistentHash,
    ];

    fn candidates(loads: &[u64]) -> Vec<Candidate> {
        let each = loads.iter().enumerate();
        each.map(|(i, load)| Candidate {
            hash: hash([format!("rs{i}").as_bytes()]),
            load: *load,
            weight: 1,
        })
        .collect()
    }

    fn weighted(weights: &[u32]) -> Vec<Candidate> {
        let mut candidates = candidates(&vec![0; weights.len()]);
        for (candidate, weight) in candidates.iter_mut().zip(weights) {
            candidate.weight = *weight;
        }
        candidates
    }

    /// Return how often each candidate is chosen in `turns` turns.
    fn counts(policy: Policy, candidates: &[Candidate], turns: u64) -> Vec<u64> {
        let mut counts = vec![0; candidates.len()];
        for turn in 0..turns {
            let draw = Draw {
                turn,
                random: mix(turn + 1),
                key: hash([turn.to_be_bytes().as_slice()]),
            };
            counts[policy.choose(candidates, draw).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn empty_candidate_list_yields_none() {
        for policy in ALL {
            let draw = Draw {
                turn: 0,
                random: 0,
                key: 0,
            };
            assert_eq!(policy.choose(&[], draw), None);
        }
    }

    #[test]
    fn equal_candidates_get_equal_shares() {
        for policy in ALL {
            let counts = counts(policy, &candidates(&[3, 3, 3]), 9000);
            assert!(
                counts.iter().all(|n| (2800..3200).contains(n)),
                "{policy:?}: {counts:?}"
            );
        }
        assert_eq!(counts(Policy::RoundRobin, &candidates(&[9, 0]), 10), [5, 5]);
    }

    #[test]
    fn shares_have_the_ratio_of_the_weights() {
        let candidates = weighted(&[1, 2, 5]);
        for policy in [Policy::RoundRobin, Policy::Random, Policy::ConsistentHash] {
            let counts = counts(policy, &candidates, 8000);
            for (count, weight) in counts.iter().zip([1000, 2000, 5000]) {
                assert!(count.abs_diff(weight) < 250, "{policy:?}: {counts:?}");
            }
        }
        let turns: Vec<_> = (0..8)
            .map(|turn| nth_turn(&candidates, turn).unwrap())
            .collect();
        assert_eq!(turns, [0, 1, 2, 1, 2, 2, 2, 2]);
        // One more request would load the second one least: 3/2 of a request per unit of weight, and not 2.
        let mut loaded = weighted(&[1, 2]);
        (loaded[0].load, loaded[1].load) = (1, 2);
        assert_eq!(counts(Policy::LeastLoad, &loaded, 9), [0, 9]);
    }

    #[test]
    fn higher_weight_moves_requests_only_to_its_server() {
        let (before, after) = (weighted(&[1, 1, 1]), weighted(&[1, 1, 3]));
        for turn in 0..1000_u64 {
            let key = hash([turn.to_be_bytes().as_slice()]);
            let draw = Draw {
                turn,
                random: 0,
                key,
            };
            let old = Policy::ConsistentHash.choose(&before, draw);
            let new = Policy::ConsistentHash.choose(&after, draw);
            assert!(old == new || new == Some(2));
        }
    }

    #[test]
    fn least_load_chooses_least_loaded() {
        assert_eq!(
            counts(Policy::LeastLoad, &candidates(&[2, 1, 2]), 9),
            [0, 9, 0]
        );
        assert_eq!(counts(Policy::LeastLoad, &candidates(&[1, 2, 1]), 9)[1], 0);
    }

    #[test]
    fn leaving_server_does_not_move_other_requests() {
        let all = candidates(&[0, 0, 0, 0]);
        let some = &all[..3];
        for turn in 0..1000_u64 {
            let draw = Draw {
                turn,
                random: 0,
                key: hash([turn.to_be_bytes().as_slice()]),
            };
            let before = Policy::ConsistentHash.choose(&all, draw).unwrap();
            let after = Policy::ConsistentHash.choose(some, draw).unwrap();
            assert!(before == after || before == 3);
        }
    }
}
