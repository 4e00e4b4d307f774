//! From a real server to the balancer.

use bytes::BytesMut;

use super::wire::{self, Reader};
use super::{Error, Message, Reason, SHORT, fields};

/// From a real server to the balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToBalancer {
    /// It answers the stream.
    Accepted {
        /// The stream's id.
        stream: u64,
    },
    /// It does not, and has sent nothing.
    Refused {
        /// The stream's id.
        stream: u64,
        /// Why.
        reason: Reason,
    },
    /// All of the answer was handed to the transport.
    Sent {
        /// The stream's id.
        stream: u64,
        /// Bytes of the stream.
        final_size: u64,
        /// The answer's status.
        status: u16,
        /// Bytes of the answer's body.
        bytes: u64,
    },
    /// The client has acknowledged all of it.
    Done {
        /// The stream's id.
        stream: u64,
    },
    /// The stream ended before its time. Nothing is sent on it any more; the balancer resets it.
    Broken {
        /// The stream's id.
        stream: u64,
        /// RESET_STREAM's application error code.
        code: u64,
        /// RESET_STREAM's final size.
        final_size: u64,
    },
    /// The share of MAX_DATA does not suffice.
    Blocked {
        /// The share that would, in bytes of all streams.
        credit: u64,
    },
    /// What the client said breaks QUIC's rules; the connection is to be closed.
    Failed {
        /// The transport error code (RFC 9000, section 20.1).
        code: u64,
    },
    /// The path is the balancer's again.
    Returned {
        /// The lowest packet number that was not used.
        next: u64,
    },
    /// Packets wait for their numbers, of path 0; [`ToServer::Numbers`](super::ToServer::Numbers) answers.
    Wants {
        /// How many.
        count: u64,
    },
    /// A probe has left for the client, which has acknowledged nothing for long.
    Silent {
        /// For how long, in microseconds.
        silence: u64,
        /// One more than the largest packet number that it acknowledged, as far as the real server has heard; 0: none.
        next: u64,
    },
}

impl Message for ToBalancer {
    fn encode(&self, out: &mut BytesMut) {
        let (kind, fields): (u64, &[u64]) = match *self {
            Self::Accepted { stream } => (0x20, &[stream]),
            Self::Refused { stream, reason } => (0x21, &[stream, reason as u64]),
            Self::Sent {
                stream,
                final_size,
                status,
                bytes,
            } => (0x22, &[stream, final_size, status.into(), bytes]),
            Self::Done { stream } => (0x23, &[stream]),
            Self::Broken {
                stream,
                code,
                final_size,
            } => (0x24, &[stream, code, final_size]),
            Self::Blocked { credit } => (0x25, &[credit]),
            Self::Failed { code } => (0x26, &[code]),
            Self::Returned { next } => (0x27, &[next]),
            Self::Wants { count } => (0x28, &[count]),
            Self::Silent { silence, next } => (0x29, &[silence, next]),
        };
        wire::message(out, kind, |w| {
            fields.iter().for_each(|field| w.varint(*field));
        });
    }

    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error> {
        let limit = |kind| (0x20..=0x29).contains(&kind).then_some(SHORT);
        let Some((kind, body)) = wire::take(wire, limit)? else {
            return Ok(None);
        };
        let mut r = Reader::new(body);
        let message = match kind {
            0x20 => Self::Accepted {
                stream: r.stream()?,
            },
            0x21 => Self::Refused {
                stream: r.stream()?,
                reason: fields::reason(r.varint()?)?,
            },
            0x22 => Self::Sent {
                stream: r.stream()?,
                final_size: r.varint()?,
                status: fields::status(r.varint()?)?,
                bytes: r.varint()?,
            },
            0x23 => Self::Done {
                stream: r.stream()?,
            },
            0x24 => Self::Broken {
                stream: r.stream()?,
                code: r.varint()?,
                final_size: r.varint()?,
            },
            0x25 => Self::Blocked {
                credit: r.varint()?,
            },
            0x26 => Self::Failed { code: r.varint()? },
            0x27 => Self::Returned { next: r.varint()? },
            0x28 => Self::Wants { count: r.varint()? },
            _ => Self::Silent {
                silence: r.varint()?,
                next: r.varint()?,
            },
        };
        r.end()?;
        Ok(Some(message))
    }
}
