// SPDX-License-Identifier: Apache-2.0
//! Acceptance of connections.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use noq::Endpoint;
use tokio::sync::{Semaphore, mpsc};

use crate::connection::{self, serve};

/// Serve all connections to `endpoint` until it is closed. Beyond `max_unvalidated` concurrent handshakes with clients whose
/// address is not validated, clients get a Retry. Each connection holds `alive`.
pub(super) async fn run(
    endpoint: Endpoint,
    state: connection::Endpoint,
    max_unvalidated: usize,
    alive: mpsc::Sender<()>,
) {
    let unvalidated = Arc::new(Semaphore::new(max_unvalidated.min(Semaphore::MAX_PERMITS)));
    while let Some(incoming) = endpoint.accept().await {
        let incoming = match &state.artemis {
            None => incoming,
            Some(artemis) => match artemis.admit(incoming) {
                Some(incoming) => incoming,
                None => continue,
            },
        };
        let metrics = state.shared.metrics.clone();
        let permit = match unvalidated.clone().try_acquire_owned() {
            _ if incoming.remote_address_validated() => None,
            Ok(permit) => Some(permit),
            Err(_) => {
                // Cannot fail for an address that is not validated.
                let _ = incoming.retry();
                metrics.retries.fetch_add(1, Relaxed);
                continue;
            }
        };
        let (state, alive) = (state.clone(), alive.clone());
        tokio::spawn(async move {
            if serve(state, incoming, permit).await.is_err() {
                metrics.failed_handshakes.fetch_add(1, Relaxed);
            }
            drop(alive);
        });
    }
}
