// SPDX-License-Identifier: Apache-2.0
//! Messages between balancer and real server about one client's connection, in the layouts of `docs/handoff.md`.
//!
//! A message is `type | length | body`. Type, length and most fields are variable-length integers of QUIC (RFC 9000, section
//! 16). Unknown messages are rejected: both sides belong to one operator, and a misunderstood message would cost
//! clients their connections.

use bytes::{Bytes, BytesMut};

mod error;
mod fields;
mod to_balancer;
mod to_server;
mod wire;

pub use error::Error;
pub use to_balancer::ToBalancer;
pub use to_server::ToServer;

/// Protocol version, the first field of [`ToServer::Open`].
pub const VERSION: u64 = 1;
/// ALPN of the link.
pub const ALPN: &[u8] = b"frontage-handoff/4";

/// Maximum length in bytes of a body without QUIC frames or a request.
const MAX_SHORT_BODY: usize = 8 << 10;
/// Maximum length in bytes of the frames in [`ToServer::Feedback`].
pub const MAX_FEEDBACK: usize = 64 << 10;
/// Maximum length in bytes of the HTTP/3 frames in [`ToServer::Request`] and [`ToServer::RequestPart`].
pub const MAX_REQUEST: usize = 144 << 10;
/// Maximum total length in bytes of all parts of a request. Several such requests fit into the queue of a link's stream.
pub const MAX_WHOLE_REQUEST: usize = (4 << 20) + MAX_REQUEST;

/// Messages of one direction.
pub trait Message: Sized {
    /// Append the message to `out`.
    fn encode(&self, out: &mut BytesMut);

    /// Remove the first message from `wire`; `None` if it is incomplete.
    ///
    /// # Errors
    /// If the message is malformed. The rest of `wire` is meaningless then.
    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error>;
}

/// The balancer's CloudCookie in the source addresses of a path's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Server id of the balancer.
    pub sid: u16,
    /// Upper 64 bits of the balancer's addresses.
    pub prefix: u64,
    /// Epoch of the key of the cookie address to which the client sends; `None` if it sends to the VIP.
    pub epoch: Option<u32>,
}

/// Description of a response that the balancer can resume if the real server dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumable {
    /// Strong entity tag of the representation (RFC 9110, section 8.8.3).
    pub tag: Bytes,
    /// Position of the body in the representation, in bytes.
    pub from: u64,
    /// Length of the body in bytes.
    pub size: u64,
    /// Bytes of the stream before the body: HEADERS, and the head of the only DATA frame.
    pub head: Bytes,
}

impl Resumable {
    /// Maximum length of `tag` and `head` together, in bytes.
    pub const MAX_HEAD: usize = MAX_SHORT_BODY - 64;

    /// Return the final size of the stream.
    pub fn end(&self) -> u64 {
        self.head.len() as u64 + self.size
    }
}

/// Why a real server rejects a request. The balancer then proxies the response from the real server's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The response is shorter than `min_size` of [`ToServer::Open`].
    Small = 1,
    /// The real server is overloaded or shutting down.
    Busy = 2,
    /// The real server cannot send on this path: it lacks the source address or the key.
    Path = 3,
    /// The request is malformed.
    Request = 4,
}

impl RejectReason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Small, Self::Busy, Self::Path, Self::Request];

    /// Return the reason's label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Busy => "busy",
            Self::Path => "path",
            Self::Request => "request",
        }
    }
}
