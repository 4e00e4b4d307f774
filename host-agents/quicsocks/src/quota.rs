// SPDX-License-Identifier: Apache-2.0
//! Limits for each client address: the number of associations, and bandwidth.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// Seconds of its bandwidth that a client may use in one burst.
const BURST_SECONDS: f64 = 1.0;

/// The clients that have associations, and their limits.
#[derive(Debug)]
pub struct Quotas {
    clients: Mutex<Clients>,
    max_per_client: usize,
    max_total: usize,
    /// Bandwidth of each client in bytes per second.
    rate: f64,
}

#[derive(Debug, Default)]
struct Clients {
    /// Number of associations of all clients.
    associations: usize,
    by_address: HashMap<IpAddr, Client>,
}

#[derive(Debug)]
struct Client {
    associations: usize,
    bandwidth: Arc<TokenBucket>,
}

/// Token bucket that limits a client's bandwidth.
#[derive(Debug)]
pub struct TokenBucket {
    level: Mutex<Level>,
    /// Bytes per second.
    rate: f64,
}

#[derive(Debug)]
struct Level {
    bytes: f64,
    updated: Instant,
}

/// Permission for one association. Dropping it returns it to the client's quota.
#[derive(Debug)]
pub struct Permit {
    quotas: Arc<Quotas>,
    client: IpAddr,
    bandwidth: Arc<TokenBucket>,
}

impl Quotas {
    /// Creates quotas with `max_per_client` associations and `bits_per_second` of bandwidth for each client address, and
    /// `max_total` associations overall.
    pub fn new(max_per_client: usize, max_total: usize, bits_per_second: u64) -> Self {
        Self {
            clients: Mutex::default(),
            max_per_client,
            max_total,
            rate: bits_per_second as f64 / 8.0,
        }
    }

    /// Takes a permit for one more association of `client`; returns `None` if a limit is reached.
    pub fn acquire(self: &Arc<Self>, client: IpAddr) -> Option<Permit> {
        let mut clients = self.clients.lock();
        if clients.associations >= self.max_total {
            return None;
        }
        let entry = clients.by_address.entry(client).or_insert_with(|| Client {
            associations: 0,
            bandwidth: Arc::new(TokenBucket::new(self.rate)),
        });
        if entry.associations >= self.max_per_client {
            return None;
        }
        entry.associations += 1;
        let bandwidth = entry.bandwidth.clone();
        clients.associations += 1;
        Some(Permit {
            quotas: self.clone(),
            client,
            bandwidth,
        })
    }
}

impl Permit {
    /// Returns the bandwidth limit that all associations of the client share.
    pub const fn bandwidth(&self) -> &Arc<TokenBucket> {
        &self.bandwidth
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut clients = self.quotas.clients.lock();
        clients.associations -= 1;
        if let Some(client) = clients.by_address.get_mut(&self.client) {
            client.associations -= 1;
            if client.associations == 0 {
                clients.by_address.remove(&self.client);
            }
        }
    }
}

impl TokenBucket {
    fn new(rate: f64) -> Self {
        Self {
            level: Mutex::new(Level {
                bytes: BURST_SECONDS * rate,
                updated: Instant::now(),
            }),
            rate,
        }
    }

    /// Takes `bytes` from the bucket if it holds that many, and returns true if it did.
    pub fn try_take(&self, bytes: usize) -> bool {
        self.try_take_at(bytes, Instant::now())
    }

    fn try_take_at(&self, bytes: usize, now: Instant) -> bool {
        let mut level = self.level.lock();
        let elapsed = now.saturating_duration_since(level.updated).as_secs_f64();
        level.updated = now;
        level.bytes = (level.bytes + elapsed * self.rate).min(BURST_SECONDS * self.rate);
        let has_enough = level.bytes >= bytes as f64;
        if has_enough {
            level.bytes -= bytes as f64;
        }
        has_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dropped_permits_return_to_the_quota() {
        let quotas = Arc::new(Quotas::new(2, 3, 8));
        let [first, second] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let permits = [first, first].map(|client| quotas.acquire(client).unwrap());
        assert!(quotas.acquire(first).is_none());
        let third = quotas.acquire(second).unwrap();
        assert!(quotas.acquire(second).is_none());
        drop(permits);
        assert!(quotas.acquire(first).is_some());
        drop(third);
        assert!(quotas.clients.lock().by_address.is_empty());
    }

    #[test]
    fn associations_of_a_client_share_its_bandwidth() {
        let quotas = Arc::new(Quotas::new(2, 2, 8000));
        let client = "192.0.2.1".parse().unwrap();
        let [first, second] = [(); 2].map(|()| quotas.acquire(client).unwrap());
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        assert!(first.bandwidth().try_take_at(900, now));
        assert!(!second.bandwidth().try_take_at(200, now));
        assert!(second.bandwidth().try_take_at(200, after(100)));
        assert!(!second.bandwidth().try_take_at(1001, after(100_000)));
    }
}
