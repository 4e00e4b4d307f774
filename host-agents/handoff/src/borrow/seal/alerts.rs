//! What a sealer tells its owner.

use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::{Sealer, State};
use crate::borrow::silence::Silent;

impl Sealer {
    /// Whether the key may seal no more. Its owner is told.
    pub(super) fn is_exhausted(&self, state: &State) -> bool {
        let is_exhausted = state.sealed >= self.suite.confidentiality_limit;
        if is_exhausted {
            self.exhausted.notify_one();
        }
        is_exhausted
    }

    /// Ready once a packet did not leave since the key in force has sealed all that it may (RFC 9001, section 6.6).
    pub async fn exhausted(&self) {
        loop {
            self.exhausted.notified().await;
            // There may be another key by now.
            if self.state().sealed >= self.suite.confidentiality_limit {
                return;
            }
        }
    }

    /// The client has the packet of this number on the wire.
    pub fn heard(&self, largest: u64) {
        let state = &mut *self.state();
        state.silence.heard(largest, state.next, Instant::now());
    }

    /// Ready once a packet has left for a client, at the end of a round trip of `rtt`, that has acknowledged nothing for long; and when that is too long.
    pub async fn silent(&self, rtt: impl Fn() -> Duration) -> Silent {
        loop {
            // noq's lock is held by whoever seals, and this one's taken within.
            let overdue = {
                let rtt = rtt();
                self.state().silence.overdue(rtt)
            };
            match overdue {
                None => self.probed.notified().await,
                Some(overdue) => {
                    let _ = timeout_at(overdue.into(), self.probed.notified()).await;
                }
            }
            let rtt = rtt();
            let told = self.state().silence.tell(rtt, Instant::now());
            if let Some(silent) = told {
                return silent;
            }
        }
    }
}
