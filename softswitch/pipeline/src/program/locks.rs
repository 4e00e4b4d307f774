// SPDX-License-Identifier: Apache-2.0
//! The locks of the registers that packets write, for programs whose packets run in parallel.
//!
//! A packet takes the lock of a register with its first access, and releases it when no later step of its control can
//! access a register of the same lock. Thus, it reads and writes a register without interruption, also if conditions and
//! tables are in between. This is more than BMv2 does, which locks registers for one action.
//!
//! Registers share a lock if they belong to the same part of a control, because a program relates the registers of a part
//! to each other: the lock covers all registers below `Ingress.part`. They also share a lock if a packet would hold two
//! locks at the same time. A packet that waits for a lock therefore holds no other one, so packets cannot deadlock.
//!
//! A register needs no lock if each packet accesses it at most once per control, because such an access is atomic.

use std::collections::{BTreeMap, BTreeSet};

use super::Action;
use super::control::{CompiledTable, ControlNode, order};
use super::op::Op;
use crate::entry::EntryAction;
use crate::info::{Implementation, Info};

/// Maximum number of locks.
const MAX_LOCKS: usize = u64::BITS as usize;

/// A set of locks, one bit each.
pub(crate) type LockSet = u64;

/// The locks of a program.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// The registers of each lock.
    pub(crate) registers: Vec<Vec<u32>>,
    /// By node of the control flow, the locks that it or a later node may take.
    ahead: Vec<LockSet>,
}

impl Locks {
    /// Returns the locks that a node or a later one may take; none behind the end.
    #[inline]
    pub(crate) fn ahead(&self, node: u32) -> LockSet {
        self.ahead.get(node as usize).copied().unwrap_or(0)
    }
}

/// The parts of a program on which the locks depend.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) info: &'a Info,
    pub(crate) nodes: &'a [ControlNode],
    pub(crate) tables: &'a [CompiledTable],
    /// The first node of each control.
    pub(crate) controls: &'a [u32],
}

/// Returns the register that a step accesses, and whether it writes it.
pub(crate) fn access(op: &Op) -> Option<(u32, bool)> {
    match op {
        Op::ReadRegister { register, .. } => Some((*register, false)),
        Op::WriteRegister64 { register, .. } | Op::WriteRegisterBig { register, .. } => {
            Some((*register, true))
        }
        _ => None,
    }
}

/// Returns the registers that actions write.
pub(crate) fn written(actions: &[Action]) -> BTreeSet<u32> {
    let accesses = actions.iter().flat_map(|a| &a.ops).filter_map(access);
    accesses.filter(|a| a.1).map(|a| a.0).collect()
}

/// Determines the locks of a program and those that each action takes.
pub(crate) fn plan(parts: Parts, actions: &mut [Action]) -> Locks {
    let flow = Flow::new(parts);
    let mut groups = Groups::new(parts.info, flow.accessed_repeatedly(actions));
    for action in &*actions {
        groups.merge(&groups.of(action));
    }
    let ahead = loop {
        groups.set_locks(actions);
        let ahead = flow.ahead(actions);
        match flow.held_together(actions, &ahead) {
            Some(locks) => groups.merge(&locks),
            None => break ahead,
        }
    };
    Locks {
        registers: groups.registers(),
        ahead,
    }
}

/// The registers with locks, and the number of the lock of each.
struct Groups(BTreeMap<u32, usize>);

impl Groups {
    /// Groups registers by the part of the control to which they belong.
    fn new(info: &Info, registers: BTreeSet<u32>) -> Self {
        let mut parts: Vec<&str> = Vec::new();
        let number = |register: u32| {
            let part = part(&info.registers[register as usize].name);
            let known = parts.iter().position(|p| *p == part);
            let number = known.unwrap_or_else(|| {
                parts.push(part);
                parts.len() - 1
            });
            (register, number.min(MAX_LOCKS - 1))
        };
        Self(registers.into_iter().map(number).collect())
    }

    /// Returns the locks of an action's registers.
    fn of(&self, action: &Action) -> BTreeSet<usize> {
        let accesses = action.ops.iter().filter_map(access);
        accesses.filter_map(|a| self.0.get(&a.0).copied()).collect()
    }

    /// Makes one lock of several.
    fn merge(&mut self, locks: &BTreeSet<usize>) {
        if let Some(first) = locks.first() {
            for lock in self.0.values_mut().filter(|lock| locks.contains(lock)) {
                *lock = *first;
            }
        }
    }

    /// Sets the locks that each action takes.
    fn set_locks(&self, actions: &mut [Action]) {
        for action in actions {
            action.locks = self.of(action).iter().fold(0, |set, lock| set | 1 << lock);
        }
    }

    /// Returns the registers of each lock.
    fn registers(&self) -> Vec<Vec<u32>> {
        let count = self.0.values().max().map_or(0, |last| last + 1);
        let mut registers = vec![Vec::new(); count];
        for (register, lock) in &self.0 {
            registers[*lock].push(*register);
        }
        registers
    }
}

/// Returns the part of a control to which a register belongs: `Ingress.part` of `Ingress.part.name`.
fn part(name: &str) -> &str {
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    let first = dots.next();
    let end = dots.next().or(first).unwrap_or(name.len());
    &name[..end]
}

/// The control flow of a program.
struct Flow<'a> {
    parts: Parts<'a>,
    /// The actions of each node.
    actions: Vec<BTreeSet<u32>>,
    successors: Vec<Vec<u32>>,
}

