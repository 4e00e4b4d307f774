// SPDX-License-Identifier: Apache-2.0
//! Conversion of noq's packets to packets of the client's connection: frame filter, packet number, connection id,
//! protection.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use frontage_quic::session::{Observer, Packet};
use noq::ConnectionId;
use noq::udp::EcnCodepoint;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::ack_monitor::{AckMonitor, NoAckReport};
use super::keys::{HeaderKey, PacketKey, Suite, TAG_LEN};
use super::number_pool::{NumberPool, UnnumberedPacket};
use super::stream_ids::StreamIds;
use super::{Counters, Error, frame_filter};
use crate::grant::{Grant, Keys};
use header::{PHASE, UNNUMBERED_TRAILER};
pub use header::{is_sealed, is_unnumbered, placeholder};

mod header;

/// One past the largest packet number (RFC 9000, section 12.3).
const PACKET_NUMBERS: u64 = 1 << 62;

/// Seals the packets of one delegation.
pub struct Sealer {
    suite: Suite,
    path: u32,
    first: u64,
    header: HeaderKey,
    /// Maximum length of the client's connection id: that of the first one.
    id_len: usize,
    counters: Arc<Counters>,
    /// noq's own key phase, which is not that on the wire.
    phase: AtomicBool,
    /// The client's RTT at the beginning.
    rtt: Duration,
    /// Source of packet numbers, if the path is shared with other senders.
    pool: Option<NumberPool>,
    /// Notified when a packet is withheld because the key has reached its confidentiality limit.
    exhausted: Notify,
    /// Notified when a packet is sent and nothing has been acknowledged for long.
    probed: Notify,
    state: Mutex<State>,
}

struct State {
    key: PacketKey,
    generation: u32,
    /// Packets that this server has sealed with the key.
    sealed: u64,
    connection_id: ConnectionId,
    /// All lower numbers have been used or will never be.
    next: u64,
    revoked: bool,
    streams: StreamIds,
    acks: AckMonitor,
}

impl Sealer {
    pub fn new(grant: &Grant, counters: Arc<Counters>) -> Result<Self, Error> {
        let suite = Suite::of(grant.suite)?;
        Ok(Self {
            suite,
            path: grant.path,
            first: grant.first,
            header: HeaderKey::new(suite, &grant.header_secret)?,
            id_len: grant.connection_id.len(),
            counters,
            phase: AtomicBool::default(),
            rtt: grant.rtt,
            pool: None,
            exhausted: Notify::new(),
            probed: Notify::new(),
            state: Mutex::new(State {
                key: PacketKey::new(suite, &grant.keys.secret)?,
                generation: grant.keys.generation,
                sealed: 0,
                connection_id: grant.connection_id,
                next: grant.first,
                revoked: false,
                streams: StreamIds::default(),
                acks: AckMonitor::default(),
            }),
        })
    }

    /// Take packet numbers from `pool`.
    pub fn with_pool(self, pool: NumberPool) -> Self {
        Self {
            pool: Some(pool),
            ..self
        }
    }

