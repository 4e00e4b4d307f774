//! A connection: the handshake, the states of RFC 9293, and segments in and out.

mod receive;
mod transmit;

use super::config::Config;
use super::receiver::Receiver;
use super::segment::{Flags, Segment};
use super::sender::Sender;
use super::sequence::Origin;
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
    /// It was this end that connected.
    active: bool,
    /// The peer closed first.
    passive: bool,
    /// A RST to be sent, which most never have.
    reset: Option<Box<Segment>>,
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
            active: stage == Stage::SynSent,
            passive: false,
            reset: None,
            segments_sent: 0,
            config: config.clone(),
        }
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
            self.reset = Some(Box::new(Segment::bare(seq, 0, Flags::RST)));
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

    /// Bytes of ours that were sent, each once.
    pub fn sent(&self) -> u64 {
        self.sender.sent()
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
            if self.syn.timeouts == MOST_SYNS && !self.config.is_netbench() {
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
