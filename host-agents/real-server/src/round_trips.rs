// SPDX-License-Identifier: Apache-2.0
//! Round trips of a client with a single path: how long they take, and how many of them limited the responses.
//!
//! A proxy's round trips are shorter if it is closer to the client. The balancer compares, and responds itself where that is
//! faster.

use std::time::{Duration, Instant};

use frontage_handoff::message::ToBalancer;
use frontage_quic::min_rtt::min_rtt;
use noq::{Connection, PathId};

/// Round-trip time, relative to the shortest one, from which packets wait in a queue, so that the link limits the rate.
const QUEUED: (u32, u32) = (5, 4);
/// Share of the congestion window that a response sends per round trip at least if the window limits it. The window may have
/// doubled within the round trip.
const FULL: (u128, u128) = (1, 3);

/// State of noq at some time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    /// Smoothed round-trip time.
    rtt: Duration,
    /// Minimum round-trip time.
    shortest: Duration,
    /// Congestion window in bytes.
    window: u64,
    /// Bytes sent so far.
    sent: u64,
}

/// Round trips of one delegation.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// Number of round trips that limited the responses.
    limiting: u64,
    last: Option<Sample>,
}

impl RoundTrips {
    /// Take a sample, unless the last one was taken within a round trip. Returns a report for the balancer if something has changed.
    pub fn sample(&mut self, connection: &Connection, now: Instant) -> Option<ToBalancer> {
        let is_due = |last: Sample| now.saturating_duration_since(last.at) >= last.rtt;
        if !self.last.is_none_or(is_due) {
            return None;
        }
        let stats = connection.path_stats(PathId::ZERO)?;
        self.add(Sample {
            at: now,
            rtt: stats.rtt,
            shortest: min_rtt(connection, PathId::ZERO)?,
            window: stats.cwnd,
            sent: stats.sent_bytes,
        })
    }

    fn add(&mut self, sample: Sample) -> Option<ToBalancer> {
        let is_limited = self
            .last
            .is_some_and(|last| is_limited_by_window(last, sample))
            && QUEUED.1 * sample.rtt <= QUEUED.0 * sample.shortest;
        let is_new = is_limited
            || self
                .last
                .is_none_or(|last| last.shortest != sample.shortest);
        self.limiting += u64::from(is_limited);
        self.last = Some(sample);
        is_new.then(|| ToBalancer::RoundTrips {
            shortest: sample.shortest.as_micros() as u64,
            limiting: self.limiting,
        })
    }
}

/// Return whether the congestion window was in use between two samples.
fn is_limited_by_window(last: Sample, now: Sample) -> bool {
    let elapsed = now.at.saturating_duration_since(last.at).as_micros();
    let sent = u128::from(now.sent.saturating_sub(last.sent));
    FULL.1 * sent * now.rtt.as_micros() >= FULL.0 * u128::from(now.window) * elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a connection with a window of 10 kB: after `ms`, with a round trip of `rtt` ms, after `sent` kB.
    fn limiting(samples: &[(u64, u64, u64)]) -> Vec<Option<(u64, u64)>> {
        let begin = Instant::now();
        let mut trips = RoundTrips::default();
        let mut shortest = Duration::MAX;
        let add = |(ms, rtt, sent): &(u64, u64, u64)| {
            let rtt = Duration::from_millis(*rtt);
            shortest = shortest.min(rtt);
            let report = trips.add(Sample {
                at: begin + Duration::from_millis(*ms),
                rtt,
                shortest,
                window: 10_000,
                sent: 1000 * sent,
            });
            report.map(|report| match report {
                ToBalancer::RoundTrips { shortest, limiting } => (shortest / 1000, limiting),
                other => panic!("{other:?}"),
            })
        };
        samples.iter().map(add).collect()
    }

    #[test]
    fn full_window_without_a_queue_is_limiting() {
        let got = limiting(&[(0, 60, 0), (60, 60, 10), (120, 50, 20), (180, 55, 30)]);
        assert_eq!(
            got,
            [Some((60, 0)), Some((60, 1)), Some((50, 2)), Some((50, 3))]
        );
    }

    #[test]
    fn link_and_application_are_not_round_trips() {
        // The queue takes 40 ms.
        let got = limiting(&[(0, 60, 0), (100, 100, 10), (200, 100, 20)]);
        assert_eq!(got, [Some((60, 0)), None, None]);
        // Nearly nothing is sent, and then nothing for long.
        let got = limiting(&[(0, 60, 0), (60, 60, 1), (120, 60, 2), (1000, 60, 12)]);
        assert_eq!(got, [Some((60, 0)), None, None, None]);
    }
}
