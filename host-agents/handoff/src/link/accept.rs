//! The real server's end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use noq::{Connection, Endpoint, Incoming, VarInt};

use super::streams::{Inbox, Outbox, pair};
use super::tls::name_of;
use super::writer::Writer;
use crate::message::{ToBalancer, ToServer};

/// Application error code: the certificate is right, but its holder is no balancer of this server's.
const STRANGER: u32 = 2;

/// Accepts auxiliary connections of the `balancers`, as their certificates name them, and hands `each` stream on; ends with the endpoint.
/// `strangers` counts connections of others.
pub async fn serve<F, Fut>(
    endpoint: Endpoint,
    balancers: Vec<String>,
    strangers: Arc<AtomicU64>,
    each: F,
) where
    F: Fn(Outbox<ToBalancer>, Inbox<ToServer>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let balancers: Arc<[String]> = balancers.into();
    while let Some(incoming) = endpoint.accept().await {
        let (balancers, strangers, each) = (balancers.clone(), strangers.clone(), each.clone());
        tokio::spawn(async move {
            match connect(incoming, &balancers).await {
                Some(connection) => streams(connection, each).await,
                None => _ = strangers.fetch_add(1, Relaxed),
            }
        });
    }
}

async fn connect(incoming: Incoming, balancers: &[String]) -> Option<Connection> {
    let connection = incoming.await.ok()?;
    if name_of(&connection, balancers).is_none() {
        connection.close(VarInt::from_u32(STRANGER), b"not one of the balancers");
        return None;
    }
    Some(connection)
}

async fn streams<F, Fut>(connection: Connection, each: F)
where
    F: Fn(Outbox<ToBalancer>, Inbox<ToServer>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let writer = Writer::new();
    while let Ok(both) = connection.accept_bi().await {
        let (outbox, inbox) = pair(both, &writer);
        tokio::spawn(each(outbox, inbox));
    }
}
