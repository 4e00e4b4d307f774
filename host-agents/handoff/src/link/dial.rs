//! The balancer's end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use noq::{ClientConfig, Connection, Endpoint};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::streams::{Inbox, Outbox, pair};
use super::writer::Writer;
use crate::message::{ToBalancer, ToServer};

/// Between two attempts at first; each that fails doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Between two attempts at most.
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// What happened on a link.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that came about.
    pub connected: AtomicU64,
    /// Attempts that failed.
    pub failed: AtomicU64,
}

/// A link that is there.
#[derive(Clone, Debug)]
struct Up {
    connection: Connection,
    writer: Writer,
}

/// An auxiliary connection to one real server, dialled again whenever it is lost.
#[derive(Debug)]
pub struct Link {
    up: watch::Receiver<Option<Up>>,
    counts: Arc<Counts>,
    dialling: AbortHandle,
}

impl Link {
    /// Dials the real server at `address` whose certificate is for `name`, from now on. Must be called within a Tokio runtime.
    pub fn dial(endpoint: Endpoint, config: ClientConfig, name: &str, address: SocketAddr) -> Self {
        let (tell, up) = watch::channel(None);
        let counts = Arc::<Counts>::default();
        let dialler = Dialler {
            endpoint,
            config,
            name: name.to_owned(),
            address,
            counts: counts.clone(),
        };
        let dialling = tokio::spawn(dialler.run(tell)).abort_handle();
        Self {
            up,
            counts,
            dialling,
        }
    }

    /// Whether it is there now.
    pub fn is_up(&self) -> bool {
        self.up.borrow().is_some()
    }

    /// What happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// A stream for a client's connection; `None` if the link is down.
    pub async fn open(&self) -> Option<(Outbox<ToServer>, Inbox<ToBalancer>)> {
        let Up { connection, writer } = self.up.borrow().clone()?;
        Some(pair(connection.open_bi().await.ok()?, &writer))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.dialling.abort();
    }
}

struct Dialler {
    endpoint: Endpoint,
    config: ClientConfig,
    name: String,
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Dialler {
    async fn run(self, up: watch::Sender<Option<Up>>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(connection) = self.connect().await {
                self.counts.connected.fetch_add(1, Relaxed);
                pause = FIRST_PAUSE;
                up.send_replace(Some(Up {
                    connection: connection.clone(),
                    writer: Writer::new(),
                }));
                connection.closed().await;
                up.send_replace(None);
            } else {
                self.counts.failed.fetch_add(1, Relaxed);
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LAST_PAUSE);
        }
    }

    async fn connect(&self) -> Option<Connection> {
        let config = self.config.clone();
        let connecting = self.endpoint.connect_with(config, self.address, &self.name);
        connecting.ok()?.await.ok()
    }
}
