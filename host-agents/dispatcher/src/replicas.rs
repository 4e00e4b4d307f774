//! The site's replicas: who they are and how loaded, by their own heartbeats. Kept here alone, not shared between sites (the
//! paper's ReplicaDeployment, 3.4.2).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::measurements::Measured;
use crate::service::normal;

/// What a replica says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    services: Vec<String>,
    address: IpAddr,
    load: f64,
    #[serde(default = "one")]
    weight: f64,
    accepting: bool,
    /// Seconds for which this holds.
    ttl: f64,
    /// Round-trip times of handshakes since the last one.
    #[serde(default)]
    pub rtts: Vec<Measured>,
}

const fn one() -> f64 {
    1.0
}

/// The longest that a replica is believed without another heartbeat.
const MAX_TTL: f64 = 3600.0;

impl Heartbeat {
    /// What is wrong with it, in words.
    fn problem(&self, own: IpAddr) -> Option<String> {
        if !(0.0..=1.0).contains(&self.load) {
            return Some(format!("load is {}; use 0 to 1", self.load));
        }
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Some(format!("weight is {}; use more than 0", self.weight));
        }
        if !(self.ttl > 0.0 && self.ttl <= MAX_TTL) {
            return Some(format!(
                "ttl is {}; use more than 0, up to {MAX_TTL}",
                self.ttl
            ));
        }
        if self.address.is_ipv4() != own.is_ipv4() {
            let address = self.address;
            return Some(format!(
                "address {address} is of another family than tunnel.listen {own}"
            ));
        }
        None
    }
}

/// A replica that accepts connections, as the choice needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Server id.
    pub sid: u16,
    /// Where its tunnel ends.
    pub address: IpAddr,
    /// 0 to 1.
    pub load: f64,
    /// Its share, beside the others'.
    pub weight: f64,
}

#[derive(Clone, Debug)]
struct Registered {
    heartbeat: Heartbeat,
    names: Vec<Vec<u8>>,
    expires: Instant,
}

/// A replica, as `GET /replicas` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    sid: u16,
    services: Vec<String>,
    address: IpAddr,
    load: f64,
    weight: f64,
    accepting: bool,
    expires_in: f64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Replicas(BTreeMap<u16, Registered>);

impl Replicas {
    /// Takes a heartbeat, as of `now`, for tunnels of the family of `own`.
    ///
    /// # Errors
    /// What is wrong with it, in words; nothing has changed then.
    pub fn beat(
        &mut self,
        sid: u16,
        heartbeat: Heartbeat,
        now: Instant,
        own: IpAddr,
    ) -> Result<(), String> {
        if let Some(problem) = heartbeat.problem(own) {
            return Err(problem);
        }
        let registered = Registered {
            names: heartbeat
                .services
                .iter()
                .map(|name| normal(name.as_bytes()))
                .collect(),
            expires: now + Duration::from_secs_f64(heartbeat.ttl),
            heartbeat,
        };
        self.0.insert(sid, registered);
        Ok(())
    }

    /// Whether the replica was there.
    pub fn remove(&mut self, sid: u16) -> bool {
        self.0.remove(&sid).is_some()
    }

    /// Takes out those whose time is over; whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, registered| registered.expires > now);
        self.0.len() < before
    }

    /// When the next one's time is over.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.0.values().map(|registered| registered.expires).min()
    }

    /// The ends of all tunnels to replicas, of those too that accept no more.
    pub fn ends(&self) -> impl Iterator<Item = IpAddr> {
        self.0
            .values()
            .map(|registered| registered.heartbeat.address)
    }

    /// Each replica that accepts, once for each name that it serves.
    pub fn accepting(&self) -> impl Iterator<Item = (&[u8], Replica)> {
        let accepting = self.0.iter().filter(|(_, r)| r.heartbeat.accepting);
        accepting.flat_map(|(sid, registered)| {
            let Heartbeat {
                address,
                load,
                weight,
                ..
            } = registered.heartbeat;
            let replica = Replica {
                sid: *sid,
                address,
                load,
                weight,
            };
            registered
                .names
                .iter()
                .map(move |name| (name.as_slice(), replica.clone()))
        })
    }

    /// All of them, as of `now`.
    pub fn show(&self, now: Instant) -> Vec<Shown> {
        let show = |(sid, registered): (&u16, &Registered)| Shown {
            sid: *sid,
            services: registered.heartbeat.services.clone(),
            address: registered.heartbeat.address,
            load: registered.heartbeat.load,
            weight: registered.heartbeat.weight,
            accepting: registered.heartbeat.accepting,
            expires_in: registered
                .expires
                .saturating_duration_since(now)
                .as_secs_f64(),
        };
        self.0.iter().map(show).collect()
    }
}
