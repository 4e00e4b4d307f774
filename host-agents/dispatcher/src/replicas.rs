// SPDX-License-Identifier: Apache-2.0
//! The replicas of this site and their loads, from their heartbeats.
//!
//! This state is not shared between sites (ReplicaDeployment in section 3.4.2 of the paper).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::measurements::RttMean;
use crate::service::normalize_name;

/// A replica's report about itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    services: Vec<String>,
    address: IpAddr,
    load: f64,
    #[serde(default = "one")]
    weight: f64,
    accepting: bool,
    /// Seconds for which this heartbeat is valid.
    ttl: f64,
    /// Round-trip times of handshakes since the last heartbeat.
    #[serde(default)]
    pub rtts: Vec<RttMean>,
}

const fn one() -> f64 {
    1.0
}

/// Maximum `ttl` of a heartbeat in seconds.
const MAX_TTL: f64 = 3600.0;

impl Heartbeat {
    /// Checks the values of the heartbeat.
    fn check(&self, own_address: IpAddr) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.load) {
            return Err(format!("load is {}: must be 0 to 1", self.load));
        }
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(format!("weight is {}: must be above 0", self.weight));
        }
        if !(self.ttl > 0.0 && self.ttl <= MAX_TTL) {
            return Err(format!(
                "ttl is {}: must be above 0 and at most {MAX_TTL}",
                self.ttl
            ));
        }
        if self.address.is_ipv4() != own_address.is_ipv4() {
            let address = self.address;
            return Err(format!(
                "address {address} must be of the same family as tunnel.listen {own_address}"
            ));
        }
        Ok(())
    }
}

/// A replica that accepts connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Server id (SID).
    pub sid: u16,
    /// Tunnel endpoint.
    pub address: IpAddr,
    /// Load, 0 to 1.
    pub load: f64,
    /// Weight, relative to the other replicas.
    pub weight: f64,
}

#[derive(Clone, Debug)]
struct Registered {
    heartbeat: Heartbeat,
    names: Vec<Vec<u8>>,
    expires: Instant,
}

/// Status of a replica, as `GET /replicas` returns it.
#[derive(Clone, Debug, Serialize)]
pub struct ReplicaStatus {
    sid: u16,
    services: Vec<String>,
    address: IpAddr,
    load: f64,
    weight: f64,
    accepting: bool,
    expires_in: f64,
}

/// The registered replicas of this site.
#[derive(Debug, Default)]
pub struct Replicas(BTreeMap<u16, Registered>);

impl Replicas {
    /// Records a heartbeat received at `now`. The replica's address must be of the family of `own_address`.
    ///
    /// # Errors
    /// Returns a message if the heartbeat is invalid. The state then remains unchanged.
    pub fn record(
        &mut self,
        sid: u16,
        heartbeat: Heartbeat,
        now: Instant,
        own_address: IpAddr,
    ) -> Result<(), String> {
        heartbeat.check(own_address)?;
        let registered = Registered {
            names: heartbeat
                .services
                .iter()
                .map(|name| normalize_name(name.as_bytes()))
                .collect(),
            expires: now + Duration::from_secs_f64(heartbeat.ttl),
            heartbeat,
        };
        self.0.insert(sid, registered);
        Ok(())
    }

    /// Removes a replica; returns true if it was registered.
    pub fn remove(&mut self, sid: u16) -> bool {
        self.0.remove(&sid).is_some()
    }

    /// Removes replicas whose heartbeats have expired; returns true if there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, registered| registered.expires > now);
        self.0.len() < before
    }

    /// Returns when the next heartbeat expires.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.0.values().map(|registered| registered.expires).min()
    }

    /// Returns the tunnel endpoints of all replicas, including those that do not accept connections.
    pub fn endpoints(&self) -> impl Iterator<Item = IpAddr> {
        self.0
            .values()
            .map(|registered| registered.heartbeat.address)
    }

    /// Returns each accepting replica once for each name that it serves.
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

    /// Returns the status of all replicas at `now`.
    pub fn status(&self, now: Instant) -> Vec<ReplicaStatus> {
        let to_status = |(sid, registered): (&u16, &Registered)| ReplicaStatus {
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
        self.0.iter().map(to_status).collect()
    }
}
