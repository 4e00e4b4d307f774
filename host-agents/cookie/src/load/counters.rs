// SPDX-License-Identifier: Apache-2.0
//! N_AF and N_FF of a server.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The loads of a server, which its [`Response`](super::Response)s update.
#[derive(Debug)]
pub struct Loads {
    look_ahead: u64,
    n_af: AtomicU64,
    n_ff: AtomicU64,
}

impl Loads {
    /// Create counters at 0. A response counts in N_FF while more than `look_ahead` of its bytes remain.
    pub fn new(look_ahead: u64) -> Self {
        Self {
            look_ahead,
            n_af: AtomicU64::new(0),
            n_ff: AtomicU64::new(0),
        }
    }

    /// Return N_AF: responses begun and not yet completely sent.
    #[inline]
    pub fn n_af(&self) -> u64 {
        self.n_af.load(Relaxed)
    }

    /// Return N_FF: active responses with more than the look-ahead remaining, as far as their size is known.
    #[inline]
    pub fn n_ff(&self) -> u64 {
        self.n_ff.load(Relaxed)
    }

    /// Return whether a response with `remaining` bytes counts in N_FF.
    #[inline]
    pub(super) fn is_future(&self, remaining: u64) -> bool {
        remaining > self.look_ahead
    }

    /// Count a new response.
    pub(super) fn enter(&self) {
        self.n_af.fetch_add(1, Relaxed);
    }

    /// Uncount a response, which also counted in N_FF if `is_future`.
    pub(super) fn leave(&self, is_future: bool) {
        if is_future {
            self.set_future(false);
        }
        self.n_af.fetch_sub(1, Relaxed);
    }

    /// Start or stop counting a response in N_FF.
    pub(super) fn set_future(&self, is_future: bool) {
        if is_future {
            self.n_ff.fetch_add(1, Relaxed);
        } else {
            self.n_ff.fetch_sub(1, Relaxed);
        }
    }
}
