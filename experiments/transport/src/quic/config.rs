//! What a host's QUIC is set to.

use crate::congestion::Congestion;
use crate::{MILLISECOND, Nanos};

/// A host's QUIC, the same for all its connections. Both ends of a connection have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Bytes of UDP payload of a full datagram.
    pub max_datagram: u32,
    /// Initial congestion window, in full datagrams (RFC 9002, section 7.2: 10).
    pub initial_window: u32,
    /// The law of congestion control; DCTCP asks for ECN.
    pub congestion: Congestion,
    /// Whether to send ECN-capable packets, if the law is not DCTCP, which always does.
    pub ecn: bool,
    /// The round trip before one is measured (RFC 9002, section 6.2.2: 333 ms).
    pub initial_rtt: Nanos,
    /// How long an acknowledgement may wait (RFC 9000, section 18.2: 25 ms).
    pub max_ack_delay: Nanos,
    /// Bytes of a connection id.
    pub connection_id: u8,
}

impl Default for Config {
    /// The RFCs' values; connection ids of 8 bytes.
    fn default() -> Self {
        Self {
            max_datagram: 1200,
            initial_window: 10,
            congestion: Congestion::Cubic,
            ecn: false,
            initial_rtt: 333 * MILLISECOND,
            max_ack_delay: 25 * MILLISECOND,
            connection_id: 8,
        }
    }
}

impl Config {
    /// Whether connections can be made of it.
    ///
    /// # Errors
    /// The name of the field and what it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            _ if !(1200..=65_527).contains(&self.max_datagram) => {
                Err("max_datagram: must be 1200 to 65527 bytes")
            }
            _ if self.initial_window == 0 => Err("initial_window: must be at least 1 datagram"),
            _ if self.initial_rtt == 0 => Err("initial_rtt: must be more than 0"),
            _ if self.connection_id > 20 => Err("connection_id: must be at most 20 bytes"),
            _ => Ok(()),
        }
    }

    pub(super) fn asks_for_ecn(&self) -> bool {
        self.ecn || self.congestion == Congestion::Dctcp
    }
}
