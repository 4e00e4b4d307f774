// SPDX-License-Identifier: Apache-2.0
//! Messages from a real server to the balancer.

use bytes::BytesMut;

use super::wire::{self, Reader};
use super::{Error, MAX_SHORT_BODY, Message, RejectReason, Resumable, fields};

/// Message from a real server to the balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToBalancer {
    /// The real server responds to the request.
    Accepted {
        /// Stream id.
        stream: u64,
    },
    /// The real server does not respond to the request, and has sent nothing.
    Rejected {
        /// Stream id.
        stream: u64,
        /// Why it does not.
        reason: RejectReason,
    },
    /// The transport has accepted the whole response.
    Sent {
        /// Stream id.
        stream: u64,
        /// Length of the stream in bytes.
        final_size: u64,
        /// HTTP status.
        status: u16,
        /// Length of the response body in bytes.
        bytes: u64,
    },
    /// The client has acknowledged the whole response.
    Acknowledged {
        /// Stream id.
        stream: u64,
    },
    /// The stream ended early. The real server sends no more on it; the balancer resets it.
    Aborted {
        /// Stream id.
        stream: u64,
        /// Application error code for RESET_STREAM.
        code: u64,
        /// Final size for RESET_STREAM.
        final_size: u64,
    },
    /// The real server needs more of the client's MAX_DATA.
    Blocked {
        /// Total credit that would suffice, in bytes of all streams.
        credit: u64,
    },
    /// The client violated the protocol; the balancer must close the connection.
    Failed {
        /// Transport error code (RFC 9000, section 20.1).
        code: u64,
    },
    /// The path belongs to the balancer again.
    Returned {
        /// The lowest unused packet number.
        next: u64,
    },
    /// Packets need numbers of path 0; [`ToServer::Numbers`](super::ToServer::Numbers) responds.
    NumbersNeeded {
        /// Numbers for packets that wait.
        count: u64,
        /// Numbers for packets that the real server expects to send before a later response could arrive.
        ahead: u64,
    },
    /// The client has not acknowledged anything for long.
    NoAckReport {
        /// Time without an acknowledgment in microseconds.
        elapsed: u64,
        /// One past the largest acknowledged packet number that the real server knows of, or 0.
        next: u64,
        /// True if the real server has sent a packet since the balancer could respond to the previous report.
        has_probed: bool,
    },
    /// The client has acknowledged the first bytes of a stream.
    Progress {
        /// Stream id.
        stream: u64,
        /// Length of the acknowledged prefix of the stream, in bytes.
        acknowledged: u64,
    },
    /// Another server can continue the response from any position. Precedes the first packet of the stream.
    Resumable {
        /// Stream id.
        stream: u64,
        /// The response.
        response: Resumable,
    },
    /// How long round trips to a client with a single path take, and how many of them have limited the responses.
    RoundTrips {
        /// Shortest round-trip time to the client and back through the balancer, in microseconds.
        shortest: u64,
        /// Number of round trips since the grant in which the congestion window was full and no queue had formed.
        limiting: u64,
    },
}

impl Message for ToBalancer {
    fn encode(&self, out: &mut BytesMut) {
        if let Self::Resumable { stream, response } = self {
            return wire::message(out, 0x2b, |w| {
                w.varint(*stream);
                w.varint(response.from);
                w.varint(response.size);
                w.counted(&response.tag);
                w.bytes(&response.head);
            });
        }
        let (kind, fields): (u64, &[u64]) = match *self {
            Self::Accepted { stream } => (0x20, &[stream]),
            Self::Rejected { stream, reason } => (0x21, &[stream, reason as u64]),
            Self::Sent {
                stream,
                final_size,
                status,
                bytes,
            } => (0x22, &[stream, final_size, status.into(), bytes]),
            Self::Acknowledged { stream } => (0x23, &[stream]),
            Self::Aborted {
                stream,
                code,
                final_size,
            } => (0x24, &[stream, code, final_size]),
            Self::Blocked { credit } => (0x25, &[credit]),
            Self::Failed { code } => (0x26, &[code]),
            Self::Returned { next } => (0x27, &[next]),
            Self::NumbersNeeded { count, ahead } => (0x28, &[count, ahead]),
            Self::NoAckReport {
                elapsed,
                next,
                has_probed,
            } => (0x29, &[elapsed, next, has_probed.into()]),
            Self::Progress {
                stream,
                acknowledged,
            } => (0x2a, &[stream, acknowledged]),
            Self::RoundTrips { shortest, limiting } => (0x2c, &[shortest, limiting]),
            Self::Resumable { .. } => unreachable!("encoded above"),
        };
        wire::message(out, kind, |w| {
            fields.iter().for_each(|field| w.varint(*field));
        });
    }

    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error> {
        let limit = |kind| (0x20..=0x2c).contains(&kind).then_some(MAX_SHORT_BODY);
        let Some((kind, body)) = wire::take(wire, limit)? else {
            return Ok(None);
        };
        let mut r = Reader::new(body);
        let message = match kind {
            0x20 => Self::Accepted {
                stream: r.stream()?,
            },
            0x21 => Self::Rejected {
                stream: r.stream()?,
                reason: fields::reason(r.varint()?)?,
            },
            0x22 => Self::Sent {
                stream: r.stream()?,
                final_size: r.varint()?,
                status: fields::status(r.varint()?)?,
                bytes: r.varint()?,
            },
            0x23 => Self::Acknowledged {
                stream: r.stream()?,
            },
            0x24 => Self::Aborted {
                stream: r.stream()?,
                code: r.varint()?,
                final_size: r.varint()?,
            },
            0x25 => Self::Blocked {
                credit: r.varint()?,
            },
            0x26 => Self::Failed { code: r.varint()? },
            0x27 => Self::Returned { next: r.varint()? },
            0x28 => Self::NumbersNeeded {
                count: r.varint()?,
                ahead: r.varint()?,
            },
            0x29 => Self::NoAckReport {
                elapsed: r.varint()?,
                next: r.varint()?,
                has_probed: fields::flag(r.varint()?)?,
            },
            0x2a => Self::Progress {
                stream: r.stream()?,
                acknowledged: r.varint()?,
            },
            0x2c => Self::RoundTrips {
                shortest: r.varint()?,
                limiting: r.varint()?,
            },
            _ => Self::Resumable {
                stream: r.stream()?,
                response: fields::resumable(&mut r)?,
            },
        };
        r.end()?;
        Ok(Some(message))
    }
}
