// SPDX-License-Identifier: Apache-2.0
//! Connections that start at a QuicSocks proxy and migrate to the direct path (docs/quicsocks.md).

use std::sync::Arc;
use std::time::Instant;

use frontage_quicsocks_client::{self as quicsocks, Association, Migrated, MigrationError};
use tokio::task::JoinHandle;

use super::{Client, Session, Url};
use crate::Error;
use crate::observer::peer_parameters;

/// The migration of a proxied connection: the direct path and when the server answered there, or why the connection stays
/// at the proxy.
pub type Migration = JoinHandle<Result<(Migrated, Instant), MigrationError>>;

impl Client {
    /// Connects to the host of `url` through a proxy, which resolves its name, and returns when the handshake is complete.
    ///
    /// The connection migrates to the direct path as soon as it may. It ignores the server's preferred address.
    ///
    /// # Errors
    /// Returns why the handshake failed.
    pub async fn connect_through(
        &self,
        association: &Arc<Association>,
        url: &Url,
    ) -> Result<Session<Migration>, Error> {
        let config = self.config.clone();
        let connection = quicsocks::connect(association, config, &url.host, url.port).await?;
        let (endpoint, quic) = (connection.endpoint.clone(), connection.quic.clone());
        let parameters = peer_parameters(&quic);
        let migration = tokio::spawn(async move {
            let migrated = connection.migrate(parameters.as_ref()).await?;
            Ok((migrated, Instant::now()))
        });
        Session::new(endpoint, quic, migration).await
    }
}

impl Session<Migration> {
    /// Returns the task that migrates the connection to the direct path.
    pub const fn migration(&mut self) -> &mut Migration {
        &mut self.transport
    }
}
