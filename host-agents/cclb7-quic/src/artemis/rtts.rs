// SPDX-License-Identifier: Apache-2.0
//! Round-trip times of handshakes by client network: the input of the end-user mapping, without probes (Artemis, section 3.3).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

/// Maximum number of networks between two heartbeats. RTTs of further networks are dropped.
const MAX_NETWORKS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Rtts(Mutex<HashMap<String, (Duration, u32)>>);

/// Mean RTT of one network.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Mean {
    prefix: String,
    rtt_us: u64,
    count: u32,
}

impl Rtts {
    pub(super) fn add(&self, client: IpAddr, rtt: Duration) {
        let mut networks = self.0.lock();
        let network = network(client);
        if networks.len() < MAX_NETWORKS || networks.contains_key(&network) {
            let (sum, count) = networks.entry(network).or_default();
            (*sum, *count) = (*sum + rtt, *count + 1);
        }
    }

    /// Return the means since the last call.
    pub(super) fn take(&self) -> Vec<Mean> {
        let networks = std::mem::take(&mut *self.0.lock());
        let means = networks.into_iter().map(|(prefix, (sum, count))| Mean {
            prefix,
            rtt_us: (sum / count).as_micros() as u64,
            count,
        });
        means.collect()
    }
}

/// Return a client's /48 or, over IPv4, /24.
fn network(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(v4) => format!("{}/24", Ipv4Addr::from_bits(v4.to_bits() & !0xff)),
        IpAddr::V6(v6) => format!("{}/48", Ipv6Addr::from_bits(v6.to_bits() >> 80 << 80)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtts_are_averaged_by_network() {
        let rtts = Rtts::default();
        let clients = [
            "2001:db8:c1:7::1",
            "2001:db8:c1::2",
            "198.51.100.7",
            "::ffff:198.51.100.8",
        ];
        for (ms, client) in clients.iter().enumerate() {
            rtts.add(client.parse().unwrap(), Duration::from_millis(ms as u64));
        }
        let mut means = rtts.take();
        means.sort();
        let mean = |prefix: &str, rtt_us| Mean {
            prefix: prefix.into(),
            rtt_us,
            count: 2,
        };
        assert_eq!(
            means,
            [mean("198.51.100.0/24", 2500), mean("2001:db8:c1::/48", 500)]
        );
        assert_eq!(rtts.take(), []);
        for i in 0..=MAX_NETWORKS as u32 {
            rtts.add(Ipv4Addr::from_bits(i << 8).into(), Duration::ZERO);
        }
        assert_eq!(rtts.take().len(), MAX_NETWORKS);
    }
}
