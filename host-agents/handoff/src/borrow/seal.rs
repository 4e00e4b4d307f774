//! What becomes of a packet that noq made: the gate, then the client connection's own number, id and protection.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use frontage_quic::session::{Observer, Packet};
use noq::ConnectionId;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::keys::{HeaderKey, PacketKey, Suite, TAG};
use super::numbering::Numbering;
use super::pool::Pool;
use super::silence::{Silence, Silent};
use super::{Counts, Error, gate};
use crate::grant::{Grant, Keys};
pub use waiting::waits;

mod waiting;

/// Most octets of a packet's number, which all get if they fit.
const NUMBER: usize = 4;
/// The least number that no packet may have (RFC 9000, section 12.3).
const NUMBERS: u64 = 1 << 62;
/// Most octets of a connection id (RFC 9000, section 17.2).
const ID: usize = 20;
/// The first octet of a short packet (RFC 9000, section 17.3.1).
const FORM_AND_FIXED: u8 = 0xc0;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
const PHASE: u8 = 0x04;
/// That of a packet that is not to leave, which no packet has.
const WITHHELD: u8 = 0x00;
/// The sending side of one granted path.
pub struct Sealer {
    suite: Suite,
    path: u32,
    first: u64,
    header: HeaderKey,
    /// Octets for which noq's header has room.
    id_len: usize,
    counts: Arc<Counts>,
    /// The key phase in which noq is, of which nobody outside knows.
    phase: AtomicBool,
    /// From where numbers come, if the path's are not this server's alone.
    pool: Option<Pool>,
    /// A packet was withheld since the key has sealed all that it may.
    exhausted: Notify,
    /// A packet left though nothing is acknowledged.
    probed: Notify,
    state: Mutex<State>,
}

struct State {
    key: PacketKey,
    generation: u32,
    /// Packets that this key sealed here.
    sealed: u64,
    connection_id: ConnectionId,
    /// Below it, every number was used or never will be.
    next: u64,
    revoked: bool,
    streams: Numbering,
    silence: Silence,
}

