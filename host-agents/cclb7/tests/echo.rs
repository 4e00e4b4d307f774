// SPDX-License-Identifier: Apache-2.0
//! The agent restores the echo that the client would have sent. The tests run the programs between a simulated sender
//! and an RFC 7323 receiver, with loss, reordering and delayed acknowledgments.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::lab::{PacketLab, V4, flow};

const SEGMENT: u64 = 1_000;
const START_MS: u64 = 1_000;

struct Path {
    rtt_ms: u64,
    jitter_ms: u64,
    loss_percent: u64,
    segments_per_ms: u64,
}

#[derive(Default, Debug)]
struct Result {
    exact: u32,
    /// Wrong by at most an eighth of the round trip, because not every tick is kept.
    close: u32,
    none: u32,
    wrong: u32,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

/// The receiver of RFC 7323, section 4.3, which acknowledges every second segment.
#[derive(Default)]
struct Receiver {
    next: u64,
    last_ack_sent: u64,
    recent: u32,
    early: BTreeSet<u64>,
    unacknowledged: u32,
}

impl Receiver {
    /// Receive a segment. Return an acknowledgment (number, TSecr) if one is due.
    fn take(&mut self, begin: u64, ts: u32) -> Option<(u64, u32)> {
        if begin <= self.last_ack_sent && ts >= self.recent {
            self.recent = ts;
        }
        let in_order = begin == self.next;
        let filled = in_order && !self.early.is_empty();
        if begin >= self.next {
            self.early.insert(begin);
        }
        while self.early.remove(&self.next) {
            self.next += SEGMENT;
        }
        self.unacknowledged += 1;
        let due = !in_order || filled || self.unacknowledged == 2;
        due.then(|| self.acknowledge())
    }

