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

/// Distributes nodes over at most `count` shards of similar weight. The ends of a link without delay share a shard. `weights` has the number
/// of events of each node.
pub fn distribute(edges: &[Edge], weights: &[u64], count: usize) -> Sharding {
    let nodes = weights.len();
    let groups = groups(nodes, edges);
    let between = |edge: &&Edge| groups[edge.ends.0 as usize] != groups[edge.ends.1 as usize];
    let latencies = edges.iter().filter(between).map(|edge| edge.latency);
    let window = latencies.min().unwrap_or(MAX_WINDOW).min(MAX_WINDOW);
    let mut by_group = vec![0u128; nodes];
    for (node, &weight) in weights.iter().enumerate() {
        by_group[groups[node] as usize] += u128::from(weight) + 1;
    }
    let total: u128 = by_group.iter().sum();
    let (mut shard_by_group, mut before) = (vec![None; nodes], 0);
    let (mut count_used, mut last) = (0, None);
    for node in order(nodes, edges) {
        let group = groups[node as usize] as usize;
        if shard_by_group[group].is_some() {
            continue;
        }
        // The shard in whose share the middle of the group is.
        let middle = 2 * before + by_group[group];
        let share = middle * count as u128 / (2 * total);
        if last != Some(share) {
            last = Some(share);
            count_used += 1;
        }
        shard_by_group[group] = Some(count_used - 1);
        before += by_group[group];
    }
    let shard = |&group: &u32| shard_by_group[group as usize].unwrap_or_default();
    Sharding {
        shards: groups.iter().map(shard).collect(),
        count: (count_used as usize).max(1),
        window,
    }
}

/// Returns an order of the nodes in which neighbors are close: a depth-first search from the edge of the network, which visits neighbors with
/// few links first.
fn order(nodes: usize, edges: &[Edge]) -> Vec<u32> {
    let mut neighbors = vec![Vec::new(); nodes];
    for &Edge { ends: (a, b), .. } in edges {
        neighbors[a as usize].push(b);
        neighbors[b as usize].push(a);
    }
    let degrees: Vec<_> = neighbors.iter().map(Vec::len).collect();
    let rank = |&node: &u32| Reverse((degrees[node as usize], node));
    // The last one of a list is reached first.
    let mut waiting: Vec<_> = (0..nodes as u32).collect();
    waiting.sort_by_key(rank);
    let (mut order, mut is_reached) = (Vec::with_capacity(nodes), vec![false; nodes]);
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut is_reached[node as usize], true) {
            order.push(node);
            let mut next = std::mem::take(&mut neighbors[node as usize]);
            next.sort_by_key(rank);
            waiting.append(&mut next);
        }
    }
    order
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

    fn edge(a: u32, b: u32, latency: Nanos) -> Edge {
        Edge {
            ends: (a, b),
            latency,
        }
    }

    #[test]
    fn shards_are_parts_of_the_network_with_similar_weights() {
        // Two switches with two hosts each.
        let edges = [
            edge(0, 1, 5),
            edge(0, 2, 7),
            edge(0, 3, 7),
            edge(1, 4, 7),
            edge(1, 5, 7),
        ];
        let found = distribute(&edges, &[3, 3, 1, 1, 1, 1], 2);
        assert_eq!(found.shards, [0, 1, 0, 0, 1, 1]);
        assert_eq!((found.count, found.window), (2, 5));
        assert_eq!(distribute(&edges, &[0; 6], 1).shards, [0; 6]);
        assert_eq!(distribute(&edges, &[0; 6], 100).count, 6);
        assert_eq!(distribute(&[], &[], 2).count, 1);
        // The first switch has most events.
        let found = distribute(&edges, &[1000, 3, 1, 1, 1, 1], 2);
        assert_ne!(found.shards[0], found.shards[1]);
    }

    #[test]
    fn links_without_delay_stay_within_a_shard() {
        let edges = [edge(0, 1, 9), edge(0, 2, 0), edge(3, 2, 0)];
        let found = distribute(&edges, &[1; 4], 4);
        assert_eq!(found.count, 2);
        assert_eq!(found.window, 9);
        assert_eq!(found.shards[2], found.shards[0]);
        assert_eq!(found.shards[3], found.shards[0]);
        assert_ne!(found.shards[1], found.shards[0]);
    }

    #[test]
    fn windows_do_not_depend_on_the_number_of_shards() {
        let edges = [edge(0, 1, 9), edge(1, 2, 10_000_000)];
        for count in 1..4 {
            assert_eq!(distribute(&edges, &[1; 3], count).window, 9);
        }
        assert_eq!(distribute(&edges[1..1], &[1; 2], 1).window, MAX_WINDOW);
        assert_eq!(distribute(&[edge(0, 1, 0)], &[1; 2], 2).window, MAX_WINDOW);
    }
}
