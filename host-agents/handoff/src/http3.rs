// SPDX-License-Identifier: Apache-2.0
//! Requests and responses as HTTP/3 frames with literal field lines only (RFC 9204, section 4.5.6).
//!
//! Several hosts write
//! streams of the same connection, so they cannot depend on the dynamic table of one of them.

use std::fmt;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use frontage_quic_wire::{read_varint, write_varint};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
/// Prefix of a field section that does not use the dynamic table (RFC 9204, section 4.5.1).
const PREFIX: [u8; 2] = [0, 0];
/// "Literal field line with literal name" without Huffman coding. The lowest three bits begin the name's length.
const LITERAL: u8 = 0b0010_0000;
const NAME_BITS: u32 = 3;
const VALUE_BITS: u32 = 7;

/// Why a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A frame, length or field is truncated.
    Truncated,
    /// The frames are not HEADERS and at most one DATA, in this order.
    Frames,
    /// A field line is not a literal.
    Encoding,
    /// A field name or value is invalid, or a pseudo-header is invalid or missing.
    Field,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated request",
            Self::Frames => "invalid request: frames must be HEADERS and DATA",
            Self::Encoding => "invalid request: fields must be literals",
            Self::Field => "invalid request: malformed field",
        })
    }
}

impl std::error::Error for Error {}

/// Encode a request with `body` in place of its own: HEADERS, and DATA unless the body is empty.
pub fn request<B>(request: &Request<B>, body: &[u8]) -> Bytes {
    let uri = request.uri();
    let pseudo = [
        (":method", Some(request.method().as_str())),
        (":scheme", uri.scheme_str()),
        (":authority", uri.authority().map(Authority::as_str)),
        (":path", uri.path_and_query().map(PathAndQuery::as_str)),
    ];
    let mut section = PREFIX.to_vec();
    for (name, value) in pseudo {
        if let Some(value) = value {
            put_field(&mut section, name, value.as_bytes());
        }
    }
    put_fields(&mut section, request.headers());
    let mut out = BytesMut::new();
    put_frame(&mut out, HEADERS, &section);
    if !body.is_empty() {
        put_frame(&mut out, DATA, body);
    }
    out.freeze()
}

/// Decode a request that [`request`] encoded.
///
/// # Errors
/// If the request is malformed.
pub fn read_request(mut http3: Bytes) -> Result<Request<Bytes>, Error> {
    let Some((HEADERS, section)) = frame(&mut http3)? else {
        return Err(Error::Frames);
    };
    let body = match frame(&mut http3)? {
        None => Bytes::new(),
        Some((DATA, body)) if http3.is_empty() => body,
        Some(_) => return Err(Error::Frames),
    };
    let (mut head, ()) = Request::new(()).into_parts();
    let mut uri = Uri::default().into_parts();
    let mut method = None;
    fields(section, |name, value| {
        let text = std::str::from_utf8(value).ok();
        match (name, text) {
            (b":method", Some(_)) => method = Some(Method::from_bytes(value).ok()?),
            (b":scheme", Some(text)) => uri.scheme = Some(Scheme::try_from(text).ok()?),
            (b":authority", Some(text)) => uri.authority = Some(text.parse().ok()?),
            (b":path", Some(text)) => uri.path_and_query = Some(text.parse().ok()?),
            _ => {
                let name = HeaderName::from_lowercase(name).ok()?;
                let value = HeaderValue::from_bytes(value).ok()?;
                head.headers.append(name, value);
            }
        }
        Some(())
    })?;
    head.method = method.ok_or(Error::Field)?;
    head.uri = Uri::from_parts(uri).map_err(|_| Error::Field)?;
    Ok(Request::from_parts(head, body))
}

/// Encode the HEADERS frame of a response.
pub fn response_head(status: StatusCode, headers: &HeaderMap) -> Bytes {
    let mut section = PREFIX.to_vec();
    put_field(&mut section, ":status", status.as_str().as_bytes());
    put_fields(&mut section, headers);
    let mut out = BytesMut::new();
    put_frame(&mut out, HEADERS, &section);
    out.freeze()
}

/// Encode the HEADERS frame after a body.
pub fn trailers(headers: &HeaderMap) -> Bytes {
    let mut section = PREFIX.to_vec();
    put_fields(&mut section, headers);
    let mut out = BytesMut::new();
    put_frame(&mut out, HEADERS, &section);
    out.freeze()
}

/// Encode type and length of a DATA frame with `length` bytes.
pub fn data_head(length: usize) -> Bytes {
    let mut out = BytesMut::new();
    write_varint(&mut out, DATA);
    write_varint(&mut out, length as u64);
    out.freeze()
}

fn put_frame(out: &mut BytesMut, kind: u64, payload: &[u8]) {
    write_varint(out, kind);
    write_varint(out, payload.len() as u64);
    out.put_slice(payload);
}

fn frame(wire: &mut Bytes) -> Result<Option<(u64, Bytes)>, Error> {
    if wire.is_empty() {
        return Ok(None);
    }
    let mut rest = &wire[..];
    let kind = read_varint(&mut rest).ok_or(Error::Truncated)?;
    let length = read_varint(&mut rest).ok_or(Error::Truncated)?;
    if length > rest.len() as u64 {
        return Err(Error::Truncated);
    }
    wire.advance(wire.len() - rest.len());
    Ok(Some((kind, wire.split_to(length as usize))))
}

fn put_fields(section: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        put_field(section, name.as_str(), value.as_bytes());
    }
}

fn put_field(section: &mut Vec<u8>, name: &str, value: &[u8]) {
    put_integer(section, LITERAL, NAME_BITS, name.len());
    section.put_slice(name.as_bytes());
    put_integer(section, 0, VALUE_BITS, value.len());
    section.put_slice(value);
}

/// Call `each` with every field of a section. `each` returns `None` for a malformed field.
fn fields(section: Bytes, mut each: impl FnMut(&[u8], &[u8]) -> Option<()>) -> Result<(), Error> {
    let mut rest = section.strip_prefix(&PREFIX).ok_or(Error::Encoding)?;
    while let Some(first) = rest.first() {
        if first >> NAME_BITS << NAME_BITS != LITERAL {
            return Err(Error::Encoding);
        }
        let name = string(&mut rest, NAME_BITS)?;
        if rest.first().ok_or(Error::Truncated)? & 0x80 != 0 {
            return Err(Error::Encoding);
        }
        let value = string(&mut rest, VALUE_BITS)?;
        each(name, value).ok_or(Error::Field)?;
    }
    Ok(())
}

fn string<'a>(rest: &mut &'a [u8], bits: u32) -> Result<&'a [u8], Error> {
    let length = integer(rest, bits).ok_or(Error::Truncated)?;
    let split = rest.split_at_checked(length).ok_or(Error::Truncated)?;
    *rest = split.1;
    Ok(split.0)
}

/// Append an integer whose first octet has `above` in the bits above its lowest `bits` (RFC 7541, section 5.1).
fn put_integer(out: &mut Vec<u8>, above: u8, bits: u32, value: usize) {
    let max = (1 << bits) - 1;
    if value < max {
        out.put_u8(above | value as u8);
        return;
    }
    out.put_u8(above | max as u8);
    let mut rest = value - max;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let max = (1 << bits) - 1;
    let mut value = usize::from(*rest.split_off_first()?) & max;
    if value < max {
        return Some(value);
    }
    // Lengths have at most 21 bits, because requests are bounded.
    for shift in [0, 7, 14] {
        let octet = usize::from(*rest.split_off_first()?);
        value += (octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
