// SPDX-License-Identifier: Apache-2.0
//! Selection of the sites and the replica for a first flight.
//!
//! The selection is a function of the client's address and port, the connection id, the table and the heartbeats. So every packet
//! of a flight gets the same targets, from every dispatcher of the site.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;

use crate::replicas::Replica;
use crate::service::{Policy, Service};
use crate::targets::Targets;
use crate::view::View;

/// Hashes what identifies a first flight: FNV-1a over address, port and connection id, then a finalizer.
///
/// All dispatchers of a site must use the same hash.
#[inline]
pub fn flight_hash(client: SocketAddr, dcid: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    };
    match client.ip() {
        IpAddr::V4(address) => add(&address.octets()),
        IpAddr::V6(address) => add(&address.octets()),
    }
    add(&client.port().to_be_bytes());
    add(dcid);
    mix(hash)
}

/// Finalizer of MurmurHash3: every bit of the result depends on every bit of `n`.
#[inline]
const fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    n = (n ^ n >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ n >> 33
}

/// Draws a value for a candidate by weighted rendezvous hashing; the candidate with the smallest value wins.
///
/// The value is exponentially distributed, so each candidate wins with a probability proportional to its weight. Removing a
/// candidate does not move flights between the others.
#[inline]
fn draw(hash: u64, candidate: u64, weight: f64) -> f64 {
    // 53 bits, plus one, so that the logarithm is finite.
    let uniform = ((mix(hash ^ mix(candidate)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln() / weight
}

/// Selects the targets of the flight with `hash` from a client whose packets enter at the site `origin`.
///
/// The result is empty if no known replica or site accepts the flight.
#[inline]
pub fn select_targets(
    view: &View,
    service: &Service,
    origin: NonZeroU8,
    client: IpAddr,
    hash: u64,
) -> Targets {
    let replicas = view.replicas(service.id());
    let replica = || select_replica(replicas, service.policy, hash);
    if origin != view.table.site {
        // The other site selected this one. Flights are steered once only.
        return Targets::new(replica());
    }
    let sites = view.table.sites(service, client);
    let endpoint = |site: NonZeroU8| {
        if site == view.table.site {
            replica()
        } else {
            view.table.vteps.get(&site).copied()
        }
    };
    let count = usize::from(service.redundancy);
    let targets = if service.policy == Policy::Random {
        let mut order: Vec<_> = sites.collect();
        let key = |site: &NonZeroU8| draw(hash, u64::from(site.get()) << 32, 1.0);
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        Targets::new(order.into_iter().filter_map(endpoint).take(count))
    } else {
        Targets::new(sites.filter_map(endpoint).take(count))
    };
    if targets.is_empty() {
        // No site is mapped, or only this one, which may have no replica.
        return Targets::new(replica());
    }
    targets
}

/// Selects a replica of this site.
#[inline]
fn select_replica(replicas: &[Replica], policy: Policy, hash: u64) -> Option<IpAddr> {
    let (mut first, mut second) = ((f64::INFINITY, None), (f64::INFINITY, None));
    for replica in replicas {
        let candidate = (
            draw(hash, u64::from(replica.sid), replica.weight),
            Some(replica),
        );
        if candidate.0 < first.0 {
            second = std::mem::replace(&mut first, candidate);
        } else if candidate.0 < second.0 {
            second = candidate;
        }
    }
    let first = first.1?;
    // Power of two choices: the load is almost even, and flights do not all go to one replica between two heartbeats.
    let less_loaded = second
        .1
        .filter(|second| policy == Policy::Load && second.load < first.load);
    Some(less_loaded.unwrap_or(first).address)
}
