// SPDX-License-Identifier: Apache-2.0
//! A QUIC connection: handshake, packets received and packets sent.

use super::acks::Acks;
use super::config::Config;
use super::packet::{Frames, Packet, overhead};
use super::recovery::{Fate, Recovery, SentPacket};
use super::streams::{Incoming, Outgoing};
use crate::Nanos;
use crate::tcp::Ecn;

/// Maximum number of consecutive probe timeouts before the connection fails.
const MAX_PROBE_TIMEOUTS: u32 = 10;

/// Number of packets that are not ack-eliciting before one includes a PING.
const MAX_NON_ELICITING: u32 = 19;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    is_server: bool,
    stage: Stage,
    /// Number of packets since the last ack-eliciting one.
    non_eliciting: u32,
    /// The handshake message must be sent.
    handshake_pending: bool,
    recovery: Recovery,
    acks: Acks,
    outgoing: Outgoing,
    incoming: Incoming,
    packets_sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Open,
    /// A CONNECTION_CLOSE must be sent.
    Closing,
    Closed,
}

/// Statistics of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sent, of all kinds.
    pub packets_sent: u64,
    /// Ack-eliciting packets declared lost.
    pub lost: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Number of window reductions for losses or marks.
    pub reductions: u64,
    /// Number of persistent congestion events.
    pub persistent_congestions: u64,
    /// Smoothed round-trip time, if measured.
    pub srtt: Option<Nanos>,
    /// Congestion window in bytes of UDP payload.
    pub cwnd: u64,
    /// Bytes in flight.
    pub flight: u64,
}

impl Connection {
    /// Creates a client connection. Its first packet is the handshake message.
    ///
    /// # Panics
    /// Panics if [`Config::check`] fails.
    pub fn connect(config: &Config) -> Self {
        if let Err(error) = config.check() {
            panic!("quic::Config: {error}");
        }
        Self {
            is_server: false,
            stage: Stage::Connecting,
            non_eliciting: 0,
            handshake_pending: true,
            recovery: Recovery::new(config),
            acks: Acks::new(config.max_ack_delay),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            packets_sent: 0,
            config: config.clone(),
        }
    }

    /// Creates a server connection that answers a client's first packet.
    ///
    /// # Panics
    /// Panics if [`Config::check`] fails.
    pub fn accept(config: &Config, packet: &Packet, now: Nanos) -> Self {
        let mut connection = Self {
            is_server: true,
            ..Self::connect(config)
        };
        connection.acks.receive(now, packet);
        connection
    }

    /// Sends a stream of `bytes` bytes and its end. Streams are served in round-robin order, packet by packet.
    ///
    /// # Panics
    /// Panics if the stream is already being sent.
    pub fn send_stream(&mut self, id: u64, bytes: u64) {
        self.outgoing.open(id, bytes);
    }

    /// Returns the id and length of the next stream of the peer that has arrived completely.
    pub fn poll_stream(&mut self) -> Option<(u64, u64)> {
        self.incoming.take()
    }

    /// Closes the connection without waiting for data in flight.
    pub fn close(&mut self) {
        if self.stage != Stage::Closed {
            self.stage = Stage::Closing;
        }
    }

    /// Returns the number of distinct stream bytes received, in any order.
    pub fn received(&self) -> u64 {
        self.incoming.bytes()
    }

    /// Returns the number of distinct stream bytes sent.
    pub fn sent(&self) -> u64 {
        self.outgoing.sent()
    }

    /// Returns the number of distinct stream bytes that the peer has acknowledged, in any order.
    pub fn acknowledged(&self) -> u64 {
        self.outgoing.acknowledged()
    }

