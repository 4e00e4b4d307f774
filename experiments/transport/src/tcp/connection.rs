// SPDX-License-Identifier: Apache-2.0
//! A TCP connection: handshake, states of RFC 9293, segments received and segments sent.

mod receive;
mod transmit;

use super::config::Config;
use super::receiver::Receiver;
use super::segment::{Flags, Segment};
use super::sender::Sender;
use super::sequence::Origin;
use crate::{MILLISECOND, Nanos};

/// Maximum number of SYN retransmissions before the connection fails (Linux's tcp_syn_retries).
const MAX_SYN_RETRIES: u32 = 6;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    origin: Origin,
    stage: Stage,
    syn: Syn,
    sender: Sender,
    receiver: Option<Receiver>,
    /// Window scale of the peer; `None` if it does not support window scaling.
    peer_scale: Option<u8>,
    /// ECN was negotiated.
    ecn: bool,
    /// This end opened the connection.
    active: bool,
    /// The peer closed the connection first.
    passive: bool,
    /// A RST to send. Boxed, because it is rare.
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
    /// The SYN must be sent or retransmitted.
    pending: bool,
    deadline: Option<Nanos>,
}

/// The states of RFC 9293, section 3.3.2, except LISTEN.
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

/// Statistics of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, of all kinds, including retransmissions.
    pub segments_sent: u64,
    /// Retransmitted segments, including SYNs.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Number of fast recoveries.
    pub fast_recoveries: u64,
    /// Number of window reductions for marks (ECN).
    pub mark_reductions: u64,
    /// Smoothed round-trip time, if measured.
    pub srtt: Option<Nanos>,
    /// Retransmission timeout, including backoff.
    pub rto: Nanos,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first event.
    pub ssthresh: u64,
    /// Bytes sent but not acknowledged.
    pub flight: u64,
}

impl Connection {
    /// Opens a connection. Its first segment is the SYN.
    ///
    /// # Panics
    /// Panics if [`Config::check`] fails.
    pub fn connect(config: &Config, isn: u32, now: Nanos) -> Self {
        Self::new(config, isn, now, Stage::SynSent)
    }

    /// Creates a connection that answers a SYN. Its first segment is the SYN-ACK.
    ///
    /// # Panics
    /// Panics if [`Config::check`] fails.
    pub fn accept(config: &Config, isn: u32, syn: &Segment, now: Nanos) -> Self {
        let mut connection = Self::new(config, isn, now, Stage::SynReceived);
        connection.negotiate(syn);
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

    /// Writes `bytes` bytes.
    ///
    /// # Panics
    /// Panics after [`finish`](Self::finish).
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.sender.is_finished(), "write after finish");
        self.sender.write(bytes);
    }

    /// Ends the data. A FIN follows the last byte.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// Aborts the connection. Its last segment is a RST.
    pub fn abort(&mut self) {
        if self.is_established() {
            let seq = self.origin.number(self.sender.board().sent());
            self.reset = Some(Box::new(Segment::bare(seq, 0, Flags::RST)));
        }
        self.stage = Stage::Aborted;
    }

    /// Returns the number of bytes received in order.
    pub fn readable(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::readable)
    }

    /// Returns true if all data of the peer has been received, including its FIN.
    pub fn is_read(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_finished)
    }

    /// Returns the number of distinct bytes sent.
    pub fn sent(&self) -> u64 {
        self.sender.sent()
    }

    /// Returns the number of bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Returns true if the handshake is complete and the connection not aborted.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Returns true if both FINs were acknowledged, or the connection was aborted.
    ///
    /// In TIME-WAIT, the connection still acknowledges a retransmitted FIN, as long as the caller keeps it.
    pub fn is_closed(&self) -> bool {
        matches!(self.state(), State::TimeWait | State::Closed)
    }

    /// Returns true if the connection ended by a RST, or because the peer did not answer.
    pub fn is_aborted(&self) -> bool {
        self.stage == Stage::Aborted
    }

    /// Returns the state of RFC 9293.
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

    /// Returns the statistics of the connection.
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

    /// Returns DCTCP's alpha, or `None` for other algorithms.
    pub fn marked_share(&self) -> Option<f64> {
        self.sender.controller.marked_share()
    }

    /// Returns when to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        let receiver = self.receiver.as_ref().and_then(Receiver::timeout);
        match self.stage {
            Stage::Aborted => None,
            Stage::SynSent | Stage::SynReceived => self.syn.deadline,
            Stage::Open => self.sender.timeout().into_iter().chain(receiver).min(),
        }
    }

    /// Processes the timers that have expired, if any.
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
            if self.syn.timeouts == MAX_SYN_RETRIES && !self.config.is_netbench() {
                self.stage = Stage::Aborted;
            } else {
                self.syn.timeouts += 1;
                self.syn.pending = true;
            }
        }
    }
}

/// Returns the timestamp clock in milliseconds, as in Linux.
fn clock(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}
