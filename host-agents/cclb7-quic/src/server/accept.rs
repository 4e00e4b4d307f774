//! Connections, as clients begin them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use noq::Endpoint;
use tokio::sync::{Semaphore, mpsc};

use crate::connection::{self, serve};

/// Serves every connection to `endpoint`, until that is closed. Beyond `unproven` handshakes at a time with clients whose address is not validated, a client is
/// sent a Retry. `alive` is held as long as a connection is.
pub(super) async fn all(
    endpoint: Endpoint,
    of: connection::Endpoint,
    unproven: usize,
    alive: mpsc::Sender<()>,
) {
    let unproven = Arc::new(Semaphore::new(unproven.min(Semaphore::MAX_PERMITS)));
    while let Some(incoming) = endpoint.accept().await {
        let incoming = match &of.artemis {
            None => incoming,
            Some(artemis) => match artemis.admit(incoming) {
                Some(incoming) => incoming,
                None => continue,
            },
        };
        let metrics = of.shared.metrics.clone();
        let place = match unproven.clone().try_acquire_owned() {
            _ if incoming.remote_address_validated() => None,
            Ok(place) => Some(place),
            Err(_) => {
                // It is never refused to an address that is not validated.
                let _ = incoming.retry();
                metrics.retries.fetch_add(1, Relaxed);
                continue;
            }
        };
        let (of, alive) = (of.clone(), alive.clone());
        tokio::spawn(async move {
            if serve(of, incoming, place).await.is_err() {
                metrics.failed_handshakes.fetch_add(1, Relaxed);
            }
            drop(alive);
        });
    }
}
