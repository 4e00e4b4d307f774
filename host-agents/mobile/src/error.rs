// SPDX-License-Identifier: Apache-2.0
//! The reasons for which a session ends early.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::handshake::Refusal;
use crate::session::Violation;

/// Why a session ended early. The local connection is reset, so that the program does not take the end for a regular one.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The local program closed or reset its connection, or the service refused it.
    #[error("the local connection failed: {0}")]
    Local(io::Error),
    /// The peer's local connection failed.
    #[error("the peer's local connection failed")]
    PeerReset,
    /// The peer did not come back.
    #[error("no carrier for {} s: raise --session-timeout if the peer may be away for longer", .0.as_secs())]
    PeerGone(Duration),
    /// The server refused to resume.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The peer violated the protocol.
    #[error("the peer violated the protocol: {0}")]
    Violation(#[from] Violation),
}

impl SessionError {
    /// Return the name of the error in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Local(_) => "local_failed",
            Self::PeerReset => "peer_reset",
            Self::PeerGone(_) => "peer_gone",
            Self::Refused(_) => "refused",
            Self::Violation(_) => "violation",
        }
    }
}
