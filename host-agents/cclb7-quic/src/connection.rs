// SPDX-License-Identifier: Apache-2.0
//! One connection, from its handshake to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use frontage_handoff::delegator::Delegator;
use frontage_quic::announce::{Announced, Announcer};
use frontage_quic::h3::Connection;
use frontage_quic::meter::Meter;
use frontage_quic::session::Handshake;
use frontage_quic::socket::CookiePrefix;
use futures_util::FutureExt as _;
use h3::error::Code;
use noq::{Incoming, PathId, VarInt};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::artemis::Artemis;
use crate::early::HandshakeProgress;
use crate::exchange::{self, Peer, Shared};
use crate::handoff::{Client, RealServers, RequestDelegator};
use crate::moves::{HandOver, Moves};
use crate::observer::ConnectionObserver;
use exchanges::Exchanges;
use leaving::Leaving;

mod exchanges;
mod leaving;

/// Maximum size of a request header in bytes (RFC 9114, section 4.2.2).
const MAX_FIELD_SECTION_SIZE: u64 = 1 << 16;

/// Requests that a client that was handed over may still send: those that it sent before it knew. It is the largest number
/// that GOAWAY permits, as RFC 9114, section 5.2, recommends.
const MAX_LATE_REQUESTS: usize = usize::MAX;

/// State that all connections of an endpoint share.
#[derive(Clone)]
pub struct Endpoint {
    /// Where the endpoint listens.
    pub listen: SocketAddr,
    /// State that all exchanges share.
    pub shared: Arc<Shared>,
    /// Set if this server is a replica.
    pub artemis: Option<Arc<Artemis>>,
    /// Set if there are real servers.
    pub servers: Option<Arc<RealServers>>,
    /// Set if clients may move.
    pub moves: Option<Arc<Moves>>,
    /// Time for clients to leave after they were handed over.
    pub drain_timeout: Duration,
    /// Contents of the packets' source addresses, if they are cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// Whether clients may send requests before the handshake is complete.
    pub early_data: bool,
    /// Becomes true when the server shuts down.
    pub ending: watch::Receiver<bool>,
}

impl Endpoint {
    /// Create the peer of `connection`.
    fn peer(
        &self,
        client: SocketAddr,
        connection: &noq::Connection,
        h3: &Connection,
        handshake: HandshakeProgress,
    ) -> Peer {
        let (observer, announcer) = observer(connection).unzip();
        let delegator = match (&observer, &self.servers) {
            (Some(ConnectionObserver::Delegator(delegator)), Some(servers)) => {
                let client = Client {
                    connection: connection.clone(),
                    address: client,
                    delegator: delegator.clone(),
                    listen: self.listen,
                    cookie_prefix: self.cookie_prefix.clone(),
                    vip: self.artemis.as_ref().and_then(|artemis| artemis.vip),
                };
                Some(RequestDelegator::new(client, servers.clone()))
            }
            _ => None,
        };
        Peer {
            client,
            observer,
            announcer,
            delegator,
            raw: h3.raw_streams(),
            unused: h3.unused_streams(),
            handshake,
        }
    }
}

/// Return the observer of `connection`, and what announces addresses to its client.
fn observer(connection: &noq::Connection) -> Option<(ConnectionObserver, Announcer)> {
    let data = connection.handshake_data()?;
    let data = match data.downcast::<Handshake<Announced<Meter>>>() {
        Ok(handshake) => {
            let Announced { inner, announcer } = &*handshake.observer;
            return Some((ConnectionObserver::Meter(inner.clone()), announcer.clone()));
        }
        Err(data) => data,
    };
    let handshake = data.downcast::<Handshake<Announced<Delegator<Meter>>>>();
    let Announced { inner, announcer } = &*handshake.ok()?.observer;
    Some((
        ConnectionObserver::Delegator(inner.clone()),
        announcer.clone(),
    ))
}

/// Return H3_NO_ERROR (RFC 9114, section 8.1).
pub fn no_error() -> VarInt {
    VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("valid varint")
}

