//! What fuzzers reach without a connection: a balancer that hears a client, and a real server that hears the balancer.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::borrow::{self, Error};
use crate::lend::Scene;

/// A path of a client's connection, lent to a real server with two streams.
pub struct Hearing {
    lender: Scene,
    /// Streams by the client's ids, as the real server's noq has them in a row.
    streams: Arc<[u64]>,
}

impl Default for Hearing {
    fn default() -> Self {
        let streams = Arc::new([0, 8]);
        Self {
            lender: Scene::new(&*streams),
            streams,
        }
    }
}

impl Hearing {
    /// The client's packet on `path` has these frames: what of that noq gets, and what the real server does.
    pub fn hear(&mut self, path: u32, frames: &[u8]) -> (BytesMut, Bytes) {
        self.lender.hear(path, frames)
    }

    /// The real server hears `feedback`.
    ///
    /// # Errors
    /// If that is malformed or cannot be.
    pub fn pass_on(&self, feedback: &[u8]) -> Result<(), Error> {
        let own = |id: u64| {
            let at = self.streams.iter().position(|of| *of == id)?;
            Some(4 * at as u64)
        };
        borrow::translate(feedback, self.lender.first, own)
    }
}
