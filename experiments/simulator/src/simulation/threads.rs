// SPDX-License-Identifier: Apache-2.0
//! Threads that simulate the shards of a window together.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;

use crate::shard::{Shard, Windows};

/// Number of checks of a variable before a waiting thread lets others run. A round takes microseconds.
const SPINS: u32 = 1 << 8;

/// Simulates windows with `threads` threads, including this one, until `coordinate` returns. `coordinate` gets a function that simulates
/// windows.
///
/// # Panics
/// Panics if a thread panics.
pub fn with_threads<T>(
    shards: &[Mutex<Shard>],
    threads: usize,
    coordinate: impl FnOnce(&dyn Fn(Windows)) -> T,
) -> T {
    let team = Team {
        shards,
        round: AtomicU64::new(0),
        windows: RwLock::new(Windows {
            end: 0,
            until: 0,
            length: 0,
        }),
        threads,
        busy: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        has_failed: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        for number in 1..threads {
            let team = &team;
            scope.spawn(move || team.follow(number));
        }
        let _over = Over(&team);
        coordinate(&|windows| team.lead(windows))
    })
}

/// The threads' common state. They start when the number of the round changes.
struct Team<'a> {
    shards: &'a [Mutex<Shard>],
    round: AtomicU64,
    windows: RwLock<Windows>,
    /// Number of threads. A thread always simulates the same shards, whose data stay in the cache of its core.
    threads: usize,
    /// Number of other threads that still simulate.
    busy: AtomicUsize,
    is_over: AtomicBool,
    has_failed: AtomicBool,
}

impl Team<'_> {
    /// Simulates windows with the other threads.
    fn lead(&self, windows: Windows) {
        *self.windows.write().unwrap_or_else(PoisonError::into_inner) = windows;
        self.busy.store(self.threads - 1, Ordering::Relaxed);
        self.round.fetch_add(1, Ordering::Release);
        self.simulate(0);
        wait(|| self.busy.load(Ordering::Acquire) == 0);
        assert!(
            !self.has_failed.load(Ordering::Relaxed),
            "a thread of the simulation panicked"
        );
    }

    /// Takes part in rounds until the run is over.
    fn follow(&self, number: usize) {
        let mut last = 0;
        loop {
            wait(|| {
                self.round.load(Ordering::Acquire) != last || self.is_over.load(Ordering::Relaxed)
            });
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            last += 1;
            let _done = Done(self);
            self.simulate(number);
        }
    }

    /// Simulates the shards of a thread.
    fn simulate(&self, number: usize) {
        let windows = *self.windows.read().unwrap_or_else(PoisonError::into_inner);
        for shard in self.shards.iter().skip(number).step_by(self.threads) {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.run(windows);
        }
    }
}

/// Reports the end of a thread's part in a round, also if the thread panics.
struct Done<'a>(&'a Team<'a>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        self.0.busy.fetch_sub(1, Ordering::Release);
    }
}

/// Ends the other threads, also if this one panics.
struct Over<'a>(&'a Team<'a>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

fn wait(is_done: impl Fn() -> bool) {
    loop {
        for _ in 0..SPINS {
            if is_done() {
                return;
            }
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}
