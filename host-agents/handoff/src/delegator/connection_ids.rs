// SPDX-License-Identifier: Apache-2.0
//! The connection ids that noq uses towards the client on one path.

use noq::ConnectionId;

/// Maximum number of remembered connection ids, besides the one in use.
const MAX_CONNECTION_IDS: usize = 8;

/// The client's connection ids on a path.
#[derive(Debug, Default)]
pub(super) struct ConnectionIds {
    /// The id to which noq sends.
    used: Option<ConnectionId>,
    /// Sequence numbers and ids that the client issued.
    issued: Vec<(u64, ConnectionId)>,
}

impl ConnectionIds {
    /// Return the id to which noq sends.
    pub(super) fn used(&self) -> Option<ConnectionId> {
        self.used
    }

    /// Record the id in a header of noq, between the first octet and the packet number (RFC 9000, section 17.3.1).
    /// Returns the id if it has changed.
    pub(super) fn on_header(&mut self, header: &[u8]) -> Option<ConnectionId> {
        let length = usize::from(header[0] & 0x03) + 1;
        let id = &header[1..header.len() - length];
        if self.used.as_deref() == Some(id) {
            return None;
        }
        self.used = Some(ConnectionId::new(id));
        self.used
    }

    /// Record a new id, and retire those below `retire_prior_to`. If that retires the id in use, noq switches to the next
    /// one, but need not send a packet that would show it. Returns that id.
    pub(super) fn on_new(
        &mut self,
        sequence: u64,
        retire_prior_to: u64,
        id: ConnectionId,
    ) -> Option<ConnectionId> {
        let issued = &mut self.issued;
        if !issued.iter().any(|(other, _)| *other == sequence) {
            if issued.len() == MAX_CONNECTION_IDS {
                issued.remove(0);
            }
            issued.push((sequence, id));
        }
        let is_retired = |(sequence, _): &(u64, ConnectionId)| *sequence < retire_prior_to;
        let used = self.used;
        let is_used_retired = issued
            .iter()
            .any(|entry| is_retired(entry) && Some(entry.1) == used);
        issued.retain(|entry| !is_retired(entry));
        let (_, next) = issued.iter().min_by_key(|(sequence, _)| *sequence)?;
        if !is_used_retired {
            return None;
        }
        self.used = Some(*next);
        self.used
    }
}