    /// Return the source of packet numbers, if the path is shared with other senders.
    pub fn pool(&self) -> Option<&NumberPool> {
        self.pool.as_ref()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Convert noq's packet `number` to one of the client's connection, which `observer` sees; or mark it as waiting for
    /// a number, or as not to be sent.
    pub fn seal(
        &self,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
        observer: &impl Observer,
    ) {
        self.phase.store(packet[0] & PHASE != 0, Relaxed);
        let state = &mut *self.state();
        let is_sent = self.filter(state, number, packet, header_len)
            && if self.pool.is_some() {
                header::mark_unnumbered(number, packet, header_len);
                true
            } else {
                let number = self.first.saturating_add(number);
                self.seal_numbered(state, number, packet, header_len, observer)
            };
        if !is_sent {
            self.counters.withheld.fetch_add(1, Relaxed);
            header::withhold(packet);
        }
    }

    /// Remove all frames that this server must not send. Returns whether any frame is left.
    fn filter(&self, state: &mut State, number: u64, packet: &mut [u8], header_len: usize) -> bool {
        let end = packet.len() - TAG_LEN;
        let is_exhausted = self.is_exhausted(state);
        let streams = &mut state.streams;
        let frames = &mut packet[header_len..end];
        !state.revoked
            && !is_exhausted
            && frame_filter::filter(frames, |own, bytes| streams.on_sent(number, own, bytes))
    }

    /// Seal a packet with number `number` on the wire. Returns false if it must not be sent.
    fn seal_numbered(
        &self,
        state: &mut State,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
        observer: &(impl Observer + ?Sized),
    ) -> bool {
        let end = packet.len() - TAG_LEN;
        let is_exhausted = self.is_exhausted(state);
        // noq's numbers increase. Should they not, nothing is sealed, so that no number is used twice.
        if state.revoked || is_exhausted || number < state.next || number >= PACKET_NUMBERS {
            return false;
        }
        let generation = state.generation;
        let (at, length) =
            header::write(packet, header_len, &state.connection_id, number, generation);
        let (header, rest) = packet.split_at_mut(at + length);
        let (payload, tag) = rest.split_at_mut(end - at - length);
        let now = Instant::now();
        if state.acks.is_overdue(self.rtt, now) {
            observer.on_probe();
        }
        observer.on_sent(&Packet {
            path: self.path,
            number,
            generation,
            header,
            payload,
            tag: None,
        });
        tag.copy_from_slice(&state.key.seal(self.path, number, header, payload));
        self.header.protect(packet, at, length);
        state.next = number + 1;
        state.sealed += 1;
        if state.acks.on_sent(now) {
            self.probed.notify_one();
        }
        true
    }

    /// Use `keys` from now on, unless they are older than the current ones.
    ///
    /// Unused numbers of the pool are discarded: the client may already have higher numbers sealed with the older keys, and
    /// would treat a packet with newer keys as an error (RFC 9001, section 6.4).
    pub fn set_keys(&self, keys: &Keys) -> Result<(), Error> {
        let key = PacketKey::new(self.suite, &keys.secret)?;
        let state = &mut *self.state();
        if keys.generation > state.generation {
            (state.key, state.generation, state.sealed) = (key, keys.generation, 0);
            if let Some(pool) = &self.pool {
                pool.discard_numbers_below(u64::MAX);
            }
        }
        Ok(())
    }

    /// Use `numbers` for the next packets instead of unused ones, if they are for the current keys.
    ///
    /// With other keys, the client may already have higher numbers with older keys, or lower ones with newer keys (RFC 9001,
    /// section 6.4).
    pub fn add_numbers_ahead(&self, generation: u32, numbers: Range<u64>) -> Result<(), Error> {
        let pool = self.pool().ok_or(Error::Number(numbers.start))?;
        let state = self.state();
        match state.generation == generation {
            true => pool.add_ahead(numbers),
            false => Ok(()),
        }
    }

    /// Discard unused numbers below `below`. A packet that is being sealed keeps its number.
    pub fn discard_numbers_below(&self, below: u64) {
        let _state = self.state();
        if let Some(pool) = &self.pool {
            pool.discard_numbers_below(below);
        }
    }

    /// Send to this connection id from now on.
    pub fn set_connection_id(&self, id: ConnectionId) -> Result<(), Error> {
        if id.len() > self.id_len {
            return Err(Error::ConnectionId(id.len()));
        }
        self.state().connection_id = id;
        Ok(())
    }

    /// End the delegation. Returns the first unused number.
    pub fn revoke(&self) -> u64 {
        let state = &mut *self.state();
        state.revoked = true;
        if let Some(pool) = &self.pool {
            pool.close();
        }
        state.next
    }

    /// Return the first unused number.
    pub fn next(&self) -> u64 {
        self.state().next
    }

    /// Return the first number of the grant.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Return noq's own key phase.
    pub fn phase(&self) -> bool {
        self.phase.load(Relaxed)
    }

    /// Call `f` with the delegated streams.
    pub fn streams<T>(&self, f: impl FnOnce(&mut StreamIds) -> T) -> T {
        f(&mut self.state().streams)
    }

    /// Seal the next packet that waits for a number, if there is a number for it and it `fits`, and append it to `batch`,
    /// unless it must not be sent any more. Returns its ECN codepoint.
    ///
    /// The keys cannot change between the assignment of the number and the sealing.
    pub fn seal_next(
        &self,
        batch: &mut Vec<u8>,
        fits: impl FnOnce(&UnnumberedPacket) -> bool,
    ) -> Option<Option<EcnCodepoint>> {
        let state = &mut *self.state();
        let pool = self.pool.as_ref()?;
        let next = pool.pop(fits)?;
        let start = batch.len();
        batch.extend(&next.octets);
        let packet = &mut batch[start..];
        let end = packet.len() - TAG_LEN;
        let (own, rest) = packet[end..].split_at(UNNUMBERED_TRAILER);
        let own = u64::from_be_bytes(own.try_into().expect("valid length"));
        let header_len = usize::from(rest[0]);
        let number = pool.take(own)?;
        if !self.seal_numbered(state, number, packet, header_len, &*pool.observer) {
            self.counters.withheld.fetch_add(1, Relaxed);
            batch.truncate(start);
        }
        Some(next.ecn)
    }

    /// Return whether the key has reached its confidentiality limit. Notifies the owner if so.
    fn is_exhausted(&self, state: &State) -> bool {
        let is_exhausted = state.sealed >= self.suite.confidentiality_limit;
        if is_exhausted {
            self.exhausted.notify_one();
        }
        is_exhausted
    }

    /// Wait until a packet was withheld because the key has reached its confidentiality limit (RFC 9001, section 6.6).
    pub async fn keys_exhausted(&self) {
        loop {
            self.exhausted.notified().await;
            // The keys may have been updated by now.
            if self.state().sealed >= self.suite.confidentiality_limit {
                return;
            }
        }
    }

    /// Handle an ACK whose largest number on the wire is `largest`.
    pub fn on_ack(&self, largest: u64) {
        let state = &mut *self.state();
        state.acks.on_ack(largest, state.next, Instant::now());
    }

    /// Wait until a packet was sent to a client that has not acknowledged anything for long, given the round-trip time
    /// `rtt`, or until that has lasted too long.
    pub async fn no_ack(&self, rtt: impl Fn() -> Duration) -> NoAckReport {
        loop {
            // noq seals packets under its own lock and takes this one within, so noq must be queried before.
            let deadline = {
                let rtt = rtt();
                self.state().acks.deadline(rtt)
            };
            match deadline {
                None => self.probed.notified().await,
                Some(deadline) => {
                    let _ = timeout_at(deadline.into(), self.probed.notified()).await;
                }
            }
            let rtt = rtt();
            let report = self.state().acks.report(rtt, Instant::now());
            if let Some(report) = report {
                return report;
            }
        }
    }
}

#[cfg(test)]
mod tests;
