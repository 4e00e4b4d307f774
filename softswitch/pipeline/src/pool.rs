// SPDX-License-Identifier: Apache-2.0
//! Buffers for packets.

use crate::packet::Packet;

/// Buffers of finished packets, for reuse.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "descriptors take the boxes out and return them"
)]
pub(crate) struct Pool(Vec<Box<Packet>>);

/// Maximum number of pooled buffers; further ones are freed.
const MAX_POOL: usize = 1 << 14;

impl Pool {
    pub(crate) fn get(&mut self) -> Box<Packet> {
        self.0.pop().unwrap_or_default()
    }

    pub(crate) fn put(&mut self, packet: Box<Packet>) {
        if self.0.len() < MAX_POOL {
            self.0.push(packet);
        }
    }
}
