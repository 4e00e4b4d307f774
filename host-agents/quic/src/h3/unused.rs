// SPDX-License-Identifier: Apache-2.0
//! Sending directions of streams on which h3 has sent nothing.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The sending directions of the streams that the peer of one connection opened, until h3 uses them. A server that encodes a
/// response itself takes them.
#[derive(Clone, Debug, Default)]
pub struct UnusedStreams(Arc<Mutex<FxHashMap<u64, noq::SendStream>>>);

impl UnusedStreams {
    pub(super) fn insert(&self, id: u64, stream: noq::SendStream) {
        self.0.lock().insert(id, stream);
    }

    /// Take the sending direction of stream `id`. h3 then discards what it would send there.
    pub fn take(&self, id: u64) -> Option<noq::SendStream> {
        self.0.lock().remove(&id)
    }
}
