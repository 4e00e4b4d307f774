// SPDX-License-Identifier: Apache-2.0
//! The balancer's side: a [`Delegator`] sees every 1-RTT packet of a connection in plaintext, between noq and the wire,
//! and delegates paths and streams of the connection to real servers.
//!
//! noq on the balancer keeps the connection: the handshake, everything that the client sends, and every stream and path
//! that is not delegated. A real server sends the delegated streams on a path of its own, and owns the packet numbers of
//! that path while the delegation lasts (`packet_numbers`). The delegator extracts the frames that concern a real server
//! from the client's packets and forwards them (`connection::incoming`, `feedback`). noq knows nothing of the hand-off, so
//! the delegator also rewrites the packets of noq that would conflict with those of a real server (`connection::outgoing`).
//!
//! While a path is delegated, the balancer's own stack must not send on it. The delegator marks all other paths as
//! backup, so that noq uses path 0 only.
//!
//! A client without multipath has a single path. Its packet numbers are allocated to real servers as they need them
//! (`shared_numbers`).
//!
//! # Limits
//!
//! - PATH_CHALLENGE and PATH_RESPONSE frames that noq sends on a delegated path never reach the client. When the client's
//!   address changes, the real server sends the PATH_CHALLENGE, and noq receives a response to its own challenge together
//!   with the real server's. Only the real server verifies the response, so the path is not delegated again
//!   ([`Error::Moved`]).
//! - A noq client with several paths selects the keys of a packet by comparing its number with the number at which the
//!   keys were updated, whichever path that was on. It drops packets of real servers that are in flight during a key
//!   update, possibly a whole queue of them, and they are retransmitted. The balancer therefore updates the keys once
//!   before the first delegation ([`Delegator::update_keys`]).
//! - noq initially gets a quarter of the client's MAX_DATA, so a delegator is only for balancers that have real servers.
//! - 0-RTT packets are not inspected. A client that cancels a delegated request before its handshake is complete
//!   (STOP_SENDING in a 0-RTT packet) receives the response nevertheless.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use noq::{PathId, PathStatus, VarInt};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{SetOnce, watch};

use crate::delegate::{NoAckReport, NumberRequest};
use crate::grant::{Grant, Keys};
use connection::Connection;
#[cfg(feature = "fuzzing")]
pub use connection::fuzz::Scene;
pub use error::Error;
pub use events::Events;
pub use feedback::Event;
pub use resumed::MAX_FRAME_GROWTH;
pub use streams::StreamEnd;

mod ahead;
mod connection;
mod connection_ids;
mod delegation;
mod error;
mod events;
mod feedback;
mod flow_control;
mod keys;
mod observer;
mod packet_numbers;
mod paths;
mod prober;
mod reachability;
mod resumed;
mod shared_numbers;
mod sole_sender;
mod streams;

/// Error code with which the owner has noq reset a stream that was reclaimed with [`StreamEnd::Reset`].
///
/// Its encoding has the maximum length, which leaves room for the error code and final size that the client receives
/// instead.
pub const RESET_PLACEHOLDER: VarInt = VarInt::MAX;

/// Observer of one connection that delegates paths, packet numbers and streams.
///
/// `inner` is another observer, which sees the packets of the connection as the balancer sends and receives them.
pub struct Delegator<O> {
    inner: O,
    /// True if the client's transport parameters are known.
    has_parameters: AtomicBool,
    /// Key generation (upper 32 bits) and the number of packets that real servers sealed with it (lower 32 bits).
    sealed_remotely: AtomicU64,
    /// Set once noq has sent a 1-RTT packet.
    started: SetOnce<()>,
    connection: Mutex<Connection>,
}

impl<O> Delegator<O> {
    /// Create a delegator above `inner`.
    pub fn new(inner: O) -> Self {
        Self {
            inner,
            has_parameters: AtomicBool::new(false),
            sealed_remotely: AtomicU64::new(0),
            started: SetOnce::new(),
            connection: Mutex::default(),
        }
    }

    /// Return the observer below this one.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    /// Lock the connection's state.
    ///
    /// Lock order: noq holds its own lock while it seals and opens packets, and takes this one within. Code that holds
    /// this lock must therefore not call noq.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    /// Return whether the client supports multipath. False before its transport parameters are known.
    pub fn is_multipath(&self) -> bool {
        self.connection().is_multipath()
    }

