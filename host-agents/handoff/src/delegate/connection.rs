// SPDX-License-Identifier: Apache-2.0
//! One delegation: a client's path, or numbers of it, and the streams on it.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_quic::h3::{self, StreamPair};
use frontage_quic_wire::frames::{self, Frame};
use noq::{ConnectionError, ConnectionId, PathId, VarInt};

use super::ack_monitor::NoAckReport;
use super::number_pool::NumberRequest;
use super::sealer::Sealer;
use super::socket::Route;
use super::stream_ids::StreamIds;
use super::synthetic_client::SyntheticClient;
use super::{Counters, Error, feedback};
use crate::grant::Keys;

/// The delegated part of a client's connection. Dropping it ends the delegation.
pub struct DelegatedConnection {
    /// noq's connection, which has the delegated streams only, under other ids ([`DelegatedConnection::accept`]). It
    /// fails if the client violates the protocol; the balancer then closes the client's connection with the same code.
    pub connection: noq::Connection,
    pub(super) route: Route,
    pub(super) client: SyntheticClient,
    pub(super) sealer: Arc<Sealer>,
    pub(super) credit: AtomicU64,
    pub(super) counters: Arc<Counters>,
}

impl DelegatedConnection {
    /// Accept the delegated stream `stream`, on which the client sent `http3` and FIN. `max_stream_data` is the client's
    /// MAX_STREAM_DATA, if it sent one.
    pub fn request(
        &self,
        stream: u64,
        max_stream_data: Option<u64>,
        http3: &[u8],
    ) -> Result<(), Error> {
        let own = self.sealer.streams(|streams| streams.add(stream))?;
        self.client
            .request(own, max_stream_data, http3, self.sealer.phase())
    }

    /// Handle frames of the client: ACK of this path's packets, MAX_DATA (the credit), MAX_STREAM_DATA and STOP_SENDING of
    /// delegated streams, PATH_RESPONSE. Feedback that is malformed or that no client can have sent has no effect.
    pub fn on_feedback(&self, frames: &[u8]) -> Result<(), Error> {
        let sealer = &self.sealer;
        let translated = sealer.streams(|streams| {
            let numbers = match sealer.pool() {
                Some(pool) => feedback::Numbers::Pool(pool),
                None => feedback::Numbers::From(sealer.first()),
            };
            feedback::translate(frames, numbers, |stream| streams.own(stream))
        });
        let translated = translated.inspect_err(|_| {
            self.counters.invalid_feedback.fetch_add(1, Relaxed);
        })?;
        self.credit.fetch_max(translated.max_data, Relaxed);
        if let Some(largest) = translated.largest_acked {
            sealer.on_ack(largest);
            sealer.streams(|streams| {
                for frame in translated
                    .packets
                    .iter()
                    .flat_map(|packet| frames::read(packet))
                {
                    if let Frame::Ack(ack) = frame {
                        ack.ranges()
                            .for_each(|range| streams.on_acknowledged(range));
                    }
                }
            });
        }
        translated
            .packets
            .iter()
            .try_for_each(|packet| self.client.send(packet, sealer.phase()))
    }

    /// Return the streams that have made progress since the last call, and the length of the acknowledged prefix of
    /// each, in bytes.
    pub fn take_progress(&self) -> Vec<(u64, u64)> {
        self.sealer.streams(StreamIds::take_progress)
    }

    /// Return the next delegated stream and its id at the client.
    pub async fn accept(&self) -> Result<(u64, StreamPair), ConnectionError> {
        accept(self.connection.clone(), self.sealer.clone()).await
    }

    /// Return the delegated streams as a connection for crate `h3`.
    pub fn h3(&self) -> h3::Connection {
        let (connection, sealer) = (self.connection.clone(), self.sealer.clone());
        h3::Connection::with_streams(self.connection.clone(), move || {
            accept(connection.clone(), sealer.clone())
        })
    }

    /// Return how many bytes of `stream` were sent: its final size if it ended now.
    pub fn sent(&self, stream: u64) -> Option<u64> {
        self.sealer.streams(|streams| streams.sent_on(stream))
    }

    /// Return how many bytes of all streams were sent, that is, how much credit is used.
    pub fn used(&self) -> u64 {
        self.sealer.streams(|streams| streams.sent())
    }

