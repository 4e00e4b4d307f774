// SPDX-License-Identifier: Apache-2.0
//! Pacing of the first packets of a connection.
//!
//! noq limits a burst to what the congestion window and the round-trip time permit within 10 ms. Until the first
//! acknowledgment it assumes a round-trip time of 333 ms, so a server may send one packet per 27 ms. At a round-trip time
//! of 120 ms it is one packet per 10 ms. RFC 9002, section 7.7, permits bursts of the initial congestion window, which is ten
//! packets. A short response therefore leaves at once here, as with TCP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;

use crate::adjusted::{Adjusted, Adjustment};

/// Pacing rate in bytes per second that no connection reaches, so that only the congestion window limits a burst.
const UNPACED: u64 = 1 << 40;

/// Time in milliseconds in which noq permits a burst at the pacing rate, divided by the ten packets of the initial window.
const PACKET_INTERVAL_MS: u64 = 1;

/// Creates controllers whose bursts may be as long as the initial congestion window.
///
/// The congestion window, and therefore the number of bytes in flight, remain those of the inner controller. A controller
/// that computes its own pacing rate keeps it.
pub struct InitialBurst<F>(Arc<F>);

impl<F> InitialBurst<F> {
    /// Create a factory of controllers over those of `inner`.
    pub fn new(inner: F) -> Self {
        Self(Arc::new(inner))
    }
}

impl<F: ControllerFactory> ControllerFactory for InitialBurst<F> {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let burst = Burst {
            mtu,
            smoothed_rtt: Duration::MAX,
        };
        Box::new(Adjusted::new(self.0.clone().build(now, mtu), burst))
    }
}

/// Pacing rate that permits bursts.
#[derive(Clone, Debug)]
struct Burst {
    /// UDP payload in bytes.
    mtu: u16,
    /// Smoothed round-trip time; `Duration::MAX` until the first acknowledgment.
    smoothed_rtt: Duration,
}

/// Return the pacing rate in bytes per second with which noq permits bursts of ten packets of `mtu` bytes, for a congestion
/// window and an initial one in bytes; `None` if it permits them anyway.
fn pacing_rate((window, initial): (u64, u64), mtu: u16, smoothed_rtt: Duration) -> Option<u64> {
    if window <= initial {
        return Some(UNPACED);
    }
    // noq asks for each packet, so this avoids divisions of 128 bits.
    let rtt_ms = smoothed_rtt.as_secs().saturating_mul(1000);
    let rtt_ms = rtt_ms.saturating_add(smoothed_rtt.subsec_millis().into());
    let packets = rtt_ms / PACKET_INTERVAL_MS;
    let is_slow = window < packets.saturating_mul(u64::from(mtu));
    is_slow.then(|| u64::from(mtu) * 1000 / PACKET_INTERVAL_MS)
}

impl Adjustment for Burst {
    fn on_ack(&mut self, rtt: &RttEstimator) {
        self.smoothed_rtt = rtt.get();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    fn metrics(&self, inner: &dyn Controller) -> ControllerMetrics {
        let mut metrics = inner.metrics();
        if metrics.pacing_rate.is_none() {
            let windows = (inner.window(), inner.initial_window());
            metrics.pacing_rate = pacing_rate(windows, self.mtu, self.smoothed_rtt);
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use noq::congestion::{Bbr3Config, CubicConfig};

    use super::*;

    const MTU: u16 = 1200;

    fn rate(window: u64, rtt_ms: u64) -> Option<u64> {
        pacing_rate((window, 12_000), MTU, Duration::from_millis(rtt_ms))
    }

    #[test]
    fn initial_window_is_not_paced() {
        let cubic = Arc::new(InitialBurst::new(CubicConfig::default()));
        let controller = cubic.build(Instant::now(), MTU);
        assert_eq!(controller.window(), 12_000);
        assert_eq!(controller.metrics().pacing_rate, Some(UNPACED));
        // The window of a connection that has lost packets.
        assert_eq!(rate(2_400, 60), Some(UNPACED));
    }

    #[test]
    fn slow_connection_may_send_ten_packets_in_ten_milliseconds() {
        for (window, rtt_ms) in [(24_000, 60), (71_999, 60), (12_001, 120)] {
            assert_eq!(rate(window, rtt_ms), Some(1_200_000), "{window} {rtt_ms}");
        }
    }

    #[test]
    fn fast_connection_is_paced_by_noq() {
        for (window, rtt_ms) in [(72_000, 60), (12_001, 10), (12_001, 0)] {
            assert_eq!(rate(window, rtt_ms), None, "{window} {rtt_ms}");
        }
    }

    #[test]
    fn controller_with_its_own_rate_keeps_it() {
        let now = Instant::now();
        let plain = Arc::new(Bbr3Config::default()).build(now, MTU);
        let burst = Arc::new(InitialBurst::new(Bbr3Config::default())).build(now, MTU);
        let expected = plain.metrics().pacing_rate;
        assert!(expected.is_some());
        assert_eq!(burst.metrics().pacing_rate, expected);
    }
}
