// SPDX-License-Identifier: Apache-2.0
//! CUBIC (RFC 9438) with the Reno-friendly region and fast convergence, and with the slow start of RFC 5681 instead of HyStart++
//! (RFC 9406).

use super::{Acked, Event};
use crate::Nanos;

/// C in segments per second cubed.
const C: f64 = 0.4;

/// beta_cubic: share of the window that remains after a loss.
const BETA: f64 = 0.7;

/// alpha_cubic: growth of W_est in segments per round trip that is as aggressive as Reno (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC's state. Windows are in segments, as in the RFC.
#[derive(Debug, Clone)]
pub struct Cubic {
    mss: f64,
    /// W_max: the plateau of the curve.
    w_max: f64,
    /// cwnd_prior: window before the last event.
    prior: f64,
    stage: Option<Stage>,
}

/// A congestion avoidance stage, which lasts from one event to the next.
#[derive(Debug, Clone)]
struct Stage {
    began: Nanos,
    /// K in seconds.
    k: f64,
    origin: f64,
    /// W_est: window that Reno would have.
    reno: f64,
    /// Window with its fraction of a byte.
    window: f64,
}

impl Cubic {
    /// Creates a state for segments of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Self {
            mss: mss as f64,
            w_max: 0.0,
            prior: f64::INFINITY,
            stage: None,
        }
    }

    /// Grows the window in congestion avoidance (sections 4.2 to 4.5). Returns the new window in bytes.
    pub fn grow(&mut self, window: u64, acked: &Acked) -> u64 {
        let cwnd = window as f64 / self.mss;
        let stage = self
            .stage
            .get_or_insert_with(|| Stage::begin(acked.now, cwnd, self.w_max));
        // Continue from the fractional window, unless the caller has set another window.
        let is_unchanged = (stage.window * self.mss) as u64 == window;
        let cwnd = if is_unchanged { stage.window } else { cwnd };
        let segments = acked.bytes as f64 / self.mss;
        let elapsed = seconds(acked.now.saturating_sub(stage.began));

        let alpha = if stage.reno < self.prior { ALPHA } else { 1.0 };
        stage.reno += alpha * segments / cwnd;
        stage.window = if stage.cubic(elapsed) < stage.reno {
            cwnd.max(stage.reno)
        } else {
            let target = stage
                .cubic(elapsed + seconds(acked.rtt))
                .clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * segments
        };
        (stage.window * self.mss) as u64
    }

    /// Returns ssthresh after an event (section 4.6), with fast convergence (section 4.7). After a timeout, the next stage starts at its
    /// own plateau (section 4.8).
    pub fn reduce(&mut self, event: Event, window: u64, flight: u64) -> u64 {
        let cwnd = window as f64 / self.mss;
        self.w_max = match event {
            Event::Timeout => 0.0,
            Event::Loss | Event::Mark if cwnd < self.w_max => cwnd * (1.0 + BETA) / 2.0,
            Event::Loss | Event::Mark => cwnd,
        };
        self.prior = cwnd;
        self.stage = None;
        (flight as f64 * BETA) as u64
    }

    /// Excludes time without data in flight from the curve (section 5.8).
    pub fn pause(&mut self, idle: Nanos) {
        if let Some(stage) = &mut self.stage {
            stage.began += idle;
        }
    }
}

impl Stage {
    fn begin(now: Nanos, cwnd: f64, w_max: f64) -> Self {
        let origin = w_max.max(cwnd);
        Self {
            began: now,
            k: cube_root((origin - cwnd) / C),
            origin,
            reno: cwnd,
            window: cwnd,
        }
    }

