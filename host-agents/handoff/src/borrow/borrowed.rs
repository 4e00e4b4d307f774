//! One granted path, and the streams on it.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_quic::h3::{self, StreamPair};
use noq::{ConnectionError, ConnectionId, PathId, VarInt};

use super::numbering::Numbering;
use super::puppet::Puppet;
use super::seal::Sealer;
use super::socket::Routed;
use super::{Counts, Error, Silent, feedback};
use crate::grant::Keys;

/// A path of a client's connection, until it is dropped.
pub struct Borrowed {
    /// noq's, of the granted streams alone, which it calls otherwise ([`Borrowed::accept`]). It is lost if the client said what cannot be:
    /// the balancer closes the client's with the same code.
    pub connection: noq::Connection,
    pub(super) route: Routed,
    pub(super) puppet: Puppet,
    pub(super) sealer: Arc<Sealer>,
    pub(super) credit: AtomicU64,
    pub(super) counts: Arc<Counts>,
}

impl Borrowed {
    /// The client's stream `stream` is granted, on which it sent `http3` and no more. `max_stream_data` is its MAX_STREAM_DATA, if one came.
    pub fn request(
        &self,
        stream: u64,
        max_stream_data: Option<u64>,
        http3: &[u8],
    ) -> Result<(), Error> {
        let own = self.sealer.streams(|streams| streams.grant(stream))?;
        self.puppet
            .request(own, max_stream_data, http3, self.sealer.phase())
    }

    /// What the client said, in frames: ACK of this path's packets, MAX_DATA (the credit), MAX_STREAM_DATA and STOP_SENDING of granted streams, PATH_RESPONSE.
    /// Nothing of it counts if it is malformed or cannot be.
    pub fn feedback(&self, frames: &[u8]) -> Result<(), Error> {
        let sealer = &self.sealer;
        let translated = sealer.streams(|streams| {
            let numbers = match sealer.pool() {
                Some(pool) => feedback::Numbers::OneByOne(pool),
                None => feedback::Numbers::From(sealer.first()),
            };
            feedback::translate(frames, numbers, |stream| streams.own(stream))
        });
        let translated = translated.inspect_err(|_| {
            self.counts.bad_feedback.fetch_add(1, Relaxed);
        })?;
        self.credit.fetch_max(translated.max_data, Relaxed);
        if let Some(largest) = translated.acked {
            sealer.heard(largest);
        }
        translated
            .packets
            .iter()
            .try_for_each(|packet| self.puppet.send(packet, sealer.phase()))
    }

    /// The next granted stream, by the client's id.
    pub async fn accept(&self) -> Result<(u64, StreamPair), ConnectionError> {
        accept(self.connection.clone(), self.sealer.clone()).await
    }

    /// The same for crate `h3`.
    pub fn h3(&self) -> h3::Connection {
        let (connection, sealer) = (self.connection.clone(), self.sealer.clone());
        h3::Connection::with_streams(self.connection.clone(), move || {
            accept(connection.clone(), sealer.clone())
        })
    }

    /// Bytes of `stream` that were sent, its size should it end here.
    pub fn sent(&self, stream: u64) -> Option<u64> {
        self.sealer.streams(|streams| streams.sent_of(stream))
    }

    /// Bytes of all streams that were sent: so much of the credit is used.
    pub fn used(&self) -> u64 {
        self.sealer.streams(|streams| streams.sent())
    }

    /// Bytes that may be sent in all, by the grant and what was heard since. If the streams have more, the balancer is to be asked for that.
    pub fn credit(&self) -> u64 {
        self.credit.load(Relaxed)
    }

    /// How many packet numbers are wanted, once some are; of path 0 alone.
    pub async fn numbers_wanted(&self) -> u64 {
        match self.sealer.pool() {
            Some(pool) => pool.wanted().await,
            None => std::future::pending().await,
        }
    }

    /// What the balancer gives when asked for numbers, even if that is none: what is still missing then is wanted again.
    pub fn numbers(&self, numbers: Range<u64>) -> Result<(), Error> {
        let pool = self.sealer.pool();
        pool.ok_or(Error::Number(numbers.start))?.give(numbers)
    }

    /// Nothing is sent on `stream` any more. What the client still says about it is ignored.
    pub fn release(&self, stream: u64) {
        self.sealer.streams(|streams| streams.release(stream));
    }

    /// After a key update (RFC 9001, section 6).
    pub fn rekey(&self, keys: &Keys) -> Result<(), Error> {
        self.sealer.rekey(keys)
    }

    /// Ready once something cannot be sent since the key in force has sealed all that it may (RFC 9001, section 6.6): the balancer, which counts, has missed to update it.
    pub async fn exhausted(&self) {
        self.sealer.exhausted().await;
    }

    /// Ready once something has left for a client that has acknowledged nothing for long: the balancer is to look whether it is there.
    pub async fn silent(&self) -> Silent {
        let rtt = || self.connection.rtt(PathId::ZERO).unwrap_or_default();
        self.sealer.silent(rtt).await
    }

    /// The client is to be sent to by this id.
    pub fn connection_id(&self, id: ConnectionId) -> Result<(), Error> {
        self.sealer.connection_id(id)
    }

    /// The client is at `client`, and knows the balancer as `server`. At another IP address noq sends little until the client answers a PATH_CHALLENGE there,
    /// and begins anew.
    pub fn moved(&self, client: SocketAddr, server: SocketAddr) -> Result<(), Error> {
        match self.route.set(client, server) {
            Some(stand_in) => self.puppet.moved(stand_in, self.sealer.phase()),
            None => Ok(()),
        }
    }

    /// Ends the grant: nothing is sealed after this. The first number that was not used.
    pub fn revoke(&self) -> u64 {
        self.sealer.revoke()
    }

    /// The first number that was not used yet.
    pub fn next_number(&self) -> u64 {
        self.sealer.next()
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.revoke();
        self.connection.close(VarInt::from_u32(0), &[]);
    }
}

/// noq opens those streams, too, that it counts past as it goes to an id of more octets ([`Numbering`]); nobody wants them.
async fn accept(
    connection: noq::Connection,
    sealer: Arc<Sealer>,
) -> Result<(u64, StreamPair), ConnectionError> {
    loop {
        let both = connection.accept_bi().await?;
        let own = both.0.id().into();
        if let Some(stream) = sealer.streams(|streams: &mut Numbering| streams.granted(own)) {
            return Ok((stream, both));
        }
    }
}
