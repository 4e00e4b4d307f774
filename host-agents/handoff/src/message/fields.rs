// SPDX-License-Identifier: Apache-2.0
//! Encoding and validation of composite fields.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use noq::ConnectionId;

use super::wire::{Reader, Writer};
use super::{Cookie, Error, MAX_SHORT_BODY, RejectReason, Resumable};
use crate::grant::{Grant, Keys};

/// Maximum length of a client's transport parameters in bytes.
const MAX_PARAMETERS: u64 = 4096;
/// Maximum length of a connection id in bytes (RFC 9000, section 17.2).
const MAX_CONNECTION_ID: usize = 20;
/// The largest variable-length integer.
const MAX_VARINT: u64 = (1 << 62) - 1;

pub(super) fn put_grant(w: &mut Writer, grant: &Grant) {
    w.varint(grant.path.into());
    w.varint(grant.first);
    w.counted(&grant.connection_id);
    w.u16(grant.suite);
    w.counted(&grant.header_secret);
    put_keys(w, &grant.keys);
    w.counted(&grant.client_parameters);
    w.address(grant.server);
    w.address(grant.client);
    w.varint(grant.credit);
    let rtt = grant.rtt.as_micros().min(MAX_VARINT.into());
    w.varint(rtt as u64);
}

pub(super) fn grant(r: &mut Reader) -> Result<Grant, Error> {
    let path = r.varint()?;
    let path = u32::try_from(path).map_err(|_| Error::PathId(path))?;
    let first = r.varint()?;
    let id = r.counted(|n| {
        let wrong = n > MAX_CONNECTION_ID as u64;
        wrong.then_some(Error::ConnectionIdLength(n as usize))
    })?;
    let suite = r.u16()?;
    let expected = secret_length(suite).ok_or(Error::Suite(suite))?;
    let header_secret = secret(r)?;
    let keys = keys(r)?;
    for secret in [&header_secret, &keys.secret] {
        if secret.len() != expected {
            return Err(Error::SecretLength(secret.len()));
        }
    }
    Ok(Grant {
        path,
        first,
        connection_id: connection_id(&id)?,
        suite,
        header_secret,
        keys,
        client_parameters: r
            .counted(|n| (n > MAX_PARAMETERS).then_some(Error::ParametersLength(n)))?,
        server: r.address()?,
        client: r.address()?,
        credit: r.varint()?,
        rtt: Duration::from_micros(r.varint()?),
    })
}

/// Return the length in bytes of a cipher suite's traffic secrets: that of its hash (RFC 8446, section 7.1).
const fn secret_length(suite: u16) -> Option<usize> {
    match suite {
        0x1301 | 0x1303 => Some(32),
        0x1302 => Some(48),
        _ => None,
    }
}

fn secret(r: &mut Reader) -> Result<Bytes, Error> {
    let wrong = |n| !matches!(n, 32 | 48);
    r.counted(|n| wrong(n).then_some(Error::SecretLength(n as usize)))
}

pub(super) fn put_keys(w: &mut Writer, keys: &Keys) {
    w.varint(keys.generation.into());
    w.counted(&keys.secret);
}

pub(super) fn keys(r: &mut Reader) -> Result<Keys, Error> {
    Ok(Keys {
        generation: generation(r)?,
        secret: secret(r)?,
    })
}

pub(super) fn generation(r: &mut Reader) -> Result<u32, Error> {
    let generation = r.varint()?;
    u32::try_from(generation).map_err(|_| Error::Generation(generation))
}

pub(super) fn connection_id(id: &[u8]) -> Result<ConnectionId, Error> {
    if id.len() > MAX_CONNECTION_ID {
        return Err(Error::ConnectionIdLength(id.len()));
    }
    Ok(ConnectionId::new(id))
}

pub(super) fn put_cookie(w: &mut Writer, cookie: Option<&Cookie>) {
    w.option(cookie, |w, cookie| {
        w.u16(cookie.sid);
        w.u64(cookie.prefix);
        w.option(cookie.epoch, |w, epoch| w.varint(epoch.into()));
    });
}

pub(super) fn cookie(r: &mut Reader) -> Result<Option<Cookie>, Error> {
    r.option(|r| {
        Ok(Cookie {
            sid: r.u16()?,
            prefix: r.u64()?,
            epoch: r.option(|r| {
                let epoch = r.varint()?;
                u32::try_from(epoch).map_err(|_| Error::Generation(epoch))
            })?,
        })
    })
}

/// Read the first packet number and the count. Packet numbers are below 2^62 (RFC 9000, section 12.3).
pub(super) fn numbers(r: &mut Reader) -> Result<Range<u64>, Error> {
    let (first, count) = (r.varint()?, r.varint()?);
    let end = first + count;
    if end > MAX_VARINT + 1 {
        return Err(Error::PacketNumber(end - 1));
    }
    Ok(first..end)
}

/// Read ranges of packet numbers up to the end of the body.
pub(super) fn number_ranges(r: &mut Reader) -> Result<Vec<Range<u64>>, Error> {
    let mut ranges = Vec::new();
    while !r.is_empty() {
        ranges.push(numbers(r)?);
    }
    Ok(ranges)
}

pub(super) fn reason(code: u64) -> Result<RejectReason, Error> {
    let known = RejectReason::ALL.into_iter();
    let mut known = known.filter(|reason| *reason as u64 == code);
    known.next().ok_or(Error::Reason(code))
}

pub(super) fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Flag(value)),
    }
}

/// Read a response that can be resumed. Its size on the stream must be below 2^62 (RFC 9000, section 4.5).
pub(super) fn resumable(r: &mut Reader) -> Result<Resumable, Error> {
    let (from, size) = (r.varint()?, r.varint()?);
    if from + size > MAX_VARINT - MAX_SHORT_BODY as u64 {
        return Err(Error::ResponseSize(size));
    }
    Ok(Resumable {
        from,
        size,
        tag: r.counted(|n| (n > MAX_SHORT_BODY as u64).then_some(Error::TooLong(n)))?,
        head: r.rest(),
    })
}

pub(super) fn status(status: u64) -> Result<u16, Error> {
    match status {
        200..=599 => Ok(status as u16),
        _ => Err(Error::Status(status)),
    }
}
