// SPDX-License-Identifier: Apache-2.0
//! Loss detection and congestion control (RFC 9002), with one packet number space.

use std::collections::VecDeque;

use super::config::Config;
use super::packet::{Ack, Frames};
use crate::congestion::{Acked, Controller, Event, Usage};
use crate::rtt::RttEstimator;
use crate::{MILLISECOND, Nanos};

/// kPacketThreshold
const PACKET_THRESHOLD: u64 = 3;

/// kGranularity
const GRANULARITY: Nanos = MILLISECOND;

/// kPersistentCongestionThreshold
const PERSISTENT_THRESHOLD: u64 = 3;

/// Number of datagrams to send on a probe timeout (section 6.2.4).
const PROBES: u8 = 2;

#[derive(Debug)]
pub struct Recovery {
    max_datagram: u64,
    max_ack_delay: Nanos,
    initial_rtt: Nanos,
    packets: VecDeque<SentPacket>,
    /// Packet number of the first entry of `packets`.
    first: u64,
    outstanding: Outstanding,
    largest_acked: Option<u64>,
    rtt: RttEstimator,
    latest_rtt: Nanos,
    min_rtt: Nanos,
    first_sample: Option<Nanos>,
    loss_time: Option<Nanos>,
    last_eliciting: Nanos,
    pto_count: u32,
    probes: u8,
    pub controller: Controller,
    usage: Usage,
    /// congestion_recovery_start_time
    recovery_start: Option<Nanos>,
    ce: u64,
    pub counts: Counts,
}

/// Event counters.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub lost: u64,
    pub probe_timeouts: u64,
    pub reductions: u64,
    pub persistent: u64,
}

/// Ack-eliciting packets in flight.
#[derive(Debug, Default)]
struct Outstanding {
    packets: u64,
    bytes: u64,
    /// Bytes acknowledged or lost since the start of the connection.
    resolved: u64,
}

/// State of a sent packet.
#[derive(Debug, Clone, Copy)]
pub struct SentPacket {
    pub at: Nanos,
    pub bytes: u32,
    pub eliciting: bool,
    pub handshake: bool,
    pub frames: Frames,
    /// Largest packet number that this packet acknowledges.
    pub acknowledges: Option<u64>,
    pub fate: Fate,
}

/// Fate of a sent packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Unknown,
    Acked,
    Lost,
}

impl Recovery {
    pub fn new(config: &Config) -> Self {
        Self {
            max_datagram: u64::from(config.max_datagram),
            max_ack_delay: config.max_ack_delay,
            initial_rtt: config.initial_rtt,
            packets: VecDeque::new(),
            first: 0,
            outstanding: Outstanding::default(),
            largest_acked: None,
            rtt: RttEstimator::default(),
            latest_rtt: 0,
            min_rtt: Nanos::MAX,
            first_sample: None,
            loss_time: None,
            last_eliciting: 0,
            pto_count: 0,
            probes: 0,
            controller: Controller::new(
                config.congestion,
                config.max_datagram,
                config.initial_window,
            ),
            usage: Usage::default(),
            recovery_start: None,
            ce: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Returns the number of packets since the largest acknowledged one.
    pub fn unacknowledged(&self) -> u64 {
        self.next_number() - self.largest_acked.unwrap_or(0)
    }

    /// Returns the number of bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.outstanding.bytes
    }

    pub fn smoothed_rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// Returns the number of probe timeouts since the last acknowledgment.
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// Returns true if a probe must be sent, even if the window is full.
    pub fn is_probing(&self) -> bool {
        self.probes > 0
    }

    /// Returns true if a full datagram fits in the window. The caller must have data to send.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.outstanding.bytes + self.max_datagram <= self.controller.window();
        if !has_room {
            self.note_usage(true);
        }
        has_room
    }

    fn note_usage(&mut self, limited: bool) {
        let resolved = self.outstanding.resolved;
        self.usage
            .note(limited, resolved, resolved + self.outstanding.bytes);
    }

