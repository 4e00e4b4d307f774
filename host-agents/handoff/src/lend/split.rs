//! What the client sends, on its way in: noq gets what is noq's, and real servers what is theirs.

use bytes::BytesMut;
use frontage_quic::session::Incoming;
use frontage_quic_wire::frames::{self, Ack, Frame};
use frontage_quic_wire::write_varint;
use noq::ConnectionId;

use super::numbers::Owner;
use super::path::{Holder, Path};
use super::state::State;
use frontage_quic_wire::PacketNumberSet;

/// The type of PING: noq acknowledges a packet with what was taken out of it.
const PING: u8 = 0x01;
/// The type of PATH_RESPONSE.
const PATH_RESPONSE: u8 = 0x1b;
/// The type of MAX_DATA.
const MAX_DATA: u64 = 0x10;

/// The largest packet number there is (RFC 9000, section 12.3).
const LARGEST: u64 = (1 << 62) - 1;

/// Where noq's part of a packet is put together, and of an acknowledgement; kept, so that no packet allocates.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) frames: Vec<u8>,
    pub(super) own: PacketNumberSet,
    pub(super) lent: PacketNumberSet,
}

impl State {
    /// Takes out of a packet what is not for noq. Frames behind one that cannot be read stay, for noq to refuse.
    pub(super) fn open(&mut self, incoming: &mut Incoming<'_>) {
        self.advance(incoming.generation);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.frames.clear();
        let mut changed = false;
        if let Some(limit) = self.credit.news() {
            changed = true;
            max_data(&mut scratch.frames, limit);
        }
        let mut end = 0;
        for (span, frame) in frames::read_with_spans(incoming.payload) {
            end = span.end;
            let before = scratch.frames.len();
            if self.take(incoming.path, &frame, &mut scratch) {
                if !changed {
                    changed = true;
                    // What came before it.
                    let taken = scratch.frames.len();
                    scratch.frames.extend(&incoming.payload[..span.start]);
                    scratch.frames.rotate_left(taken);
                }
            } else if changed {
                debug_assert_eq!(before, scratch.frames.len());
                scratch.frames.extend(&incoming.payload[span]);
            }
        }
        if changed {
            scratch.frames.extend(&incoming.payload[end..]);
            replace(incoming.payload, &scratch.frames);
        }
        self.scratch = scratch;
    }

    /// Whether a frame is not for noq as it is; what is instead then is in `scratch.frames`.
    fn take(&mut self, path: u32, frame: &Frame<'_>, scratch: &mut Scratch) -> bool {
        match frame {
            Frame::Ack(ack) => return self.acked(ack, scratch),
            Frame::MaxData { limit } => {
                self.credit.allow(*limit);
                self.share();
                max_data(&mut scratch.frames, self.credit.tell());
                return true;
            }
            Frame::MaxStreamData { id, limit } => match self.streams.get(*id) {
                Some(stream) => {
                    stream.limit = stream.limit.max(*limit);
                    if stream.end.is_none()
                        && let Some(loan) = self.paths.get(stream.path).and_then(|p| p.loan())
                    {
                        loan.feedback.limit(*id, *limit);
                    }
                    scratch.frames.push(PING);
                    return true;
                }
                None => self.streams.raise(*id, *limit),
            },
            Frame::StopSending { id, code } => {
                if let Some(stream) = self.streams.get(*id) {
                    if stream.end.is_none()
                        && let Some(loan) = self.paths.get(stream.path).and_then(|p| p.loan())
                    {
                        loan.feedback.stopped(*id, *code);
                    }
                    scratch.frames.push(PING);
                    return true;
                }
            }
            Frame::PathResponse { data } => return self.answered(path, *data, scratch),
            Frame::PathNewConnectionId {
                path,
                sequence,
                retire_prior_to,
                id,
            } if self.shared.is_none() => {
                if let Some(path) = self.paths.get_or_new(*path) {
                    path.identify(*sequence, *retire_prior_to, ConnectionId::new(id));
                }
            }
            Frame::PathAbandon { path } if self.shared.is_none() => self.abandon(*path),
            Frame::Close => self.close(),
            _ => {}
        }
        false
    }

    /// A real server asks itself whether the client is there, and noq is told.
    fn answered(&mut self, path: u32, data: [u8; 8], scratch: &mut Scratch) -> bool {
        let known = self.paths.get(path).map(|path| path.response(data));
        if known != Some(false) {
            return false;
        }
        let one_by_one = self.shared.is_some();
        let mut is_lent = false;
        for path in self.paths.iter().filter(|of| one_by_one || of.id == path) {
            if let Some(loan) = path.loan() {
                is_lent = true;
                loan.feedback.answered(data);
            }
        }
        if is_lent {
            let path = self.paths.get(path).filter(|_| !one_by_one);
            match path.and_then(Path::response_elsewhere) {
                Some(data) => {
                    scratch.frames.push(PATH_RESPONSE);
                    scratch.frames.extend(data);
                }
                None => scratch.frames.push(PING),
            }
        }
        is_lent
    }

    /// Numbers are those of the wire; noq's part has noq's.
    fn acked(&mut self, ack: &Ack<'_>, scratch: &mut Scratch) -> bool {
        self.streams.acked(ack);
        self.answers(ack);
        self.confirmation.acked(ack);
        if self.shared.is_some() {
            return self.acked_of_shared(ack, scratch);
        }
        let Some(path) = self.paths.get(ack.path) else {
            return false;
        };
        self.elsewhere += path.acked(ack.largest, ack.ecn);
        if path.numbers.plain() {
            return false;
        }
        let Scratch { frames, own, lent } = scratch;
        own.clear();
        lent.clear();
        for range in ack.ranges() {
            path.numbers.split(range, |owner, range| match owner {
                Owner::Balancer { shift } => {
                    let (start, end) = range.into_inner();
                    // Beyond what noq can have sent, if the client lies.
                    let number = |wire: u64| wire.wrapping_sub(shift).min(LARGEST);
                    own.insert(number(start)..=number(end));
                }
                Owner::RealServer => lent.insert(range),
                Owner::Nobody => {}
            });
        }
        // Counts of ECN are of a path, whoever sent: noq could make nothing of them.
        own.write_ack(Some(ack.path), ack.delay, None, frames);
        let counts = ack.ecn.and_then(|ecn| path.counts(ecn));
        if let Holder::RealServer(loan) = &path.holder
            && !lent.is_empty()
        {
            loan.feedback.acked(lent, ack, counts);
        }
        true
    }
}

fn max_data(frames: &mut Vec<u8>, limit: u64) {
    write_varint(frames, MAX_DATA);
    write_varint(frames, limit);
}

/// noq wants a frame at least: PADDING, which it does not acknowledge.
fn replace(payload: &mut BytesMut, frames: &[u8]) {
    payload.clear();
    payload.extend_from_slice(if frames.is_empty() { &[0] } else { frames });
}

#[cfg(test)]
mod tests;
