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

/// Datagrams that a probe timeout lets out (section 6.2.4).
const PROBES: u8 = 2;

#[derive(Debug)]
pub struct Recovery {
    max_datagram: u64,
    max_ack_delay: Nanos,
    initial_rtt: Nanos,
    packets: VecDeque<SentPacket>,
    /// Number of the first of `packets`.
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

/// How often what happened.
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
    /// Since the beginning.
    resolved: u64,
}

/// What is remembered of a packet.
#[derive(Debug, Clone, Copy)]
pub struct SentPacket {
    pub at: Nanos,
    pub bytes: u32,
    pub eliciting: bool,
    pub handshake: bool,
    pub frames: Frames,
    /// The largest number that it acknowledged.
    pub acknowledges: Option<u64>,
    pub fate: Fate,
}

/// What became of a packet.
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

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Packets since the largest that is known to have arrived.
    pub fn unacknowledged(&self) -> u64 {
        self.next_number() - self.largest_acked.unwrap_or(0)
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.outstanding.bytes
    }

    pub fn smoothed_rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// Probe timeouts since something was acknowledged.
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// Whether a probe is due, which does not wait for room in the window.
    pub fn is_probing(&self) -> bool {
        self.probes > 0
    }

    /// Whether a full datagram fits in the window. If not, something waits for it.
    pub fn has_room(&mut self) -> bool {
        let room = self.outstanding.bytes + self.max_datagram <= self.controller.window();
        if !room {
            self.note_usage(true);
        }
        room
    }

    fn note_usage(&mut self, limited: bool) {
        let resolved = self.outstanding.resolved;
        self.usage
            .note(limited, resolved, resolved + self.outstanding.bytes);
    }

    /// A packet goes out, with the next number.
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

    /// The packets that are longest on the way, of those that carry something.
    pub fn oldest(&self) -> impl Iterator<Item = &SentPacket> {
        let unknown = self
            .packets
            .iter()
            .filter(|packet| packet.eliciting && packet.fate == Fate::Unknown);
        unknown.take(usize::from(PROBES))
    }

    /// OnAckReceived (appendix A.7). Tells what became of which packet.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, mut tell: impl FnMut(Fate, &SentPacket)) {
        let Some(&(_, largest)) = ack.ranges.first() else {
            return;
        };
        if largest >= self.next_number() {
            return;
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        let mut news = News::default();
        for &(low, high) in ack.ranges.iter() {
            for number in low.max(self.first)..(high + 1).max(self.first) {
                let packet = &mut self.packets[(number - self.first) as usize];
                if packet.fate != Fate::Unknown {
                    continue;
                }
                packet.fate = Fate::Acked;
                if number == largest {
                    news.largest_at = Some(packet.at);
                }
                if packet.eliciting {
                    self.outstanding.resolve(packet);
                    news.eliciting = true;
                    news.bytes += u64::from(packet.bytes);
                    if self.recovery_start.is_none_or(|start| packet.at > start) {
                        news.growth += u64::from(packet.bytes);
                    }
                }
                tell(Fate::Acked, packet);
            }
        }
        if let Some(at) = news.largest_at.filter(|_| news.eliciting) {
            self.sample(now, now - at, ack.delay);
        }
        let reductions = self.counts.reductions;
        self.note_marks(now, ack, largest, &news);
        self.detect_losses(now, &mut tell);
        if news.eliciting {
            self.pto_count = 0;
            self.probes = 0;
        }
        // What was sent before a reduction does not grow the window.
        if news.growth > 0
            && self.counts.reductions == reductions
            && self.usage.is_limited(&self.controller)
        {
            let rtt = self.rtt.smoothed().unwrap_or(0);
            self.controller.on_ack(Acked {
                now,
                bytes: news.growth,
                rtt,
            });
        }
    }

    /// Section 5.3.
    fn sample(&mut self, now: Nanos, rtt: Nanos, delay: Nanos) {
        self.first_sample.get_or_insert(now);
        self.latest_rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let delay = delay.min(self.max_ack_delay);
        let plausible = rtt >= self.min_rtt + delay;
        self.rtt.sample(if plausible { rtt - delay } else { rtt });
    }

    /// More packets than before arrived with a mark.
    fn note_marks(&mut self, now: Nanos, ack: &Ack, largest: u64, news: &News) {
        let marked = ack.ce.unwrap_or(0).saturating_sub(self.ce);
        self.ce += marked;
        let bytes = (marked * self.max_datagram).min(news.bytes);
        let next = self.next_number();
        self.controller
            .on_feedback(news.bytes - bytes, false, largest, next);
        self.controller.on_feedback(bytes, true, largest, next);
        if let Some(at) = news.largest_at.filter(|_| marked > 0) {
            self.reduce(now, at, Event::Mark);
        }
    }

    /// DetectAndRemoveLostPackets (appendix A.10).
    fn detect_losses(&mut self, now: Nanos, tell: &mut impl FnMut(Fate, &SentPacket)) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return;
        };
        let rtt = self
            .latest_rtt
            .max(self.rtt.smoothed().unwrap_or(self.initial_rtt));
        let delay = (rtt * 9 / 8).max(GRANULARITY);
        let mut latest_lost = None;
        // The first and last of the lost packets with no acknowledged one between them.
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
                tell(Fate::Lost, packet);
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

    /// OnCongestionEvent (appendix B.6): once a round trip.
    fn reduce(&mut self, now: Nanos, sent_at: Nanos, event: Event) {
        if self.recovery_start.is_some_and(|start| sent_at <= start) {
            return;
        }
        self.recovery_start = Some(now);
        self.counts.reductions += 1;
        self.controller.on_event(event, self.controller.window());
        self.controller.set_window(self.controller.threshold());
    }

    /// The probe timeout without backing off (section 6.2.1).
    fn pto(&self) -> Nanos {
        let initial = self.initial_rtt + (2 * self.initial_rtt).max(GRANULARITY);
        self.rtt
            .timeout(GRANULARITY)
            .map_or(initial, |timeout| timeout + self.max_ack_delay)
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn timeout(&self) -> Option<Nanos> {
        let pto = || self.last_eliciting + (self.pto() << self.pto_count.min(20));
        self.loss_time
            .or_else(|| (self.outstanding.packets > 0).then(pto))
    }

    /// OnLossDetectionTimeout (appendix A.9). Gives whether probes are to be sent.
    pub fn on_timeout(&mut self, now: Nanos, mut tell: impl FnMut(Fate, &SentPacket)) -> bool {
        if self.timeout().is_none_or(|timeout| timeout > now) {
            return false;
        }
        if self.loss_time.is_some() {
            self.detect_losses(now, &mut tell);
            return false;
        }
        self.counts.probe_timeouts += 1;
        self.pto_count += 1;
        self.probes = PROBES;
        true
    }
}

/// What an acknowledgement told.
#[derive(Debug, Default)]
struct News {
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
