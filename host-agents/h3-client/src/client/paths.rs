//! Further paths of a connection (draft-ietf-quic-multipath), at the addresses of its first: to a server that answers by several hosts.

use std::net::SocketAddr;
use std::time::Duration;

use noq::{Connection, PathError, PathStatus};
use tokio::time::{sleep, timeout};

use super::{Failure, PATIENCE};

/// The server sends the connection ids of further paths once the handshake is complete; noq says nothing when they come.
const AGAIN: Duration = Duration::from_millis(1);

/// Opens paths to `server` until `quic` has `count`; each is validated then.
pub async fn open(quic: &Connection, server: SocketAddr, count: u32) -> Result<(), Failure> {
    let opened = async {
        for _ in 1..count {
            loop {
                match quic.open_path(server, PathStatus::Available).await {
                    Ok(_) => break,
                    Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {
                        sleep(AGAIN).await;
                    }
                    Err(error) => return Err(Failure::new(format!("no further path: {error}"))),
                }
            }
        }
        Ok(())
    };
    let late = || Failure::new("no further path: the server allows no more");
    timeout(PATIENCE, opened)
        .await
        .unwrap_or_else(|_| Err(late()))
}
