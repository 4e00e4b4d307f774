//! The address that is known first, the Service Address as soon as that one fails (as RFC 8305 has IPv6 and IPv4).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use crate::client::{Client, Failure, Session, Url};

/// How long the one may take before the other is tried beside it (RFC 8305, section 8: Connection Attempt Delay).
const HEAD_START: Duration = Duration::from_millis(250);

/// A connection, and what the address that was known was good for.
pub struct Race {
    /// The first whose handshake was complete.
    pub session: Session,
    /// Where its handshake was.
    pub address: SocketAddr,
    /// Why it is not at the address that was known: `None` if it is, or if none was known.
    pub fallback: Option<String>,
}

/// Connects to `url` at `known`, and at `service` if that fails, or has not answered in a quarter of a second.
pub async fn race(
    client: &Client,
    url: &Url,
    known: Option<SocketAddr>,
    service: SocketAddr,
) -> Result<Race, Failure> {
    let connect = async |address: SocketAddr| {
        let target = url.clone().at(address);
        let session = client.connect(&target).await?;
        let fallback = None;
        Ok::<_, Failure>(Race {
            session,
            address,
            fallback,
        })
    };
    let Some(known) = known else {
        return connect(service).await;
    };
    let mut first = std::pin::pin!(connect(known));
    let mut failed = tokio::select! {
        done = &mut first => match done {
            Ok(race) => return Ok(race),
            Err(failure) => Some(failure.0),
        },
        () = sleep(HEAD_START) => None,
    };
    let mut second = std::pin::pin!(connect(service));
    loop {
        tokio::select! {
            done = &mut first, if failed.is_none() => match done {
                Ok(race) => return Ok(race),
                Err(failure) => failed = Some(failure.0),
            },
            done = &mut second => {
                let fallback = Some(failed.unwrap_or_else(|| "no answer yet".into()));
                return done.map(|race| Race { fallback, ..race });
            }
        }
    }
}
