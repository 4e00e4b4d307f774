//! Which real server gets a request: the strategies of QDSR, section 2.1.

use serde::Deserialize;

/// How one of several real servers is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
    /// That with the fewest requests of this balancer's under way.
    LeastLoad,
    /// By host and path, so that each has its share of them in its memory; one that leaves moves no other's (rendezvous hashing).
    ConsistentHash,
}

/// A real server that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// [`hash`] of its name.
    pub hash: u64,
    /// Requests under way.
    pub load: u64,
}

/// What chooses, beside the candidates.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// How many were chosen before.
    pub turn: u64,
    /// Any number.
    pub random: u64,
    /// [`hash`] of the request's host and path.
    pub key: u64,
}

impl Policy {
    /// Which of the `candidates`; `None` if there is none.
    pub fn choose(self, candidates: &[Candidate], draw: Draw) -> Option<usize> {
        let count = candidates.len() as u64;
        if count == 0 {
            return None;
        }
        // Where the rotation is, so that equals take turns.
        let next = (draw.turn % count) as usize;
        let indices = 0..candidates.len();
        match self {
            Self::RoundRobin => Some(next),
            Self::Random => Some((draw.random % count) as usize),
            Self::LeastLoad => {
                let from_next = indices.map(|i| (next + i) % candidates.len());
                from_next.min_by_key(|i| candidates[*i].load)
            }
            Self::ConsistentHash => indices.max_by_key(|i| mix(draw.key ^ candidates[*i].hash)),
        }
    }
}

/// FNV-1a, finished by [`mix`]: the same in every balancer, whatever it was built with.
pub fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let octets = parts.into_iter().flatten();
    mix(octets.fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// The finaliser of MurmurHash3: every bit of the result depends on every bit of `n`.
const fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    n = (n ^ n >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ n >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Policy; 4] = [
        Policy::RoundRobin,
        Policy::Random,
        Policy::LeastLoad,
        Policy::ConsistentHash,
    ];

    fn candidates(loads: &[u64]) -> Vec<Candidate> {
        let each = loads.iter().enumerate();
        each.map(|(i, load)| Candidate {
            hash: hash([format!("rs{i}").as_bytes()]),
            load: *load,
        })
        .collect()
    }

    /// How often each is chosen in so many turns.
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
    fn nobody_is_chosen_of_none() {
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
    fn equals_share() {
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
    fn the_least_loaded_gets_it() {
        assert_eq!(
            counts(Policy::LeastLoad, &candidates(&[2, 1, 2]), 9),
            [0, 9, 0]
        );
        assert_eq!(counts(Policy::LeastLoad, &candidates(&[1, 2, 1]), 9)[1], 0);
    }

    #[test]
    fn who_leaves_moves_no_others() {
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
