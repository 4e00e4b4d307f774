//! What becomes of a packet that noq made: the gate, then the client connection's own number, id and protection.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use frontage_quic::session::{Observer, Packet};
use noq::ConnectionId;
use tokio::sync::Notify;

use super::keys::{HeaderKey, PacketKey, Suite, TAG};
use super::numbering::Numbering;
use super::pool::Pool;
use super::silence::Silence;
use super::{Counts, Error, gate};
use crate::grant::{Grant, Keys};
use header::PHASE;
pub use header::{leaves, placeholder};
pub use waiting::waits;

mod alerts;
mod header;
mod waiting;

/// The least number that no packet may have (RFC 9000, section 12.3).
const NUMBERS: u64 = 1 << 62;

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
            header::withhold(packet);
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
        let generation = state.generation;
        let (at, length) =
            header::write(packet, header_len, &state.connection_id, number, generation);
        let (header, rest) = packet.split_at_mut(at + length);
        let (payload, tag) = rest.split_at_mut(end - at - length);
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

#[cfg(test)]
mod tests;