impl Sealer {
    pub fn new(grant: &Grant, counts: Arc<Counts>) -> Result<Self, Error> {
        let suite = Suite::of(grant.suite)?;
        Ok(Self {
            suite,
            path: grant.path,
            first: grant.first,
            header: HeaderKey::new(suite, &grant.header_secret)?,
            id_len: grant.connection_id.len(),
            counts,
            phase: AtomicBool::default(),
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
                streams: Numbering::default(),
                silence: Silence::default(),
            }),
        })
    }

    /// The same with numbers that come one by one.
    pub fn waiting(self, pool: Pool) -> Self {
        Self {
            pool: Some(pool),
            ..self
        }
    }

    /// From where numbers come.
    pub fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Makes of noq's packet `number` the client connection's, which `observer` sees, or marks it as one that waits for its number, or is not to leave.
    pub fn seal(
        &self,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
        observer: &impl Observer,
    ) {
        self.phase.store(packet[0] & PHASE != 0, Relaxed);
        let state = &mut *self.state();
        let leaves = self.passes(state, packet, header_len)
            && if self.pool.is_some() {
                waiting::wait(number, packet, header_len);
                true
            } else {
                let number = self.first.saturating_add(number);
                self.sealed(state, number, packet, header_len, observer)
            };
        if !leaves {
            self.counts.withheld.fetch_add(1, Relaxed);
            packet[0] = WITHHELD;
        }
    }

    /// Whether the key may seal no more. Its owner is told.
    fn is_exhausted(&self, state: &State) -> bool {
        let is_exhausted = state.sealed >= self.suite.confidentiality_limit;
        if is_exhausted {
            self.exhausted.notify_one();
        }
        is_exhausted
    }

    /// Ready once a packet did not leave since the key in force has sealed all that it may (RFC 9001, section 6.6).
    pub async fn exhausted(&self) {
        loop {
            self.exhausted.notified().await;
            // There may be another key by now.
            if self.state().sealed >= self.suite.confidentiality_limit {
                return;
            }
        }
    }

    /// Whether something of it is this server's to send; that is all that is left then.
    fn passes(&self, state: &mut State, packet: &mut [u8], header_len: usize) -> bool {
        let end = packet.len() - TAG;
        let is_exhausted = self.is_exhausted(state);
        let streams = &mut state.streams;
        let frames = &mut packet[header_len..end];
        !state.revoked && !is_exhausted && gate::pass(frames, |own, to| streams.sends(own, to))
    }

    /// Whether it is to leave, by the number `number` on the wire.
    fn sealed(
        &self,
        state: &mut State,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
        observer: &(impl Observer + ?Sized),
    ) -> bool {
        let end = packet.len() - TAG;
        let is_exhausted = self.is_exhausted(state);
        // A number is used once: noq counts up, and nothing is sealed should it not.
        if state.revoked || is_exhausted || number < state.next || number >= NUMBERS {
            return false;
        }
        // noq's header has room for an id longer by three octets at least. What the number does not need of it is PADDING.
        let id = state.connection_id;
        let at = 1 + id.len();
        let length = NUMBER.min(header_len - at);
        packet[0] = FIXED
            | packet[0] & SPIN
            | if state.generation & 1 == 1 { PHASE } else { 0 }
            | (length - 1) as u8;
        packet[1..at].copy_from_slice(&id);
        packet[at..at + length].copy_from_slice(&number.to_be_bytes()[8 - length..]);
        packet[at + length..header_len].fill(0);
        let (header, rest) = packet.split_at_mut(at + length);
        let (payload, tag) = rest.split_at_mut(end - at - length);
        observer.sent(&Packet {
            path: self.path,
            number,
            generation: state.generation,
            header,
            payload,
            tag: None,
        });
        tag.copy_from_slice(&state.key.seal(self.path, number, header, payload));
        self.header.protect(packet, at, length);
        state.next = number + 1;
        state.sealed += 1;
        if state.silence.sent(Instant::now()) {
            self.probed.notify_one();
        }
        true
    }

    /// Seals by `keys` from now on; those before the ones in force are of no use any more. Neither are numbers that were given one by one before: the client may have
    /// higher ones by the older keys, and takes a packet by newer ones for an error then (RFC 9001, section 6.4).
    pub fn rekey(&self, keys: &Keys) -> Result<(), Error> {
        let key = PacketKey::new(self.suite, &keys.secret)?;
        let state = &mut *self.state();
        if keys.generation > state.generation {
            (state.key, state.generation, state.sealed) = (key, keys.generation, 0);
            if let Some(pool) = &self.pool {
                pool.forget();
            }
        }
        Ok(())
    }

    /// Sends to this id from now on.
    pub fn connection_id(&self, id: ConnectionId) -> Result<(), Error> {
        if id.len() > self.id_len {
            return Err(Error::ConnectionId(id.len()));
        }
        self.state().connection_id = id;
        Ok(())
    }

    /// The client has the packet of this number on the wire.
    pub fn heard(&self, largest: u64) {
        let state = &mut *self.state();
        state.silence.heard(largest, state.next, Instant::now());
    }

    /// Ready once a packet has left for a client, at the end of a round trip of `rtt`, that has acknowledged nothing for long; and when that is too long.
    pub async fn silent(&self, rtt: impl Fn() -> Duration) -> Silent {
        loop {
            // noq's lock is held by whoever seals, and this one's taken within.
            let overdue = {
                let rtt = rtt();
                self.state().silence.overdue(rtt)
            };
            match overdue {
                None => self.probed.notified().await,
                Some(overdue) => {
                    let _ = timeout_at(overdue.into(), self.probed.notified()).await;
                }
            }
            let rtt = rtt();
            let told = self.state().silence.tell(rtt, Instant::now());
            if let Some(silent) = told {
                return silent;
            }
        }
    }

    /// Seals nothing any more.
    pub fn revoke(&self) -> u64 {
        let state = &mut *self.state();
        state.revoked = true;
        if let Some(pool) = &self.pool {
            pool.end();
        }
        state.next
    }

    pub fn next(&self) -> u64 {
        self.state().next
    }

    /// The first of the numbers.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// noq's phase.
    pub fn phase(&self) -> bool {
        self.phase.load(Relaxed)
    }

    /// What `of` makes of the granted streams.
    pub fn streams<T>(&self, of: impl FnOnce(&mut Numbering) -> T) -> T {
        of(&mut self.state().streams)
    }
}

/// The id that noq is to write, in place of which come the client's and a number of full length.
pub fn placeholder(id: &ConnectionId) -> ConnectionId {
    let mut octets = [0; ID];
    octets[..id.len()].copy_from_slice(id);
    ConnectionId::new(&octets[..ID.min(id.len() + NUMBER - 1)])
}

/// Whether a packet of noq's is one that was sealed: no handshake's, and not withheld.
pub fn leaves(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| first & FORM_AND_FIXED == FIXED)
}

#[cfg(test)]
mod tests;
