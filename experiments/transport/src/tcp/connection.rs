//! A connection: the handshake, the states of RFC 9293, and segments in and out.

use std::ops::Range;

use super::config::Config;
use super::receiver::Receiver;
use super::segment::{Ecn, Flags, SackBlocks, Segment, Timestamps};
use super::sender::{Ack, Piece, Sender};
use super::sequence::Origin;
use crate::congestion::Congestion;
use crate::{MILLISECOND, Nanos};

/// SYNs sent again before the connection is given up: Linux's tcp_syn_retries.
const MOST_SYNS: u32 = 6;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    origin: Origin,
    stage: Stage,
    syn: Syn,
    sender: Sender,
    receiver: Option<Receiver>,
    /// The shift of the windows that the peer tells; `None` if it does not know of shifts.
    peer_scale: Option<u8>,
    /// ECN was agreed on.
    ecn: bool,
    /// The peer closed first.
    passive: bool,
    /// A RST to be sent.
    reset: Option<Segment>,
    segments_sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    SynSent,
    SynReceived,
    Open,
    Aborted,
}

/// Our SYN or SYN-ACK.
#[derive(Debug)]
struct Syn {
    sent: u32,
    timeouts: u32,
    sent_at: Nanos,
    /// To be sent (again).
    pending: bool,
    deadline: Option<Nanos>,
}

/// The states of RFC 9293, section 3.3.2, but for LISTEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the RFC's names")]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// What a connection has done, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Segments of all kinds, with retransmitted ones.
    pub segments_sent: u64,
    /// Segments sent again, SYNs among them.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that fast recovery began.
    pub fast_recoveries: u64,
    /// Times that the window was reduced for marks (ECN).
    pub mark_reductions: u64,
    /// The smoothed round-trip time, once measured.
    pub srtt: Option<Nanos>,
    /// The retransmission timeout, with its backoff.
    pub rto: Nanos,
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// The slow start threshold, in bytes; `u64::MAX` before the first event.
    pub ssthresh: u64,
    /// Bytes sent and not acknowledged.
    pub flight: u64,
}

impl Connection {
    /// Begins a connection; the SYN is the first segment to transmit.
    ///
    /// # Panics
    /// If the configuration's [`check`](Config::check) fails.
    pub fn connect(config: &Config, isn: u32, now: Nanos) -> Self {
        Self::new(config, isn, now, Stage::SynSent)
    }

    /// Answers a SYN; the SYN-ACK is the first segment to transmit.
    ///
    /// # Panics
    /// If the configuration's [`check`](Config::check) fails.
    pub fn accept(config: &Config, isn: u32, syn: &Segment, now: Nanos) -> Self {
        let mut connection = Self::new(config, isn, now, Stage::SynReceived);
        connection.agree(syn);
        connection
    }

    fn new(config: &Config, isn: u32, now: Nanos, stage: Stage) -> Self {
        if let Err(error) = config.check() {
            panic!("tcp::Config: {error}");
        }
        Self {
            origin: Origin(isn),
            stage,
            syn: Syn {
                sent: 0,
                timeouts: 0,
                sent_at: now,
                pending: true,
                deadline: None,
            },
            sender: Sender::new(config),
            receiver: None,
            peer_scale: None,
            ecn: false,
            passive: false,
            reset: None,
            segments_sent: 0,
            config: config.clone(),
        }
    }

    /// What both SYNs offer holds. Nothing was written to the sender's board yet.
    fn agree(&mut self, syn: &Segment) {
        // RFC 9293, section 3.7.1: without the option, 536 bytes.
        let mss = self.config.mss.min(u32::from(syn.mss.unwrap_or(536)));
        self.config.sack &= syn.sack_permitted;
        self.config.timestamps &= syn.ts.is_some();
        let has_ecn = match self.stage {
            Stage::SynSent => {
                syn.flags.has(Flags::ECE)
                    && !syn.flags.has(Flags::CWR)
                    && self.config.asks_for_ecn()
            }
            _ => syn.flags.has(Flags::ECE | Flags::CWR),
        };
        self.peer_scale = syn.window_scale.map(|scale| scale.min(Config::MAX_SCALE));
        if self.peer_scale.is_none() {
            self.config.receive_window = self.config.receive_window.min(u64::from(u16::MAX));
        }
        self.sender.agree(&self.config, mss);
        let mut receiver = Receiver::new(&self.config, mss, syn);
        if has_ecn {
            self.ecn = true;
            receiver.echo_marks(self.config.congestion);
        }
        self.receiver = Some(receiver);
    }

