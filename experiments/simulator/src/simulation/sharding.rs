// SPDX-License-Identifier: Apache-2.0
//! Distribution of the nodes over shards.

use std::cmp::Reverse;

use softswitch_pipeline::Nanos;

/// Maximum length of a window in nanoseconds. Flows that start in a window are drawn before it.
const MAX_WINDOW: Nanos = 1_000_000;

/// A link between two nodes, given by their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// The nodes.
    pub ends: (u32, u32),
    /// Minimum time in nanoseconds that a frame takes from one node to the other; 0 for a link without delay.
    pub latency: Nanos,
    /// Rate in bit/s.
    pub rate: u64,
}

/// The shard of each node, and the length of windows.
#[derive(Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Shard numbers by node number.
    pub shards: Vec<u32>,
    /// Number of shards.
    pub count: usize,
    /// Length of a window in nanoseconds: no frame from another shard arrives earlier. It depends on the network only, not on the shards.
    pub window: Nanos,
}

/// Distributes `nodes` nodes over at most `count` shards. The ends of a link without delay share a shard. Shards have similar shares of the
/// links' total rate, which limits the number of packets. The first shard has the node with the most.
pub fn distribute(nodes: usize, edges: &[Edge], count: usize) -> Sharding {
    let groups = groups(nodes, edges);
    let between = |edge: &&Edge| groups[edge.ends.0 as usize] != groups[edge.ends.1 as usize];
    let latencies = edges.iter().filter(between).map(|edge| edge.latency);
    let window = latencies.min().unwrap_or(MAX_WINDOW).min(MAX_WINDOW);
    let mut weights = vec![0u128; nodes];
    for edge in edges {
        for node in [edge.ends.0, edge.ends.1] {
            weights[groups[node as usize] as usize] += u128::from(edge.rate);
        }
    }
    let mut heaviest: Vec<_> = (0..nodes as u32)
        .filter(|&node| groups[node as usize] == node)
        .collect();
    heaviest.sort_by_key(|&group| (Reverse(weights[group as usize]), group));
    let mut loads = vec![0; count.clamp(1, heaviest.len().max(1))];
    let mut shard_by_group = vec![0; nodes];
    for group in heaviest {
        let (lightest, load) = loads
            .iter_mut()
            .enumerate()
            .min_by_key(|(_, load)| **load)
            .expect("there is at least one shard");
        *load += weights[group as usize];
        shard_by_group[group as usize] = lightest as u32;
    }
    Sharding {
        shards: groups
            .iter()
            .map(|&group| shard_by_group[group as usize])
            .collect(),
        count: loads.len(),
        window,
    }
}

/// Returns the group of each node, named by its first node. Links without delay connect the nodes of a group.
fn groups(nodes: usize, edges: &[Edge]) -> Vec<u32> {
    let mut groups: Vec<_> = (0..nodes as u32).collect();
    for edge in edges.iter().filter(|edge| edge.latency == 0) {
        let (a, b) = (groups[edge.ends.0 as usize], groups[edge.ends.1 as usize]);
        let (first, other) = (a.min(b), a.max(b));
        for group in &mut groups {
            if *group == other {
                *group = first;
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(a: u32, b: u32, latency: Nanos, rate: u64) -> Edge {
        Edge {
            ends: (a, b),
            latency,
            rate,
        }
    }

    #[test]
    fn shards_have_similar_rates() {
        // Two switches with two hosts each.
        let edges = [
            edge(0, 1, 5, 10),
            edge(0, 2, 7, 10),
            edge(0, 3, 7, 10),
            edge(1, 4, 7, 10),
            edge(1, 5, 7, 10),
        ];
        let found = distribute(6, &edges, 2);
        assert_eq!(found.shards, [0, 1, 0, 1, 0, 1]);
        assert_eq!((found.count, found.window), (2, 5));
        assert_eq!(distribute(6, &edges, 1).shards, [0; 6]);
        assert_eq!(distribute(6, &edges, 100).count, 6);
        assert_eq!(distribute(0, &[], 2).count, 1);
    }

    #[test]
    fn links_without_delay_stay_within_a_shard() {
        let edges = [edge(0, 1, 9, 1), edge(0, 2, 0, 1), edge(3, 2, 0, 1)];
        let found = distribute(4, &edges, 4);
        assert_eq!(found.count, 2);
        assert_eq!(found.window, 9);
        assert_eq!(found.shards[2], found.shards[0]);
        assert_eq!(found.shards[3], found.shards[0]);
        assert_ne!(found.shards[1], found.shards[0]);
    }

    #[test]
    fn windows_do_not_depend_on_the_number_of_shards() {
        let edges = [edge(0, 1, 9, 1), edge(1, 2, 10_000_000, 1)];
        for count in 1..4 {
            assert_eq!(distribute(3, &edges, count).window, 9);
        }
        assert_eq!(distribute(2, &edges[1..1], 1).window, MAX_WINDOW);
        assert_eq!(distribute(2, &[edge(0, 1, 0, 1)], 2).window, MAX_WINDOW);
    }
}
