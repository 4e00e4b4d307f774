// SPDX-License-Identifier: Apache-2.0
//! Start times, servers and sizes of a workload's flows.

use std::net::SocketAddr;

use softswitch_pipeline::Nanos;
use softswitch_random::Rng;

use crate::scenario::{Arrivals, Sizes, Workload};
use crate::seed;

const NANOS_PER_SECOND: f64 = 1e9;

/// Iterator over the start times of a workload's flows.
#[derive(Debug)]
pub struct ArrivalTimes {
    arrivals: Arrivals,
    rng: Rng,
    /// Time of the last arrival in nanoseconds. A Poisson process must keep its fraction.
    last: f64,
    /// Number of listed arrivals that were used or skipped.
    taken: usize,
    burst: u32,
    /// Number of flows of the current burst that have not started.
    left_in_burst: u32,
    start: Nanos,
    stop: Nanos,
}

impl ArrivalTimes {
    /// Creates the generator of a workload, whose own seed is `seed`.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        Self {
            arrivals: workload.arrivals.clone(),
            rng: seed::generator(seed, "arrivals"),
            last: workload.start as f64,
            taken: 0,
            burst: workload.burst,
            left_in_burst: 0,
            start: workload.start,
            stop: workload.stop.unwrap_or(Nanos::MAX),
        }
    }
}

impl Iterator for ArrivalTimes {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let is_first = self.left_in_burst == 0;
        self.left_in_burst = if is_first {
            self.burst - 1
        } else {
            self.left_in_burst - 1
        };
        let at = match &self.arrivals {
            Arrivals::Poisson(_) if !is_first => self.last as Nanos,
            Arrivals::Times(times) if !is_first => *times.get(self.taken - 1)?,
            Arrivals::Poisson(rate) => {
                // Inversion method. This logarithm gives the same result on all platforms.
                self.last -= libm::log(seed::unit(&mut self.rng)) / rate * NANOS_PER_SECOND;
                self.last as Nanos
            }
            Arrivals::Times(times) => {
                self.taken += times[self.taken..]
                    .iter()
                    .take_while(|&&at| at < self.start)
                    .count();
                self.taken += 1;
                *times.get(self.taken - 1)?
            }
        };
        (at < self.stop).then_some(at)
    }
}

/// Random choice of a flow's server.
#[derive(Debug)]
pub struct ServerChoice {
    /// All servers; those that the current burst has used come first.
    servers: Vec<SocketAddr>,
    drawn: usize,
    burst: usize,
    rng: Rng,
}

impl ServerChoice {
    /// Creates the generator of a workload, whose own seed is `seed`.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        Self {
            servers: workload.servers.clone(),
            drawn: 0,
            burst: workload.burst as usize,
            rng: seed::generator(seed, "servers"),
        }
    }

    /// Returns the server of the next flow.
    pub fn draw(&mut self) -> SocketAddr {
        if self.burst == 1 {
            return self.rng.pick(&self.servers);
        }
        let position = self.drawn % self.servers.len();
        let choice = position + self.rng.below(self.servers.len() - position);
        self.servers.swap(position, choice);
        self.drawn = (self.drawn + 1) % self.burst;
        self.servers[position]
    }
}

/// Random sizes of responses.
#[derive(Debug)]
pub struct ResponseSizes {
    sizes: Sizes,
    rng: Rng,
}

impl ResponseSizes {
    /// Creates the generator of a workload, whose own seed is `seed`.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        Self {
            sizes: workload.sizes.clone(),
            rng: seed::generator(seed, "sizes"),
        }
    }

    /// Returns the size of the next response in bytes, at least one.
    pub fn draw(&mut self) -> u64 {
        match &self.sizes {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Uniform(low, high) => self.rng.uniform(*low, *high),
            Sizes::Cdf(points) => (quantile(points, seed::unit(&mut self.rng)) as u64).max(1),
        }
    }
}

