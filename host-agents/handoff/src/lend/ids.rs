//! The client's connection ids for a path.

use noq::ConnectionId;

/// Those that are remembered beside the one that is used.
const REMEMBERED: usize = 8;

#[derive(Debug, Default)]
pub(super) struct ConnectionIds {
    /// By noq.
    pub(super) used: Option<ConnectionId>,
    /// All that the client gave, by their numbers.
    given: Vec<(u64, ConnectionId)>,
}

impl ConnectionIds {
    /// By what id noq sends, between the first octet and the number (RFC 9000, section 17.3.1), if it is another.
    pub(super) fn notice(&mut self, header: &[u8]) -> Option<ConnectionId> {
        let length = usize::from(header[0] & 0x03) + 1;
        let id = &header[1..header.len() - length];
        if self.used.as_deref() == Some(id) {
            return None;
        }
        self.used = Some(ConnectionId::new(id));
        self.used
    }

    /// The client has one more, and takes those below `retire_prior_to` no more. noq takes up the next, but need not send a packet that would show it: that one, if it
    /// does.
    pub(super) fn identify(
        &mut self,
        sequence: u64,
        retire_prior_to: u64,
        id: ConnectionId,
    ) -> Option<ConnectionId> {
        let given = &mut self.given;
        if !given.iter().any(|(other, _)| *other == sequence) {
            if given.len() == REMEMBERED {
                given.remove(0);
            }
            given.push((sequence, id));
        }
        let retired = |(sequence, _): &(u64, ConnectionId)| *sequence < retire_prior_to;
        let used = self.used;
        let lost = given.iter().any(|one| retired(one) && Some(one.1) == used);
        given.retain(|one| !retired(one));
        let (_, next) = given.iter().min_by_key(|(sequence, _)| *sequence)?;
        if !lost {
            return None;
        }
        self.used = Some(*next);
        self.used
    }
}
