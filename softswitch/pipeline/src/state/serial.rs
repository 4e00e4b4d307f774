// SPDX-License-Identifier: Apache-2.0
//! The locks of registers, while packets run in parallel ([`crate::program::locks`]).

use std::fmt;
use std::sync::Arc;

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;

use crate::program::locks::LockSet;

/// A lock with its own cache lines.
#[repr(align(128))]
struct Padded(RawMutex);

/// The locks of registers, which the lanes of a pipeline share.
#[derive(Clone)]
pub(crate) struct RegisterLocks(Arc<[Padded]>);

impl Default for RegisterLocks {
    fn default() -> Self {
        let lock = |_| Padded(RawMutex::INIT);
        Self((0..LockSet::BITS).map(lock).collect())
    }
}

impl fmt::Debug for RegisterLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = self.0.iter().filter(|lock| lock.0.is_locked());
        let mut debug = f.debug_struct("RegisterLocks");
        debug.field("locked", &locked.count()).finish()
    }
}

/// A lane's use of the locks.
#[derive(Debug)]
pub(crate) struct Serial {
    locks: RegisterLocks,
    held: LockSet,
}

impl Serial {
    pub(crate) fn new(locks: RegisterLocks) -> Self {
        Self { locks, held: 0 }
    }

    /// Takes locks, except those that the packet holds.
    #[inline]
    pub(crate) fn take(&mut self, locks: LockSet) {
        for lock in numbers(locks & !self.held) {
            self.locks.0[lock].0.lock();
        }
        self.held |= locks;
    }

    /// Releases locks that the packet holds.
    #[inline]
    pub(crate) fn release(&mut self, locks: LockSet) {
        for lock in numbers(locks & self.held) {
            // SAFETY: this lane has locked it, and only its thread uses this lane.
            unsafe { self.locks.0[lock].0.unlock() }
        }
        self.held &= !locks;
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        self.release(LockSet::MAX);
    }
}

/// Returns the numbers of locks in ascending order.
fn numbers(mut locks: LockSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = locks.trailing_zeros();
        locks &= locks.wrapping_sub(1);
        (first < LockSet::BITS).then_some(first as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_holds_locks_until_it_releases_them() {
        let locks = RegisterLocks::default();
        let is_locked = |lock: usize| locks.0[lock].0.is_locked();
        let mut serial = Serial::new(locks.clone());
        serial.take(0b1);
        serial.take(0b11);
        assert!(is_locked(0) && is_locked(1));
        serial.release(0b101);
        assert!(!is_locked(0) && is_locked(1));
        drop(serial);
        assert!(!is_locked(1));
    }
}
