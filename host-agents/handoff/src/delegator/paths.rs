// SPDX-License-Identifier: Apache-2.0
//! Paths of a connection: who may send on each, and which can be delegated.

use std::sync::Arc;

use frontage_quic::session::{Nonce, Outgoing};
use noq::ConnectionId;

use super::Error;
use super::connection_ids::ConnectionIds;
use super::delegation::Delegation;
use super::feedback::Feedback;
use super::flow_control::Account;
use super::packet_numbers::PathNumbers;

/// Maximum number of known paths, including those that ended.
const MAX_PATHS: usize = 64;
/// Maximum number of packet numbers between the largest acknowledged one and the first of a new sender.
///
/// The new sender starts with one-byte packet numbers, which the client decodes correctly only within 128 of the largest
/// that it has received (RFC 9000, appendix A.3). The new sender can thus send 96 packets before its first ACK.
const MAX_HANDOVER_GAP: u64 = 32;
/// Maximum number of packets in a delegation: more than any key may seal (RFC 9001, section 6.6), and far from the
/// largest packet number.
const MAX_PACKETS: u64 = 1 << 40;
/// Maximum number of remembered PATH_CHALLENGE frames of noq.
const MAX_CHALLENGES: usize = 8;

/// All paths on which noq has sent or that the client has named.
///
/// For a client without multipath, the delegations by packet numbers are stored here, too.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: Vec<Path>,
    /// Unknown paths up to this id have been forgotten, together with the owners of their numbers.
    forgotten: u32,
}

impl Paths {
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Path> {
        self.known.iter_mut().find(|path| path.id == id)
    }

    /// Return the path; `None` if it has been forgotten.
    pub(super) fn get_or_new(&mut self, id: u32) -> Option<&mut Path> {
        let at = match self.known.iter().position(|path| path.id == id) {
            Some(at) => at,
            None if id != 0 && id <= self.forgotten => return None,
            None => {
                if self.is_full() {
                    self.forget_oldest();
                }
                self.known.push(Path::new(id));
                self.known.len() - 1
            }
        };
        Some(&mut self.known[at])
    }

    /// Return whether a new path would replace another.
    pub(super) fn is_full(&self) -> bool {
        self.known.len() == MAX_PATHS
    }

    /// Remove a delegation by packet numbers, whose id is never reused.
    pub(super) fn remove(&mut self, id: u32) {
        self.known.retain(|path| path.id != id);
    }

    /// Return the path on which noq itself sends: path 0 as long as the client keeps it.
    pub(super) fn own(&self) -> Option<u32> {
        let is_own = |path: &&Path| !path.is_abandoned && matches!(path.holder, Holder::Balancer);
        self.known.iter().filter(is_own).map(|path| path.id).min()
    }

    /// Return the first path that can be delegated.
    pub(super) fn free(&self) -> Option<u32> {
        let own = self.own();
        let is_free = |path: &&Path| path.is_free() && Some(path.id) != own;
        self.known.iter().find(is_free).map(|path| path.id)
    }

    pub(super) fn ids(&self) -> Vec<u32> {
        self.known.iter().map(|path| path.id).collect()
    }

