//! A download that begins at a QuicSocks proxy (docs/quicsocks.md), which finds the address.

use std::fs::File;
use std::time::{Duration, Instant};

use frontage_quicsocks::client::{Credentials, Relay};
use tokio::time::timeout;

use super::fetch::download;
use super::{Found, Report};
use crate::client::{Client, Failure, Url};

/// How long a connection may take to go to the direct path, once its download is whole; whoever asks whether that path works gives up after 4.5 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// A QuicSocks proxy.
pub struct Proxy {
    /// Host and port.
    pub address: String,
    /// Who may use it; none if it asks nobody.
    pub credentials: Option<Credentials>,
}

pub(super) async fn get(
    (client, url): (&Client, &Url),
    Proxy {
        address,
        credentials,
    }: Proxy,
    file: Option<&mut File>,
    (report, begun): (&mut Report, Instant),
) -> Result<(), Failure> {
    let since = |when: Instant| Some(when.duration_since(begun).as_secs_f64());
    report.proxy = Some(address.clone());
    let relay = Relay::connect(&address, credentials.as_ref()).await;
    let relay = relay.map_err(|error| Failure::new(format!("--quicksocks {address}: {error}")))?;
    report.seconds.association = since(Instant::now());
    let mut session = client.connect_through(&relay, url).await?;
    report.seconds.connect = since(Instant::now());
    let done = download(&mut session, url, file, (report, begun)).await;
    report.seconds.total = since(Instant::now());
    if done.is_ok() {
        match timeout(PATIENCE, session.migration()).await {
            Ok(Ok(Ok((migrated, when)))) => {
                (report.service, report.found) = (Some(migrated.server), Some(Found::QuicSocks));
                report.seconds.migrated = since(when);
            }
            Ok(Ok(Err(stay))) => report.stayed = Some(stay.to_string()),
            Ok(Err(error)) => report.stayed = Some(error.to_string()),
            Err(_) => report.stayed = Some("the server is not heard on the direct path".into()),
        }
    }
    session.close().await;
    done
}
