//! The load balancer's side: a [`Lender`] sees each 1-RTT packet of a connection in the clear, between noq and the wire, and lends paths and streams of it.
//!
//! noq on the balancer keeps the connection: handshake, all that the client sends, every stream that is not lent, every path that is not lent. A real
//! server sends the lent streams on a path of its own, whose packet numbers are its own as long (`numbers`). The lender takes what the client
//! says about these out of its packets and hands it on (`split`, `feedback`); and it sees to it that noq, which knows nothing of all this, sends
//! nothing that a real server's packets could clash with (`outgoing`).
//!
//! On a lent path noq is mute: the balancer's own packets go by path 0, to which noq is held as the others are for backup.
//!
//! Where the client has one path alone, packet numbers are lent one by one instead (`shared`).
//!
//! # Limits
//!
//! - What noq itself asks or answers on a lent path the client never hears, PATH_CHALLENGE and PATH_RESPONSE among them. Where a client's address changes, the
//!   real server asks, and with its answer noq gets one to its own question; but that it is the right answer the real server alone knows, so such a path is never
//!   lent again ([`Error::Moved`]).
//! - A client of noq's tells which keys a packet has by comparing its number with that of the update, of whichever path that was. Packets of a real server's that
//!   cross an update are lost, a whole queue of them maybe, and sent again. So there is one before the first path is lent ([`Lender::renew_keys`]).
//! - Of a client's MAX_DATA noq is told a quarter at first, so this is for servers that do have real servers.
//! - Of 0-RTT packets nothing is seen; they carry nothing that concerns a grant, since there was none.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use noq::{PathId, VarInt};

use crate::borrow::PATIENCE;
pub use error::Error;
pub use events::Events;
pub use feedback::Event;
#[cfg(feature = "fuzzing")]
pub use scene::Scene;
use state::State;
pub use streams::End;

mod account;
mod confirmation;
mod credit;
mod error;
mod events;
mod feedback;
mod ids;
mod loan;
mod moments;
#[cfg(test)]
mod nonces;
mod numbers;
mod observer;
mod outgoing;
mod path;
mod paths;
mod ratchet;
#[cfg(feature = "fuzzing")]
mod scene;
mod shared;
mod split;
mod state;
mod streams;
mod validation;
mod vigil;

/// With this, noq resets its half of a stream that was taken back by [`End::Reset`]. It makes room for the code and the final size that the client is to see.
pub const RESET: VarInt = VarInt::MAX;

/// The path of packets without a path.
const VOID: u32 = u32::MAX;

/// Of one connection, over another observer that sees what goes over the wire on noq's behalf.
pub struct Lender<O> {
    inner: O,
    /// The client's limits are known.
    lends: AtomicBool,
    /// A generation of keys, and how many packets real servers sealed by it.
    sealed_remotely: AtomicU64,
    state: Mutex<State>,
}

