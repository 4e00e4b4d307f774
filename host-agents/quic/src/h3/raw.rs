// SPDX-License-Identifier: Apache-2.0
//! Streams on which a server continues HTTP/3 frames that another host has begun.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Buf;
use parking_lot::Mutex;

/// Streams of one connection on which the data that h3 sends is written without the type and length of its DATA frames.
#[derive(Clone, Debug, Default)]
pub struct RawStreams(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// True if there has been any.
    is_used: AtomicBool,
    ids: Mutex<HashSet<u64>>,
}

impl RawStreams {
    /// Write data on stream `id` without frames from now on.
    pub fn insert(&self, id: u64) {
        self.0.ids.lock().insert(id);
        self.0.is_used.store(true, Relaxed);
    }

    /// Forget stream `id`.
    pub fn remove(&self, id: u64) {
        if self.0.is_used.load(Relaxed) {
            self.0.ids.lock().remove(&id);
        }
    }

    /// Return whether data on stream `id` is written without frames.
    pub(super) fn contains(&self, id: u64) -> bool {
        self.0.is_used.load(Relaxed) && self.0.ids.lock().contains(&id)
    }
}

/// Remove type and length of the DATA frame with which `data` begins (RFC 9114, section 7.2.1).
pub(super) fn skip_data_head(data: &mut impl Buf) {
    debug_assert_eq!(data.chunk()[0], 0, "only data is sent on a raw stream");
    let length_octets = 1 << (data.chunk()[1] >> 6);
    data.advance(1 + length_octets);
}
