// SPDX-License-Identifier: Apache-2.0
//! Packets of the client: noq gets the frames that concern noq, real servers get theirs.

use bytes::BytesMut;
use frontage_quic::session::Incoming;
use frontage_quic_wire::frames::{self, Ack, Frame};
use frontage_quic_wire::write_varint;
use noq::ConnectionId;

use super::super::packet_numbers::Owner;
use super::super::paths::Path;
use super::Connection;
use super::resume::put_max_stream_data;
use frontage_quic_wire::PacketNumberSet;

/// Type of PING, which replaces an ack-eliciting frame so that noq still acknowledges the packet.
const PING: u8 = 0x01;
/// Type of PATH_RESPONSE.
const PATH_RESPONSE: u8 = 0x1b;
/// Type of MAX_DATA.
const MAX_DATA: u64 = 0x10;

/// The largest packet number (RFC 9000, section 12.3).
const MAX_PACKET_NUMBER: u64 = (1 << 62) - 1;

/// Buffers for noq's part of a packet and for the parts of an ACK, kept to avoid an allocation per packet.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    frames: Vec<u8>,
    own: PacketNumberSet,
    delegated: PacketNumberSet,
}

impl Connection {
    /// Remove from a packet what is not for noq. Frames after a malformed one remain, so that noq rejects them.
    pub(in super::super) fn open(&mut self, incoming: &mut Incoming<'_>) {
        self.on_key_generation(incoming.generation);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.frames.clear();
        let mut is_changed = false;
        if let Some(limit) = self.flow.take_update() {
            is_changed = true;
            put_max_data(&mut scratch.frames, limit);
        }
        is_changed |= self.put_resumed_limits(&mut scratch.frames);
        let mut end = 0;
        for (span, frame) in frames::read_with_spans(incoming.payload) {
            end = span.end;
            let before = scratch.frames.len();
            if self.intercept(incoming.path, &frame, &mut scratch) {
                if !is_changed {
                    is_changed = true;
                    // Insert the frames before this one.
                    let replacement = scratch.frames.len();
                    scratch.frames.extend(&incoming.payload[..span.start]);
                    scratch.frames.rotate_left(replacement);
                }
            } else if is_changed {
                debug_assert_eq!(before, scratch.frames.len());
                scratch.frames.extend(&incoming.payload[span]);
            }
        }
        if is_changed {
            scratch.frames.extend(&incoming.payload[end..]);
            replace(incoming.payload, &scratch.frames);
        }
        self.scratch = scratch;
        self.prober.on_packet_end(self.paths.delegations());
    }

    /// Handle a frame. Returns whether noq must not get it as it is; its replacement is then in `scratch.frames`.
    fn intercept(&mut self, path: u32, frame: &Frame<'_>, scratch: &mut Scratch) -> bool {
        match frame {
            Frame::Ack(ack) => return self.on_ack(ack, scratch),
            Frame::MaxData { limit } => {
                self.flow.on_max_data(*limit);
                self.share_credit();
                put_max_data(&mut scratch.frames, self.flow.announce());
                return true;
            }
            Frame::MaxStreamData { id, limit } => match self.streams.get(*id) {
                Some(stream) => {
                    stream.raise_limit(*limit);
                    if let Some(resumed) = stream.resumed() {
                        put_max_stream_data(&mut scratch.frames, *id, resumed.limit_of(*limit));
                        return true;
                    }
                    if stream.end().is_none()
                        && let Some(path) = self.paths.get(stream.path())
                        && let Some(feedback) = path.feedback()
                    {
                        feedback.add_stream_limit(*id, *limit);
                    }
                    scratch.frames.push(PING);
                    return true;
                }
                None => self.streams.on_max_stream_data(*id, *limit),
            },
            Frame::StopSending { id, code } => {
                if let Some(stream) = self.streams.get(*id)
                    && stream.resumed().is_none()
                {
                    if stream.end().is_none()
                        && let Some(path) = self.paths.get(stream.path())
                        && let Some(feedback) = path.feedback()
                    {
                        feedback.add_stop_sending(*id, *code);
                    }
                    scratch.frames.push(PING);
                    return true;
                }
            }
            Frame::PathResponse { data } => return self.on_path_response(path, *data, scratch),
            Frame::PathNewConnectionId {
                path,
                sequence,
                retire_prior_to,
                id,
            } if self.shared.is_none() => {
                if let Some(path) = self.paths.get_or_new(*path) {
                    path.on_new_connection_id(*sequence, *retire_prior_to, ConnectionId::new(id));
                }
            }
            Frame::PathAbandon { path } if self.shared.is_none() => self.on_path_abandoned(*path),
            Frame::Close => self.close(),
            _ => {}
        }
        false
    }

