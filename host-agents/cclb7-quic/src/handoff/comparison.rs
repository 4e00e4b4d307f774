// SPDX-License-Identifier: Apache-2.0
//! Comparison of delegation with proxying, for a client with a single path.
//!
//! ```text
//!   delegated: real server --> client --> balancer --> real server    per round trip of a response
//!   proxied:   balancer --> client --> balancer
//! ```
//!
//! A delegated response begins earlier if the real server is close to the client. But its round trips, which limit it while
//! the link does not, take longer if the real server is far from the balancer. The real server compensates for about half of
//! that with a larger congestion window.
//!
//! A delegated round trip takes longer by at most the round trip between balancer and real server, because the real server could
//! send through the balancer. A greater measured difference is due to delayed acknowledgments and queues.

use std::time::{Duration, Instant};

/// Differences between round trips below this part of one, or below [`MIN_MARGIN`], do not count: neither is exactly known.
const MARGIN_PART: u32 = 8;
/// See [`MARGIN_PART`].
const MIN_MARGIN: Duration = Duration::from_millis(5);
/// One limiting round trip in this many costs time that the real server does not compensate for.
const UNCOMPENSATED: u32 = 2;
/// Time after which a report is no longer used, so that delegation is tried again.
const REPORT_LIFETIME: Duration = Duration::from_secs(30);

/// Report of a real server about a client.
#[derive(Clone, Copy, Debug)]
struct Report {
    shortest: Duration,
    limiting: u32,
    at: Instant,
}

/// Measurements of one client and one real server.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Number of delegated requests.
    requests: u32,
    report: Option<Report>,
    /// Value of `limiting` when the previous report became too old.
    forgotten: u32,
}

impl Comparison {
    /// Count a delegated request.
    pub fn on_request(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Handle a report: the real server's shortest round-trip time to the client and back through the balancer, and how many
    /// round trips have limited its responses.
    pub fn on_report(&mut self, shortest: Duration, limiting: u64, now: Instant) {
        self.report = Some(Report {
            shortest,
            limiting: u32::try_from(limiting).unwrap_or(u32::MAX),
            at: now,
        });
    }

    /// Return whether delegated responses have been slower than proxied ones would have been. `client` and `link` are the
    /// balancer's minimum round-trip times to the client and to the real server.
    pub fn is_slower(&mut self, client: Duration, link: Duration, now: Instant) -> bool {
        let Some(report) = self.report else {
            return false;
        };
        if now.saturating_duration_since(report.at) >= REPORT_LIFETIME {
            *self = Self {
                forgotten: report.limiting,
                ..Self::default()
            };
            return false;
        }
        let margin = MIN_MARGIN.max(client / MARGIN_PART);
        let detour = report.shortest.saturating_sub(client).min(link);
        let excess = detour.saturating_sub(margin);
        // The first byte of a proxied response crosses the link once more, but takes the balancer's path to the client.
        let gain = (client + link).saturating_sub(report.shortest);
        let limiting = report.limiting.saturating_sub(self.forgotten);
        excess.saturating_mul(self.requests.saturating_add(limiting / UNCOMPENSATED))
            > gain.saturating_mul(self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Return whether delegation is slower after one request with `limiting` round trips, given the one-way delays in ms between
    /// client and balancer, balancer and real server, and real server and client.
    fn is_slower([client, link, direct]: [u64; 3], limiting: u64) -> bool {
        let now = Instant::now();
        let mut comparison = Comparison::default();
        comparison.on_request();
        comparison.on_report(ms(client + link + direct), limiting, now);
        comparison.is_slower(ms(2 * client), ms(2 * link), now)
    }

    #[test]
    fn distant_real_server_is_slower_unless_its_first_byte_is_earlier() {
        // The balancer is on the path.
        assert!(is_slower([20, 10, 30], 0));
        // The first byte is 20 ms earlier, and each further round trip takes 15 ms longer, beyond the margin.
        assert!(!is_slower([20, 20, 20], 0));
        assert!(!is_slower([20, 20, 20], 1));
        assert!(is_slower([20, 20, 20], 2));
        // 50 ms earlier, 2.5 ms longer.
        assert!(!is_slower([30, 30, 10], 38));
        assert!(is_slower([30, 30, 10], 40));
        for near in [[1, 1, 1], [10, 1, 10], [60, 1, 60]] {
            assert!(!is_slower(near, 1000));
        }
    }

    #[test]
    fn delayed_acknowledgments_do_not_look_like_a_detour() {
        let now = Instant::now();
        let mut comparison = Comparison::default();
        comparison.on_request();
        comparison.on_report(ms(40), 5, now);
        assert!(!comparison.is_slower(ms(6), ms(1), now));
        assert!(comparison.is_slower(ms(6), ms(30), now));
    }

    #[test]
    fn delegation_is_tried_again_when_the_report_is_old() {
        let begin = Instant::now();
        let mut comparison = Comparison::default();
        comparison.on_request();
        assert!(!comparison.is_slower(ms(40), ms(40), begin));
        comparison.on_report(ms(60), 5, begin);
        assert!(comparison.is_slower(ms(40), ms(40), begin + REPORT_LIFETIME - ms(1)));
        assert!(!comparison.is_slower(ms(40), ms(40), begin + REPORT_LIFETIME));
        let now = begin + 2 * REPORT_LIFETIME;
        comparison.on_request();
        comparison.on_report(ms(60), 5, now);
        assert!(
            !comparison.is_slower(ms(40), ms(40), now),
            "old round trips do not count"
        );
        comparison.on_report(ms(60), 9, now);
        assert!(comparison.is_slower(ms(40), ms(40), now));
    }
}
