//! From the balancer to a real server.

use std::net::SocketAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use noq::ConnectionId;

use super::wire::{self, Reader, Writer};
use super::{Cookie, Error, MAX_FEEDBACK, MAX_REQUEST, Message, SHORT, VERSION, fields};
use crate::grant::{Grant, Keys};

/// From the balancer to a real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// Once, first on each stream: a path is the real server's, or, if that is 0, what it gets of its numbers.
    Open {
        /// All that its packets need.
        grant: Grant,
        /// What is in their source; they leave from the grant's address if absent.
        cookie: Option<Cookie>,
        /// Answers of fewer bytes are left to the balancer.
        below: u64,
    },
    /// A stream to be answered.
    Request {
        /// The stream's id (client-initiated, bidirectional).
        stream: u64,
        /// The client's newest MAX_STREAM_DATA for it; the transport parameter's holds if absent.
        max_stream_data: Option<u64>,
        /// All that the client says on it, as HTTP/3 frames ([`crate::request`]).
        http3: Bytes,
    },
    /// QUIC frames of the client that concern the path and its streams: ACK with numbers as on the wire, MAX_DATA with the real server's share,
    /// MAX_STREAM_DATA, STOP_SENDING, PATH_RESPONSE.
    Feedback(Bytes),
    /// Packets are sealed by these from now on.
    Keys(Keys),
    /// The path's addresses are others.
    Moved {
        /// Where to.
        client: SocketAddr,
        /// Where from.
        server: SocketAddr,
    },
    /// The client has another id on the path.
    ConnectionId(ConnectionId),
    /// Of path 0, these packet numbers are the real server's. It asked for them by [`ToBalancer::Wants`](super::ToBalancer::Wants), and may have got fewer.
    Numbers(Range<u64>),
    /// Nothing is to be sent any more; [`ToBalancer::Returned`] answers.
    Stop,
}

impl Message for ToServer {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Open {
                grant,
                cookie,
                below,
            } => wire::message(out, 0x00, |w| {
                w.varint(VERSION);
                fields::put_grant(w, grant);
                fields::put_cookie(w, cookie.as_ref());
                w.varint(*below);
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
            Self::Numbers(numbers) => wire::message(out, 0x07, |w| {
                w.varint(numbers.start);
                w.varint(numbers.end - numbers.start);
            }),
        }
    }

    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error> {
        let limit = |kind| match kind {
            0x01 => Some(MAX_REQUEST + 32),
            0x02 => Some(MAX_FEEDBACK),
            0x00..=0x07 => Some(SHORT),
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
                    below: r.varint()?,
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
            _ => Self::Numbers(fields::numbers(&mut r)?),
        };
        r.end()?;
        Ok(Some(message))
    }
}