    /// Handle PATH_RESPONSE. One that does not answer noq answers a real server, which validates the address itself; noq
    /// then gets a response to its own challenge.
    fn on_path_response(&mut self, path: u32, data: [u8; 8], scratch: &mut Scratch) -> bool {
        let is_for_noq = self.paths.get(path).map(|path| path.on_path_response(data));
        if is_for_noq != Some(false) {
            return false;
        }
        let is_shared = self.shared.is_some();
        let mut is_delegated = false;
        let paths = self.paths.iter();
        for path in paths.filter(|other| is_shared || other.id() == path) {
            if let Some(feedback) = path.feedback() {
                is_delegated = true;
                feedback.add_path_response(data);
            }
        }
        if is_delegated {
            let path = self.paths.get(path).filter(|_| !is_shared);
            match path.and_then(Path::on_delegate_path_response) {
                Some(data) => {
                    scratch.frames.push(PATH_RESPONSE);
                    scratch.frames.extend(data);
                }
                None => scratch.frames.push(PING),
            }
        }
        is_delegated
    }

    /// Handle an ACK, whose numbers are those on the wire. noq's part gets noq's own numbers.
    fn on_ack(&mut self, ack: &Ack<'_>, scratch: &mut Scratch) -> bool {
        self.streams.on_ack(ack);
        self.prober.on_ack(ack, self.paths.delegations());
        self.keys.on_ack(ack);
        if self.shared.is_some() {
            return self.on_shared_ack(ack, scratch);
        }
        let Some(path) = self.paths.get(ack.path) else {
            return false;
        };
        self.keys
            .on_sealed_remotely(path.on_ack(ack.largest, ack.ecn));
        if path.numbers().is_plain() {
            return false;
        }
        let Scratch {
            frames,
            own,
            delegated,
        } = scratch;
        own.clear();
        delegated.clear();
        for range in ack.ranges() {
            path.numbers().split(range, |owner, range| match owner {
                Owner::Balancer { shift } => {
                    let (start, end) = range.into_inner();
                    // A client may acknowledge numbers beyond those that noq can have sent.
                    let number = |wire: u64| wire.wrapping_sub(shift).min(MAX_PACKET_NUMBER);
                    own.insert(number(start)..=number(end));
                }
                Owner::RealServer => delegated.insert(range),
                Owner::Unowned => {}
            });
        }
        // ECN counts cover the packets of all senders on the path, so noq cannot use them.
        own.write_ack(Some(ack.path), ack.delay, None, frames);
        let ecn = ack.ecn.and_then(|ecn| path.ecn_of_delegation(ecn));
        if let Some(feedback) = path.feedback()
            && !delegated.is_empty()
        {
            feedback.add_ack(delegated, ack, ecn);
        }
        true
    }

    /// Handle an ACK of shared packet numbers: each sender gets its part. noq gets an ACK of unsent numbers
    /// unchanged, and rejects it, because noq has sent fewer packets than there are numbers.
    fn on_shared_ack(&mut self, ack: &Ack<'_>, scratch: &mut Scratch) -> bool {
        let Some(shared) = self.shared.as_mut().filter(|_| ack.path == 0) else {
            return false;
        };
        let ranges = ack.ranges().map(|range| *range.start()..range.end() + 1);
        let Ok(split) = shared.split(ranges) else {
            return false;
        };
        let Scratch {
            frames,
            own,
            delegated,
        } = scratch;
        own.clear();
        for range in split.own {
            own.insert(range.start..=range.end - 1);
        }
        own.write_ack(None, ack.delay, None, frames);
        for path in self.paths.iter() {
            delegated.clear();
            for (_, part) in split.delegated.iter().filter(|(id, _)| *id == path.id()) {
                delegated.insert(part.start..=part.end - 1);
            }
            if let Some(largest) = delegated.largest() {
                path.on_ack(largest, None);
                if let Some(feedback) = path.feedback() {
                    feedback.add_ack(delegated, ack, None);
                }
            }
        }
        true
    }
}

fn put_max_data(frames: &mut Vec<u8>, limit: u64) {
    write_varint(frames, MAX_DATA);
    write_varint(frames, limit);
}

/// Replace a payload. An empty one becomes PADDING, because noq requires a frame and does not acknowledge PADDING.
fn replace(payload: &mut BytesMut, frames: &[u8]) {
    payload.clear();
    payload.extend_from_slice(if frames.is_empty() { &[0] } else { frames });
}
