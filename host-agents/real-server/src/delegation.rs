// SPDX-License-Identifier: Apache-2.0
//! A delegation of a client's connection to this server.

use std::net::SocketAddr;
use std::sync::Arc;

use frontage_handoff::delegate::DelegatedConnection;
use frontage_handoff::link::Outbox;
use frontage_handoff::message::ToBalancer;
use frontage_quic::meter::Meter;
use frontage_quic::socket::CookiePrefix;

use crate::credit::Credit;
use crate::replay_guard::PathKey;

/// A delegation, while it lasts.
pub struct Delegation {
    /// noq's connection with the delegated streams.
    pub connection: DelegatedConnection,
    /// Key of the path in the replay guard.
    pub path: PathKey,
    /// Gets the sizes of responses.
    pub meter: Arc<Meter>,
    /// Contents of the packets' source addresses, if they are cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// Messages to the balancer.
    pub outbox: Outbox<ToBalancer>,
    /// The client's first address.
    pub client: SocketAddr,
    /// Requests with shorter responses, in bytes, are rejected.
    pub min_size: u64,
    /// Credit within the client's MAX_DATA.
    pub credit: Credit,
}