impl<'a> Flow<'a> {
    fn new(parts: Parts<'a>) -> Self {
        let successors = parts.nodes.iter().map(|node| {
            let mut next = node.successors(parts.tables);
            next.retain(|&n| (n as usize) < parts.nodes.len());
            next
        });
        Self {
            parts,
            actions: parts
                .nodes
                .iter()
                .map(|node| actions_of(node, parts))
                .collect(),
            successors: successors.collect(),
        }
    }

    /// Returns the written registers that a packet may access more than once in a control.
    fn accessed_repeatedly(&self, actions: &[Action]) -> BTreeSet<u32> {
        let orders = self.parts.controls.iter();
        let orders: Vec<_> = orders
            .map(|&first| order(self.parts.nodes, self.parts.tables, first))
            .collect();
        let most = |register: u32| {
            let counts = orders.iter().map(|order| {
                let count = self.most_accesses(actions, register, &order.nodes);
                // A loop repeats the access.
                if order.loop_heads.is_empty() {
                    count
                } else {
                    count * 2
                }
            });
            counts.max().unwrap_or(0)
        };
        let mut registers = written(actions);
        registers.retain(|&register| most(register) > 1);
        registers
    }

    /// Returns the largest number of accesses to a register on a path through these nodes.
    fn most_accesses(&self, actions: &[Action], register: u32, order: &[u32]) -> usize {
        let in_action = |action: &u32| {
            let ops = &actions[*action as usize].ops;
            let accesses = ops.iter().filter_map(access);
            accesses.filter(|a| a.0 == register).count()
        };
        let mut before = vec![0; self.actions.len()];
        let mut most = 0;
        for &node in order {
            let own = self.actions[node as usize].iter().map(in_action).max();
            let count = before[node as usize] + own.unwrap_or(0);
            most = most.max(count);
            for &next in &self.successors[node as usize] {
                let before = &mut before[next as usize];
                *before = count.max(*before);
            }
        }
        most
    }

    /// Returns the locks that the actions of a node may take.
    fn locks(&self, actions: &[Action], node: usize) -> LockSet {
        let locks = self.actions[node].iter();
        locks.fold(0, |set, &action| set | actions[action as usize].locks)
    }

    /// Returns, by node, the locks that it or a later node may take.
    fn ahead(&self, actions: &[Action]) -> Vec<LockSet> {
        let mut ahead: Vec<_> = (0..self.actions.len())
            .map(|node| self.locks(actions, node))
            .collect();
        until_stable(|| {
            let mut changed = false;
            for node in (0..ahead.len()).rev() {
                let next = self.successors[node].iter();
                let new = next.fold(ahead[node], |set, &next| set | ahead[next as usize]);
                changed |= std::mem::replace(&mut ahead[node], new) != new;
            }
            changed
        });
        ahead
    }

    /// Returns locks that a packet would hold at the same time, if there are any.
    fn held_together(&self, actions: &[Action], ahead: &[LockSet]) -> Option<BTreeSet<usize>> {
        let mut held = vec![0; ahead.len()];
        until_stable(|| {
            let mut changed = false;
            for node in 0..ahead.len() {
                let after = held[node] | self.locks(actions, node);
                for &next in &self.successors[node] {
                    let new = held[next as usize] | after & ahead[next as usize];
                    changed |= std::mem::replace(&mut held[next as usize], new) != new;
                }
            }
            changed
        });
        let taken = self.actions.iter().zip(&held).flat_map(|(of_node, held)| {
            let locks = of_node
                .iter()
                .map(move |&action| actions[action as usize].locks);
            locks
                .filter(|locks| *locks != 0)
                .map(move |locks| locks | held)
        });
        let several = taken.into_iter().find(|locks| locks.count_ones() > 1)?;
        Some(
            (0..MAX_LOCKS)
                .filter(|lock| several >> lock & 1 != 0)
                .collect(),
        )
    }
}

/// Repeats a step until it changes nothing.
fn until_stable(mut step: impl FnMut() -> bool) {
    while step() {}
}

/// Returns the actions that a node may run.
fn actions_of(node: &ControlNode, parts: Parts) -> BTreeSet<u32> {
    let number = match node {
        ControlNode::Condition { .. } => return BTreeSet::new(),
        ControlNode::Call { call, .. } => return BTreeSet::from([call.action]),
        ControlNode::Table(number) => *number as usize,
    };
    let (table, info) = (&parts.tables[number], &parts.info.tables[number]);
    let entries = table.entries.iter().filter_map(|e| match &e.action {
        EntryAction::Direct(call) => Some(call.action.0),
        _ => None,
    });
    // The members of an action profile may have the actions of any of its tables.
    let has_profile = matches!(info.implementation, Implementation::Profile(_));
    let sharing = parts.info.tables.iter().filter(|other| {
        other.name == info.name || has_profile && other.implementation == info.implementation
    });
    let declared = sharing.flat_map(|t| t.actions.iter().map(|(_, id)| id.0));
    let default = table.default.as_ref().map(|call| call.action);
    declared.chain(entries).chain(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_register_is_below_the_control() {
        assert_eq!(part("I.total"), "I");
        assert_eq!(part("I.limits.rates"), "I.limits");
        assert_eq!(part("I.limits.clients.rates"), "I.limits");
        assert_eq!(part("total"), "total");
    }
}
