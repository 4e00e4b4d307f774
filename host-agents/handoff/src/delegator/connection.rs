// SPDX-License-Identifier: Apache-2.0
//! State of one client connection, behind the delegator's lock.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frontage_quic::session::Nonce;
use tokio::sync::Notify;

use super::feedback::Feedback;
use super::flow_control::FlowControl;
use super::keys::KeyState;
use super::packet_numbers::PathlessNumbers;
use super::paths::Paths;
use super::prober::Prober;
use super::shared_numbers::SharedNumbers;
use super::streams::Streams;
use super::{Error, StreamEnd};
use crate::delegate::{NoAckReport, NumberRequest};
use crate::grant::{Grant, Keys};
use incoming::Scratch;

#[cfg(feature = "fuzzing")]
pub(super) mod fuzz;
mod incoming;
mod outgoing;
mod resume;
#[cfg(test)]
mod tests;

/// The client's transport parameters.
#[derive(Default)]
pub(super) struct ClientParameters {
    /// The parameters, encoded.
    pub(super) wire: Bytes,
    /// True if the client supports multipath.
    pub(super) is_multipath: bool,
    /// Initial MAX_STREAM_DATA of streams that the client opens.
    pub(super) max_stream_data: u64,
}

#[derive(Default)]
pub(super) struct Connection {
    client: ClientParameters,
    paths: Paths,
    /// Packet numbers of a client without multipath, from the first delegation on.
    shared: Option<SharedNumbers>,
    pathless: PathlessNumbers,
    streams: Streams,
    flow: FlowControl,
    keys: KeyState,
    prober: Prober,
    /// Transport error code with which the connection is to be closed.
    violation: Option<u64>,
    scratch: Scratch,
    is_closed: bool,
}

impl Connection {
    /// Store the client's transport parameters. Returns the MAX_DATA that noq gets.
    pub(super) fn on_parameters(&mut self, client: ClientParameters, max_data: u64) -> u64 {
        self.client = client;
        self.flow.start(max_data)
    }

    /// Return whether the client supports multipath.
    pub(super) fn is_multipath(&self) -> bool {
        self.client.is_multipath
    }

    /// Install the server's first traffic secret.
    pub(super) fn on_one_rtt_keys(&mut self, suite: u16, secret: Vec<u8>) {
        self.keys.install(suite, secret);
    }

    /// Return the notification that the client has acknowledged HANDSHAKE_DONE.
    pub(super) fn handshake_confirmed(&self) -> Arc<Notify> {
        self.keys.handshake_confirmed()
    }

    /// Return the newest key generation and the number of packets that real servers may have sealed with it.
    pub(super) fn sealed_remotely(&self) -> (u32, u32) {
        self.keys.sealed_remotely()
    }

    /// Return the ids of all known paths, and of the path on which noq itself sends.
    pub(super) fn path_ids(&mut self) -> (Vec<u32>, Option<u32>) {
        (self.paths.ids(), self.paths.own())
    }

    /// Return the first path that can be delegated.
    pub(super) fn free_path(&self) -> Option<u32> {
        self.paths.free().filter(|_| self.can_delegate())
    }

    /// Delegate path `id`. Returns the grant and the real server's feedback queue.
    pub(super) fn delegate_path(
        &mut self,
        id: u32,
        addresses: [SocketAddr; 2],
        rtt: Duration,
    ) -> Option<(Grant, Arc<Feedback>)> {
        let grant = self.grant(id, addresses, rtt)?;
        let path = self.paths.get(id).filter(|path| path.is_free())?;
        let credit = self.flow.reserve_initial();
        let (first, feedback) = path.delegate(credit)?;
        let grant = Grant {
            first,
            credit,
            ..grant
        };
        Some((grant, feedback))
    }

    /// Start a delegation by single packet numbers. Returns its id, the grant and the real server's feedback queue.
    pub(super) fn delegate_numbers(
        &mut self,
        addresses: [SocketAddr; 2],
        rtt: Duration,
    ) -> Option<(u32, Grant, Arc<Feedback>)> {
        let grant = self.grant(0, addresses, rtt)?;
        let (id, credit, first, feedback) = self.start_numbers(rtt)?;
        let grant = Grant {
            first,
            credit,
            ..grant
        };
        Some((id, grant, feedback))
    }

    /// Return a delegation's id, its initial credit, a lower bound of its packet numbers, and its feedback queue.
    fn start_numbers(&mut self, rtt: Duration) -> Option<(u32, u64, u64, Arc<Feedback>)> {
        if self.client.is_multipath || !self.can_delegate() || self.paths.is_full() {
            return None;
        }
        let next = self.paths.get(0)?.numbers().next();
        let shared = self
            .shared
            .get_or_insert_with(|| SharedNumbers::new(next, rtt));
        let (id, first) = shared.start_delegation()?;
        let credit = self.flow.reserve_initial();
        let (_, feedback) = self.paths.get_or_new(id)?.delegate(credit)?;
        Some((id, credit, first, feedback))
    }

