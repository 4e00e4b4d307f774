// SPDX-License-Identifier: Apache-2.0
//! Processing of received segments (RFC 9293, section 3.10.7).

use std::ops::Range;

use super::{Connection, Stage, clock};
use crate::tcp::config::Config;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Flags, SackBlocks, Segment};
use crate::tcp::sender::Ack;
use crate::{MILLISECOND, Nanos};

impl Connection {
    /// Processes a received segment.
    pub fn receive(&mut self, now: Nanos, segment: &Segment) {
        match self.stage {
            Stage::SynSent => self.receive_in_syn_sent(now, segment),
            Stage::SynReceived | Stage::Open => self.receive_synchronized(now, segment),
            Stage::Aborted => {}
        }
    }

    /// Negotiates the options: those that both SYNs offer apply. The sender's scoreboard must be empty.
    pub(super) fn negotiate(&mut self, syn: &Segment) {
        // RFC 9293, section 3.7.1: without the option, 536 bytes.
        let mss = self.config.mss.min(u32::from(syn.mss.unwrap_or(536)));
        self.config.sack &= syn.sack_permitted;
        self.config.timestamps &= syn.ts.is_some();
        let has_ecn = match self.stage {
            Stage::SynSent => {
                syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR) && self.config.uses_ecn()
            }
            _ => syn.flags.has(Flags::ECE | Flags::CWR),
        };
        self.peer_scale = syn.window_scale.map(|scale| scale.min(Config::MAX_SCALE));
        if self.peer_scale.is_none() {
            self.config.receive_window = self.config.receive_window.min(u64::from(u16::MAX));
        }
        self.sender.negotiate(&self.config, mss);
        let mut receiver = Receiver::new(&self.config, mss, syn);
        if has_ecn {
            self.ecn = true;
            receiver.echo_marks(self.config.congestion);
        }
        self.receiver = Some(receiver);
    }

    /// Processes a segment in SYN-SENT (RFC 9293, section 3.10.7.3), without simultaneous open.
    fn receive_in_syn_sent(&mut self, now: Nanos, segment: &Segment) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if segment.ack != self.origin.number(1) || self.syn.sent == 0 {
            self.reset = segment.reset().map(Box::new);
        } else if segment.flags.has(Flags::RST) {
            self.stage = Stage::Aborted;
        } else if segment.flags.has(Flags::SYN) {
            self.negotiate(segment);
            self.establish(now, segment, u64::from(segment.window));
            self.queue_ack();
        }
    }

    fn establish(&mut self, now: Nanos, segment: &Segment, window: u64) {
        let rtt = (self.syn.sent == 1)
            .then(|| now - self.syn.sent_at)
            .or(self.echoed_rtt(now, segment));
        self.sender.establish(now, rtt, self.syn.sent, 1 + window);
        self.stage = Stage::Open;
        self.syn.deadline = None;
        self.syn.pending = false;
    }

    /// Processes a segment in a synchronized state (RFC 9293, section 3.10.7.4).
    fn receive_synchronized(&mut self, now: Nanos, segment: &Segment) {
        if self.config.is_netbench() && segment.len > 0 && self.awaits_first_ack() {
            return;
        }
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let flags = segment.flags;
        let Some(start) = receiver.origin.offset(segment.seq, receiver.next()) else {
            return;
        };
        if flags.has(Flags::RST) {
            // RFC 5961, section 3: only a RST with the exact sequence number is valid.
            if start == receiver.next() {
                self.stage = Stage::Aborted;
            }
            return;
        }
        if flags.has(Flags::SYN) {
            // Our SYN-ACK, or our acknowledgment of the peer's, was lost.
            match self.stage {
                Stage::SynReceived => self.syn.pending = true,
                _ => receiver.queue_ack(),
            }
            return;
        }
        if self.config.timestamps && receiver.is_stale(segment) {
            receiver.queue_ack();
            return;
        }
        let length = u64::from(segment.sequence_length());
        if length > 0 && start + length <= receiver.next() {
            receiver.queue_ack();
            return;
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        let sender_at = self.sender.board().acknowledged();
        let Some(number) = self.origin.offset(segment.ack, sender_at) else {
            return;
        };
        if number > self.sender.board().sent() || (self.stage == Stage::SynReceived && number == 0)
        {
            receiver.queue_ack();
            return;
        }
        receiver.note_timestamp(start, segment);
        if self.stage == Stage::SynReceived {
            let window = u64::from(segment.window) << self.peer_scale.unwrap_or(0);
            self.establish(now, segment, window);
        }
        self.receive_ack(now, number, segment);
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        receiver.receive(now, start, segment);
        self.passive |= receiver.is_finished() && !self.sender.fin_sent();
    }

    fn receive_ack(&mut self, now: Nanos, number: u64, segment: &Segment) {
        let board = self.sender.board();
        let mut blocks: [Range<u64>; SackBlocks::MAX] = Default::default();
        let mut count = 0;
        if self.config.sack {
            for &(left, right) in segment.sack.iter() {
                let edges = (
                    self.origin.offset(left, number),
                    self.origin.offset(right, number),
                );
                if let (Some(left), Some(right)) = edges
                    && left > number.max(board.acknowledged())
                    && left < right
                    && right <= board.sent()
                {
                    blocks[count] = left..right;
                    count += 1;
                }
            }
        }
        let ack = Ack {
            number,
            right_edge: number + (u64::from(segment.window) << self.peer_scale.unwrap_or(0)),
            sack: &blocks[..count],
            ece: self.ecn && segment.flags.has(Flags::ECE),
            rtt: self.echoed_rtt(now, segment),
            pure: segment.sequence_length() == 0,
        };
        self.sender.on_ack(now, &ack);
    }

    /// Returns true if the acknowledgment that the peer sends before its first data is missing: of the SYN-ACK, or of the client's request.
    fn awaits_first_ack(&self) -> bool {
        let board = self.sender.board();
        let awaits_response = self.active && board.acknowledged() == 1 && board.flight() > 0;
        self.stage == Stage::SynReceived || awaits_response
    }

    /// Returns the round-trip time from the echoed timestamp, at least its resolution of one millisecond. An echo of 0 means absent.
    fn echoed_rtt(&self, now: Nanos, segment: &Segment) -> Option<Nanos> {
        let ts = segment
            .ts
            .filter(|ts| self.config.timestamps && ts.ecr != 0)?;
        let rtt = clock(now).wrapping_sub(ts.ecr);
        (rtt < 1 << 31).then(|| u64::from(rtt.max(1)) * MILLISECOND)
    }

    fn queue_ack(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            receiver.queue_ack();
        }
    }
}