    /// Records a sent packet, which has the next number.
    pub fn send(&mut self, packet: SentPacket) {
        if packet.eliciting {
            if self.outstanding.packets == 0 && self.first_sample.is_some() {
                let idle = packet.at - self.last_eliciting;
                self.controller.on_idle(idle, self.pto());
            }
            self.last_eliciting = packet.at;
            self.outstanding.packets += 1;
            self.outstanding.bytes += u64::from(packet.bytes);
            self.probes = self.probes.saturating_sub(1);
            self.note_usage(self.outstanding.bytes + self.max_datagram > self.controller.window());
        }
        self.packets.push_back(packet);
    }

    /// Returns the oldest ack-eliciting packets in flight, as many as a probe timeout may send.
    pub fn oldest(&self) -> impl Iterator<Item = &SentPacket> {
        let unknown = self
            .packets
            .iter()
            .filter(|packet| packet.eliciting && packet.fate == Fate::Unknown);
        unknown.take(usize::from(PROBES))
    }

    /// Processes an acknowledgment (OnAckReceived, appendix A.7). Calls `on_fate` for each packet whose fate it decides.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, mut on_fate: impl FnMut(Fate, &SentPacket)) {
        let Some(&(_, largest)) = ack.ranges.first() else {
            return;
        };
        if largest >= self.next_number() {
            return;
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        let mut summary = AckSummary::default();
        for &(low, high) in ack.ranges.iter() {
            for number in low.max(self.first)..(high + 1).max(self.first) {
                let packet = &mut self.packets[(number - self.first) as usize];
                if packet.fate != Fate::Unknown {
                    continue;
                }
                packet.fate = Fate::Acked;
                if number == largest {
                    summary.largest_at = Some(packet.at);
                }
                if packet.eliciting {
                    self.outstanding.resolve(packet);
                    summary.eliciting = true;
                    summary.bytes += u64::from(packet.bytes);
                    if self.recovery_start.is_none_or(|start| packet.at > start) {
                        summary.growth += u64::from(packet.bytes);
                    }
                }
                on_fate(Fate::Acked, packet);
            }
        }
        if let Some(at) = summary.largest_at.filter(|_| summary.eliciting) {
            self.sample(now, now - at, ack.delay);
        }
        let reductions = self.counts.reductions;
        self.note_marks(now, ack, largest, &summary);
        self.detect_losses(now, &mut on_fate);
        if summary.eliciting {
            self.pto_count = 0;
            self.probes = 0;
        }
        // Packets sent before a reduction do not grow the window.
        if summary.growth > 0
            && self.counts.reductions == reductions
            && self.usage.is_limited(&self.controller)
        {
            let rtt = self.rtt.smoothed().unwrap_or(0);
            self.controller.on_ack(Acked {
                now,
                bytes: summary.growth,
                rtt,
            });
        }
    }

    /// Adds a sample of the round-trip time (section 5.3).
    fn sample(&mut self, now: Nanos, rtt: Nanos, delay: Nanos) {
        self.first_sample.get_or_insert(now);
        self.latest_rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let delay = delay.min(self.max_ack_delay);
        let plausible = rtt >= self.min_rtt + delay;
        self.rtt.sample(if plausible { rtt - delay } else { rtt });
    }

    /// Processes the count of marked packets.
    fn note_marks(&mut self, now: Nanos, ack: &Ack, largest: u64, summary: &AckSummary) {
        let marked = ack.ce.unwrap_or(0).saturating_sub(self.ce);
        self.ce += marked;
        let bytes = (marked * self.max_datagram).min(summary.bytes);
        let next = self.next_number();
        self.controller
            .on_feedback(summary.bytes - bytes, false, largest, next);
        self.controller.on_feedback(bytes, true, largest, next);
        if let Some(at) = summary.largest_at.filter(|_| marked > 0) {
            self.reduce(now, at, Event::Mark);
        }
    }