    fn acknowledge(&mut self) -> (u64, u32) {
        self.unacknowledged = 0;
        self.last_ack_sent = self.next;
        (self.next, self.recent)
    }
}

fn simulate(lab: &mut PacketLab, path: &Path, total: u64) -> Result {
    let mut random = Random(path.rtt_ms << 20 | path.loss_percent << 10 | path.jitter_ms);
    let mut fresh = flow();
    fresh.rtt_min = path.rtt_ms as u32; // as measured by the handshake
    fresh.gap = (fresh.rtt_min / 32).clamp(1, 64);
    lab.set_flow(fresh);
    let (mut receiver, mut result) = (Receiver::default(), Result::default());
    let mut to_client: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let mut to_server: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let (mut sent, mut acked, mut duplicates, mut resent, mut progress_at) =
        (0, 0, 0, u64::MAX, START_MS);
    let mut now = START_MS;
    while acked < total {
        let mut sends = Vec::new();
        for _ in 0..path.segments_per_ms {
            if sent < total
                && sent - acked < 4 * (path.rtt_ms + 20) * path.segments_per_ms * SEGMENT
            {
                sends.push(sent);
                sent += SEGMENT;
            }
        }
        let patience = 3 * (path.rtt_ms + path.jitter_ms) + 100;
        let lost = duplicates >= 3 + path.jitter_ms * path.segments_per_ms && resent != acked;
        if sent > acked && (lost || now - progress_at > patience) {
            sends.push(acked);
            (duplicates, resent, progress_at) = (0, acked, now);
        }
        for offset in sends {
            lab.egress(&lab.data(offset, SEGMENT as usize, now as u32));
            if random.below(100) >= path.loss_percent {
                let arrival = now + path.rtt_ms / 2 + random.below(path.jitter_ms + 1);
                to_client
                    .entry(arrival)
                    .or_default()
                    .push((offset, now as u32));
            }
        }
        for (offset, ts) in to_client.remove(&now).unwrap_or_default() {
            if let Some(ack) = receiver.take(offset, ts) {
                to_server
                    .entry(now + path.rtt_ms / 2)
                    .or_default()
                    .push(ack);
            }
        }
        // The timer of delayed acknowledgments.
        if receiver.unacknowledged > 0 && now.is_multiple_of(40) {
            let ack = receiver.acknowledge();
            to_server
                .entry(now + path.rtt_ms / 2)
                .or_default()
                .push(ack);
        }
        for (ack, truth) in to_server.remove(&now).unwrap_or_default() {
            lab.set_clock(now as u32);
            let restored = lab.tsecr(&lab.acknowledgement(ack, 0x5a5a_5a5a));
            if ack > acked {
                (acked, duplicates, progress_at) = (ack, 0, now);
                let error = u64::from(restored.abs_diff(truth));
                match restored {
                    0 => result.none += 1,
                    r if r == truth => result.exact += 1,
                    _ if error <= path.rtt_ms / 8 => result.close += 1,
                    _ => result.wrong += 1,
                }
            } else {
                duplicates += 1;
            }
        }
        now += 1;
    }
    result
}

/// Check the shares, in per mille of the acknowledgments that made progress.
fn check(path: &Path, exact_or_close: u32, wrong: u32) {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    let r = simulate(&mut lab, path, 4_000 * SEGMENT);
    let all = r.exact + r.close + r.none + r.wrong;
    println!(
        "rtt {} ms, jitter {} ms, loss {} %: {r:?}",
        path.rtt_ms, path.jitter_ms, path.loss_percent
    );
    assert!((r.exact + r.close) * 1000 >= all * exact_or_close, "{r:?}");
    assert!(r.wrong * 1000 <= all * wrong, "{r:?}");
}

#[test]
fn echo_is_exact_on_a_short_path_without_loss() {
    let path = Path {
        rtt_ms: 2,
        jitter_ms: 0,
        loss_percent: 0,
        segments_per_ms: 8,
    };
    check(&path, 1000, 0);
}

#[test]
fn echo_is_close_on_long_paths_without_loss() {
    for rtt_ms in [40, 200, 600, 2_000] {
        let path = Path {
            rtt_ms,
            jitter_ms: 0,
            loss_percent: 0,
            segments_per_ms: 1,
        };
        check(&path, 1000, 0);
    }
}

#[test]
fn echo_is_right_under_loss() {
    for (rtt_ms, loss_percent) in [(4, 1), (20, 2), (100, 1)] {
        let path = Path {
            rtt_ms,
            jitter_ms: 0,
            loss_percent,
            segments_per_ms: 1,
        };
        check(&path, 950, 20);
    }
}

#[test]
fn echo_is_mostly_right_under_reordering() {
    let path = Path {
        rtt_ms: 20,
        jitter_ms: 4,
        loss_percent: 1,
        segments_per_ms: 1,
    };
    check(&path, 900, 100);
}

/// From a timestamp before the retransmission, the kernel would conclude that its timeout was spurious (RFC 3522),
/// undo its repair, and use longer and longer timeouts. So on a busy machine the handshake's round trip must not
/// serve as a lower bound.
#[test]
fn ack_of_a_retransmission_never_echoes_the_first_transmission() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    let mut fresh = flow();
    fresh.rtt_min = 16;
    lab.set_flow(fresh);
    for offset in (0..9).map(|i| i * SEGMENT) {
        lab.egress(&lab.data(offset, SEGMENT as usize, 1_000));
    }
    lab.egress(&lab.data(0, SEGMENT as usize, 1_300));
    lab.set_clock(1_310);
    assert_eq!(lab.tsecr(&lab.acknowledgement(SEGMENT, 0x5a5a_5a5a)), 0);
    // Once the retransmission is older than the shortest round trip, its timestamp is echoed.
    lab.egress(&lab.data(SEGMENT, SEGMENT as usize, 1_600));
    lab.set_clock(1_620);
    assert_eq!(
        lab.tsecr(&lab.acknowledgement(2 * SEGMENT, 0x5a5a_5a5a)),
        1_600
    );
}