    /// The application has `bytes` more to send.
    ///
    /// # Panics
    /// After [`finish`](Self::finish).
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.sender.is_finished(), "write after finish");
        self.sender.write(bytes);
    }

    /// The application has no more to send: FIN after the last byte.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// Gives the connection up: a RST is the last segment to transmit.
    pub fn abort(&mut self) {
        if self.is_established() {
            let seq = self.origin.number(self.sender.board().sent());
            self.reset = Some(Segment::bare(seq, 0, Flags::RST));
        }
        self.stage = Stage::Aborted;
    }

    /// Bytes received in order.
    pub fn readable(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::readable)
    }

    /// Whether all that the peer will send has been received, with its FIN.
    pub fn is_read(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_finished)
    }

    /// Bytes of ours that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Whether the handshake is over and the connection was not aborted.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether nothing remains to be done: both FINs were acknowledged, or it was aborted. In
    /// TIME-WAIT it still acknowledges a FIN that comes again, for as long as the caller keeps it.
    pub fn is_closed(&self) -> bool {
        matches!(self.state(), State::TimeWait | State::Closed)
    }

    /// Whether it ended by a RST, or because the peer did not answer.
    pub fn is_aborted(&self) -> bool {
        self.stage == Stage::Aborted
    }

    /// The state of RFC 9293.
    pub fn state(&self) -> State {
        let sender = &self.sender;
        match (self.stage, self.is_read()) {
            (Stage::SynSent, _) => State::SynSent,
            (Stage::SynReceived, _) => State::SynReceived,
            (Stage::Aborted, _) => State::Closed,
            (Stage::Open, false) if sender.fin_acknowledged() => State::FinWait2,
            (Stage::Open, false) if sender.fin_sent() => State::FinWait1,
            (Stage::Open, false) => State::Established,
            (Stage::Open, true) if sender.fin_acknowledged() && self.passive => State::Closed,
            (Stage::Open, true) if sender.fin_acknowledged() => State::TimeWait,
            (Stage::Open, true) if sender.fin_sent() && self.passive => State::LastAck,
            (Stage::Open, true) if sender.fin_sent() => State::Closing,
            (Stage::Open, true) => State::CloseWait,
        }
    }

    /// Counts and measures.
    pub fn statistics(&self) -> Statistics {
        let counts = &self.sender.counts;
        Statistics {
            segments_sent: self.segments_sent,
            retransmitted: counts.retransmitted + u64::from(self.syn.sent.saturating_sub(1)),
            timeouts: counts.timeouts,
            fast_recoveries: counts.fast_recoveries,
            mark_reductions: counts.mark_reductions,
            srtt: self.sender.smoothed_rtt(),
            rto: self.sender.rto(),
            cwnd: self.sender.controller.window(),
            ssthresh: self.sender.controller.threshold(),
            flight: self.sender.board().flight(),
        }
    }

    /// DCTCP's alpha; `None` under other laws.
    pub fn marked_share(&self) -> Option<f64> {
        self.sender.controller.marked_share()
    }

    /// Takes a segment.
    pub fn receive(&mut self, now: Nanos, segment: &Segment) {
        match self.stage {
            Stage::SynSent => self.receive_in_syn_sent(now, segment),
            Stage::SynReceived | Stage::Open => self.receive_synchronized(now, segment),
            Stage::Aborted => {}
        }
    }

    /// RFC 9293, section 3.10.7.3, without simultaneous open.
    fn receive_in_syn_sent(&mut self, now: Nanos, segment: &Segment) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if segment.ack != self.origin.number(1) || self.syn.sent == 0 {
            self.reset = segment.reset();
        } else if segment.flags.has(Flags::RST) {
            self.stage = Stage::Aborted;
        } else if segment.flags.has(Flags::SYN) {
            self.agree(segment);
            self.establish(now, segment, u64::from(segment.window));
            self.owe();
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

    /// RFC 9293, section 3.10.7.4.
    fn receive_synchronized(&mut self, now: Nanos, segment: &Segment) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let flags = segment.flags;
        let Some(start) = receiver.origin.offset(segment.seq, receiver.next()) else {
            return;
        };
        if flags.has(Flags::RST) {
            // RFC 5961, section 3: only the exact number is believed.
            if start == receiver.next() {
                self.stage = Stage::Aborted;
            }
            return;
        }
        if flags.has(Flags::SYN) {
            // Our SYN-ACK or our acknowledgement of one was lost.
            match self.stage {
                Stage::SynReceived => self.syn.pending = true,
                _ => receiver.owe(),
            }
            return;
        }
        if self.config.timestamps && receiver.is_stale(segment) {
            receiver.owe();
            return;
        }
        let length = u64::from(segment.sequence_length());
        if length > 0 && start + length <= receiver.next() {
            receiver.owe();
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
            receiver.owe();
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
        let mut blocks: [Range<u64>; SackBlocks::MOST] = Default::default();
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

    /// The round trip by the echoed timestamp, at least its resolution of a millisecond. An echo of
    /// 0 is none.
    fn echoed_rtt(&self, now: Nanos, segment: &Segment) -> Option<Nanos> {
        let ts = segment
            .ts
            .filter(|ts| self.config.timestamps && ts.ecr != 0)?;
        let rtt = clock(now).wrapping_sub(ts.ecr);
        (rtt < 1 << 31).then(|| u64::from(rtt.max(1)) * MILLISECOND)
    }

    fn owe(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            receiver.owe();
        }
    }

    /// The next segment to send now; to be called until there is none, after every other call that
    /// takes the time, and after [`write`](Self::write) and [`finish`](Self::finish).
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let segment = self.next_segment(now)?;
        self.segments_sent += 1;
        Some(segment)
    }

    fn next_segment(&mut self, now: Nanos) -> Option<Segment> {
        if let Some(reset) = self.reset.take() {
            return Some(reset);
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
        if let Some(piece) = self.sender.poll(now) {
            return Some(self.data(now, ece, &piece));
        }
        if !self.receiver.as_ref()?.owes() {
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
        let rto = self.config.initial_rto << self.syn.timeouts;
        let deadline = now + rto.min(self.config.max_rto);
        // A SYN-ACK that answers a SYN that came again does not move the timer.
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
        } else if self.config.asks_for_ecn() {
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

    /// A bare acknowledgement of all that was received.
    fn segment(&self, now: Nanos, ece: bool) -> Segment {
        let mut segment = Segment::bare(
            self.origin.number(self.sender.board().sent()),
            0,
            Flags::ACK,
        );
        segment.flags |= if ece { Flags::ECE } else { Flags::NONE };
        if self.ecn && self.config.congestion == Congestion::Dctcp {
            segment.ecn = Ecn::Ect0; // As Linux: all its packets.
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

    /// When to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        let receiver = self.receiver.as_ref().and_then(Receiver::timeout);
        match self.stage {
            Stage::Aborted => None,
            Stage::SynSent | Stage::SynReceived => self.syn.deadline,
            Stage::Open => self.sender.timeout().into_iter().chain(receiver).min(),
        }
    }

    /// Does what is due by now, which may be nothing.
    pub fn on_timeout(&mut self, now: Nanos) {
        if self.stage == Stage::Open {
            if !self.sender.on_timeout(now) {
                self.stage = Stage::Aborted;
            }
            if let Some(receiver) = &mut self.receiver {
                receiver.on_timeout(now);
            }
        } else if self.syn.deadline.is_some_and(|deadline| deadline <= now) {
            self.syn.deadline = None;
            if self.syn.timeouts == MOST_SYNS {
                self.stage = Stage::Aborted;
            } else {
                self.syn.timeouts += 1;
                self.syn.pending = true;
            }
        }
    }
}

/// The timestamp clock: milliseconds, as Linux's.
fn clock(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}
