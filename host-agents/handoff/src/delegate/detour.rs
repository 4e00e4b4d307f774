// SPDX-License-Identifier: Apache-2.0
//! Congestion control over a longer round trip than a proxy's.
//!
//! ```text
//!   delegated: real server --> client --> balancer --> real server    per round trip
//!   proxied:   balancer --> client --> balancer
//! ```
//!
//! The longer a round trip takes, the slower window-based controllers are. Here the controller keeps the window of a proxied response.
//! The real server uses this window multiplied by the ratio of the round trips, as TCP Hybla does (Caini and Firrincieli, 2004). It is
//! then as fast as a proxy: in slow start, and beside other traffic of a bottleneck. Where losses keep the window small, CUBIC grows it
//! by some packets per round trip, so the real server remains slower by about the square root of the ratio.

use std::sync::Arc;
use std::time::{Duration, Instant};

use frontage_quic::adjusted::{Adjusted, Adjustment};
use noq::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;

/// Maximum ratio of the round trips. Limits the damage of a wrong estimate, for example after the client has moved.
const MAX_RATIO: u64 = 2;

/// Creates controllers that compensate for the detour of acknowledgments through the balancer, for algorithms whose rate depends on the
/// round-trip time.
pub struct DetourCompensation<F> {
    inner: Arc<F>,
    /// Round-trip time between balancer and client.
    proxied: Duration,
}

impl<F> DetourCompensation<F> {
    /// Create a factory of controllers over those of `inner`. `proxied` is the round-trip time between balancer and client.
    pub fn new(inner: F, proxied: Duration) -> Self {
        Self {
            inner: Arc::new(inner),
            proxied,
        }
    }
}

impl<F: ControllerFactory> ControllerFactory for DetourCompensation<F> {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let detour = Detour {
            proxied: self.proxied,
            ratio: Ratio::default(),
        };
        Box::new(Adjusted::new(self.inner.clone().build(now, mtu), detour))
    }
}

/// Ratio of the round trip of a delegated response to that of a proxied one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    delegated_us: u64,
    proxied_us: u64,
}

impl Default for Ratio {
    fn default() -> Self {
        Self {
            delegated_us: 1,
            proxied_us: 1,
        }
    }
}

impl Ratio {
    /// Return the ratio for the `shortest` and the current (`smoothed`) round trip of delegated responses, and that of `proxied`
    /// ones. Packets that wait in a queue delay both alike.
    fn new(shortest: Duration, smoothed: Duration, proxied: Duration) -> Self {
        let detour = shortest.saturating_sub(proxied);
        let delegated_us = smoothed.as_micros() as u64;
        let proxied_us = smoothed.saturating_sub(detour).as_micros() as u64;
        match proxied_us {
            0 => Self::default(),
            _ => Self {
                delegated_us: delegated_us.min(MAX_RATIO * proxied_us),
                proxied_us,
            },
        }
    }

    fn scale(self, window: u64) -> u64 {
        let scaled = u128::from(window) * u128::from(self.delegated_us);
        u64::try_from(scaled / u128::from(self.proxied_us)).unwrap_or(u64::MAX)
    }
}

/// Window over the detour, if the inner controller is that of a proxied response.
#[derive(Clone, Debug)]
struct Detour {
    proxied: Duration,
    ratio: Ratio,
}

impl Adjustment for Detour {
    fn on_ack(&mut self, rtt: &RttEstimator) {
        self.ratio = Ratio::new(rtt.min(), rtt.get(), self.proxied);
    }

    fn window(&self, inner: u64) -> u64 {
        self.ratio.scale(inner)
    }

    fn metrics(&self, inner: &dyn Controller) -> ControllerMetrics {
        let mut metrics = inner.metrics();
        metrics.congestion_window = self.window(inner.window());
        metrics
    }
}

#[cfg(test)]
mod tests {
    use noq::congestion::CubicConfig;

    use super::*;

    fn scaled(shortest: u64, smoothed: u64, proxied: u64) -> u64 {
        let [shortest, smoothed, proxied] =
            [shortest, smoothed, proxied].map(Duration::from_millis);
        Ratio::new(shortest, smoothed, proxied).scale(12_000)
    }

    #[test]
    fn window_grows_with_the_detour() {
        assert_eq!(scaled(60, 60, 40), 18_000);
        // 40 ms in a queue.
        assert_eq!(scaled(60, 100, 40), 15_000);
        assert_eq!(scaled(70, 70, 60), 14_000);
    }

    #[test]
    fn window_never_shrinks_and_at_most_doubles() {
        for (shortest, smoothed, proxied) in [(30, 30, 40), (40, 40, 40), (20, 50, 333)] {
            assert_eq!(scaled(shortest, smoothed, proxied), 12_000);
        }
        assert_eq!(scaled(200, 200, 10), 24_000);
        assert_eq!(scaled(200, 200, 0), 12_000, "unknown");
    }

    #[test]
    fn first_window_is_the_initial_one() {
        let detour = DetourCompensation::new(CubicConfig::default(), Duration::from_millis(40));
        let controller = Arc::new(detour).build(Instant::now(), 1200);
        assert_eq!(controller.window(), 12_000);
        assert_eq!(controller.metrics().congestion_window, 12_000);
    }
}
