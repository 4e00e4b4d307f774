// SPDX-License-Identifier: Apache-2.0
//! Message framing, and encoding of simple fields.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use frontage_quic_wire::{read_varint, write_varint};

use super::Error;

/// Append a message whose body `write` writes.
pub(super) fn message(out: &mut BytesMut, kind: u64, write: impl FnOnce(&mut Writer)) {
    let mut body = Writer(Vec::new());
    write(&mut body);
    write_varint(out, kind);
    write_varint(out, body.0.len() as u64);
    out.extend_from_slice(&body.0);
}

/// Remove the first message from `wire` and return its type and body; `None` if it is incomplete. `limit` returns the
/// maximum body length of a type, and is checked before the body has arrived.
pub(super) fn take(
    wire: &mut BytesMut,
    limit: impl Fn(u64) -> Option<usize>,
) -> Result<Option<(u64, Bytes)>, Error> {
    let mut rest = &wire[..];
    let Some(kind) = read_varint(&mut rest) else {
        return Ok(None);
    };
    let limit = limit(kind).ok_or(Error::UnknownType(kind))?;
    let Some(length) = read_varint(&mut rest) else {
        return Ok(None);
    };
    if length > limit as u64 {
        return Err(Error::TooLong(length));
    }
    let (head, length) = (wire.len() - rest.len(), length as usize);
    if rest.len() < length {
        return Ok(None);
    }
    wire.advance(head);
    Ok(Some((kind, wire.split_to(length).freeze())))
}

pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn varint(&mut self, value: u64) {
        write_varint(&mut self.0, value);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.put_u8(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.0.put_u16(value);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.put_u64(value);
    }

    /// Append bytes that reach to the end of the body.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    /// Append bytes with their length in front.
    pub(super) fn counted(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            put(self, value);
        }
    }

    pub(super) fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(v4) => {
                self.u8(4);
                self.bytes(&v4.octets());
            }
            IpAddr::V6(v6) => {
                self.u8(6);
                self.bytes(&v6.octets());
            }
        }
        self.u16(address.port());
    }
}

pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) const fn new(body: Bytes) -> Self {
        Self(body)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut rest = &self.0[..];
        let value = read_varint(&mut rest).ok_or(Error::Truncated)?;
        let used = self.0.len() - rest.len();
        self.0.advance(used);
        Ok(value)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        self.0.try_get_u8().map_err(|_| Error::Truncated)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.0.try_get_u16().map_err(|_| Error::Truncated)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.0.try_get_u64().map_err(|_| Error::Truncated)
    }

    /// Return the next `n` bytes, which share the message's memory.
    pub(super) fn bytes(&mut self, n: usize) -> Result<Bytes, Error> {
        if n > self.0.len() {
            return Err(Error::Truncated);
        }
        Ok(self.0.split_to(n))
    }

    /// Return the bytes whose length is in front of them; `check` returns an error for an invalid length.
    pub(super) fn counted(
        &mut self,
        check: impl FnOnce(u64) -> Option<Error>,
    ) -> Result<Bytes, Error> {
        let n = self.varint()?;
        if let Some(error) = check(n) {
            return Err(error);
        }
        self.bytes(usize::try_from(n).map_err(|_| Error::Truncated)?)
    }

    pub(super) fn option<T>(
        &mut self,
        get: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match self.u8()? {
            0 => Ok(None),
            1 => get(self).map(Some),
            n => Err(Error::Presence(n)),
        }
    }

    pub(super) fn stream(&mut self) -> Result<u64, Error> {
        // The two lowest bits tell the initiator and the direction (RFC 9000, section 2.1).
        match self.varint()? {
            id if id % 4 == 0 => Ok(id),
            id => Err(Error::StreamId(id)),
        }
    }

    pub(super) fn address(&mut self) -> Result<SocketAddr, Error> {
        let ip = match self.u8()? {
            4 => IpAddr::from(self.array::<4>()?),
            6 => IpAddr::from(self.array::<16>()?),
            family => return Err(Error::AddressFamily(family)),
        };
        Ok(SocketAddr::new(ip, self.u16()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N)?);
        Ok(array)
    }

    /// Return the rest of the body.
    pub(super) fn rest(&mut self) -> Bytes {
        self.0.split_to(self.0.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn end(&self) -> Result<(), Error> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::TrailingBytes(self.0.len()))
        }
    }
}
