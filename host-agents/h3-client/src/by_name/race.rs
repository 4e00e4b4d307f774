// SPDX-License-Identifier: Apache-2.0
//! Race between a cached address and the Service Address, as RFC 8305 does for IPv6 and IPv4.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use crate::Error;
use crate::client::{Client, Session, Url};

/// Delay before the Service Address is tried next to the cached one (RFC 8305, section 8: Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The connection that won the race.
pub struct Winner {
    /// The first connection whose handshake was complete.
    pub session: Session,
    /// Address of its handshake.
    pub address: SocketAddr,
    /// Why the cached address lost. `None` if it won, or if the cache had no address.
    pub fallback_reason: Option<String>,
}

/// Connects to `url` at the `cached` address, and at `service` if that fails or has not answered after [`ATTEMPT_DELAY`].
///
/// # Errors
/// Returns why the connection to `service` failed if both did.
pub async fn race(
    client: &Client,
    url: &Url,
    cached: Option<SocketAddr>,
    service: SocketAddr,
) -> Result<Winner, Error> {
    let connect = async |address: SocketAddr| {
        let session = client.connect(&url.clone().at(address)).await?;
        Ok::<_, Error>(Winner {
            session,
            address,
            fallback_reason: None,
        })
    };
    let Some(cached) = cached else {
        return connect(service).await;
    };
    let mut first = std::pin::pin!(connect(cached));
    let mut first_error = tokio::select! {
        result = &mut first => match result {
            Ok(winner) => return Ok(winner),
            Err(error) => Some(error),
        },
        () = sleep(ATTEMPT_DELAY) => None,
    };
    let mut second = std::pin::pin!(connect(service));
    loop {
        tokio::select! {
            result = &mut first, if first_error.is_none() => match result {
                Ok(winner) => return Ok(winner),
                Err(error) => first_error = Some(error),
            },
            result = &mut second => {
                let reason = first_error.map_or_else(|| "no answer yet".into(), |error| error.to_string());
                let fallback_reason = Some(reason);
                return result.map(|winner| Winner { fallback_reason, ..winner });
            }
        }
    }
}
