//! What each client may use: associations and bandwidth, by its address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Seconds of its bandwidth that a client may use at once.
const BURST: f64 = 1.0;

/// The clients that have associations.
#[derive(Debug)]
pub struct Accounts {
    clients: Mutex<Clients>,
    /// Most associations, of one client and of all.
    each: usize,
    all: usize,
    /// Bytes a second of each.
    rate: f64,
}

#[derive(Debug, Default)]
struct Clients {
    /// Associations of all.
    all: usize,
    /// Associations and account of each.
    each: HashMap<IpAddr, (usize, Arc<Account>)>,
}

/// One client.
#[derive(Debug)]
pub struct Account {
    bucket: Mutex<Bucket>,
    rate: f64,
}

#[derive(Debug)]
struct Bucket {
    bytes: f64,
    at: Instant,
}

/// An association's place in its client's account, until it is dropped.
#[derive(Debug)]
pub struct Place {
    accounts: Arc<Accounts>,
    client: IpAddr,
    account: Arc<Account>,
}

impl Accounts {
    /// At most `each` associations of a client, which have `rate` bit/s together, and at most `all`.
    pub fn new(each: usize, all: usize, rate: u64) -> Self {
        Self {
            clients: Mutex::default(),
            each,
            all,
            rate: rate as f64 / 8.0,
        }
    }

    /// A place for one more association of `client`, if it may have one.
    pub fn place(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let mut clients = self.clients.lock().expect("nobody panics with it");
        if clients.all >= self.all {
            return None;
        }
        let (n, account) = clients.each.entry(client).or_insert_with(|| {
            let bucket = Bucket {
                bytes: BURST * self.rate,
                at: Instant::now(),
            };
            let account = Account {
                bucket: Mutex::new(bucket),
                rate: self.rate,
            };
            (0, Arc::new(account))
        });
        if *n >= self.each {
            return None;
        }
        *n += 1;
        let account = account.clone();
        clients.all += 1;
        Some(Place {
            accounts: self.clone(),
            client,
            account,
        })
    }
}

impl Place {
    /// The client's account.
    pub const fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = self.accounts.clients.lock().expect("nobody panics with it");
        clients.all -= 1;
        if let Some((n, _)) = clients.each.get_mut(&self.client) {
            *n -= 1;
            if *n == 0 {
                clients.each.remove(&self.client);
            }
        }
    }
}

impl Account {
    /// Whether the client may use so many bytes now; they are used then.
    pub fn take(&self, bytes: usize) -> bool {
        self.take_at(bytes, Instant::now())
    }

    fn take_at(&self, bytes: usize, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().expect("nobody panics with it");
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.at = now;
        bucket.bytes = (bucket.bytes + passed * self.rate).min(BURST * self.rate);
        let enough = bucket.bytes >= bytes as f64;
        if enough {
            bucket.bytes -= bytes as f64;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn places_come_back() {
        let accounts = Arc::new(Accounts::new(2, 3, 8));
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let places = [one, one].map(|client| accounts.place(client).unwrap());
        assert!(accounts.place(one).is_none());
        let third = accounts.place(other).unwrap();
        assert!(accounts.place(other).is_none());
        drop(places);
        assert!(accounts.place(one).is_some());
        drop(third);
        assert!(accounts.clients.lock().unwrap().each.is_empty());
    }

    #[test]
    fn bandwidth_is_limited() {
        let accounts = Arc::new(Accounts::new(2, 2, 8000));
        let client = "192.0.2.1".parse().unwrap();
        let (one, other) = (
            accounts.place(client).unwrap(),
            accounts.place(client).unwrap(),
        );
        let now = Instant::now();
        assert!(one.account().take_at(900, now));
        assert!(!other.account().take_at(200, now));
        assert!(
            other
                .account()
                .take_at(200, now + Duration::from_millis(100))
        );
        assert!(
            !other
                .account()
                .take_at(1001, now + Duration::from_secs(100))
        );
    }
}
