// SPDX-License-Identifier: Apache-2.0
//! Connection ids that name their server (RFC 9000, section 5.1; `docs/cookie.md`, "Connection id").

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use frontage_cookie::{cid, ipv6};

use crate::keys::Keys;

/// The sealed connection ids of a server. No nonce repeats before all have been used.
#[derive(Debug)]
pub struct SealedIds {
    keys: Arc<Keys>,
    sid: u16,
    next_nonce: AtomicU32,
}

impl SealedIds {
    /// Create ids that name server `sid`. This may differ from the `sid` of `keys`, under which another service knows
    /// the server. They begin at a random nonce, so that a restarted server is unlikely to repeat recent ones.
    pub fn new(keys: Arc<Keys>, sid: u16) -> Self {
        Self {
            keys,
            sid,
            next_nonce: AtomicU32::new(rand::random()),
        }
    }

    /// Return another id, which the newest key seals.
    pub fn generate(&self) -> [u8; cid::LEN] {
        let nonce = self.next_nonce.fetch_add(1, Relaxed) % ipv6::NONCE_MAX + 1;
        cid::sealed(&self.keys.newest(), self.sid, nonce, rand::random())
    }
}
