//! What noq sends, on its way out: nothing of it may look as if it came from a real server.

use std::ops::Range;

use frontage_quic::session::{Nonce, Outgoing};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::{read_varint, write_varint};

use super::path::Path;
use super::state::State;
use super::{End, VOID};

/// The type of PING.
const PING: u8 = 0x01;

impl State {
    /// Rewrites a packet; its nonce, which no other packet has.
    pub(super) fn seal(&mut self, outgoing: &mut Outgoing<'_>) -> Nonce {
        self.advance(outgoing.generation);
        let weighty = self.look(outgoing);
        let path = self.paths.get_or_new(outgoing.path);
        let nonce = match &mut self.shared {
            None => path.and_then(|path| path.seal(outgoing, weighty)),
            Some(shared) => {
                if let Some(id) = path.and_then(|path| path.notice(outgoing.header)) {
                    for loan in self.paths.iter().filter_map(Path::loan) {
                        loan.feedback.connection_id(id);
                    }
                }
                Some(shared.seal(outgoing))
            }
        };
        let nonce = nonce.unwrap_or_else(|| {
            // Of a path that no connection has (draft-ietf-quic-multipath, section 2.3: below 2^32 - 1), so that the client takes it for noise.
            self.void += 1;
            Nonce {
                path: VOID,
                number: self.void - 1,
            }
        });
        self.asks(nonce);
        self.confirmation.sent(nonce);
        for stream in self.ended.drain(..) {
            self.streams.say(stream, nonce);
        }
        nonce
    }

    /// Whether some of it is sent again when lost.
    fn look(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        let mut weighty = false;
        // Seldom is there one.
        let mut ends: Vec<(Range<usize>, u64)> = Vec::new();
        let mut closing = None;
        for (span, frame) in frames::read_with_spans(outgoing.payload) {
            match frame {
                Frame::Ack(_) | Frame::Ping | Frame::Probing | Frame::PathResponse { .. } => {
                    continue;
                }
                Frame::PathChallenge { data } => {
                    if let Some(path) = self.paths.get_or_new(outgoing.path) {
                        path.challenge(data);
                    }
                    continue;
                }
                Frame::Stream { id, .. } | Frame::Reset { id }
                    if !self.streams.none() && self.streams.get(id).is_some() =>
                {
                    ends.push((span, id));
                }
                Frame::Stream { id, from, to, fin } => {
                    self.credit.send(id, from, to, fin);
                    if fin {
                        self.streams.done(id);
                    }
                }
                Frame::Reset { id } => {
                    self.credit.end(id);
                    self.streams.done(id);
                }
                Frame::PathAbandon { path } => self.abandon(path),
                Frame::Close => closing = Some(span),
                Frame::HandshakeDone => self.confirmation.say(),
                _ => {}
            }
            weighty = true;
        }
        for (span, id) in ends {
            let end = self.streams.get(id).and_then(|stream| stream.end);
            let frame = &mut outgoing.payload[span];
            match end {
                Some(End::Reset {
                    code,
                    final_size: Some(size),
                }) if frame[0] == RESET_STREAM => reset(frame, code, size),
                _ => blank(frame),
            }
            self.ended.push(id);
        }
        if let Some(span) = closing {
            self.close();
            if let Some(code) = self.violation {
                close_transport(&mut outgoing.payload[span], code);
            }
        }
        weighty
    }
}

/// The type of RESET_STREAM.
const RESET_STREAM: u8 = 0x04;

/// noq awaits an acknowledgement of it.
fn blank(frame: &mut [u8]) {
    frame.fill(0);
    frame[0] = PING;
}

/// RESET_STREAM with this code and final size in the place of one of [`super::RESET`] and none: nine bytes behind the stream's id. HTTP/3's codes have two,
/// a size below 2^30 four; if it has eight, the code is 0, which stands for none of HTTP/3's (RFC 9114, section 8.1).
fn reset(frame: &mut [u8], code: u64, final_size: u64) {
    let mut rest = &frame[1..];
    let Some(stream) = read_varint(&mut rest) else {
        return blank(frame);
    };
    for code in [code, 0] {
        let mut wire = vec![RESET_STREAM];
        for value in [stream, code, final_size] {
            write_varint(&mut wire, value);
        }
        if wire.len() <= frame.len() {
            frame.fill(0);
            frame[..wire.len()].copy_from_slice(&wire);
            return;
        }
    }
    blank(frame);
}

/// CONNECTION_CLOSE of the transport's (0x1c) in the place of one of the application's (0x1d): with a type of frame, and less of a reason.
fn close_transport(frame: &mut [u8], code: u64) {
    let mut rest = &frame[1..];
    let Some(reason) = read_varint(&mut rest).and_then(|_| {
        let length = usize::try_from(read_varint(&mut rest)?).ok()?;
        rest.get(..length)
    }) else {
        return;
    };
    let mut wire = vec![0x1c];
    write_varint(&mut wire, code);
    wire.push(0);
    // In as many bytes as the longer reason's would be.
    let Some(length) =
        (frame.len() - wire.len()).checked_sub(if reason.len() < 0x40 { 1 } else { 2 })
    else {
        return;
    };
    let length = length.min(reason.len());
    write_varint(&mut wire, length as u64);
    wire.extend(&reason[..length]);
    let whole = frame.len();
    if frame[0] == 0x1d && wire.len() <= whole {
        wire.resize(whole, 0);
        frame.copy_from_slice(&wire);
    }
}

#[cfg(test)]
mod tests;
