// SPDX-License-Identifier: Apache-2.0
//! Messages from the balancer to a real server.

use std::net::SocketAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use noq::ConnectionId;

use super::wire::{self, Reader, Writer};
use super::{Cookie, Error, MAX_FEEDBACK, MAX_REQUEST, MAX_SHORT_BODY, Message, VERSION, fields};
use crate::grant::{Grant, Keys};

/// Message from the balancer to a real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// First message on each stream: delegates a path, or, for path 0, the numbers that follow in [`Self::Numbers`].
    Open {
        /// Everything that is needed to send packets.
        grant: Grant,
        /// Contents of the packets' source addresses; the grant's server address if absent.
        cookie: Option<Cookie>,
        /// The real server rejects requests with shorter responses, in bytes.
        min_size: u64,
    },
    /// Beginning of a request's HTTP/3 frames, if they are too long for a single [`Self::Request`].
    RequestPart {
        /// Stream id.
        stream: u64,
        /// The bytes.
        http3: Bytes,
    },
    /// Delegates a stream.
    Request {
        /// Stream id (client-initiated, bidirectional).
        stream: u64,
        /// The client's newest MAX_STREAM_DATA; that of the transport parameter if absent.
        max_stream_data: Option<u64>,
        /// The whole request as HTTP/3 frames ([`crate::http3::request`]), or the rest of it after
        /// [`Self::RequestPart`].
        http3: Bytes,
    },
    /// QUIC frames of the client about the path and its streams: ACK with numbers as on the wire, MAX_DATA with the real
    /// server's credit, MAX_STREAM_DATA, STOP_SENDING, PATH_RESPONSE.
    Feedback(Bytes),
    /// The keys for all further packets.
    Keys(Keys),
    /// The addresses of the path have changed.
    Moved {
        /// Destination of packets.
        client: SocketAddr,
        /// Source of packets.
        server: SocketAddr,
    },
    /// The client's connection id for the path has changed.
    ConnectionId(ConnectionId),
    /// Packet numbers of path 0, in response to [`ToBalancer::NumbersNeeded`](super::ToBalancer::NumbersNeeded): ascending
    /// ranges, possibly with fewer numbers than requested.
    Numbers(Vec<Range<u64>>),
    /// Packet numbers of path 0 for the next packets, which need not be requested. They replace unused ones.
    NumbersAhead {
        /// Generation of the keys with which they may be used; with other keys they are ignored.
        generation: u32,
        /// The numbers.
        numbers: Range<u64>,
    },
    /// Unused packet numbers below this one must not be used any more.
    NumbersExpired(u64),
    /// Ends the delegation; [`ToBalancer::Returned`](super::ToBalancer::Returned) responds.
    Stop,
}

impl Message for ToServer {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Open {
                grant,
                cookie,
                min_size,
            } => wire::message(out, 0x00, |w| {
                w.varint(VERSION);
                fields::put_grant(w, grant);
                fields::put_cookie(w, cookie.as_ref());
                w.varint(*min_size);
            }),
            Self::Request {
                stream,
                max_stream_data,
                http3,
            } => wire::message(out, 0x01, |w| {
                w.varint(*stream);
                w.option(*max_stream_data, Writer::varint);
                w.bytes(http3);
            }),
            Self::Feedback(frames) => wire::message(out, 0x02, |w| w.bytes(frames)),
            Self::Keys(keys) => wire::message(out, 0x03, |w| fields::put_keys(w, keys)),
            Self::Moved { client, server } => wire::message(out, 0x04, |w| {
                w.address(*client);
                w.address(*server);
            }),
            Self::ConnectionId(id) => wire::message(out, 0x05, |w| w.bytes(id)),
            Self::Stop => wire::message(out, 0x06, |_| {}),
            Self::Numbers(ranges) => wire::message(out, 0x07, |w| {
                for numbers in ranges {
                    w.varint(numbers.start);
                    w.varint(numbers.end - numbers.start);
                }
            }),
            Self::NumbersAhead {
                generation,
                numbers,
            } => wire::message(out, 0x09, |w| {
                w.varint((*generation).into());
                w.varint(numbers.start);
                w.varint(numbers.end - numbers.start);
            }),
            Self::NumbersExpired(below) => wire::message(out, 0x0a, |w| w.varint(*below)),
            Self::RequestPart { stream, http3 } => wire::message(out, 0x08, |w| {
                w.varint(*stream);
                w.bytes(http3);
            }),
        }
    }

    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error> {
        let limit = |kind| match kind {
            0x01 | 0x08 => Some(MAX_REQUEST + 32),
            0x02 => Some(MAX_FEEDBACK),
            0x00..=0x07 | 0x09 | 0x0a => Some(MAX_SHORT_BODY),
            _ => None,
        };
        let Some((kind, body)) = wire::take(wire, limit)? else {
            return Ok(None);
        };
        let mut r = Reader::new(body);
        let message = match kind {
            0x00 => {
                match r.varint()? {
                    VERSION => {}
                    other => return Err(Error::Version(other)),
                }
                Self::Open {
                    grant: fields::grant(&mut r)?,
                    cookie: fields::cookie(&mut r)?,
                    min_size: r.varint()?,
                }
            }
            0x01 => Self::Request {
                stream: r.stream()?,
                max_stream_data: r.option(Reader::varint)?,
                http3: r.rest(),
            },
            0x02 => Self::Feedback(r.rest()),
            0x03 => Self::Keys(fields::keys(&mut r)?),
            0x04 => Self::Moved {
                client: r.address()?,
                server: r.address()?,
            },
            0x05 => Self::ConnectionId(fields::connection_id(&r.rest())?),
            0x06 => Self::Stop,
            0x07 => Self::Numbers(fields::number_ranges(&mut r)?),
            0x09 => Self::NumbersAhead {
                generation: fields::generation(&mut r)?,
                numbers: fields::numbers(&mut r)?,
            },
            0x0a => Self::NumbersExpired(r.varint()?),
            _ => Self::RequestPart {
                stream: r.stream()?,
                http3: r.rest(),
            },
        };
        r.end()?;
        Ok(Some(message))
    }
}