/// Returns the quantile `p` of a cumulative distribution, which is linear between its points.
fn quantile(points: &[(f64, f64)], p: f64) -> f64 {
    let above = points
        .partition_point(|point| point.1 < p)
        .min(points.len() - 1);
    let (high, p_high) = points[above];
    match above.checked_sub(1).map(|below| points[below]) {
        Some((low, p_low)) => low + (high - low) * (p - p_low) / (p_high - p_low),
        None => high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 11;

    fn workload(arrivals: &str, sizes: &str) -> Workload {
        let text = format!(
            r#"{{"client": "c", "servers": ["10.0.0.1:80", "10.0.0.2:80"], "arrivals": {arrivals}, "sizes": {sizes}, "request_bytes": 100,
                "start": 1000, "stop": 2000000000, "connection": "one-per-flow"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn poisson_arrivals_have_the_configured_rate_and_variance() {
        let workload = workload(r#"{"poisson": 50000}"#, r#"{"fixed": 1}"#);
        let times: Vec<_> = ArrivalTimes::new(&workload, SEED).collect();
        assert!(times.is_sorted() && times[0] >= 1000 && times[times.len() - 1] < 2_000_000_000);
        // 100,000 expected, with a standard deviation of 316.
        assert!(
            (99_000..101_000).contains(&times.len()),
            "{} arrivals",
            times.len()
        );
        let gaps: Vec<_> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let ratio = variance.sqrt() / mean;
        assert!(
            (0.98..1.02).contains(&ratio),
            "standard deviation over mean {ratio}"
        );
    }

    #[test]
    fn listed_arrivals_between_start_and_stop_are_kept() {
        let workload = workload(
            r#"{"times": [5, 1000, 1000, 7000, 2000000000]}"#,
            r#"{"fixed": 1}"#,
        );
        assert_eq!(
            ArrivalTimes::new(&workload, SEED).collect::<Vec<_>>(),
            [1000, 1000, 7000]
        );
    }

    #[test]
    fn burst_starts_at_once_and_uses_each_server_once() {
        let mut workload = workload(r#"{"poisson": 50}"#, r#"{"fixed": 1}"#);
        workload.burst = 3;
        workload.servers.push("10.0.0.3:80".parse().unwrap());
        let times: Vec<_> = ArrivalTimes::new(&workload, SEED).collect();
        let bursts: Vec<_> = times.chunks(3).collect();
        assert!((70..130).contains(&bursts.len()), "{}", bursts.len());
        assert!(bursts.iter().all(|burst| burst.len() == 3));
        assert!(bursts.iter().all(|burst| burst[0] == burst[2]));
        let mut servers = ServerChoice::new(&workload, SEED);
        let orders: std::collections::BTreeSet<Vec<_>> = (0..100)
            .map(|_| (0..3).map(|_| servers.draw()).collect())
            .collect();
        assert_eq!(
            orders.len(),
            6,
            "all orders occur, each with all three servers"
        );
        workload.arrivals = Arrivals::Times(vec![2000]);
        assert_eq!(
            ArrivalTimes::new(&workload, SEED).collect::<Vec<_>>(),
            [2000; 3]
        );
    }

    #[test]
    fn servers_are_used_equally_often() {
        let workload = workload(r#"{"times": []}"#, r#"{"fixed": 1}"#);
        let mut servers = ServerChoice::new(&workload, SEED);
        let first = (0..10_000)
            .filter(|_| servers.draw() == workload.servers[0])
            .count();
        // 5,000 expected, with a standard deviation of 50.
        assert!((4_800..5_200).contains(&first), "{first} of 10,000");
    }

    #[test]
    fn sizes_follow_their_distribution() {
        let cdf = r#"{"cdf": [[0, 0], [100, 0.5], [200, 0.5], [1000, 1]]}"#;
        let mut lengths = ResponseSizes::new(&workload(r#"{"times": []}"#, cdf), SEED);
        let drawn: Vec<_> = (0..100_000).map(|_| lengths.draw()).collect();
        let share =
            |low, high| drawn.iter().filter(|&&n| low <= n && n < high).count() as f64 / 1e5;
        for (low, high, expected) in [
            (1, 51, 0.25),
            (1, 101, 0.5),
            (101, 200, 0.0),
            (200, 600, 0.25),
            (200, 1000, 0.5),
        ] {
            let share = share(low, high);
            assert!((share - expected).abs() < 0.01, "{share} of {low}..{high}");
        }
        let mut uniform = ResponseSizes::new(
            &workload(r#"{"times": []}"#, r#"{"uniform": [3, 5]}"#),
            SEED,
        );
        let drawn: std::collections::BTreeSet<_> = (0..1000).map(|_| uniform.draw()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
