// SPDX-License-Identifier: Apache-2.0
//! Generation of segments to send.

use super::{Connection, Stage, clock};
use crate::Nanos;
use crate::congestion::Congestion;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Ecn, Flags, SackBlocks, Segment, Timestamps};
use crate::tcp::sender::Piece;

impl Connection {
    /// Returns the next segment to send now.
    ///
    /// Call it until it returns `None`, after every other call that takes the time, and after [`write`](Self::write) and
    /// [`finish`](Self::finish).
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let segment = self.next_segment(now)?;
        self.segments_sent += 1;
        Some(segment)
    }

    fn next_segment(&mut self, now: Nanos) -> Option<Segment> {
        if let Some(reset) = self.reset.take() {
            return Some(*reset);
        }
        if self.syn.pending && self.stage != Stage::Aborted {
            return Some(self.send_syn(now));
        }
        if self.stage != Stage::Open {
            return None;
        }
        let receiver = self.receiver.as_mut()?;
        if let Some((number, ece)) = receiver.take_earlier_ack() {
            let mut segment = self.segment(now, ece);
            segment.ack = self.receiver.as_ref()?.origin.number(number);
            return Some(segment);
        }
        let ece = receiver.ece();
        let separate_ack = self.config.is_netbench() && receiver.has_pending_ack();
        if !separate_ack && let Some(piece) = self.sender.poll(now) {
            return Some(self.data(now, ece, &piece));
        }
        if !self.receiver.as_ref()?.has_pending_ack() {
            return None;
        }
        let segment = self.segment(now, ece);
        self.receiver.as_mut()?.acknowledged();
        Some(segment)
    }

    fn send_syn(&mut self, now: Nanos) -> Segment {
        self.syn.pending = false;
        self.syn.sent += 1;
        self.syn.sent_at = now;
        let rto = (self.config.initial_rto).saturating_mul(1 << self.syn.timeouts.min(31));
        let deadline = now + rto.min(self.config.max_rto);
        // A SYN-ACK that answers a retransmitted SYN does not restart the timer.
        self.syn.deadline.get_or_insert(deadline);

        let mut segment = Segment::bare(self.origin.number(0), 0, Flags::SYN);
        segment.window = self.config.receive_window.min(u64::from(u16::MAX)) as u16;
        let scales = self.receiver.is_none() || self.peer_scale.is_some();
        segment.window_scale = scales.then(|| self.config.window_scale());
        segment.mss = Some(self.config.mss as u16);
        segment.sack_permitted = self.config.sack;
        let mut echo = 0;
        if let Some(receiver) = &mut self.receiver {
            segment.flags |= Flags::ACK;
            segment.ack = receiver.origin.number(receiver.next());
            segment.flags |= if self.ecn { Flags::ECE } else { Flags::NONE };
            echo = receiver.timestamp().unwrap_or(0);
            receiver.acknowledged();
        } else if self.config.uses_ecn() {
            segment.flags |= Flags::ECE | Flags::CWR;
        }
        segment.ts = self.config.timestamps.then(|| Timestamps {
            val: clock(now),
            ecr: echo,
        });
        if self.config.congestion == Congestion::Dctcp && (self.ecn || self.receiver.is_none()) {
            segment.ecn = Ecn::Ect0;
        }
        segment
    }

    fn data(&mut self, now: Nanos, ece: bool, piece: &Piece) -> Segment {
        let mut segment = self.segment(now, ece);
        segment.seq = self.origin.number(piece.start);
        segment.len = piece.len;
        segment.sack = SackBlocks::default();
        segment.flags |= if piece.push && piece.len > 0 {
            Flags::PSH
        } else {
            Flags::NONE
        };
        segment.flags |= if piece.fin { Flags::FIN } else { Flags::NONE };
        if self.ecn && piece.new && piece.len > 0 {
            segment.ecn = Ecn::Ect0;
            segment.flags |= if self.sender.take_reduced() {
                Flags::CWR
            } else {
                Flags::NONE
            };
        }
        if let Some(receiver) = &mut self.receiver {
            segment.sack = receiver.sack_blocks();
            receiver.acknowledged();
        }
        segment
    }

    /// Creates an acknowledgment of all data received, without payload.
    fn segment(&self, now: Nanos, ece: bool) -> Segment {
        let mut segment = Segment::bare(
            self.origin.number(self.sender.board().sent()),
            0,
            Flags::ACK,
        );
        segment.flags |= if ece { Flags::ECE } else { Flags::NONE };
        if self.ecn && self.config.congestion == Congestion::Dctcp {
            segment.ecn = Ecn::Ect0; // As in Linux, on all packets.
        }
        if let Some(receiver) = &self.receiver {
            segment.ack = receiver.origin.number(receiver.next());
            segment.window = self.window(receiver);
            segment.sack = receiver.sack_blocks();
            segment.ts = receiver.timestamp().map(|echo| Timestamps {
                val: clock(now),
                ecr: echo,
            });
        }
        segment
    }

    fn window(&self, receiver: &Receiver) -> u16 {
        (receiver.window() >> self.config.window_scale()).min(u64::from(u16::MAX)) as u16
    }
}
