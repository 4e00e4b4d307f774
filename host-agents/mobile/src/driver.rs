// SPDX-License-Identifier: Apache-2.0
//! Runs a session: moves bytes between its local connection and its current carrier, until both streams have ended.

use std::fmt::Display;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use crate::arrivals::Arrivals;
use crate::carrier::{Attachment, Carrier, MAX_RECORD};
use crate::dial::Dialer;
use crate::error::SessionError;
use crate::frame::Frame;
use crate::handshake::HandshakeError;
use crate::local::Local;
use crate::metrics::Metrics;
use crate::session::{Event, Session, Violation};

/// Time that the peer has to learn that the session has ended.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which silence is checked.
const TICK: Duration = Duration::from_millis(250);
/// Most bytes read from the local connection at once.
const READ_SIZE: usize = 64 * 1024;

/// The source of a session's carriers.
pub enum Carriers {
    /// The client dials.
    Dial(Box<Dialer>),
    /// The server waits for the client.
    Accept(Arrivals),
}

/// A change of a session's carrier.
enum Change {
    Attached(Result<Attachment, HandshakeError>),
    /// An address of the carrier has gone.
    Invalidated,
}

impl Carriers {
    /// Wait for the next change for a session that has received `received` bytes. Cancellation loses nothing.
    async fn change(&mut self, carrier: Option<(SocketAddr, SocketAddr)>, received: u64) -> Change {
        match (self, carrier) {
            (Self::Accept(arrivals), _) => Change::Attached(arrivals.next(received).await),
            (Self::Dial(dialer), None) => Change::Attached(dialer.next(received).await),
            (Self::Dial(dialer), Some(addresses)) => {
                dialer.invalidated(addresses).await;
                Change::Invalidated
            }
        }
    }
}

/// The end that has finished first.
enum Finished {
    Here,
    Peer,
}

/// An event in a session.
enum Step {
    Carrier(io::Result<()>),
    Change(Change),
    Read(io::Result<usize>),
    Written(io::Result<usize>),
    Tick,
}

/// A session that runs.
pub struct Driver {
    session: Session,
    carriers: Carriers,
    carrier: Option<Box<Carrier>>,
    metrics: Arc<Metrics>,
    session_timeout: Duration,
    /// Time of the last carrier's loss.
    lost: Instant,
    /// Buffer for one frame.
    frame: Vec<u8>,
    tick: Interval,
}

