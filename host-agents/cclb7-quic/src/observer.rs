// SPDX-License-Identifier: Apache-2.0
//! Observers of a connection's packets.

use std::sync::Arc;

use frontage_handoff::delegator::Delegator;
use frontage_quic::meter::Meter;

/// The observer of a connection's packets.
pub enum ConnectionObserver {
    /// Writes signals about responses into the packets.
    Meter(Arc<Meter>),
    /// Also delegates paths and streams to real servers.
    Delegator(Arc<Delegator<Meter>>),
}

impl ConnectionObserver {
    /// Return the meter, which gets the sizes of responses.
    pub fn meter(&self) -> &Meter {
        match self {
            Self::Meter(meter) => meter,
            Self::Delegator(delegator) => delegator.inner(),
        }
    }
}