    /// Wait until the client's single path can be delegated: noq has sent a 1-RTT packet, which contains the client's
    /// connection id.
    pub async fn started(&self) {
        self.started.wait().await;
    }

    /// Update the connection's keys as soon as permitted: once the client has acknowledged that the handshake is
    /// confirmed (RFC 9001, section 6).
    ///
    /// noq updates keys by itself once within its first thousand packets, and then not for millions. That update must
    /// be over before a path is delegated (see the limits of this module).
    pub async fn update_keys(&self, connection: &noq::Connection) {
        let confirmed = self.connection().handshake_confirmed();
        confirmed.notified().await;
        connection.force_key_update();
    }

    /// Delegate a validated path of `connection` that is free. The path that noq itself needs is never delegated.
    ///
    /// `server` is the balancer's address as the client knows it. The real server gets little credit until it requests
    /// more. noq must stop using a path before the path can be delegated, so the first call may return `None` although
    /// the connection has another path.
    pub fn delegate_path(
        &self,
        connection: &noq::Connection,
        server: SocketAddr,
    ) -> Option<(Grant, Events)> {
        if !self.has_parameters.load(Relaxed) {
            return None;
        }
        let (known, own) = self.connection().path_ids();
        for id in known {
            let status = match Some(id) == own {
                true => PathStatus::Available,
                false => PathStatus::Backup,
            };
            if let Some(path) = connection.path(PathId::from(id))
                && path.status().is_ok_and(|current| current != status)
            {
                // Fails if the path has been closed in the meantime.
                let _ = path.set_status(status);
            }
        }
        let id = self.connection().free_path()?;
        let client = connection.path(PathId::from(id))?.remote_address().ok()?;
        let rtt = connection.rtt(PathId::from(id))?;
        let zero = connection.path(PathId::ZERO);
        let zero = zero.and_then(|path| path.remote_address().ok());
        let (grant, feedback) = self.connection().delegate_path(id, [client, server], rtt)?;
        let clients = (client, zero.unwrap_or(client));
        let events = Events::new(feedback, connection, id, clients, server);
        Some((grant, events))
    }

    /// Start a delegation to one more real server of a client with a single path.
    ///
    /// Returns the delegation's id, which stands for a path id in all other calls, and a grant of path 0. The real
    /// server may only use packet numbers that it gets from [`Delegator::allocate_numbers`].
    pub fn delegate_numbers(
        &self,
        connection: &noq::Connection,
        server: SocketAddr,
    ) -> Option<(u32, Grant, Events)> {
        let client = connection.path(PathId::ZERO)?.remote_address().ok()?;
        let rtt = connection.rtt(PathId::ZERO)?;
        let (id, grant, feedback) = self.connection().delegate_numbers([client, server], rtt)?;
        let events = Events::new(feedback, connection, 0, (client, client), server);
        Some((id, grant, events))
    }

    /// Allocate packet numbers to the real server of delegation `id`: for the packets that wait, and for those that it expects to
    /// send if no other real server has streams of the client. Returns ascending ranges, which may have fewer numbers.
    ///
    /// Also returns the keys that the real server must install first, unless an event has already delivered them. No
    /// packet may be sealed with older keys than a packet with a lower number (RFC 9001, section 6.4).
    pub fn allocate_numbers(
        &self,
        id: u32,
        request: NumberRequest,
    ) -> Result<(Option<Keys>, Vec<Range<u64>>), Error> {
        self.connection().allocate_numbers(id, request)
    }

    /// Allocate packet numbers to the real server of delegation `id` ahead, for the first packets of a response. They replace
    /// those that it has not used. Returns the key generation with which it may use them, and the numbers; `None` if it
    /// still has some, if many packets are in flight, or if the delegation is not by packet numbers.
    ///
    /// [`Event::NumbersExpired`] follows if others have used much higher numbers.
    pub fn allocate_numbers_ahead(&self, id: u32) -> Option<(u32, Range<u64>)> {
        self.connection().allocate_numbers_ahead(id)
    }

