// SPDX-License-Identifier: Apache-2.0
//! Connections that migrate when their server announces another address (docs/moves.md).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use frontage_quic::relocate::Relocator;
use frontage_quic_wire::server_addresses::ServerAddresses;
use noq::Endpoint;
use tokio::time::sleep;

use crate::socket::Socket;

/// Least time between two migrations of a connection, whatever its server announces. The latest announcement waits.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Effects of the servers' announcements on all connections of a client.
#[derive(Debug, Default)]
pub struct MoveCounts {
    /// Migrations to an announced address.
    pub completed: AtomicU64,
    /// Announced addresses at which the server did not respond.
    pub failed: AtomicU64,
    /// Connections that were opened because a server announced the next one.
    pub handed_over: AtomicU64,
}

/// Returns the addresses of `set` that are of the family of `known`, the most preferred first.
pub fn usable(set: &ServerAddresses, known: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let addresses = set.preferred.iter().map(|(_, address)| *address);
    addresses.filter(move |address| address.is_ipv4() == known.is_ipv4() && address.port() != 0)
}

/// Migrates the only connection of `endpoint` to each address that its server announces, until it is closed.
pub async fn follow(
    endpoint: Endpoint,
    quic: noq::Connection,
    socket: Socket,
    relocator: Relocator,
    counts: Arc<MoveCounts>,
) {
    let mut announced = relocator.moves();
    let moves = async {
        // No migration before the handshake is confirmed (RFC 9000, section 9).
        if quic.handshake_confirmed().await.is_err() {
            return;
        }
        loop {
            let Ok(set) = announced
                .wait_for(Option::is_some)
                .await
                .map(|set| set.clone())
            else {
                return;
            };
            for address in set
                .iter()
                .flat_map(|set| usable(set, socket.nominal_server()))
            {
                if socket.server() == address {
                    break;
                }
                if migrate(&endpoint, &quic, &socket, &relocator, address).await {
                    counts.completed.fetch_add(1, Relaxed);
                    break;
                }
                counts.failed.fetch_add(1, Relaxed);
            }
            sleep(MIN_INTERVAL).await;
            if announced.has_changed().is_ok_and(|changed| changed) {
                continue;
            }
            if announced.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = moves => {}
        _ = quic.closed() => {}
    }
}

/// Migrates the connection to `address` if the server responds there. Returns whether it does.
async fn migrate(
    endpoint: &Endpoint,
    quic: &noq::Connection,
    socket: &Socket,
    relocator: &Relocator,
    address: SocketAddr,
) -> bool {
    socket.begin_probe(address, relocator.clone());
    let is_validated = relocator.validate(quic).await.is_ok();
    socket.end_probe();
    if is_validated {
        // noq switches to the next connection id, with which the path was validated, and sends a PING.
        endpoint.handle_network_change(None);
        socket.redirect(address);
    }
    is_validated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_preferred_addresses_of_the_same_family_are_usable() {
        let [v6, v4, unspecified, backup]: [SocketAddr; 4] = [
            "[2001:db8::1]:443",
            "192.0.2.1:443",
            "192.0.2.2:0",
            "192.0.2.3:443",
        ]
        .map(|text| text.parse().unwrap());
        let set = ServerAddresses {
            sequence: 1,
            preferred: vec![(0, v6), (1, unspecified), (2, v4)],
            backup: vec![(0, backup)],
        };
        assert_eq!(usable(&set, v4).collect::<Vec<_>>(), [v4]);
        assert_eq!(usable(&set, v6).collect::<Vec<_>>(), [v6]);
    }
}
