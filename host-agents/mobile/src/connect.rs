// SPDX-License-Identifier: Apache-2.0
//! The client's side: opens a session for each local connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::carrier::{Attachment, Carrier};
use crate::dial::{Attempt, Dialer, Identity, Network};
use crate::driver::{Carriers, Driver};
use crate::frame::Frame;
use crate::handshake::{self, Created, HandshakeError};
use crate::key::Secret;
use crate::local::{Local, abort};
use crate::metrics::Metrics;

/// Time that a new session may take. After that, the local connection is reset.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed `accept`, which most likely found no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Opens a new session.
struct Open<'a> {
    key: &'a Secret,
    window: u32,
}

impl Attempt for Open<'_> {
    type Output = (Carrier, Created);

    async fn handshake(&self, mut stream: TcpStream) -> Result<Self::Output, HandshakeError> {
        let (noise, created) = handshake::create(&mut stream, self.key, self.window).await?;
        let mut carrier = Carrier::new(stream, noise, &[])?;
        // Proves to the server that this is not a recording of an earlier request.
        let mut frame = Vec::new();
        Frame::Ack(0).encode(&mut frame);
        carrier.push(&frame);
        Ok((carrier, created))
    }
}

/// A client of one service.
pub struct Client {
    /// The addresses to follow.
    pub network: Network,
    /// The key that the service shares with its clients.
    pub key: Secret,
    /// Bytes stored per session and direction.
    pub window: u32,
    /// Most sessions at a time.
    pub max_sessions: usize,
    /// Time without a carrier after which a session fails.
    pub session_timeout: Duration,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

impl Client {
    /// Open a session for each connection to `listener`, until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(self.max_sessions));
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("cannot accept a local connection: {error}");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                tracing::warn!(
                    "reset a local connection: {} sessions are open: raise --max-sessions",
                    self.max_sessions
                );
                abort(&stream);
                continue;
            };
            let client = self.clone();
            tokio::spawn(async move {
                let _slot = slot;
                if let Err(error) = client.carry(Local::tcp(stream)).await {
                    tracing::warn!("a session failed: {error:#}");
                }
            });
        }
    }

    /// Carry one local connection to the service.
    ///
    /// # Errors
    /// If the session cannot be opened, or fails.
    pub async fn carry(&self, local: Local) -> Result<()> {
        let late = || Err(HandshakeError::Io(io::ErrorKind::TimedOut.into()));
        let opened = timeout(OPEN_TIMEOUT, self.open()).await;
        match opened.unwrap_or_else(|_| late()) {
            Ok(driver) => Ok(self.metrics.count(driver.run(local)).await?),
            Err(error) => {
                local.abort();
                let target = self.network.target.borrow().clone();
                Err(error).with_context(|| format!("cannot open a session with {target:?}"))
            }
        }
    }

    async fn open(&self) -> Result<Driver, HandshakeError> {
        let open = Open {
            key: &self.key,
            window: self.window,
        };
        let (carrier, created) = self.network.clone().dial(open).await?;
        let identity = Identity {
            key: self.key.clone(),
            id: created.id,
            secret: created.secret,
            counter: AtomicU64::new(0),
        };
        let dialer = Dialer::new(self.network.clone(), identity);
        let first = Attachment {
            carrier: Box::new(carrier),
            peer_received: 0,
        };
        let carriers = Carriers::Dial(Box::new(dialer));
        let metrics = self.metrics.clone();
        let driver = Driver::new(
            created.window,
            carriers,
            first,
            metrics,
            self.session_timeout,
        );
        Ok(driver.expect("the server has received nothing"))
    }
}
