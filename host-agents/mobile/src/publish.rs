// SPDX-License-Identifier: Apache-2.0
//! Writes the addresses of a mobile service into its record, whenever they change.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::addresses::Address;
use crate::metrics::Metrics;
use crate::records::{Name, Records};

/// Pause after a failed attempt. Each pause doubles, up to [`MAX_PAUSE`]; a change of addresses ends it.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Seconds for which resolvers may cache the addresses.
const TTL: u32 = 1;

/// The record of one service.
pub struct Publisher<'a> {
    /// The record servers.
    pub records: Records,
    /// The record's name.
    pub name: Name,
    /// TCP port of the service's carriers.
    pub port: u16,
    /// Interfaces whose addresses are published; all if empty.
    pub interfaces: Vec<String>,
    /// Counters.
    pub metrics: &'a Metrics,
}

impl Publisher<'_> {
    /// Publish until the future is dropped.
    pub async fn run(&self, mut observed: watch::Receiver<Vec<Address>>) {
        let (mut published, mut stamp, mut pause) = (Vec::new(), 0, FIRST_PAUSE);
        loop {
            let addresses = self.select(&observed.borrow_and_update());
            // Without an address, the store cannot be reached.
            if addresses.is_empty() || addresses == published {
                if observed.changed().await.is_err() {
                    return;
                }
                continue;
            }
            tokio::select! {
                result = self.write(&addresses, &mut stamp) => {
                    self.metrics.on_published(result.is_ok());
                    match result {
                        Ok(()) => {
                            tracing::info!("published {addresses:?}, port {}", self.port);
                            (published, pause) = (addresses, FIRST_PAUSE);
                        }
                        Err(error) => {
                            tracing::warn!("cannot publish {addresses:?}: {error:#}: trying again");
                            tokio::select! {
                                () = sleep(pause) => pause = (2 * pause).min(MAX_PAUSE),
                                Ok(()) = observed.changed() => pause = FIRST_PAUSE,
                            }
                        }
                    }
                }
                // The write may hang at an address that has gone.
                Ok(()) = observed.changed() => pause = FIRST_PAUSE,
            }
        }
    }

    fn select(&self, observed: &[Address]) -> Vec<IpAddr> {
        let wanted = observed.iter().filter(|address| {
            let interfaces = &self.interfaces;
            address.is_reachable()
                && (interfaces.is_empty() || interfaces.contains(&address.interface))
        });
        wanted.map(|address| address.ip).collect()
    }

    /// Write the record once. `stamp` is the last stamp used, and becomes a later one.
    async fn write(&self, addresses: &[IpAddr], stamp: &mut i64) -> Result<()> {
        let document = json!({
            "address": addresses,
            "service": {"port": self.port},
            "ttl": TTL,
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as i64;
        // A clock that is set back must not make the later address the earlier one.
        *stamp = now.max(*stamp + 1);
        let written = self
            .records
            .put(&self.name, &document.to_string(), *stamp)
            .await?;
        if !written.applied {
            *stamp = written.stamp;
        }
        ensure!(
            written.applied,
            "the record has a later stamp, {}",
            written.stamp
        );
        Ok(())
    }
}
