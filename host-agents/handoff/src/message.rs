//! What balancer and real server tell each other about one client's connection: the layouts of `docs/handoff.md`.
//!
//! A message is `type | length | body`; type, length and most fields are QUIC's variable-length integers (RFC 9000, section 16). What is not
//! understood is refused: both sides are of one operator, and a message that means something else to each would cost clients their connections.

use bytes::BytesMut;

mod error;
mod fields;
mod to_balancer;
mod to_server;
mod wire;

pub use error::Error;
pub use to_balancer::ToBalancer;
pub use to_server::ToServer;

/// The protocol's version, first in [`ToServer::Open`].
pub const VERSION: u64 = 1;
/// ALPN of the auxiliary connection.
pub const ALPN: &[u8] = b"frontage-handoff/1";

/// Most bytes of a body that does not carry frames or a request.
const SHORT: usize = 8 << 10;
/// Most bytes of [`ToServer::Feedback`]'s frames.
pub const MAX_FEEDBACK: usize = 64 << 10;
/// Most bytes of [`ToServer::Request`]'s HTTP/3 frames.
pub const MAX_REQUEST: usize = 144 << 10;

/// What one of the directions brings.
pub trait Message: Sized {
    /// Appends the message to `out`.
    fn encode(&self, out: &mut BytesMut);

    /// Takes the first message off `wire`, once it is there whole.
    ///
    /// # Errors
    /// If it is none; what follows has no meaning then.
    fn decode(wire: &mut BytesMut) -> Result<Option<Self>, Error>;
}

/// How packets on a path carry the balancer's CloudCookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The balancer's server id.
    pub sid: u16,
    /// The upper 64 bits of the balancer's addresses.
    pub prefix: u64,
    /// The epoch of the key of the cookie address at which the client is; `None` if it is at the VIP.
    pub epoch: Option<u32>,
}

/// Why a real server does not answer a request itself: the balancer fetches the answer from its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The answer has fewer bytes than [`ToServer::Open`] asks for.
    Small = 1,
    /// It has too much to do, or is about to end.
    Busy = 2,
    /// It cannot send on this path: the addresses are not its to use, or the keys not its to know.
    Path = 3,
    /// It does not understand the request.
    Request = 4,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Small, Self::Busy, Self::Path, Self::Request];

    /// As metrics call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Busy => "busy",
            Self::Path => "path",
            Self::Request => "request",
        }
    }
}