    /// Delegate `stream` to the real server of `path`. The client must have opened the stream, and noq must not have sent
    /// on it. Returns the client's MAX_STREAM_DATA for the stream, if it sent one.
    pub fn delegate_stream(&self, path: u32, stream: u64) -> Result<Option<u64>, Error> {
        self.connection().delegate_stream(path, stream)
    }

    /// Request credit for `total` bytes, over all streams and since the start of the delegation, for the real server of
    /// `path`.
    ///
    /// Returns how many bytes it may send now. A later increase arrives as [`Event::Feedback`]. The real server does not
    /// get more than it requested last.
    pub fn request_credit(&self, path: u32, total: u64) -> Result<u64, Error> {
        self.connection().request_credit(path, total)
    }

    /// Return `stream` to noq, because the real server sent nothing on it.
    pub fn reject_stream(&self, stream: u64) -> Result<(), Error> {
        self.connection().reject_stream(stream)
    }

    /// Reclaim `stream`, which its real server has finished sending. Afterwards the owner ends noq's half of the stream:
    /// with `finish`, or with `reset` and [`RESET_PLACEHOLDER`].
    pub fn reclaim_stream(&self, stream: u64, end: StreamEnd) -> Result<(), Error> {
        self.connection().reclaim_stream(stream, end)
    }

    /// Let noq send `stream` from offset `from`, because its real server is dead. The client has acknowledged all bytes
    /// before `from`, and the stream ends at `final_size`. noq's offsets begin at 0.
    ///
    /// Returns the client's limit for the stream, in offsets on the wire. The owner must obey it, because noq does not know
    /// it. When the client has acknowledged everything, the owner must call
    /// [`Self::forget_resumed`].
    ///
    /// The real server may have used all of its credit. Those bytes were charged to it and are not charged again.
    pub fn resume_stream(
        &self,
        stream: u64,
        from: u64,
        final_size: u64,
    ) -> Result<watch::Receiver<u64>, Error> {
        self.connection().resume_stream(stream, from, final_size)
    }

    /// Forget the resumed `stream`, whose end the client has acknowledged.
    pub fn forget_resumed(&self, stream: u64) {
        self.connection().forget_resumed(stream);
    }

    /// Return `path` from its real server, which will not send a packet numbered `next_number` or higher. All streams of
    /// the path must have been reclaimed.
    ///
    /// noq continues with `next_number` once the client has acknowledged packets close below it. The path may then be
    /// delegated again.
    pub fn return_path(&self, path: u32, next_number: u64) -> Result<(), Error> {
        self.connection().return_path(path, next_number)
    }

    /// Abandon the delegation of `path`, because its real server is dead.
    ///
    /// The packet numbers that the real server has used are unknown. No number is certainly above all of them and still
    /// close enough for the client to decode a one-byte packet number, so none is used again. The owner should close the
    /// path, so that the client can open another. The streams must be reclaimed with [`StreamEnd::Reset`].
    pub fn abandon(&self, path: u32) -> Result<(), Error> {
        self.connection().abandon(path)
    }

    /// Handle the report of the real server of `path` that the client has not acknowledged anything for long.
    ///
    /// noq then pings the client. [`Event::Unreachable`] follows if the client acknowledges pings before and after a probe
    /// of the real server, but not the probe. A client that acknowledges neither may just be offline.
    pub fn on_no_ack_report(
        &self,
        connection: &noq::Connection,
        path: u32,
        report: NoAckReport,
    ) -> Result<(), Error> {
        let probe_path = self.connection().on_no_ack_report(path, report)?;
        // The path may have been closed in the meantime.
        if let Some(path) = probe_path.and_then(|id| connection.path(PathId::from(id))) {
            let _ = path.ping();
        }
        Ok(())
    }

    /// Record that the client violated the protocol towards a real server.
    ///
    /// When the owner closes the connection, with a reason of at least one byte, the client receives the transport error
    /// `code` (RFC 9000, section 20.1), as if noq had detected the violation.
    pub fn set_violation(&self, code: u64) {
        self.connection().set_violation(code);
    }
}

/// Real servers must stop sending on a connection that is gone.
impl<O> Drop for Delegator<O> {
    fn drop(&mut self) {
        self.connection.get_mut().close();
    }
}
