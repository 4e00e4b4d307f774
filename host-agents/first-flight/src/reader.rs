// SPDX-License-Identifier: Apache-2.0
//! Decryption of first flights: from datagrams to CRYPTO data, or to a packet that can be rebuilt.

use crate::keys::{Keys, Salts, Side};
use crate::packet::{Kind, Packet};
use crate::{Crypto, Fault, Initial, MIN_DATAGRAM, Version, frames};

/// Least length of the connection id that a client chooses for its first flight (RFC 9000, 7.2).
const MIN_DCID: usize = 8;

/// Decrypts first flights.
#[derive(Debug, Default)]
pub struct Reader {
    salts: Salts,
    scratch: Vec<u8>,
}

impl Reader {
    /// Check a first flight's datagram without decrypting it, and return its first packet, which is an Initial or
    /// 0-RTT.
    ///
    /// # Errors
    /// Those of [`Packet::parse`]; [`Fault::SmallDatagram`], [`Fault::PacketType`], [`Fault::ConnectionId`].
    #[inline]
    pub fn inspect(datagram: &[u8]) -> Result<Packet<'_>, Fault> {
        let (first, _) = Packet::parse(datagram)?;
        if first.dcid.len() < MIN_DCID {
            return Err(Fault::ConnectionId);
        }
        match first.kind {
            Kind::Initial if datagram.len() < MIN_DATAGRAM => Err(Fault::SmallDatagram),
            Kind::Initial | Kind::ZeroRtt => Ok(first),
            Kind::Handshake | Kind::Retry => Err(Fault::PacketType),
        }
    }

    /// Add the CRYPTO data of a datagram's Initials to `crypto`. Later packets that do not authenticate are skipped,
    /// as receivers do (RFC 9000, 12.2).
    ///
    /// # Errors
    /// Those of [`Reader::inspect`]; [`Fault::Undecryptable`] of the first Initial, [`Fault::Frame`],
    /// [`Fault::CryptoTooLong`].
    #[inline]
    pub fn read(&mut self, datagram: &[u8], crypto: &mut Crypto) -> Result<(), Fault> {
        let first = Self::inspect(datagram)?;
        let keys = self.salts.keys(first.version, first.dcid, Side::Client);
        let mut opened = false;
        let mut rest = datagram;
        while !rest.is_empty() {
            // Some clients pad after the last packet, outside of all packets.
            let Ok((packet, next)) = Packet::parse(rest) else {
                break;
            };
            rest = next;
            if (packet.version, packet.dcid) != (first.version, first.dcid) {
                break;
            }
            if packet.kind != Kind::Initial {
                continue;
            }
            self.scratch.clear();
            self.scratch.extend_from_slice(packet.bytes);
            match keys.open(&mut self.scratch, packet.number_at) {
                Ok(opened) => frames::gather(opened.frames, crypto)?,
                Err(fault) if !opened => return Err(fault),
                Err(_) => {}
            }
            opened = true;
        }
        Ok(())
    }

    /// Return the first Initial of a first flight's datagram without its protection.
    ///
    /// # Errors
    /// Those of [`Reader::inspect`]; [`Fault::SmallDatagram`] before all others, [`Fault::PacketType`] of 0-RTT, too,
    /// [`Fault::Undecryptable`], [`Fault::Frame`].
    pub fn open(&self, datagram: &[u8]) -> Result<Initial, Fault> {
        if datagram.len() < MIN_DATAGRAM {
            return Err(Fault::SmallDatagram);
        }
        let first = Self::inspect(datagram)?;
        if first.kind != Kind::Initial {
            return Err(Fault::PacketType);
        }
        let mut packet = first.bytes.to_vec();
        let keys = self.keys(first.version, first.dcid, Side::Client);
        let opened = keys.open(&mut packet, first.number_at)?;
        Ok(Initial {
            version: first.version,
            dcid: first.dcid.into(),
            scid: first.scid.into(),
            number: opened.number.into(),
            frames: frames::without_padding(opened.frames)?,
        })
    }

    pub(crate) fn keys(&self, version: Version, dcid: &[u8], side: Side) -> Keys {
        self.salts.keys(version, dcid, side)
    }
}