    /// See [`super::Delegator::allocate_numbers`].
    pub(super) fn allocate_numbers(
        &mut self,
        id: u32,
        request: NumberRequest,
    ) -> Result<(Option<Keys>, Vec<Range<u64>>), Error> {
        let feedback = self.paths.get(id).and_then(|path| path.feedback());
        let (Some(feedback), Some(shared)) = (feedback, &mut self.shared) else {
            return Err(Error::Path(id));
        };
        let keys = feedback.take_keys();
        let wanted = (request.count, request.ahead);
        let is_sole = self.streams.is_sole(id);
        let numbers = shared.allocate(id, wanted, is_sole, Instant::now());
        let count = numbers.iter().map(|range| range.end - range.start).sum();
        self.keys.on_sealed_remotely(count);
        self.expire_numbers();
        Ok((keys, numbers))
    }

    /// See [`super::Delegator::allocate_numbers_ahead`].
    pub(super) fn allocate_numbers_ahead(&mut self, id: u32) -> Option<(u32, Range<u64>)> {
        self.paths.get(id)?.feedback()?;
        let generation = self.keys.ratchet()?.keys().generation;
        let numbers =
            self.shared
                .as_mut()?
                .allocate_ahead(id, self.streams.is_sole(id), Instant::now())?;
        self.keys.on_sealed_remotely(numbers.end - numbers.start);
        self.expire_numbers();
        Some((generation, numbers))
    }

