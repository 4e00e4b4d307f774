// SPDX-License-Identifier: Apache-2.0
//! Additional paths of a connection (draft-ietf-quic-multipath), between the same addresses as the first path.

use std::net::SocketAddr;
use std::time::Duration;

use noq::{Connection, PathError, PathStatus};
use tokio::time::{sleep, timeout};

use super::REQUEST_TIMEOUT;
use crate::Error;

/// Delay before opening a path is tried again.
///
/// The server sends the connection ids for further paths once the handshake is complete, and noq does not report their arrival.
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Opens paths to `server` until `quic` has `count` validated ones.
pub async fn open_paths(quic: &Connection, server: SocketAddr, count: u32) -> Result<(), Error> {
    let opened = async {
        for _ in 1..count {
            loop {
                match quic.open_path(server, PathStatus::Available).await {
                    Ok(_) => break,
                    Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {
                        sleep(RETRY_DELAY).await;
                    }
                    Err(error) => return Err(Error::Path(error)),
                }
            }
        }
        Ok(())
    };
    timeout(REQUEST_TIMEOUT, opened)
        .await
        .unwrap_or(Err(Error::PathLimit))
}
