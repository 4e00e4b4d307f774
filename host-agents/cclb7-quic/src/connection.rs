//! One connection, to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use frontage_handoff::lend::Lender;
use frontage_quic::h3::Connection;
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
use crate::handoff::{Lending, Owner, Servers};

/// Most bytes of a request's header (RFC 9114, section 4.2.2).
const FIELDS: u64 = 1 << 16;

/// What serves all connections of an endpoint.
#[derive(Clone)]
pub struct Endpoint {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What all exchanges need.
    pub shared: Arc<Shared>,
    /// If this is a replica.
    pub artemis: Option<Arc<Artemis>>,
    /// If there are real servers.
    pub servers: Option<Arc<Servers>>,
    /// What the sources of its packets are made of, if of cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// Tells that the server is to end.
    pub ending: watch::Receiver<bool>,
}

impl Endpoint {
    /// How requests that come over `connection` are answered.
    fn peer(&self, client: SocketAddr, connection: &noq::Connection) -> Peer {
        let data = connection.handshake_data();
        let observer = data.and_then(|data| match data.downcast::<Handshake<Meter>>() {
            Ok(handshake) => Some(Watch::Meter(handshake.observer)),
            Err(data) => {
                let handshake = data.downcast::<Handshake<Lender<Meter>>>().ok()?;
                Some(Watch::Lender(handshake.observer))
            }
        });
        let lending = match (&observer, &self.servers) {
            (Some(Watch::Lender(lender)), Some(servers)) => {
                let owner = Owner {
                    connection: connection.clone(),
                    client,
                    lender: lender.clone(),
                    listen: self.listen,
                    cookie_prefix: self.cookie_prefix.clone(),
                };
                Some(Lending::new(owner, servers.clone()))
            }
            _ => None,
        };
        Peer {
            client,
            observer,
            lending,
        }
    }
}

/// What sees a connection's packets.
pub enum Watch {
    /// So that they tell of responses.
    Meter(Arc<Meter>),
    /// And so that some of them may be real servers'.
    Lender(Arc<Lender<Meter>>),
}

impl Watch {
    /// Takes the sizes of responses, and sees each end.
    pub fn meter(&self) -> &Meter {
        match self {
            Self::Meter(meter) => meter,
            Self::Lender(lender) => lender.inner(),
        }
    }
}

/// No error at all (RFC 9114, section 8.1).
pub fn no_error() -> VarInt {
    VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("a small number")
}

/// Waits until the server is to end, which it is too if it is no more.
async fn told(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Serves one connection to its end; it gives its `place` among the unproven back once its handshake is complete. An error means that that failed.
pub async fn serve(
    endpoint: Endpoint,
    incoming: Incoming,
    place: Option<OwnedSemaphorePermit>,
) -> Result<()> {
    let client: SocketAddr = incoming.remote_address();
    let connection = incoming.await?;
    drop(place);
    // Of one that came by a detour, once it is at the unicast address.
    let artemis = endpoint.artemis.clone();
    let measure = || {
        artemis
            .as_ref()
            .is_none_or(|artemis| artemis.measured(client, connection.rtt(PathId::ZERO)))
    };
    let measured = measure();
    let peer = Arc::new(endpoint.peer(client, &connection));
    let Endpoint {
        shared, mut ending, ..
    } = endpoint;
    let _open = shared.metrics.connected();
    let mut builder = h3::server::builder();
    builder.max_field_section_size(FIELDS);
    // On a stream that is a real server's, nothing of ours may come.
    builder.send_grease(peer.lending.is_none());
    let built = builder.build(Connection::new(connection.clone())).await;
    let Ok::<h3::server::Connection<_, Bytes>, _>(mut h3) = built else {
        return Ok(());
    };
    let renewing = async {
        if let Some(lending) = &peer.lending {
            lending.renew_keys().await;
        }
    };
    let mut renewing = pin!(renewing.fuse());
    // In this task, not in one each: what they write in one turn leaves in one batch.
    let mut requests = FuturesUnordered::new();
    let (mut draining, mut open) = (false, true);
    // Each is there until its answer is acknowledged: what is not yet would be lost.
    while open && !draining || !requests.is_empty() {
        tokio::select! {
            accepted = h3.accept(), if open => match accepted {
                Ok(Some(resolver)) => requests.push(exchange::run(shared.clone(), peer.clone(), resolver)),
                // The client is done, or gone.
                Ok(None) | Err(_) => open = false,
            },
            // What became of a request stands in the log.
            Some(_) = requests.next() => {}
            () = &mut renewing => {}
            () = told(&mut ending), if !draining => {
                draining = true;
                open &= h3.shutdown(0).await.is_ok();
            }
        }
    }
    if !measured {
        measure();
    }
    connection.close(no_error(), b"");
    Ok(())
}
