// SPDX-License-Identifier: Apache-2.0
//! The paths of packets through control flows. Native code is optimised for the frequent ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A branch is frequent if at least one of this number of packets takes it.
const FREQUENT: u64 = 256;
/// Maximum number of frequent branches, which bounds the size of the code.
const MAX_FREQUENT: usize = 4096;
/// Maximum number of branches, which bounds memory.
const MAX_NOTED: usize = 1 << 16;

/// A step of a packet through a control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) node: u32,
    /// The action that a table ran.
    pub(crate) action: Option<u32>,
    pub(crate) next: u32,
}

/// The paths from a node on.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) node: u32,
    /// Number of packets that took this branch.
    packets: u64,
    /// The action and the branch of each next step.
    next: Vec<(Option<u32>, usize)>,
}

/// The paths of packets through a control flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    /// Each branch precedes those of its next steps; the first is the beginning of the control flow.
    branches: Vec<Branch>,
}

impl Paths {
    pub(crate) fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Returns the branch that follows a step.
    pub(crate) fn next(&self, branch: usize, action: Option<u32>, node: u32) -> Option<usize> {
        let mut next = self.branches[branch].next.iter();
        let found = next.find(|(a, b)| *a == action && self.branches[*b].node == node);
        found.map(|&(_, branch)| branch)
    }

    /// Returns the action that runs most often after a branch.
    pub(crate) fn likely_action(&self, branch: usize) -> Option<u32> {
        let next = self.branches[branch].next.iter();
        let most = next.max_by_key(|(_, branch)| self.branches[*branch].packets);
        most.and_then(|(action, _)| *action)
    }

    /// Adds the path of a packet, up to where the paths have too many branches.
    pub(crate) fn add(&mut self, path: &[Step]) {
        let Some(first) = path.first() else { return };
        if self.branches.is_empty() {
            self.branches.push(Branch::new(first.node));
        }
        let mut at = 0;
        self.branches[at].packets += 1;
        for step in path {
            at = match self.next(at, step.action, step.next) {
                Some(next) => next,
                None if self.branches.len() == MAX_NOTED => return,
                None => {
                    let next = self.branches.len();
                    self.branches.push(Branch::new(step.next));
                    self.branches[at].next.push((step.action, next));
                    next
                }
            };
            self.branches[at].packets += 1;
        }
    }

    /// Returns the frequent paths.
    pub(crate) fn frequent(&self) -> Self {
        let Some(root) = self.branches.first() else {
            return Self::default();
        };
        let least = root.packets.div_ceil(FREQUENT);
        let mut frequent = Self {
            branches: vec![root.without_next()],
        };
        // The most frequent branch first
        let mut open = BinaryHeap::from([(root.packets, Reverse(0), 0)]);
        while let Some((_, Reverse(to), from)) = open.pop() {
            for &(action, branch) in &self.branches[from].next {
                let (found, copy) = (&self.branches[branch], frequent.branches.len());
                if found.packets >= least && copy < MAX_FREQUENT {
                    frequent.branches.push(found.without_next());
                    frequent.branches[to].next.push((action, copy));
                    open.push((found.packets, Reverse(copy), branch));
                }
            }
        }
        frequent
    }
}

impl Branch {
    fn new(node: u32) -> Self {
        Self {
            node,
            packets: 0,
            next: Vec::new(),
        }
    }

    fn without_next(&self) -> Self {
        Self {
            next: Vec::new(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a path through nodes without tables.
    fn path(nodes: &[u32]) -> Vec<Step> {
        let steps = nodes.windows(2).map(|pair| Step {
            node: pair[0],
            action: None,
            next: pair[1],
        });
        steps.collect()
    }

    #[test]
    fn frequent_paths_leave_out_rare_branches() {
        let mut paths = Paths::default();
        for i in 0..1000 {
            let nodes: &[u32] = if i < 3 { &[0, 1, 4, 9] } else { &[0, 2, 3, 9] };
            paths.add(&path(nodes));
        }
        let frequent = paths.frequent();
        let nodes: Vec<u32> = frequent.branches().iter().map(|b| b.node).collect();
        assert_eq!(nodes, [0, 2, 3, 9]);
        assert_eq!(frequent.next(0, None, 2), Some(1));
        assert_eq!(frequent.next(0, None, 1), None, "rare");
        assert_eq!(frequent.next(0, Some(5), 2), None, "another action");
    }

    #[test]
    fn actions_of_a_table_have_their_own_branches() {
        let step = |action| Step {
            node: 0,
            action,
            next: 1,
        };
        let mut paths = Paths::default();
        for action in [Some(7), Some(8), Some(8), None] {
            paths.add(&[step(action), path(&[1, 2])[0]]);
        }
        assert_eq!(paths.likely_action(0), Some(8));
        assert_eq!(paths.branches().len(), 1 + 3 * 2);
        assert_eq!(paths.frequent().branches().len(), 1 + 3 * 2);
    }
}
