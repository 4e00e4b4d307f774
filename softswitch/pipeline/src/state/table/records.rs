// SPDX-License-Identifier: Apache-2.0
//! The actions of a table's entries, one record each. Native code reads them, too.

use super::Target;
use crate::program::call::{Call, CallRef};

/// The number in a record without action.
pub(crate) const NO_ACTION: u32 = u32::MAX;

/// Width of a head's number in bits.
const NUMBER: u32 = 32;
/// Width of a head's kind in bits: whether the number identifies an action, a member or a group.
const KIND: u32 = 8;

const CALL: u64 = 1;
const MEMBER: u64 = 2;
const GROUP: u64 = 3;
/// The head of an empty record.
const NOTHING: u64 = NO_ACTION as u64;

/// Records of one length: the default entry's, then those of the entries by slot.
///
/// A record consists of a head and the arguments of an action. The head contains, from the least significant bit, the
/// number of the action, member or group, the kind of this number, and the number of arguments.
#[derive(Debug, Clone)]
pub(super) struct Records {
    words: Vec<u64>,
    stride: usize,
}

/// Returns the record of the entry in a slot, or of the default entry.
pub(crate) fn record(slot: Option<u32>) -> usize {
    slot.map_or(0, |s| s as usize + 1)
}

impl Records {
    pub(super) fn new() -> Self {
        Self {
            words: vec![NOTHING],
            stride: 1,
        }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of words of a record.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    #[inline]
    pub(super) fn get(&self, slot: Option<u32>) -> Option<Target<CallRef<'_>>> {
        let words = &self.words[record(slot) * self.stride..][..self.stride];
        let (number, rest) = (words[0] as u32, words[0] >> NUMBER);
        match rest & ((1 << KIND) - 1) {
            CALL => Some(Target::Call(CallRef {
                action: number,
                args: &words[1..][..(rest >> KIND) as usize],
            })),
            MEMBER => Some(Target::Member(number)),
            GROUP => Some(Target::Group(number)),
            _ => None,
        }
    }

    pub(super) fn set(&mut self, slot: Option<u32>, target: Option<&Target>) {
        let (head, args) = match target {
            Some(Target::Call(Call { action, args })) => {
                let count = args.len() as u64;
                let head = u64::from(*action) | (CALL | count << KIND) << NUMBER;
                (head, &args[..])
            }
            Some(Target::Member(member)) => (u64::from(*member) | MEMBER << NUMBER, &[][..]),
            Some(Target::Group(group)) => (u64::from(*group) | GROUP << NUMBER, &[][..]),
            None => (NOTHING, &[][..]),
        };
        self.widen(1 + args.len());
        let at = record(slot) * self.stride;
        if self.words.len() < at + self.stride {
            self.words.resize(at + self.stride, NOTHING);
        }
        self.words[at] = head;
        self.words[at + 1..][..args.len()].copy_from_slice(args);
    }

    /// Makes records at least `words` long.
    fn widen(&mut self, stride: usize) {
        if stride <= self.stride {
            return;
        }
        let mut words = vec![NOTHING; self.words.len() / self.stride * stride];
        let old = self.words.chunks(self.stride);
        for (new, old) in words.chunks_mut(stride).zip(old) {
            new[..old.len()].copy_from_slice(old);
        }
        *self = Self { words, stride };
    }
}