    /// Return the total credit in bytes, by the grant and the feedback. If the streams have more to send, the owner must
    /// request more from the balancer.
    pub fn credit(&self) -> u64 {
        self.credit.load(Relaxed)
    }

    /// Return whether the client has a single path, whose numbers other senders use, too.
    pub fn shares_numbers(&self) -> bool {
        self.sealer.pool().is_some()
    }

    /// Wait until packets need numbers of path 0, now or soon. Returns how many, which the owner must request from the balancer.
    pub async fn numbers_needed(&self) -> NumberRequest {
        match self.sealer.pool() {
            Some(pool) => pool.needed().await,
            None => std::future::pending().await,
        }
    }

    /// Handle the balancer's response to the oldest open request for numbers. If it has too few for the packets that wait,
    /// [`Self::numbers_needed`] returns the rest again.
    pub fn on_numbers(&self, numbers: &[Range<u64>]) -> Result<(), Error> {
        let first = numbers.first().map_or(0, |range| range.start);
        let pool = self.sealer.pool();
        pool.ok_or(Error::Number(first))?.add(numbers)
    }

    /// Handle numbers that the balancer allocated ahead, for packets sealed with the keys of `generation`.
    pub fn on_numbers_ahead(&self, generation: u32, numbers: Range<u64>) -> Result<(), Error> {
        self.sealer.add_numbers_ahead(generation, numbers)
    }

    /// Discard unused numbers below `below`, which the client may treat as duplicates.
    pub fn on_numbers_expired(&self, below: u64) {
        self.sealer.discard_numbers_below(below);
    }

    /// Forget `stream`. Nothing more is sent on it, and feedback about it is ignored.
    pub fn release(&self, stream: u64) {
        self.sealer.streams(|streams| streams.release(stream));
    }

    /// Handle a key update (RFC 9001, section 6).
    pub fn set_keys(&self, keys: &Keys) -> Result<(), Error> {
        self.sealer.set_keys(keys)
    }

    /// Wait until a packet cannot be sent because the current key has reached its confidentiality limit (RFC 9001, section
    /// 6.6). The balancer counts packets and should have updated the keys before.
    pub async fn keys_exhausted(&self) {
        self.sealer.keys_exhausted().await;
    }

    /// Wait until a packet was sent to a client that has not acknowledged anything for long. The balancer must then check
    /// whether it can reach the client.
    pub async fn no_ack(&self) -> NoAckReport {
        let rtt = || self.connection.rtt(PathId::ZERO).unwrap_or_default();
        self.sealer.no_ack(rtt).await
    }

    /// Send to this connection id of the client from now on.
    pub fn set_connection_id(&self, id: ConnectionId) -> Result<(), Error> {
        self.sealer.set_connection_id(id)
    }

    /// Handle a move of the client to `client`, from which it sends to the balancer at `server`. At a new IP address, noq
    /// sends little until the client responds to a PATH_CHALLENGE, and resets its congestion control.
    pub fn on_client_moved(&self, client: SocketAddr, server: SocketAddr) -> Result<(), Error> {
        match self.route.set(client, server) {
            Some(stand_in) => self.client.migrate(stand_in, self.sealer.phase()),
            None => Ok(()),
        }
    }

    /// End the delegation: nothing is sealed any more. Returns the first unused packet number.
    pub fn revoke(&self) -> u64 {
        self.sealer.revoke()
    }

    /// Return the first unused packet number.
    pub fn next_number(&self) -> u64 {
        self.sealer.next()
    }
}

impl Drop for DelegatedConnection {
    fn drop(&mut self) {
        self.revoke();
        self.connection.close(VarInt::from_u32(0), &[]);
    }
}

/// Accept the next delegated stream. noq also opens the streams that [`StreamIds`] skips; they are dropped.
async fn accept(
    connection: noq::Connection,
    sealer: Arc<Sealer>,
) -> Result<(u64, StreamPair), ConnectionError> {
    loop {
        let both = connection.accept_bi().await?;
        let own = both.0.id().into();
        if let Some(stream) = sealer.streams(|streams: &mut StreamIds| streams.delegated(own)) {
            return Ok((stream, both));
        }
    }
}
