// SPDX-License-Identifier: Apache-2.0
//! The real server's end of a link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use noq::{Connection, Endpoint, Incoming, VarInt};

use super::streams::{Inbox, Outbox, pair};
use super::tls::name_of;
use super::writer::Writer;
use crate::message::{ToBalancer, ToServer};

/// Application error code: the certificate is valid but not for one of this server's balancers.
const UNKNOWN_BALANCER: u32 = 2;

/// Accept links of the `balancers`, identified by the names in their certificates, and call `handle` for handle stream. Returns
/// when the endpoint is closed. `rejected` counts connections of other peers.
pub async fn serve<F, Fut>(
    endpoint: Endpoint,
    balancers: Vec<String>,
    rejected: Arc<AtomicU64>,
    handle: F,
) where
    F: Fn(Outbox<ToBalancer>, Inbox<ToServer>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let balancers: Arc<[String]> = balancers.into();
    while let Some(incoming) = endpoint.accept().await {
        let (balancers, rejected, handle) = (balancers.clone(), rejected.clone(), handle.clone());
        tokio::spawn(async move {
            match connect(incoming, &balancers).await {
                Some(connection) => streams(connection, handle).await,
                None => _ = rejected.fetch_add(1, Relaxed),
            }
        });
    }
}

async fn connect(incoming: Incoming, balancers: &[String]) -> Option<Connection> {
    let connection = incoming.await.ok()?;
    if name_of(&connection, balancers).is_none() {
        connection.close(VarInt::from_u32(UNKNOWN_BALANCER), b"unknown balancer");
        return None;
    }
    Some(connection)
}

async fn streams<F, Fut>(connection: Connection, handle: F)
where
    F: Fn(Outbox<ToBalancer>, Inbox<ToServer>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let writer = Writer::new();
    while let Ok(both) = connection.accept_bi().await {
        let (outbox, inbox) = pair(both, &writer);
        tokio::spawn(handle(outbox, inbox));
    }
}