/// Wait until the server shuts down or is gone.
async fn wait_for_shutdown(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Carry out the orders that concern the client of `connection`, until it has been handed over to another server.
async fn follow_orders<'a>(
    moves: Option<&'a Moves>,
    connection: &noq::Connection,
    peer: &Peer,
) -> HandOver<'a> {
    let observers = peer.observer.as_ref().zip(peer.announcer.as_ref());
    match moves.zip(observers) {
        Some((moves, (observer, announcer))) if peer.handshake.completed().await => {
            let local = || observer.meter().local_address(peer.client);
            moves.run(connection, announcer, local).await
        }
        _ => std::future::pending().await,
    }
}

/// Serve one connection to its end. `permit` counts the handshake as unvalidated until it is complete.
///
/// # Errors
/// If the handshake fails.
pub async fn serve(
    endpoint: Endpoint,
    incoming: Incoming,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<()> {
    let client: SocketAddr = incoming.remote_address();
    let (connection, handshake) = if endpoint.early_data {
        HandshakeProgress::begin(incoming, permit).await?
    } else {
        HandshakeProgress::complete(incoming, permit).await?
    };
    let artemis = endpoint.artemis.clone();
    let measure = || {
        artemis
            .as_ref()
            .is_none_or(|artemis| artemis.record_rtt(client, connection.rtt(PathId::ZERO)))
    };
    let mut is_measured = handshake.is_complete() && measure();
    let h3 = Connection::new(connection.clone());
    let peer = Arc::new(endpoint.peer(client, &connection, &h3, handshake));
    let Endpoint {
        shared,
        mut ending,
        moves,
        drain_timeout,
        ..
    } = endpoint;
    let _open = shared.metrics.connected();
    let mut builder = h3::server::builder();
    builder.max_field_section_size(MAX_FIELD_SECTION_SIZE);
    // The balancer must not send on a delegated stream.
    builder.send_grease(peer.delegator.is_none());
    let built = builder.build(h3).await;
    let Ok::<h3::server::Connection<_, Bytes>, _>(mut h3) = built else {
        return peer.handshake.outcome(&connection);
    };
    let mut completed = pin!(peer.handshake.completed().fuse());
    let update_keys = async {
        if let Some(delegator) = &peer.delegator {
            delegator.update_keys().await;
        }
    };
    let mut update_keys = pin!(update_keys.fuse());
    let mut moving = pin!(follow_orders(moves.as_deref(), &connection, &peer).fuse());
    let mut shutdown = pin!(wait_for_shutdown(&mut ending).fuse());
    let mut leaving = Leaving::new(drain_timeout);
    let mut exchanges =
        Exchanges::new(|resolver| exchange::run(shared.clone(), peer.clone(), resolver));
    // Exchanges last until the response is acknowledged. Closing the connection earlier would lose data.
    while !exchanges.has_ended() {
        if leaving.should_say_goodbye(exchanges.has_had_any) {
            exchanges.is_open &= h3.shutdown(MAX_LATE_REQUESTS).await.is_ok();
        }
        tokio::select! {
            () = exchanges.run(&mut h3) => {}
            () = &mut update_keys => {}
            // The RTT of a client in a tunnel is measured again once it is at the unicast address.
            succeeded = &mut completed => is_measured = is_measured || succeeded && measure(),
            hand_over = &mut moving => leaving.begin(hand_over),
            () = leaving.expired(), if !exchanges.is_draining => {
                exchanges.is_draining = true;
                exchanges.is_open &= h3.shutdown(0).await.is_ok();
            }
            () = &mut shutdown, if !exchanges.is_draining => {
                exchanges.is_draining = true;
                exchanges.is_open &= h3.shutdown(0).await.is_ok();
            }
        }
    }
    leaving.end(!exchanges.is_open && !exchanges.is_draining);
    if !is_measured {
        measure();
    }
    connection.close(no_error(), b"");
    peer.handshake.outcome(&connection)
}