    /// Tell real servers which numbers they must not use any more.
    fn expire_numbers(&mut self) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        while let Some((id, below)) = shared.take_expired() {
            let path = self.paths.get(id);
            if let Some(feedback) = path.and_then(|path| path.feedback()) {
                feedback.set_expired(below);
            }
        }
    }

    /// See [`super::Delegator::delegate_stream`].
    pub(super) fn delegate_stream(&mut self, path: u32, stream: u64) -> Result<Option<u64>, Error> {
        let feedback = self.paths.get(path).and_then(|path| path.feedback());
        // The client that sent the request may have moved.
        feedback.ok_or(Error::Path(path))?.wake();
        // Bidirectional and opened by the client (RFC 9000, section 2.1).
        if stream & 0x03 != 0 || self.flow.has_begun(stream) || self.streams.get(stream).is_some() {
            return Err(Error::Stream(stream));
        }
        let limit = self.client.max_stream_data;
        let raised = self.streams.delegate(stream, path, limit)?;
        if let Some(shared) = &mut self.shared {
            shared.on_stream(path);
            self.expire_numbers();
        }
        Ok(raised)
    }

    /// See [`super::Delegator::request_credit`].
    pub(super) fn request_credit(&mut self, path: u32, total: u64) -> Result<u64, Error> {
        let delegated = self.paths.get(path).ok_or(Error::Path(path))?;
        delegated
            .delegation()
            .ok_or(Error::Path(path))?
            .request_credit(total);
        self.share_credit();
        let delegated = self.paths.get(path).ok_or(Error::Path(path))?;
        Ok(delegated.account().credit())
    }

    /// See [`super::Delegator::reject_stream`].
    pub(super) fn reject_stream(&mut self, stream: u64) -> Result<(), Error> {
        let path = self.streams.reject(stream)?;
        self.on_stream_end(path);
        Ok(())
    }

    /// See [`super::Delegator::reclaim_stream`].
    pub(super) fn reclaim_stream(&mut self, id: u64, end: StreamEnd) -> Result<(), Error> {
        let stream = self.streams.get(id).ok_or(Error::Stream(id))?;
        if stream.end().is_some() {
            return Err(Error::Ended(id));
        }
        let path = stream.path();
        let account = self.paths.get(path).map(|path| path.account_mut());
        let size = self
            .flow
            .charge(account, id, end.final_size(), stream.limit())?;
        stream.set_end(end.with_final_size(size));
        self.on_stream_end(path);
        Ok(())
    }

    /// A stream of `path` has ended.
    fn on_stream_end(&mut self, path: u32) {
        self.release_unused_credit(path);
        if let Some(shared) = &mut self.shared
            && !self.streams.has_open(path)
        {
            shared.on_idle(path);
            self.expire_numbers();
        }
    }

    /// See [`super::Delegator::return_path`].
    pub(super) fn return_path(&mut self, id: u32, next_number: u64) -> Result<(), Error> {
        if self.streams.has_open(id) {
            return Err(Error::Streams(id));
        }
        let has_own_numbers = !self.is_by_numbers(id);
        let path = self.paths.get(id).ok_or(Error::Path(id))?;
        if !path.is_delegated() {
            return Err(Error::Path(id));
        }
        if path.has_moved() {
            return Err(Error::Moved(id));
        }
        if has_own_numbers {
            path.return_from(next_number)?;
        } else {
            // Numbers that the real server did not use remain unused.
            path.retire();
        }
        self.release_unused_credit(id);
        Ok(())
    }

    /// See [`super::Delegator::abandon`].
    pub(super) fn abandon(&mut self, id: u32) -> Result<(), Error> {
        let path = self.paths.get(id).ok_or(Error::Path(id))?;
        if !path.is_delegated() {
            return Err(Error::Path(id));
        }
        path.retire();
        self.release_unused_credit(id);
        Ok(())
    }

    /// Handle a real server's report that the client has not acknowledged anything of `id` for long. Returns the path on
    /// which noq must ping the client, unless the client has acknowledged something by now.
    pub(super) fn on_no_ack_report(
        &mut self,
        id: u32,
        report: NoAckReport,
    ) -> Result<Option<u32>, Error> {
        let own = self.paths.own().ok_or(Error::Path(id))?;
        let path = self.paths.get(id).ok_or(Error::Path(id))?;
        let is_acked = path.is_acked_from(report.next);
        let delegation = path.delegation().ok_or(Error::Path(id))?;
        // The client may have moved, in which case packets to the old address are lost.
        delegation.feedback().wake();
        if is_acked {
            // The acknowledgment is on its way to the real server.
            return Ok(None);
        }
        delegation.on_no_ack_report(report);
        self.prober.request(own);
        Ok(Some(own))
    }

    /// See [`super::Delegator::set_violation`].
    pub(super) fn set_violation(&mut self, code: u64) {
        self.violation = Some(code);
    }

    /// Mark the connection as closed. Real servers stop sending.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        for delegation in self.paths.delegations() {
            delegation.feedback().close();
        }
    }

    /// Handle a packet sealed or opened with key generation `generation`.
    fn on_key_generation(&mut self, generation: u32) {
        if let Some(keys) = self.keys.advance(generation) {
            if let Some(shared) = &mut self.shared {
                shared.on_new_keys();
            }
            for delegation in self.paths.delegations() {
                delegation.feedback().set_keys(keys.clone());
            }
        }
    }

    /// Handle a packet that leaves with this nonce.
    fn on_sealed(&mut self, nonce: Nonce) {
        self.prober.on_sent(nonce, self.paths.delegations());
        self.keys.on_sent(nonce);
        self.streams.on_sent(nonce);
    }

    fn can_delegate(&self) -> bool {
        !self.is_closed && self.keys.is_ready()
    }

    /// Return whether `id` is a delegation by single packet numbers, and not a path.
    fn is_by_numbers(&self, id: u32) -> bool {
        self.shared.is_some() && id != 0
    }

    /// Return a grant of `path` without packet number and credit; `None` until a packet of noq has shown the path's
    /// connection id.
    fn grant(
        &mut self,
        path: u32,
        [client, server]: [SocketAddr; 2],
        rtt: Duration,
    ) -> Option<Grant> {
        let connection_id = self.paths.get(path)?.connection_id()?;
        let ratchet = self.keys.ratchet()?;
        Some(Grant {
            path,
            first: 0,
            connection_id,
            suite: ratchet.suite(),
            header_secret: ratchet.header_secret().clone(),
            keys: ratchet.keys().clone(),
            client_parameters: self.client.wire.clone(),
            server,
            client,
            credit: 0,
            rtt,
        })
    }

    /// Share unassigned credit equally among the real servers that requested more; noq comes first if it is short.
    fn share_credit(&mut self) {
        self.flow.rebalance();
        let mut count = self
            .paths
            .iter()
            .filter(|path| path.missing_credit() > 0)
            .count() as u64;
        for path in self.paths.iter().filter(|path| path.missing_credit() > 0) {
            let bytes = path.missing_credit().min(self.flow.unassigned() / count);
            count -= 1;
            if bytes > 0 {
                path.add_credit(self.flow.reserve(bytes));
            }
        }
    }

    /// Release the unused credit of a real server that no longer sends and whose streams have all ended.
    fn release_unused_credit(&mut self, id: u32) {
        if self.streams.has_open(id) {
            return;
        }
        let Some(path) = self.paths.get(id).filter(|path| !path.is_delegated()) else {
            return;
        };
        self.flow.release(path.account_mut());
        if self.is_by_numbers(id) {
            self.paths.remove(id);
        }
        // The client may wait for another real server to use credit before it raises MAX_DATA.
        self.share_credit();
    }

    /// Handle PATH_ABANDON of either side.
    fn on_path_abandoned(&mut self, path: u32) {
        if let Some(path) = self.paths.get(path) {
            path.on_abandoned();
        }
    }
}
