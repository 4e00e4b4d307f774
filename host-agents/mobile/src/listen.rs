// SPDX-License-Identifier: Apache-2.0
//! The service's side: accepts carriers at whatever addresses the machine has, and forwards sessions to the service.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::arrivals::{Arrivals, Sessions};
use crate::carrier::{Attachment, Carrier};
use crate::driver::{Carriers, Driver};
use crate::frame::Frame;
use crate::handshake::{HandshakeError, Refusal, Request, read_request};
use crate::key::{Secret, random};
use crate::local::Local;
use crate::metrics::Metrics;

/// Time that a client's first message may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at a time that have not sent their first message. Further ones wait in the kernel's queue.
const MAX_REQUESTS: usize = 256;
/// Time in which a new session's client must show that it is not a recording.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until the service accepts a connection.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed `accept`, which most likely found no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The proxy in front of a mobile service.
pub struct Server {
    /// The key that the service shares with its clients.
    pub key: Secret,
    /// Address of the service.
    pub forward: SocketAddr,
    /// Bytes stored per session and direction.
    pub window: u32,
    /// Most sessions at a time.
    pub max_sessions: usize,
    /// Time without a carrier after which a session fails.
    pub session_timeout: Duration,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The open sessions.
    pub sessions: Sessions,
}

impl Server {
    /// Accept carriers until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(MAX_REQUESTS));
        loop {
            let slot = slots.clone().acquire_owned().await;
            let slot = slot.expect("the semaphore is never closed");
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("cannot accept a carrier: {error}");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let server = self.clone();
            tokio::spawn(async move {
                let admitted = timeout(REQUEST_TIMEOUT, server.admit(stream)).await;
                drop(slot);
                let late = || Err(HandshakeError::Io(io::ErrorKind::TimedOut.into()));
                if let Err(error) = admitted.unwrap_or_else(|_| late()) {
                    server.metrics.on_rejected(&error);
                    tracing::debug!("{peer}: rejected a carrier: {error}");
                }
            });
        }
    }

    async fn admit(self: &Arc<Self>, mut stream: TcpStream) -> Result<(), HandshakeError> {
        let (refusal, message) = match read_request(&mut stream).await? {
            Request::New(opening) => {
                let request = opening.verify(&self.key)?;
                let (message, noise, created) = request.grant(random(), self.window)?;
                let secret = created.secret.clone();
                if let Some(arrivals) = self.sessions.insert(created.id, secret, self.max_sessions)
                {
                    let carrier = Carrier::new(stream, noise, &message)?;
                    tokio::spawn(self.clone().run(created.window, carrier, arrivals));
                    return Ok(());
                }
                (Refusal::Full, opening.refusal(&self.key, Refusal::Full))
            }
            Request::Resume(id, opening) => {
                if let Some((arrivals, resumption)) = self.sessions.verify(id, &opening)? {
                    // If the queue is full or the session has just ended, the client dials again.
                    let _ = arrivals.try_send((stream, resumption));
                    return Ok(());
                }
                let refusal = Refusal::UnknownSession;
                (refusal, opening.refusal(&self.key, refusal))
            }
        };
        stream.write_all(&message).await?;
        Err(refusal.into())
    }

    /// Run a new session until it ends.
    async fn run(self: Arc<Self>, window: u32, carrier: Carrier, mut arrivals: Arrivals) {
        let confirmed = timeout(CONFIRMATION_TIMEOUT, confirm(carrier, &mut arrivals)).await;
        let Ok(Ok(first)) = confirmed else {
            tracing::debug!("dropped a session whose client did not confirm it");
            return;
        };
        let carriers = Carriers::Accept(arrivals);
        let metrics = self.metrics.clone();
        let Ok(driver) = Driver::new(window, carriers, first, metrics, self.session_timeout) else {
            tracing::warn!("dropped a session whose client received what was never sent");
            return;
        };
        match self.connect().await {
            Ok(stream) => {
                let result = self.metrics.count(driver.run(Local::tcp(stream))).await;
                if let Err(error) = result {
                    tracing::warn!("a session failed: {error}");
                }
            }
            Err(error) => {
                tracing::warn!(
                    "{}: cannot connect: {error}: is the service running?",
                    self.forward
                );
                driver.refuse().await;
            }
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let late = || Err(io::ErrorKind::TimedOut.into());
        let connecting = timeout(FORWARD_TIMEOUT, TcpStream::connect(self.forward));
        connecting.await.unwrap_or_else(|_| late())
    }
}

/// Wait until the client of a new session shows that it has the ephemeral key of its request, either by its first record
/// or by resuming.
async fn confirm(carrier: Carrier, arrivals: &mut Arrivals) -> Result<Attachment, HandshakeError> {
    tokio::select! {
        carrier = first_record(carrier) => Ok(Attachment { carrier: Box::new(carrier), peer_received: 0 }),
        resumed = arrivals.next(0) => resumed,
    }
}

/// Read a carrier's first record, which acknowledges nothing. Never return if the carrier breaks before.
async fn first_record(mut carrier: Carrier) -> Carrier {
    let mut frame = Vec::new();
    while carrier.progress().await.is_ok() {
        match carrier.next_record(&mut frame) {
            Ok(true) if Frame::decode(&frame) == Ok(Frame::Ack(0)) => return carrier,
            Ok(false) => {}
            _ => break,
        }
    }
    std::future::pending().await
}