    /// Returns W_cubic(t) of figure 1 of the RFC, with `t` in seconds.
    fn cubic(&self, t: f64) -> f64 {
        let offset = t - self.k;
        C * offset * offset * offset + self.origin
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// Computes the cube root by Newton's method.
///
/// The C library's `cbrt` may differ in the last bit between machines, which would change results.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // The iteration starts above the root and decreases until rounding stops it.
    let mut root = x.max(1.0);
    loop {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, SECOND};

    const MSS: u64 = 1000;

    #[test]
    fn cube_root_is_precise() {
        for x in [1e-9, 0.008, 0.5, 1.0, 2.0, 27.0, 1e6, 12345.678] {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-14, "{x}: {root}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    /// With one window acknowledged per RTT of 100 ms, after a loss at 1000 segments, the window stays within a segment of figure 1,
    /// through the concave region, the plateau and the convex region.
    #[test]
    fn window_follows_the_curve() {
        let mut cubic = Cubic::new(MSS);
        let mut window = cubic.reduce(Event::Loss, 1000 * MSS, 1000 * MSS);
        assert_eq!(window, 700 * MSS);
        let rtt = 100 * MILLISECOND;
        let k = (300.0f64 / C).cbrt();
        assert!((k - 9.0856).abs() < 1e-4);
        let mut now = 0;
        while now < 15 * SECOND {
            let acks = window / MSS;
            for ack in 1..=acks {
                let at = now + rtt * ack / acks;
                window = cubic.grow(
                    window,
                    &Acked {
                        now: at,
                        bytes: MSS,
                        rtt,
                    },
                );
            }
            now += rtt;
            // The acknowledgments of a window raise cwnd to W_cubic one round trip later.
            let t = seconds(now - rtt / acks) + seconds(rtt);
            let curve = C * (t - k).powi(3) + 1000.0;
            let got = window as f64 / MSS as f64;
            let slope = 3.0 * C * (t - k) * (t - k) * seconds(rtt);
            assert!(
                (got - curve).abs() < 1.0 + slope,
                "at {t} s: {got}, curve {curve}"
            );
        }
    }

    /// With short round trips, CUBIC grows like Reno: by alpha up to the window before the loss, and then by one segment.
    #[test]
    fn short_round_trips_use_the_reno_friendly_region() {
        let mut cubic = Cubic::new(MSS);
        let mut window = cubic.reduce(Event::Loss, 20 * MSS, 20 * MSS);
        let (rtt, mut now, mut growth) = (MILLISECOND, 0, Vec::new());
        for _ in 0..40 {
            let before = window;
            for _ in 0..before / MSS {
                window = cubic.grow(
                    window,
                    &Acked {
                        now,
                        bytes: MSS,
                        rtt,
                    },
                );
            }
            now += rtt;
            growth.push((window - before) as f64 / MSS as f64);
        }
        assert!((growth[2] - ALPHA).abs() < 0.03, "{growth:?}");
        assert!((growth[39] - 1.0).abs() < 0.05, "{growth:?}");
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let mut cubic = Cubic::new(MSS);
        cubic.reduce(Event::Loss, 100 * MSS, 100 * MSS);
        assert_eq!(cubic.w_max, 100.0);
        cubic.reduce(Event::Mark, 80 * MSS, 80 * MSS);
        assert_eq!(cubic.w_max, 80.0 * 0.85);
        cubic.reduce(Event::Loss, 90 * MSS, 90 * MSS);
        assert_eq!(cubic.w_max, 90.0);
        assert_eq!(cubic.reduce(Event::Timeout, 90 * MSS, 60 * MSS), 42 * MSS);
        // After a timeout the first stage starts at its own plateau.
        cubic.grow(
            42 * MSS,
            &Acked {
                now: SECOND,
                bytes: MSS,
                rtt: MILLISECOND,
            },
        );
        let stage = cubic.stage.as_ref().expect("growth starts a stage");
        assert_eq!((stage.k, stage.origin), (0.0, 42.0));
    }

    #[test]
    fn idle_time_does_not_count_for_the_curve() {
        let (mut with, mut without) = (Cubic::new(MSS), Cubic::new(MSS));
        let acked = |now| Acked {
            now,
            bytes: MSS,
            rtt: 100 * MILLISECOND,
        };
        for cubic in [&mut with, &mut without] {
            cubic.reduce(Event::Loss, 500 * MSS, 500 * MSS);
            cubic.grow(350 * MSS, &acked(0));
        }
        with.pause(60 * SECOND);
        let window = with.grow(350 * MSS, &acked(62 * SECOND));
        assert_eq!(window, without.grow(350 * MSS, &acked(2 * SECOND)));
    }
}