impl Driver {
    /// Create the driver of a new session with its first carrier.
    ///
    /// # Errors
    /// If the peer has received something already.
    pub fn new(
        window: u32,
        carriers: Carriers,
        first: Attachment,
        metrics: Arc<Metrics>,
        session_timeout: Duration,
    ) -> Result<Self, Violation> {
        let mut session = Session::new(window);
        session.resume(first.peer_received)?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            session,
            carriers,
            carrier: Some(first.carrier),
            metrics,
            session_timeout,
            lost: Instant::now(),
            frame: Vec::with_capacity(MAX_RECORD),
            tick,
        })
    }

    /// Run the session until both streams have ended or it fails. Then the peer knows, if it can be reached.
    ///
    /// # Errors
    /// [`SessionError`]. The local connection has been reset then.
    pub async fn run(mut self, mut local: Local) -> Result<(), SessionError> {
        let result = self.transfer(&mut local).await;
        match &result {
            Ok(_) => drop(local),
            Err(_) => local.abort(),
        }
        match &result {
            Ok(Finished::Here) => self.close(Frame::Bye).await,
            Ok(Finished::Peer) | Err(SessionError::PeerReset) => self.answer().await,
            Err(SessionError::Refused(_)) => {}
            Err(_) => self.close(Frame::Reset).await,
        }
        result.map(|_| ())
    }

    /// Report to the peer that there is no local connection.
    pub async fn refuse(mut self) {
        self.close(Frame::Reset).await;
    }

    async fn transfer(&mut self, local: &mut Local) -> Result<Finished, SessionError> {
        let mut buffer = vec![0; READ_SIZE];
        let mut is_reading = true;
        loop {
            self.queue_frames();
            // Only the client says goodbye, because only it can dial if that is lost.
            if self.session.is_complete() && matches!(self.carriers, Carriers::Dial(_)) {
                return Ok(Finished::Here);
            }
            let room = self
                .session
                .room()
                .min(if is_reading { READ_SIZE } else { 0 });
            match self.step(local, &mut buffer[..room]).await {
                Step::Carrier(Ok(())) => {
                    if let Some(finished) = self.receive()? {
                        return Ok(finished);
                    }
                }
                Step::Carrier(Err(error)) => self.lose(&error),
                Step::Change(Change::Invalidated) => self.lose(&"an address has gone"),
                Step::Change(Change::Attached(attached)) => self.attach(attached)?,
                Step::Read(read) => match read.map_err(SessionError::Local)? {
                    0 => {
                        is_reading = false;
                        self.session.finish();
                    }
                    count => self.session.push(&buffer[..count]),
                },
                Step::Written(written) => {
                    let count = written.map_err(SessionError::Local)?;
                    self.session.on_delivered(count);
                    self.metrics
                        .delivered_bytes
                        .fetch_add(count as u64, Relaxed);
                }
                Step::Tick => self.on_tick()?,
            }
            if self.session.is_end_deliverable() {
                let ended = local.writer.shutdown().await;
                ended.map_err(SessionError::Local)?;
                self.session.on_end_delivered();
            }
        }
    }

    /// Wait until something happens.
    async fn step(&mut self, local: &mut Local, buffer: &mut [u8]) -> Step {
        let bytes = self.session.deliverable();
        let can_read = !buffer.is_empty();
        let addresses = self.carrier.as_ref().map(|carrier| carrier.addresses);
        tokio::select! {
            change = self.carriers.change(addresses, self.session.received()) => Step::Change(change),
            done = progress(&mut self.carrier) => Step::Carrier(done),
            read = local.reader.read(buffer), if can_read => Step::Read(read),
            written = local.writer.write(bytes), if !bytes.is_empty() => Step::Written(written),
            _ = self.tick.tick() => Step::Tick,
        }
    }

    fn queue_frames(&mut self) {
        let Some(carrier) = &mut self.carrier else {
            return;
        };
        while carrier.is_hungry() {
            self.frame.clear();
            if !self.session.next_frame(&mut self.frame) {
                break;
            }
            carrier.push(&self.frame);
        }
    }

    /// Process all received records.
    fn receive(&mut self) -> Result<Option<Finished>, SessionError> {
        while let Some(carrier) = &mut self.carrier {
            match carrier.next_record(&mut self.frame) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.lose(&error);
                    break;
                }
            }
            match self.session.on_record(&self.frame)? {
                Event::Progress => {}
                Event::Bye if self.session.is_complete() => return Ok(Some(Finished::Peer)),
                Event::Reset | Event::Bye => return Err(SessionError::PeerReset),
            }
        }
        Ok(None)
    }

    fn attach(&mut self, attached: Result<Attachment, HandshakeError>) -> Result<(), SessionError> {
        let attachment = match attached {
            Ok(attachment) => attachment,
            Err(HandshakeError::Refused(refusal)) => return Err(refusal.into()),
            Err(error) => {
                tracing::debug!("a carrier failed: {error}");
                return Ok(());
            }
        };
        if self.carrier.take().is_some() {
            self.lost = Instant::now();
        }
        let again = self.session.resume(attachment.peer_received)?;
        self.metrics.on_resumed(self.lost.elapsed(), again);
        let (from, to) = attachment.carrier.addresses;
        tracing::debug!("resumed from {from} to {to}: {again} bytes are sent again");
        self.carrier = Some(attachment.carrier);
        Ok(())
    }

    fn lose(&mut self, reason: &dyn Display) {
        if self.carrier.take().is_some() {
            tracing::debug!("lost the carrier: {reason}");
            self.lost = Instant::now();
        }
    }

    fn on_tick(&mut self) -> Result<(), SessionError> {
        match &mut self.carrier {
            Some(carrier) if carrier.is_silent() => self.lose(&"the peer is silent"),
            Some(carrier) if carrier.is_keep_alive_due() => {
                self.frame.clear();
                self.session.keep_alive(&mut self.frame);
                carrier.push(&self.frame);
            }
            Some(_) => {}
            None if self.lost.elapsed() > self.session_timeout => {
                return Err(SessionError::PeerGone(self.session_timeout));
            }
            None => {}
        }
        Ok(())
    }

    /// Answer the peer's last frame. If the answer is lost, the peer resumes in vain, which tells it the same.
    async fn answer(&mut self) {
        if let Some(mut carrier) = self.carrier.take() {
            carrier.push(&encoded(Frame::Bye));
            let _ = timeout(CLOSING_TIMEOUT, carrier.close()).await;
        }
    }

    /// Send the last frame until the peer answers it, or for [`CLOSING_TIMEOUT`].
    async fn close(&mut self, last: Frame<'_>) {
        let last = encoded(last);
        if let Some(carrier) = &mut self.carrier {
            carrier.push(&last);
        }
        let _ = timeout(CLOSING_TIMEOUT, self.until_answered(&last)).await;
    }

    async fn until_answered(&mut self, last: &[u8]) {
        let received = self.session.received();
        loop {
            let addresses = self.carrier.as_ref().map(|carrier| carrier.addresses);
            tokio::select! {
                change = self.carriers.change(addresses, received) => match change {
                    Change::Attached(Ok(mut attachment)) => {
                        attachment.carrier.push(last);
                        self.carrier = Some(attachment.carrier);
                    }
                    Change::Attached(Err(HandshakeError::Refused(_))) => return,
                    Change::Attached(Err(_)) => {}
                    Change::Invalidated => self.carrier = None,
                },
                done = progress(&mut self.carrier) => {
                    if done.is_err() {
                        self.carrier = None;
                    } else if self.is_answered() {
                        return;
                    }
                }
            }
        }
    }

    fn is_answered(&mut self) -> bool {
        let Some(carrier) = &mut self.carrier else {
            return false;
        };
        while let Ok(true) = carrier.next_record(&mut self.frame) {
            if let Ok(Frame::Bye | Frame::Reset) = Frame::decode(&self.frame) {
                return true;
            }
        }
        false
    }
}

async fn progress(carrier: &mut Option<Box<Carrier>>) -> io::Result<()> {
    match carrier {
        Some(carrier) => carrier.progress().await,
        None => pending().await,
    }
}

fn encoded(frame: Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}
