//! Requests and answers as HTTP/3 frames whose field sections are literals alone (RFC 9204, section 4.5.6): a stream that several hosts write
//! for must not depend on a dynamic table that one of them keeps.

use std::fmt;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use frontage_quic_wire::{read_varint, write_varint};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
/// A field section's prefix where no dynamic table is used (RFC 9204, section 4.5.1).
const PREFIX: [u8; 2] = [0, 0];
/// "Literal field line with literal name": not Huffman's; the lowest three bits begin the name's length.
const LITERAL: u8 = 0b0010_0000;
const NAME_BITS: u32 = 3;
const VALUE_BITS: u32 = 7;

/// Why bytes are no request of [`request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A frame, a length or a field ends too early.
    Truncated,
    /// Frames other than HEADERS and one DATA, or in another order.
    Frames,
    /// A field that is no literal.
    Encoding,
    /// A field's name or value is none, or a pseudo-header is wrong or missing.
    Field,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the request ends too early",
            Self::Frames => "the request's frames are not HEADERS and DATA",
            Self::Encoding => "the request's fields are no literals",
            Self::Field => "a field of the request is malformed",
        })
    }
}

impl std::error::Error for Error {}

/// A whole request with this `body` in place of its own: HEADERS, and DATA if there is any.
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

/// The request that [`request`] wrote.
///
/// # Errors
/// If it is none.
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

/// The HEADERS frame of an answer.
pub fn response_head(status: StatusCode, headers: &HeaderMap) -> Bytes {
    let mut section = PREFIX.to_vec();
    put_field(&mut section, ":status", status.as_str().as_bytes());
    put_fields(&mut section, headers);
    let mut out = BytesMut::new();
    put_frame(&mut out, HEADERS, &section);
    out.freeze()
}

/// The HEADERS frame after a body.
pub fn trailers(headers: &HeaderMap) -> Bytes {
    let mut section = PREFIX.to_vec();
    put_fields(&mut section, headers);
    let mut out = BytesMut::new();
    put_frame(&mut out, HEADERS, &section);
    out.freeze()
}

/// What comes before `length` bytes of a body.
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

/// Calls `each` with every field of a section; it says `None` to one that is malformed.
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
    let length = encode_integer(rest, bits).ok_or(Error::Truncated)?;
    let split = rest.split_at_checked(length).ok_or(Error::Truncated)?;
    *rest = split.1;
    Ok(split.0)
}

/// An integer whose first octet has other bits above its lowest `bits` (RFC 7541, section 5.1).
fn put_integer(out: &mut Vec<u8>, above: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        out.put_u8(above | value as u8);
        return;
    }
    out.put_u8(above | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn encode_integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let most = (1 << bits) - 1;
    let mut value = usize::from(*rest.split_off_first()?) & most;
    if value < most {
        return Some(value);
    }
    // No length here has more than 21 bits: requests are bounded.
    for shift in [0, 7, 14] {
        let octet = usize::from(*rest.split_off_first()?);
        value += (octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
