//! A connection: the handshake, and packets in and out.

use super::acks::Acks;
use super::config::Config;
use super::packet::{Frames, Packet, overhead};
use super::recovery::{Fate, Recovery, SentPacket};
use super::streams::{Incoming, Outgoing};
use crate::Nanos;
use crate::tcp::Ecn;

/// Probe timeouts in a row after which the connection is given up.
const MOST_PROBE_TIMEOUTS: u32 = 10;

/// Packets that only acknowledge, before one asks for an acknowledgement itself.
const MOST_SILENT: u32 = 19;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    is_server: bool,
    stage: Stage,
    /// Packets since the last that the peer is to acknowledge.
    silent: u32,
    /// The handshake's message is to be sent.
    greets: bool,
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
    /// A CONNECTION_CLOSE is to be sent.
    Closing,
    Closed,
}

/// What a connection has done, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Packets of all kinds.
    pub packets_sent: u64,
    /// Ack-eliciting packets declared lost.
    pub lost: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Times that the window was reduced, for losses or marks.
    pub reductions: u64,
    /// Times that congestion was persistent.
    pub persistent_congestions: u64,
    /// The smoothed round-trip time, once measured.
    pub srtt: Option<Nanos>,
    /// The congestion window, in bytes of UDP payload.
    pub cwnd: u64,
    /// Bytes in flight.
    pub flight: u64,
}

impl Connection {
    /// Begins a connection; the handshake's packet is the first to transmit.
    ///
    /// # Panics
    /// If the configuration's [`check`](Config::check) fails.
    pub fn connect(config: &Config) -> Self {
        if let Err(error) = config.check() {
            panic!("quic::Config: {error}");
        }
        Self {
            is_server: false,
            stage: Stage::Connecting,
            silent: 0,
            greets: true,
            recovery: Recovery::new(config),
            acks: Acks::new(config.max_ack_delay),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            packets_sent: 0,
            config: config.clone(),
        }
    }

    /// Answers a client's first packet.
    ///
    /// # Panics
    /// If the configuration's [`check`](Config::check) fails.
    pub fn accept(config: &Config, packet: &Packet, now: Nanos) -> Self {
        let mut connection = Self {
            is_server: true,
            ..Self::connect(config)
        };
        connection.acks.receive(now, packet);
        connection
    }

    /// Sends a stream of so many bytes, with its end. Streams take turns by packet.
    ///
    /// # Panics
    /// If the stream is already being sent.
    pub fn send_stream(&mut self, id: u64, bytes: u64) {
        self.outgoing.open(id, bytes);
    }

    /// The next of the peer's streams that has arrived as a whole: its id and length.
    pub fn poll_stream(&mut self) -> Option<(u64, u64)> {
        self.incoming.take()
    }

    /// Ends the connection, without waiting for what is in flight.
    pub fn close(&mut self) {
        if self.stage != Stage::Closed {
            self.stage = Stage::Closing;
        }
    }

    /// Bytes of streams received, in whatever order, each once.
    pub fn received(&self) -> u64 {
        self.incoming.bytes()
    }

    /// Bytes of our streams that were sent, each once.
    pub fn sent(&self) -> u64 {
        self.outgoing.sent()
    }

    /// Bytes of our streams that the peer has acknowledged, in whatever order, each once.
    pub fn acknowledged(&self) -> u64 {
        self.outgoing.acknowledged()
    }

    /// Whether all our streams have been acknowledged.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Whether the handshake is over and the connection was not closed.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether either end has closed it, or the peer does not answer.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closing | Stage::Closed)
    }

    /// Counts and measures.
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

    /// DCTCP's alpha; `None` under other laws.
    pub fn marked_share(&self) -> Option<f64> {
        self.recovery.controller.marked_share()
    }

    /// Takes a packet.
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
        // The client's handshake is over with the server's message, and the server's with what a
        // client sends that has it.
        if packet.handshake != self.is_server {
            self.stage = Stage::Open;
        }
        if let Some(ack) = &packet.ack {
            let Self {
                recovery,
                outgoing,
                acks,
                greets,
                ..
            } = self;
            recovery.on_ack(now, ack, |fate, sent| {
                settle(outgoing, acks, greets, fate, sent)
            });
        }
        for frame in packet.frames.iter() {
            self.incoming.receive(frame);
        }
    }

    /// The next packet to send now; to be called until there is none, after every other call.
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
        let waits = self.is_waiting();
        let probing = self.recovery.is_probing();
        let may_send = waits && (probing || self.recovery.has_room());
        if !may_send && !probing && !self.acks.owes() {
            return None;
        }
        // RFC 9000, section 13.2.4: now and then an acknowledgement is to be acknowledged too.
        let ping = !may_send && (probing || self.silent >= MOST_SILENT);
        let mut packet = Packet {
            ping,
            ack: self.acks.take(now),
            ..self.bare()
        };
        packet.length += packet.ack.map_or(0, |ack| ack.length()) + u32::from(ping);
        if self.greets && may_send {
            self.greets = false;
            packet.handshake = true;
            packet.length = self.config.max_datagram;
        } else if may_send {
            packet.length += self
                .outgoing
                .fill(&mut packet.frames, self.config.max_datagram - packet.length);
        }
        Some(self.send(now, packet))
    }

    /// Whether there is something to send, given room.
    fn is_waiting(&self) -> bool {
        self.greets || (self.stage == Stage::Open && self.outgoing.is_waiting())
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
            ecn: if self.config.asks_for_ecn() {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            },
        }
    }

    fn send(&mut self, now: Nanos, packet: Packet) -> Packet {
        self.packets_sent += 1;
        self.silent = if packet.is_eliciting() {
            0
        } else {
            self.silent + 1
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

    /// When to call [`on_timeout`](Self::on_timeout).
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

    /// Does what is due by now, which may be nothing.
    pub fn on_timeout(&mut self, now: Nanos) {
        if self.is_closed() {
            return;
        }
        self.acks.on_timeout(now);
        let waits = self.is_waiting();
        let Self {
            recovery,
            outgoing,
            acks,
            greets,
            ..
        } = self;
        let probes =
            recovery.on_timeout(now, |fate, sent| settle(outgoing, acks, greets, fate, sent));
        if probes && !waits {
            // RFC 9002, section 6.2.4: for want of new data, what is longest on the way.
            for sent in recovery.oldest() {
                settle(outgoing, acks, greets, Fate::Lost, sent);
            }
        }
        if recovery.pto_count() > MOST_PROBE_TIMEOUTS {
            self.stage = Stage::Closed;
        }
    }
}

/// Acts on what became of a packet.
fn settle(
    outgoing: &mut Outgoing,
    acks: &mut Acks,
    greets: &mut bool,
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
            *greets |= sent.handshake;
        }
    }
}
