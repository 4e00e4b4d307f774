// SPDX-License-Identifier: Apache-2.0
//! Packets of noq: none of them may look as if a real server had sent it.

use std::ops::Range;

use frontage_quic::session::{Nonce, Outgoing};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::{read_varint, write_varint};

use super::super::StreamEnd;
use super::Connection;

/// Type of PING.
const PING: u8 = 0x01;

impl Connection {
    /// Rewrite a packet. Returns its nonce, which no other packet has.
    pub(in super::super) fn seal(&mut self, outgoing: &mut Outgoing<'_>) -> Nonce {
        self.on_key_generation(outgoing.generation);
        let is_ack_eliciting = self.rewrite_frames(outgoing);
        let path = self.paths.get_or_new(outgoing.path);
        let nonce = match &mut self.shared {
            None => path.and_then(|path| path.seal(outgoing, is_ack_eliciting)),
            Some(shared) => {
                if let Some(id) = path.and_then(|path| path.on_header(outgoing.header)) {
                    for delegation in self.paths.delegations() {
                        delegation.feedback().set_connection_id(id);
                    }
                }
                Some(shared.seal(outgoing))
            }
        };
        let nonce = nonce.unwrap_or_else(|| self.pathless.next());
        self.expire_numbers();
        self.on_sealed(nonce);
        nonce
    }

    /// Rewrite frames that the client must not see. Returns whether the packet contains frames that are retransmitted
    /// when lost.
    fn rewrite_frames(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        let mut is_ack_eliciting = false;
        // Rarely used, so it rarely allocates.
        let mut ends: Vec<(Range<usize>, u64)> = Vec::new();
        let mut resumed: Vec<(Range<usize>, u64)> = Vec::new();
        let mut closing = None;
        for (span, frame) in frames::read_with_spans(outgoing.payload) {
            match frame {
                Frame::Ack(_)
                | Frame::Ping
                | Frame::Probing
                | Frame::NewConnectionId { .. }
                | Frame::PathResponse { .. } => continue,
                Frame::PathChallenge { data } => {
                    if let Some(path) = self.paths.get_or_new(outgoing.path) {
                        path.on_path_challenge(data);
                    }
                    continue;
                }
                Frame::Stream { id, .. } | Frame::Reset { id }
                    if !self.streams.is_empty() && self.streams.get(id).is_some() =>
                {
                    if self.on_resumed_frame(&frame) {
                        resumed.push((span, id));
                    } else {
                        ends.push((span, id));
                    }
                }
                Frame::Stream { id, from, to, fin } => {
                    self.flow.on_stream_sent(id, from, to, fin);
                    if fin {
                        self.streams.forget_limit(id);
                    }
                }
                Frame::Reset { id } => {
                    self.flow.on_reset_sent(id);
                    self.streams.forget_limit(id);
                }
                Frame::PathAbandon { path } => self.on_path_abandoned(path),
                Frame::Close => closing = Some(span),
                Frame::HandshakeDone => self.keys.on_handshake_done(),
                _ => {}
            }
            is_ack_eliciting = true;
        }
        for (span, id) in ends {
            let end = self.streams.get(id).and_then(|stream| stream.end());
            let frame = &mut outgoing.payload[span];
            match end {
                Some(StreamEnd::Reset {
                    code,
                    final_size: Some(size),
                }) if frame[0] == RESET_STREAM => write_reset(frame, code, size),
                _ => write_ping(frame),
            }
            self.streams.on_end(id);
        }
        if !resumed.is_empty() {
            self.shift_resumed(outgoing, &resumed);
        }
        if let Some(span) = closing {
            self.close();
            if let Some(code) = self.violation {
                write_transport_close(&mut outgoing.payload[span], code);
            }
        }
        is_ack_eliciting
    }
}

impl Connection {
    /// Handle a frame of a stream that noq may have resumed. Returns whether noq has resumed it.
    fn on_resumed_frame(&mut self, frame: &Frame<'_>) -> bool {
        let (Frame::Stream { id, .. } | Frame::Reset { id }) = *frame else {
            return false;
        };
        if self
            .streams
            .get(id)
            .is_none_or(|stream| stream.resumed().is_none())
        {
            return false;
        }
        match *frame {
            Frame::Stream { id, from, to, fin } => {
                self.flow.on_resumed_sent(id, to);
                self.flow.on_stream_sent(id, from, to, fin);
            }
            _ => {
                self.flow.on_reset_sent(id);
                self.streams.on_end(id);
            }
        }
        true
    }
}

/// Type of RESET_STREAM.
const RESET_STREAM: u8 = 0x04;

/// Replace a frame by PING, so that the client still acknowledges the packet.
fn write_ping(frame: &mut [u8]) {
    frame.fill(0);
    frame[0] = PING;
}

/// Write RESET_STREAM with this code and final size over noq's, which has
/// [`RESET_PLACEHOLDER`](crate::delegator::RESET_PLACEHOLDER) and a final size of 0: nine bytes after the stream id.
///
/// HTTP/3 error codes take two bytes, and a size below 2^30 takes four. For a size of eight bytes the code is 0, which is not
/// an HTTP/3 error code (RFC 9114, section 8.1).
fn write_reset(frame: &mut [u8], code: u64, final_size: u64) {
    let mut rest = &frame[1..];
    let Some(stream) = read_varint(&mut rest) else {
        return write_ping(frame);
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
    write_ping(frame);
}

/// Write a CONNECTION_CLOSE of the transport (0x1c) over one of the application (0x1d). It has a frame type field more, so its
/// reason is shorter.
fn write_transport_close(frame: &mut [u8], code: u64) {
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
    // The length takes as many bytes as that of the longer reason.
    let Some(length) =
        (frame.len() - wire.len()).checked_sub(if reason.len() < 0x40 { 1 } else { 2 })
    else {
        return;
    };
    let length = length.min(reason.len());
    write_varint(&mut wire, length as u64);
    wire.extend(&reason[..length]);
    let frame_len = frame.len();
    if frame[0] == 0x1d && wire.len() <= frame_len {
        wire.resize(frame_len, 0);
        frame.copy_from_slice(&wire);
    }
}
