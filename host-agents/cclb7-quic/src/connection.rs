// SPDX-License-Identifier: Apache-2.0
//! One connection, from its handshake to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use frontage_handoff::delegator::Delegator;
use frontage_quic::h3::{Connection, RawStreams};
use frontage_quic::meter::Meter;
use frontage_quic::session::Handshake;
use frontage_quic::socket::CookiePrefix;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use h3::error::Code;
use noq::{Incoming, PathId, VarInt};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::artemis::Artemis;
use crate::exchange::{self, Peer, Shared};
use crate::handoff::{Client, RealServers, RequestDelegator};
use crate::observer::ConnectionObserver;

/// Maximum size of a request header in bytes (RFC 9114, section 4.2.2).
const MAX_FIELD_SECTION_SIZE: u64 = 1 << 16;

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
    /// Contents of the packets' source addresses, if they are cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// Becomes true when the server shuts down.
    pub ending: watch::Receiver<bool>,
}

impl Endpoint {
    /// Create the peer of `connection`.
    fn peer(&self, client: SocketAddr, connection: &noq::Connection, raw: RawStreams) -> Peer {
        let data = connection.handshake_data();
        let observer = data.and_then(|data| match data.downcast::<Handshake<Meter>>() {
            Ok(handshake) => Some(ConnectionObserver::Meter(handshake.observer)),
            Err(data) => {
                let handshake = data.downcast::<Handshake<Delegator<Meter>>>().ok()?;
                Some(ConnectionObserver::Delegator(handshake.observer))
            }
        });
        let delegator = match (&observer, &self.servers) {
            (Some(ConnectionObserver::Delegator(delegator)), Some(servers)) => {
                let client = Client {
                    connection: connection.clone(),
                    address: client,
                    delegator: delegator.clone(),
                    listen: self.listen,
                    cookie_prefix: self.cookie_prefix.clone(),
                };
                Some(RequestDelegator::new(client, servers.clone()))
            }
            _ => None,
        };
        Peer {
            client,
            observer,
            delegator,
            raw,
        }
    }
}

/// Return H3_NO_ERROR (RFC 9114, section 8.1).
pub fn no_error() -> VarInt {
    VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("valid varint")
}

/// Wait until the server shuts down or is gone.
async fn wait_for_shutdown(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
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
    let connection = incoming.await?;
    drop(permit);
    let artemis = endpoint.artemis.clone();
    let measure = || {
        artemis
            .as_ref()
            .is_none_or(|artemis| artemis.record_rtt(client, connection.rtt(PathId::ZERO)))
    };
    // The RTT of a client in a tunnel is measured again once it is at the unicast address.
    let is_measured = measure();
    let h3 = Connection::new(connection.clone());
    let peer = Arc::new(endpoint.peer(client, &connection, h3.raw_streams()));
    let Endpoint {
        shared, mut ending, ..
    } = endpoint;
    let _open = shared.metrics.connected();
    let mut builder = h3::server::builder();
    builder.max_field_section_size(MAX_FIELD_SECTION_SIZE);
    // The balancer must not send on a delegated stream.
    builder.send_grease(peer.delegator.is_none());
    let built = builder.build(h3).await;
    let Ok::<h3::server::Connection<_, Bytes>, _>(mut h3) = built else {
        return Ok(());
    };
    let update_keys = async {
        if let Some(delegator) = &peer.delegator {
            delegator.update_keys().await;
        }
    };
    let mut update_keys = pin!(update_keys.fuse());
    // All exchanges run in this task, so that what they write in one turn leaves in one batch.
    let mut requests = FuturesUnordered::new();
    let (mut draining, mut open) = (false, true);
    // Exchanges last until the response is acknowledged. Closing the connection earlier would lose data.
    while open && !draining || !requests.is_empty() {
        tokio::select! {
            accepted = h3.accept(), if open => match accepted {
                Ok(Some(resolver)) => requests.push(exchange::run(shared.clone(), peer.clone(), resolver)),
                // The client sends no more requests, or is gone.
                Ok(None) | Err(_) => open = false,
            },
            // The access log has the outcome.
            Some(_) = requests.next() => {}
            () = &mut update_keys => {}
            () = wait_for_shutdown(&mut ending), if !draining => {
                draining = true;
                open &= h3.shutdown(0).await.is_ok();
            }
        }
    }
    if !is_measured {
        measure();
    }
    connection.close(no_error(), b"");
    Ok(())
}
