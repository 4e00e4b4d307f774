//! Connections that begin at a QuicSocks proxy, and go on without it (docs/quicsocks.md).

use std::sync::Arc;
use std::time::Instant;

use frontage_quicsocks::client::{self as quicsocks, Error, Migrated, Relay, Stay};
use tokio::task::JoinHandle;

use super::{Client, Failure, Session, Url};
use crate::follow;

/// Where a connection went and when the server was heard there, or why it stays at the proxy.
pub type Migration = JoinHandle<Result<(Migrated, Instant), Stay>>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Connection(error) => error.into(),
            error => Self::new(error),
        }
    }
}

impl Client {
    /// A connection to the host of `url`, once its handshake by the proxy is complete; only the proxy looks for the host's address. The connection
    /// goes to the direct path as soon as it may, rather than to an address that the server prefers.
    pub async fn connect_through(
        &self,
        relay: &Arc<Relay>,
        url: &Url,
    ) -> Result<Session<Migration>, Failure> {
        let connecting = quicsocks::connect(relay, self.config.clone(), &url.host, url.port);
        let connected = connecting.await?;
        let (endpoint, quic) = (connected.endpoint.clone(), connected.quic.clone());
        let peer = follow::peer(&quic);
        let migration = tokio::spawn(async move {
            let migrated = connected.migrate(peer.as_ref()).await?;
            Ok((migrated, Instant::now()))
        });
        Session::new(endpoint, quic, migration).await
    }
}

impl Session<Migration> {
    /// Its way to the direct path.
    pub const fn migration(&mut self) -> &mut Migration {
        &mut self.by
    }
}
