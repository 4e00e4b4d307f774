// SPDX-License-Identifier: Apache-2.0
//! A download that starts at a QuicSocks proxy, which resolves the name (docs/quicsocks.md).

use std::fs::File;
use std::time::{Duration, Instant};

use frontage_quicsocks_client::{Association, Credentials};
use tokio::time::timeout;

use super::transfer::download;
use super::{AddressSource, Report};
use crate::Error;
use crate::client::{Client, Url};

/// Time limit for the migration to the direct path after the download. The probe of that path gives up after 4.5 s.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(5);

/// A QuicSocks proxy.
pub struct Proxy {
    /// Host and port.
    pub address: String,
    /// User name and password, if the proxy requires them.
    pub credentials: Option<Credentials>,
}

pub(super) async fn get(
    (client, url): (&Client, &Url),
    proxy: Proxy,
    file: Option<&mut File>,
    (report, started): (&mut Report, Instant),
) -> Result<(), Error> {
    let since_start = |when: Instant| Some(when.duration_since(started).as_secs_f64());
    report.proxy = Some(proxy.address.clone());
    let association = Association::connect(&proxy.address, proxy.credentials.as_ref()).await;
    let association = association.map_err(|error| Error::Association {
        proxy: proxy.address,
        error,
    })?;
    report.seconds.association = since_start(Instant::now());
    let mut session = client.connect_through(&association, url).await?;
    report.seconds.connect = since_start(Instant::now());
    let result = download(&mut session, url, file, (report, started)).await;
    report.seconds.total = since_start(Instant::now());
    if result.is_ok() {
        match timeout(MIGRATION_TIMEOUT, session.migration()).await {
            Ok(Ok(Ok((migrated, when)))) => {
                report.service = Some(migrated.server);
                report.found = Some(AddressSource::QuicSocks);
                report.seconds.migrated = since_start(when);
            }
            Ok(Ok(Err(error))) => report.stayed = Some(error.to_string()),
            Ok(Err(error)) => report.stayed = Some(error.to_string()),
            Err(_) => report.stayed = Some("no packet from the server on the direct path".into()),
        }
    }
    session.close().await;
    result
}