    /// Forget the path with the lowest id: path ids increase (draft-ietf-quic-multipath, section 3.1).
    fn forget_oldest(&mut self) {
        let paths = self.known.iter().enumerate();
        let paths = paths.filter(|(_, path)| path.id != 0);
        if let Some((at, _)) = paths.min_by_key(|(_, path)| path.id) {
            let mut path = self.known.remove(at);
            path.retire();
            self.forgotten = self.forgotten.max(path.id);
        }
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = &mut Path> {
        self.known.iter_mut()
    }

    pub(super) fn delegations(&mut self) -> impl Iterator<Item = &mut Delegation> {
        self.known.iter_mut().filter_map(Path::delegation)
    }
}

/// The sender that owns a path.
#[derive(Debug)]
enum Holder {
    Balancer,
    RealServer(Delegation),
    /// No sender, until the client has acknowledged packets close below `next`, the first unused number.
    Settling {
        next: u64,
    },
    /// No sender, ever: the numbers that a real server has used are unknown, or the path has ended.
    Retired,
}

/// One path, or one delegation by packet numbers.
#[derive(Debug)]
pub(super) struct Path {
    id: u32,
    numbers: PathNumbers,
    holder: Holder,
    account: Account,
    ids: ConnectionIds,
    /// The largest number that the client has acknowledged.
    largest_acked: Option<u64>,
    /// The largest number of a packet of noq that contains frames which are retransmitted when lost.
    largest_ack_eliciting: Option<u64>,
    validation: Validation,
    /// True if the client moved to another address while the path was delegated.
    has_moved: bool,
    /// The newest ECN counts.
    ecn: [u64; 3],
    /// True if either side has abandoned the path.
    is_abandoned: bool,
}

impl Path {
    fn new(id: u32) -> Self {
        Self {
            id,
            numbers: PathNumbers::default(),
            holder: Holder::Balancer,
            account: Account::default(),
            ids: ConnectionIds::default(),
            largest_acked: None,
            largest_ack_eliciting: None,
            validation: Validation::default(),
            has_moved: false,
            ecn: [0; 3],
            is_abandoned: false,
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn numbers(&self) -> &PathNumbers {
        &self.numbers
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    /// Return the client's connection id on this path.
    pub(super) fn connection_id(&self) -> Option<ConnectionId> {
        self.ids.used()
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    pub(super) fn is_delegated(&self) -> bool {
        matches!(self.holder, Holder::RealServer(_))
    }

    /// Return whether the path can be delegated: it is validated (RFC 9000, section 8.2), no data that noq sent on it is missing,
    /// and the client can decode the numbers that follow.
    pub(super) fn is_free(&self) -> bool {
        let is_usable = self.id != 0 && self.validation.is_done && !self.is_abandoned;
        let Some(acked) = self.largest_acked.filter(|_| is_usable) else {
            return false;
        };
        self.ids.used().is_some()
            && self
                .largest_ack_eliciting
                .is_none_or(|number| number <= acked)
            && self
                .numbers
                .first()
                .is_some_and(|first| first <= acked + 1 + MAX_HANDOVER_GAP)
    }

    /// Delegate the path with `credit` bytes. Returns the first packet number and the feedback queue.
    pub(super) fn delegate(&mut self, credit: u64) -> Option<(u64, Arc<Feedback>)> {
        let first = self.numbers.delegate()?;
        let delegation = Delegation::new(credit, self.ecn);
        let feedback = delegation.feedback().clone();
        self.account = Account::new(credit);
        self.holder = Holder::RealServer(delegation);
        Some((first, feedback))
    }

    pub(super) fn delegation(&mut self) -> Option<&mut Delegation> {
        match &mut self.holder {
            Holder::RealServer(delegation) => Some(delegation),
            _ => None,
        }
    }

    /// Return the feedback queue of the real server that has the path.
    pub(super) fn feedback(&self) -> Option<&Feedback> {
        match &self.holder {
            Holder::RealServer(delegation) => Some(delegation.feedback()),
            _ => None,
        }
    }

    /// Return how many bytes of credit the real server requested and did not get yet.
    pub(super) fn missing_credit(&self) -> u64 {
        match &self.holder {
            Holder::RealServer(delegation) => delegation.missing_credit(self.account.credit()),
            _ => 0,
        }
    }

    /// Give the real server `bytes` of credit more.
    pub(super) fn add_credit(&mut self, bytes: u64) {
        self.account.add(bytes);
        if let Some(feedback) = self.feedback() {
            feedback.set_credit(self.account.credit());
        }
    }

    /// Take the path back from the real server, which has not used `next` or a higher number.
    pub(super) fn return_from(&mut self, next: u64) -> Result<(), Error> {
        let begin = self.numbers.begin();
        if next < begin || next > begin + MAX_PACKETS {
            return Err(Error::Number(next));
        }
        self.retire();
        self.holder = Holder::Settling { next };
        self.resume_if_acked();
        Ok(())
    }

    /// Handle PATH_ABANDON. If the path belongs to noq, its remaining packets are still sent on it.
    pub(super) fn on_abandoned(&mut self) {
        self.is_abandoned = true;
        if !matches!(self.holder, Holder::Balancer) {
            self.retire();
        }
    }

    /// End the delegation, if there is one, and retire the path for good.
    pub(super) fn retire(&mut self) {
        self.numbers.end_delegation();
        if let Holder::RealServer(delegation) = std::mem::replace(&mut self.holder, Holder::Retired)
        {
            delegation.feedback().close();
        }
    }

    /// Handle an ACK of packets up to `largest`. Returns how many numbers of the real server it newly covers.
    pub(super) fn on_ack(&mut self, largest: u64, ecn: Option<[u64; 3]>) -> u64 {
        let before = self.largest_acked.map_or(0, |acked| acked + 1);
        let newly_acked = match &mut self.holder {
            Holder::RealServer(delegation) => {
                let first = before.max(self.numbers.begin());
                let count = (largest + 1).saturating_sub(first);
                if count > 0 {
                    delegation.on_progress();
                }
                count
            }
            _ => 0,
        };
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.ecn = ecn.unwrap_or(self.ecn);
        self.resume_if_acked();
        newly_acked
    }

    /// Return whether the client has acknowledged a number of the current holder that is `next` or higher.
    pub(super) fn is_acked_from(&self, next: u64) -> bool {
        let first = self.numbers.begin().max(next);
        self.largest_acked.is_some_and(|acked| acked >= first)
    }

    /// Give a returned path to noq once the client can decode the numbers that follow.
    fn resume_if_acked(&mut self) {
        if let Holder::Settling { next } = self.holder
            && self
                .largest_acked
                .is_some_and(|acked| next <= acked + 1 + MAX_HANDOVER_GAP)
        {
            self.numbers.resume(next);
            self.holder = Holder::Balancer;
        }
    }

    /// Return `ecn` without the counts from before the delegation.
    pub(super) fn ecn_of_delegation(&self, ecn: [u64; 3]) -> Option<[u64; 3]> {
        match &self.holder {
            Holder::RealServer(delegation) => Some(delegation.ecn_counts(ecn)),
            _ => None,
        }
    }

    /// Assign a packet number to a packet of noq. Returns the nonce, or `None` if the path does not belong to noq.
    pub(super) fn seal(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        is_ack_eliciting: bool,
    ) -> Option<Nonce> {
        self.on_header(outgoing.header);
        let number = self.numbers.send(outgoing.number)?;
        if number != outgoing.number {
            let length = usize::from(outgoing.header[0] & 0x03) + 1;
            let at = outgoing.header.len() - length;
            outgoing.header[at..].copy_from_slice(&number.to_be_bytes()[8 - length..]);
        }
        if is_ack_eliciting {
            self.largest_ack_eliciting = Some(number);
        }
        Some(Nonce {
            path: self.id,
            number,
        })
    }

    /// Record the connection id in a header of noq. Returns the id if it has changed.
    pub(super) fn on_header(&mut self, header: &[u8]) -> Option<ConnectionId> {
        let id = self.ids.on_header(header);
        self.forward_connection_id(id);
        id
    }

    /// Handle PATH_NEW_CONNECTION_ID of the client.
    pub(super) fn on_new_connection_id(
        &mut self,
        sequence: u64,
        retire_prior_to: u64,
        id: ConnectionId,
    ) {
        let id = self.ids.on_new(sequence, retire_prior_to, id);
        self.forward_connection_id(id);
    }

    fn forward_connection_id(&self, id: Option<ConnectionId>) {
        if let (Some(id), Some(feedback)) = (id, self.feedback()) {
            feedback.set_connection_id(id);
        }
    }

    /// Record a PATH_CHALLENGE of noq.
    pub(super) fn on_path_challenge(&mut self, data: [u8; 8]) {
        self.validation.on_challenge(data);
    }

    /// Handle a PATH_RESPONSE. Returns whether it answers a PATH_CHALLENGE of noq.
    pub(super) fn on_path_response(&mut self, data: [u8; 8]) -> bool {
        self.validation.on_response(data)
    }

    /// Handle a PATH_RESPONSE to the real server's own PATH_CHALLENGE.
    ///
    /// Returns the data of noq's newest challenge, which the client never received, so that noq takes it for answered.
    /// The balancer has no proof of the new address, so no other sender may use it afterwards.
    pub(super) fn on_delegate_path_response(&mut self) -> Option<[u8; 8]> {
        self.has_moved = true;
        self.validation.challenges.pop()
    }
}

/// Path validation by noq (RFC 9000, section 8.2).
#[derive(Debug, Default)]
struct Validation {
    /// Data of noq's newest PATH_CHALLENGE frames.
    challenges: Vec<[u8; 8]>,
    is_done: bool,
}

impl Validation {
    fn on_challenge(&mut self, data: [u8; 8]) {
        if self.challenges.len() == MAX_CHALLENGES {
            self.challenges.remove(0);
        }
        self.challenges.push(data);
    }

    fn on_response(&mut self, data: [u8; 8]) -> bool {
        let is_known = self.challenges.contains(&data);
        self.is_done |= is_known;
        is_known
    }
}

#[cfg(test)]
mod tests;
