// SPDX-License-Identifier: Apache-2.0
//! The gate between packets, which pass at the same time, and the control plane, which is alone inside.
//!
//! It is a readers-writer lock whose readers do not share a cache line: each lane has its own flag. A lane sets its flag and
//! then looks whether the gate is closed. The control plane closes the gate and then waits until no flag is set. Both
//! sequences are sequentially consistent, so at least one of them sees the other.
//!
//! Lanes that find the gate closed queue for the turn behind the control plane, and the control plane queues there for
//! each change. The queue is fair, so neither side starves the other.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// Number of checks of a flag before the control plane lets another thread run.
const SPINS: u32 = 100;

/// A value with its own cache lines: processors fetch pairs of 64 bytes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// The gate of a pipeline.
#[derive(Debug)]
pub(super) struct Gate {
    /// Whether each lane is inside.
    inside: Box<[Padded<AtomicBool>]>,
    is_closed: Padded<AtomicBool>,
    turn: Padded<Mutex<()>>,
}

/// A lane inside the gate.
#[derive(Debug)]
pub(super) struct Passing<'a>(&'a AtomicBool);

/// The control plane inside the gate, which is closed for lanes.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    is_closed: &'a AtomicBool,
    turn: Option<MutexGuard<'a, ()>>,
}

impl Gate {
    /// Creates an open gate for this number of lanes.
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            inside: (0..lanes).map(|_| Padded::default()).collect(),
            is_closed: Padded::default(),
            turn: Padded::default(),
        }
    }

    /// Enters with other lanes; waits while the control plane is inside. A lane must not enter twice.
    #[inline]
    pub(super) fn pass(&self, lane: usize) -> Passing<'_> {
        let inside = &self.inside[lane].0;
        inside.store(true, Ordering::SeqCst);
        if self.is_closed.0.load(Ordering::SeqCst) {
            self.wait(inside);
        }
        Passing(inside)
    }

    #[cold]
    fn wait(&self, inside: &AtomicBool) {
        inside.store(false, Ordering::Release);
        let _turn = self.turn.0.lock();
        // The gate is open now, because the control plane has the turn while it is closed. The next one to have the turn
        // sees the flag.
        inside.store(true, Ordering::SeqCst);
    }

    /// Enters alone: waits until no lane and no other part of the control plane is inside.
    pub(super) fn close(&self) -> Closed<'_> {
        let turn = Some(self.turn.0.lock());
        self.is_closed.0.store(true, Ordering::SeqCst);
        for inside in &self.inside {
            let mut spins = 0;
            while inside.0.load(Ordering::SeqCst) {
                spins += 1;
                if spins % SPINS == 0 {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
        Closed {
            is_closed: &self.is_closed.0,
            turn,
        }
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.is_closed.store(false, Ordering::Release);
        if let Some(turn) = self.turn.take() {
            // A waiting lane, or another part of the control plane, is next.
            MutexGuard::unlock_fair(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::thread;

    use super::*;

    const LANES: usize = 3;
    const WRITERS: usize = 2;
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };

    /// A value that lanes read and the control plane writes, without other synchronization than the gate's.
    struct Guarded {
        gate: Gate,
        pair: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: the tests access the pair only inside the gate.
    unsafe impl Sync for Guarded {}

    fn guarded() -> Guarded {
        Guarded {
            gate: Gate::new(LANES),
            pair: UnsafeCell::default(),
        }
    }

    #[test]
    fn lanes_see_each_change_completely_and_none_is_lost() {
        let guarded = &guarded();
        thread::scope(|scope| {
            for lane in 0..LANES {
                scope.spawn(move || {
                    let mut last = 0;
                    while last < WRITERS as u64 * ROUNDS {
                        let passing = guarded.gate.pass(lane);
                        // SAFETY: inside the gate, lanes only read.
                        let [a, b] = unsafe { *guarded.pair.get() };
                        drop(passing);
                        assert_eq!(a, b);
                        assert!(a >= last, "a change was undone");
                        last = a;
                    }
                });
            }
            for _ in 0..WRITERS {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let _closed = guarded.gate.close();
                        // SAFETY: the control plane is alone inside the gate.
                        let pair = unsafe { &mut *guarded.pair.get() };
                        pair.iter_mut().for_each(|n| *n += 1);
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { *guarded.pair.get() }, [WRITERS as u64 * ROUNDS; 2]);
    }

    #[test]
    fn control_plane_waits_for_a_lane_and_lanes_pass_together() {
        let guarded = &guarded();
        let passing = guarded.gate.pass(0);
        // Does not wait for the first lane.
        drop(guarded.gate.pass(1));
        thread::scope(|scope| {
            let writer = scope.spawn(|| drop(guarded.gate.close()));
            while !guarded.gate.is_closed.0.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            assert!(!writer.is_finished());
            drop(passing);
            writer.join().expect("the control plane gets in");
        });
        drop(guarded.gate.pass(0));
    }
}