    /// Returns true if all streams sent have been acknowledged.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Returns true if the handshake is complete and the connection not closed.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Returns true if either end has closed the connection, or the peer does not answer.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closing | Stage::Closed)
    }

    /// Returns the statistics of the connection.
    pub fn statistics(&self) -> Statistics {
        let counts = &self.recovery.counts;
        Statistics {
            packets_sent: self.packets_sent,
            lost: counts.lost,
            probe_timeouts: counts.probe_timeouts,
            reductions: counts.reductions,
            persistent_congestions: counts.persistent,
            srtt: self.recovery.smoothed_rtt(),
            cwnd: self.recovery.controller.window(),
            flight: self.recovery.in_flight(),
        }
    }

    /// Returns DCTCP's alpha, or `None` for other algorithms.
    pub fn marked_share(&self) -> Option<f64> {
        self.recovery.controller.marked_share()
    }

    /// Processes a received packet.
    pub fn receive(&mut self, now: Nanos, packet: &Packet) {
        if self.is_closed() {
            return;
        }
        if packet.close {
            self.stage = Stage::Closed;
            return;
        }
        if !self.acks.receive(now, packet) {
            return;
        }
        // The client's handshake completes with the server's message, and the server's with the client's next packet.
        if packet.handshake != self.is_server {
            self.stage = Stage::Open;
        }
        if let Some(ack) = &packet.ack {
            let Self {
                recovery,
                outgoing,
                acks,
                handshake_pending,
                ..
            } = self;
            recovery.on_ack(now, ack, |fate, sent| {
                apply_fate(outgoing, acks, handshake_pending, fate, sent)
            });
        }
        for frame in packet.frames.iter() {
            self.incoming.receive(frame);
        }
    }

    /// Returns the next packet to send now. Call it after every other call, until it returns `None`.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Packet> {
        match self.stage {
            Stage::Closed => return None,
            Stage::Closing => {
                self.stage = Stage::Closed;
                return Some(self.send(
                    now,
                    Packet {
                        close: true,
                        ..self.bare()
                    },
                ));
            }
            Stage::Connecting | Stage::Open => {}
        }
        let has_data = self.has_data();
        let probing = self.recovery.is_probing();
        let may_send = has_data && (probing || self.recovery.has_room());
        if !may_send && !probing && !self.acks.is_due() {
            return None;
        }
        // RFC 9000, section 13.2.4: from time to time, elicit an acknowledgment of acknowledgments.
        let ping = !may_send && (probing || self.non_eliciting >= MAX_NON_ELICITING);
        let mut packet = Packet {
            ping,
            ack: self.acks.take(now),
            ..self.bare()
        };
        packet.length += packet.ack.map_or(0, |ack| ack.length()) + u32::from(ping);
        if self.handshake_pending && may_send {
            self.handshake_pending = false;
            packet.handshake = true;
            packet.length = self.config.max_datagram;
        } else if may_send {
            packet.length += self
                .outgoing
                .fill(&mut packet.frames, self.config.max_datagram - packet.length);
        }
        Some(self.send(now, packet))
    }

    /// Returns true if there is data to send.
    fn has_data(&self) -> bool {
        self.handshake_pending || (self.stage == Stage::Open && self.outgoing.has_data())
    }

    fn bare(&self) -> Packet {
        Packet {
            number: self.recovery.next_number(),
            handshake: false,
            ping: false,
            close: false,
            ack: None,
            frames: Frames::default(),
            length: overhead(self.config.connection_id, self.recovery.unacknowledged()),
            ecn: if self.config.uses_ecn() {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            },
        }
    }

    fn send(&mut self, now: Nanos, packet: Packet) -> Packet {
        self.packets_sent += 1;
        self.non_eliciting = if packet.is_eliciting() {
            0
        } else {
            self.non_eliciting + 1
        };
        self.recovery.send(SentPacket {
            at: now,
            bytes: packet.length,
            eliciting: packet.is_eliciting(),
            handshake: packet.handshake,
            frames: packet.frames,
            acknowledges: packet
                .ack
                .and_then(|ack| ack.ranges.first().map(|range| range.1)),
            fate: Fate::Unknown,
        });
        packet
    }

    /// Returns when to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        if self.is_closed() {
            return None;
        }
        self.recovery
            .timeout()
            .into_iter()
            .chain(self.acks.timeout())
            .min()
    }

    /// Processes the timers that have expired, if any.
    pub fn on_timeout(&mut self, now: Nanos) {
        if self.is_closed() {
            return;
        }
        self.acks.on_timeout(now);
        let has_data = self.has_data();
        let Self {
            recovery,
            outgoing,
            acks,
            handshake_pending,
            ..
        } = self;
        let probes = recovery.on_timeout(now, |fate, sent| {
            apply_fate(outgoing, acks, handshake_pending, fate, sent)
        });
        if probes && !has_data {
            // RFC 9002, section 6.2.4: without new data, a probe repeats the oldest data in flight.
            for sent in recovery.oldest() {
                apply_fate(outgoing, acks, handshake_pending, Fate::Lost, sent);
            }
        }
        if recovery.pto_count() > MAX_PROBE_TIMEOUTS {
            self.stage = Stage::Closed;
        }
    }
}

/// Updates the streams and acknowledgments when the fate of a packet is known.
fn apply_fate(
    outgoing: &mut Outgoing,
    acks: &mut Acks,
    handshake_pending: &mut bool,
    fate: Fate,
    sent: &SentPacket,
) {
    match fate {
        Fate::Unknown => {}
        Fate::Acked => {
            sent.frames
                .iter()
                .for_each(|frame| outgoing.acknowledge(frame));
            if let Some(largest) = sent.acknowledges {
                acks.forget(largest);
            }
        }
        Fate::Lost => {
            sent.frames.iter().for_each(|frame| outgoing.lose(frame));
            *handshake_pending |= sent.handshake;
        }
    }
}
