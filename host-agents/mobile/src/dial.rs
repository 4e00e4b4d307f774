// SPDX-License-Identifier: Apache-2.0
//! Dials a service at its newest addresses, and notices when a carrier's address goes away.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::addresses::Address;
use crate::carrier::{Attachment, Carrier};
use crate::handshake::{self, HandshakeError, Id};
use crate::key::Secret;

/// Time until a TCP connection with an authenticated peer exists.
const DIAL_TIMEOUT: Duration = Duration::from_secs(4);
/// Pause after a failed attempt. Each pause doubles, up to [`MAX_PAUSE`]; a change of addresses ends it.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The addresses of a service, from its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Addresses, the preferred ones first.
    pub addresses: Vec<IpAddr>,
    /// TCP port.
    pub port: u16,
}

impl Target {
    /// Connect to the address that answers first.
    async fn connect(&self) -> io::Result<TcpStream> {
        let mut attempts = JoinSet::new();
        for address in &self.addresses {
            attempts.spawn(TcpStream::connect((*address, self.port)));
        }
        let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the record has no address");
        while let Some(done) = attempts.join_next().await {
            match done.expect("connecting does not panic") {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// The addresses that a client follows.
#[derive(Clone, Debug)]
pub struct Network {
    /// The service's addresses.
    pub target: watch::Receiver<Target>,
    /// This machine's addresses.
    pub observed: watch::Receiver<Vec<Address>>,
}

impl Network {
    /// Return whether the service is still at `peer`.
    fn has_peer(&mut self, peer: SocketAddr) -> bool {
        let target = self.target.borrow_and_update();
        target.port == peer.port() && target.addresses.contains(&peer.ip().to_canonical())
    }

    /// Return whether an interface has the address `local`.
    fn has_local(&mut self, local: SocketAddr) -> bool {
        let ip = local.ip().to_canonical();
        let observed = self.observed.borrow_and_update();
        observed.iter().any(|address| address.ip == ip)
    }

    async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.target.changed() => {}
            Ok(()) = self.observed.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// Connect, and repeat `attempt` until it succeeds or the server refuses. A change of addresses starts it again at once.
    pub(crate) async fn dial<A: Attempt>(
        mut self,
        attempt: A,
    ) -> Result<A::Output, HandshakeError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let target = self.target.borrow_and_update().clone();
            self.observed.mark_unchanged();
            let once = async {
                let connected = async { attempt.handshake(target.connect().await?).await };
                let late = || Err(io::Error::from(io::ErrorKind::TimedOut).into());
                let result = timeout(DIAL_TIMEOUT, connected).await;
                let error = match result.unwrap_or_else(|_| late()) {
                    Err(HandshakeError::Io(error)) => error,
                    other => return other,
                };
                tracing::debug!("{target:?}: {error}");
                sleep(pause).await;
                Err(error.into())
            };
            tokio::select! {
                result = once => match result {
                    Err(HandshakeError::Io(_)) => pause = (2 * pause).min(MAX_PAUSE),
                    other => return other,
                },
                () = self.changed() => pause = FIRST_PAUSE,
            }
        }
    }
}

/// A handshake that may have to be repeated on another connection.
pub(crate) trait Attempt: Send + Sync {
    type Output: Send;

    fn handshake(
        &self,
        stream: TcpStream,
    ) -> impl Future<Output = Result<Self::Output, HandshakeError>> + Send;
}

/// Resumes a session.
struct Resume {
    identity: Arc<Identity>,
    received: u64,
}

/// The credentials with which a client resumes a session.
pub(crate) struct Identity {
    /// Key that the service shares with its clients.
    pub(crate) key: Secret,
    pub(crate) id: Id,
    pub(crate) secret: Secret,
    /// Number of attempts.
    pub(crate) counter: AtomicU64,
}

impl Attempt for Resume {
    type Output = Attachment;

    async fn handshake(&self, mut stream: TcpStream) -> Result<Attachment, HandshakeError> {
        let Identity {
            key,
            id,
            secret,
            counter,
        } = &*self.identity;
        let number = 1 + counter.fetch_add(1, Relaxed);
        let resuming = handshake::resume(&mut stream, key, (*id, secret), number, self.received);
        let (noise, peer_received) = resuming.await?;
        Ok(Attachment {
            carrier: Box::new(Carrier::new(stream, noise, &[])?),
            peer_received,
        })
    }
}

type Dialing = Pin<Box<dyn Future<Output = Result<Attachment, HandshakeError>> + Send>>;

/// Dials for one session.
pub struct Dialer {
    network: Network,
    identity: Arc<Identity>,
    dialing: Option<Dialing>,
    /// True if an interface has had the carrier's local address. Routes can make others local, too.
    was_listed: bool,
}

impl Dialer {
    /// Create the dialer of a session.
    pub(crate) fn new(network: Network, identity: Identity) -> Self {
        Self {
            network,
            identity: Arc::new(identity),
            dialing: None,
            was_listed: false,
        }
    }

    /// Return the next carrier of a session that has received `received` bytes. Cancellation does not stop dialling.
    pub(crate) async fn next(&mut self, received: u64) -> Result<Attachment, HandshakeError> {
        let dialing = self.dialing.get_or_insert_with(|| {
            let identity = self.identity.clone();
            Box::pin(self.network.clone().dial(Resume { identity, received }))
        });
        let result = dialing.await;
        self.dialing = None;
        self.was_listed = false;
        result
    }

    /// Wait until one of a carrier's addresses (this end's, and the peer's) is no longer valid.
    pub(crate) async fn invalidated(&mut self, (local, peer): (SocketAddr, SocketAddr)) {
        loop {
            let is_listed = self.network.has_local(local);
            self.was_listed |= is_listed;
            if !self.network.has_peer(peer) || self.was_listed && !is_listed {
                return;
            }
            self.network.changed().await;
        }
    }
}
