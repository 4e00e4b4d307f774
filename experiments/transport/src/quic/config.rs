// SPDX-License-Identifier: Apache-2.0
//! Configuration of a host's QUIC.

use crate::congestion::Congestion;
use crate::{MILLISECOND, Nanos};

/// QUIC configuration of a host, for all its connections. Both ends of a connection must have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// UDP payload of a full datagram in bytes.
    pub max_datagram: u32,
    /// Initial congestion window in full datagrams (RFC 9002, section 7.2: 10).
    pub initial_window: u32,
    /// Congestion control algorithm. DCTCP implies ECN.
    pub congestion: Congestion,
    /// Send ECN-capable packets also with algorithms other than DCTCP.
    pub ecn: bool,
    /// Round-trip time before the first measurement (RFC 9002, section 6.2.2: 333 ms).
    pub initial_rtt: Nanos,
    /// Maximum delay of an acknowledgment (RFC 9000, section 18.2: 25 ms).
    pub max_ack_delay: Nanos,
    /// Length of connection ids in bytes.
    pub connection_id: u8,
}

impl Default for Config {
    /// Returns the values of the RFCs, with connection ids of 8 bytes.
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
    /// Checks the values.
    ///
    /// # Errors
    /// Returns the name of an invalid field and its valid values.
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

    pub(super) fn uses_ecn(&self) -> bool {
        self.ecn || self.congestion == Congestion::Dctcp
    }
}