impl<O> Lender<O> {
    /// A lender over `inner`.
    pub fn new(inner: O) -> Self {
        Self {
            inner,
            lends: AtomicBool::new(false),
            sealed_remotely: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// The observer below.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Updates the connection's keys as soon as that is allowed: when the client knows that the handshake is confirmed (RFC 9001, section 6).
    ///
    /// noq at either end updates them by itself within its first thousand packets, and not again for millions. That is to be over before a path is lent: what
    /// is on its way by it then, a client of noq's cannot read (see the limits above).
    pub async fn renew_keys(&self, connection: &noq::Connection) {
        let known = self.state().confirmation.known();
        known.notified().await;
        connection.force_key_update();
    }

    /// Lends `stream`, which the client opened and on which nothing was sent, to the real server that has `path`. What the client takes of it, if it has
    /// raised that.
    pub fn lend_stream(&self, path: u32, stream: u64) -> Result<Option<u64>, Error> {
        let state = &mut *self.state();
        let loan = state.paths.get(path).and_then(|path| path.loan());
        // The client that asks may be elsewhere.
        loan.ok_or(Error::Path(path))?.feedback.look();
        // Both ways, opened by the client (RFC 9000, section 2.1).
        if stream & 0x03 != 0 || state.credit.began(stream) || state.streams.get(stream).is_some() {
            return Err(Error::Stream(stream));
        }
        let raised = state.streams.lend(stream, path, state.limit);
        raised.ok_or(Error::Crowded(stream))
    }

    /// The real server of `path` needs so many bytes in all, as things are now: it gets no more than that. How many it may send now; it learns that, and when there
    /// is more later, by [`Event::Feedback`].
    pub fn need_credit(&self, path: u32, needed: u64) -> Result<u64, Error> {
        let state = &mut *self.state();
        let lent = state.paths.get(path).ok_or(Error::Path(path))?;
        lent.loan().ok_or(Error::Path(path))?.wanted = needed;
        state.share();
        let lent = state.paths.get(path).ok_or(Error::Path(path))?;
        Ok(lent.account.credit)
    }

    /// The real server that was to send `stream` did not begin: it is noq's as before.
    pub fn keep_stream(&self, stream: u64) -> Result<(), Error> {
        let state = &mut *self.state();
        let path = state.streams.keep(stream)?;
        state.settle(path);
        Ok(())
    }

    /// A real server is through with `stream`. After that the owner ends noq's half: by `finish`, or by `reset` with [`RESET`].
    pub fn take_back_stream(&self, stream: u64, end: End) -> Result<(), Error> {
        self.state().take_back(stream, end)
    }

    /// The real server of `path` gives it back, and will send no packet from `next_number` on. Its streams must have been taken back.
    ///
    /// noq goes on with that number once the client has packets not far below it, and then the path may be lent again.
    pub fn give_back(&self, path: u32, next_number: u64) -> Result<(), Error> {
        let state = &mut *self.state();
        if state.streams.open(path) {
            return Err(Error::Streams(path));
        }
        let is_name = state.is_name(path);
        let lent = state.paths.get(path).ok_or(Error::Path(path))?;
        lent.loan().ok_or(Error::Path(path))?;
        if lent.has_moved {
            return Err(Error::Moved(path));
        }
        if is_name {
            // What it did not use of its numbers nobody will.
            lent.spend();
            state.settle(path);
            return Ok(());
        }
        if next_number < lent.numbers.begin() || next_number > lent.numbers.begin() + LOAN {
            return Err(Error::Number(next_number));
        }
        lent.give_back(next_number);
        state.settle(path);
        Ok(())
    }

    /// The real server of `path` is dead: nobody knows which numbers it used. There is none that surely is above them and close enough to them for the
    /// client to tell from a number of one byte, so all are burnt, and the path is never used again; the owner does well to close it, for the client to
    /// open another. The streams are to be taken back by [`End::Reset`].
    pub fn forsake(&self, path: u32) -> Result<(), Error> {
        let state = &mut *self.state();
        let lent = state.paths.get(path).ok_or(Error::Path(path))?;
        lent.loan().ok_or(Error::Path(path))?;
        lent.spend();
        state.settle(path);
        Ok(())
    }

    /// The real server of `path` has sent a probe, since for `silence` the client has acknowledged nothing of its numbers from `next` on. So noq asks the client, and there
    /// is [`Event::Unheard`] if it answers that, twice, and the real server not. A client that answers neither may just be away.
    pub fn silent(
        &self,
        connection: &noq::Connection,
        path: u32,
        silence: Duration,
        next: u64,
    ) -> Result<(), Error> {
        let asked = self.state().probed(path, next, silence >= PATIENCE);
        // One that is closed meanwhile asks nothing.
        if let Some(own) = asked?.and_then(|own| connection.path(PathId::from(own))) {
            let _ = own.ping();
        }
        Ok(())
    }

    /// The client violated the protocol towards a real server: when the owner closes the connection, with at least a byte of a reason, the client
    /// gets `code`, of the transport's (RFC 9000, section 20.1), as if noq had noticed.
    pub fn violated(&self, code: u64) {
        self.state().violation = Some(code);
    }
}

/// Packets of a loan at most: more than any key may seal (RFC 9001, section 6.6), and no number is near the last one.
const LOAN: u64 = 1 << 40;

/// Real servers must not go on for a connection that is gone.
impl<O> Drop for Lender<O> {
    fn drop(&mut self) {
        if let Ok(state) = self.state.get_mut() {
            state.close();
        }
    }
}