    /// Detects lost packets (DetectAndRemoveLostPackets, appendix A.10).
    fn detect_losses(&mut self, now: Nanos, on_fate: &mut impl FnMut(Fate, &SentPacket)) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return;
        };
        let rtt = self
            .latest_rtt
            .max(self.rtt.smoothed().unwrap_or(self.initial_rtt));
        let delay = (rtt * 9 / 8).max(GRANULARITY);
        let mut latest_lost = None;
        // Start of the current run of lost packets without an acknowledged one in between, and the longest duration of a run.
        let mut run: Option<Nanos> = None;
        let mut longest = 0;
        for (number, packet) in (self.first..largest).zip(self.packets.iter_mut()) {
            if packet.fate == Fate::Unknown {
                if packet.at + delay > now && largest < number + PACKET_THRESHOLD {
                    let due = packet.at + delay;
                    self.loss_time = Some(self.loss_time.map_or(due, |time| time.min(due)));
                    continue;
                }
                packet.fate = Fate::Lost;
                if packet.eliciting {
                    self.outstanding.resolve(packet);
                    self.counts.lost += 1;
                    latest_lost = Some(packet.at);
                }
                on_fate(Fate::Lost, packet);
            }
            if packet.fate == Fate::Acked {
                run = None;
            } else if packet.eliciting && self.first_sample.is_some_and(|sample| packet.at > sample)
            {
                longest = longest.max(packet.at - *run.get_or_insert(packet.at));
            }
        }
        while self
            .packets
            .front()
            .is_some_and(|packet| packet.fate != Fate::Unknown)
        {
            self.packets.pop_front();
            self.first += 1;
        }
        if let Some(at) = latest_lost {
            self.reduce(now, at, Event::Loss);
            if longest > self.pto() * PERSISTENT_THRESHOLD {
                // Section 7.6.2.
                self.counts.persistent += 1;
                self.controller
                    .on_event(Event::Timeout, self.controller.window());
                self.controller.set_window(2 * self.max_datagram);
                self.recovery_start = None;
            }
        }
    }

    /// Reduces the window, at most once per round trip (OnCongestionEvent, appendix B.6).
    fn reduce(&mut self, now: Nanos, sent_at: Nanos, event: Event) {
        if self.recovery_start.is_some_and(|start| sent_at <= start) {
            return;
        }
        self.recovery_start = Some(now);
        self.counts.reductions += 1;
        self.controller.on_event(event, self.controller.window());
        self.controller.set_window(self.controller.threshold());
    }

    /// Returns the probe timeout without backoff (section 6.2.1).
    fn pto(&self) -> Nanos {
        let initial = self.initial_rtt + (2 * self.initial_rtt).max(GRANULARITY);
        self.rtt
            .timeout(GRANULARITY)
            .map_or(initial, |timeout| timeout + self.max_ack_delay)
    }

    /// Returns when to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        let pto = || self.last_eliciting + (self.pto() << self.pto_count.min(20));
        self.loss_time
            .or_else(|| (self.outstanding.packets > 0).then(pto))
    }

    /// Processes an expired timer (OnLossDetectionTimeout, appendix A.9). Returns true if probes must be sent.
    pub fn on_timeout(&mut self, now: Nanos, mut on_fate: impl FnMut(Fate, &SentPacket)) -> bool {
        if self.timeout().is_none_or(|timeout| timeout > now) {
            return false;
        }
        if self.loss_time.is_some() {
            self.detect_losses(now, &mut on_fate);
            return false;
        }
        self.counts.probe_timeouts += 1;
        self.pto_count += 1;
        self.probes = PROBES;
        true
    }
}

/// Summary of a processed acknowledgment.
#[derive(Debug, Default)]
struct AckSummary {
    eliciting: bool,
    bytes: u64,
    growth: u64,
    largest_at: Option<Nanos>,
}

impl Outstanding {
    fn resolve(&mut self, packet: &SentPacket) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes);
        self.resolved += u64::from(packet.bytes);
    }
}
