// SPDX-License-Identifier: Apache-2.0
//! A set of ports.

/// A set of ports, by slot, that keeps the order of insertion.
#[derive(Debug, Default)]
pub(super) struct SlotSet {
    members: Vec<usize>,
    contains: Vec<bool>,
}

impl SlotSet {
    /// Adds a slot, unless the set contains it.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize) {
        if self.contains.len() <= slot {
            self.contains.resize(slot + 1, false);
        }
        if !std::mem::replace(&mut self.contains[slot], true) {
            self.members.push(slot);
        }
    }

    /// Removes the slot that was added last.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let slot = self.members.pop()?;
        self.contains[slot] = false;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_in_the_set_once_until_it_is_removed() {
        let mut set = SlotSet::default();
        [3, 1, 3].into_iter().for_each(|slot| set.insert(slot));
        assert_eq!([set.pop(), set.pop(), set.pop()], [Some(1), Some(3), None]);
        set.insert(3);
        assert_eq!(set.pop(), Some(3));
    }
}
