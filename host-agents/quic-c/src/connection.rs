// SPDX-License-Identifier: Apache-2.0
//! The responses of one connection, and the source addresses of its packets.

use std::cell::Cell;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use frontage_cookie::load;
use frontage_quic_signals::keys::SealedCookies;
use frontage_quic_signals::prefix::CookiePrefix;

use crate::Server;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    prefix: Arc<CookiePrefix>,
    written: Rc<Written>,
    /// Number of the latest batch.
    batch: Option<u64>,
    /// Bytes that remained of the response before that batch.
    remaining: u64,
    sealed: SealedCookies,
}

/// The responses, and the bytes written since the latest batch.
#[derive(Debug, Default)]
struct Written {
    /// The smallest number of bytes that remained of a response.
    least: Cell<Option<u64>>,
    active_responses: Cell<u64>,
}

/// A response that is being sent.
#[derive(Debug)]
pub struct Response {
    progress: load::Response,
    written: Rc<Written>,
}

impl Connection {
    /// Create a connection of `server`.
    pub fn new(server: &Server) -> Self {
        Self {
            prefix: server.prefix.clone(),
            written: Rc::default(),
            batch: None,
            remaining: 0,
            sealed: SealedCookies::default(),
        }
    }

    /// Begin a response of `size` bytes, if known.
    pub fn begin(&self, size: Option<u64>) -> Response {
        let active = &self.written.active_responses;
        active.set(active.get() + 1);
        Response {
            progress: load::Response::new(self.prefix.loads.clone(), size),
            written: self.written.clone(),
        }
    }

    /// Return the source address of a packet of `batch` on the path that ends at the server's address `local`, or
    /// `None` if it is `local` itself.
    pub fn source(&mut self, batch: u64, local: IpAddr) -> Option<Ipv6Addr> {
        if self.batch != Some(batch) {
            self.batch = Some(batch);
            let is_idle = self.written.active_responses.get() == 0;
            let least = self.written.least.take();
            self.remaining = least.or(is_idle.then_some(0)).unwrap_or(self.remaining);
        }
        source(&self.prefix, local, self.remaining, &mut self.sealed)
    }
}

/// Return the source address of a packet without a connection, like [`Connection::source`].
pub(crate) fn source_without_connection(server: &Server, local: IpAddr) -> Option<Ipv6Addr> {
    source(&server.prefix, local, 0, &mut SealedCookies::default())
}

fn source(
    prefix: &CookiePrefix,
    local: IpAddr,
    remaining: u64,
    sealed: &mut SealedCookies,
) -> Option<Ipv6Addr> {
    let IpAddr::V6(local) = local else {
        return None;
    };
    if !prefix.contains(local) {
        return None;
    }
    let epoch = prefix.keys.epoch_of_static(local.to_bits() as u64);
    Some(prefix.source(epoch, remaining, sealed))
}

impl Response {
    /// Record that the next batch carries bytes up to `offset`.
    pub fn on_sent(&mut self, offset: u64) {
        let remaining = self.progress.remaining();
        let least = self.written.least.get();
        let least = least.map_or(remaining, |least| least.min(remaining));
        self.written.least.set(Some(least));
        self.progress.on_sent(offset);
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        let active = &self.written.active_responses;
        active.set(active.get() - 1);
    }
}
