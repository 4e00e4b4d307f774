//! Which site and replica a first flight goes to: a function of the client's address, port and connection id, so that every
//! packet of one flight has the same answer, from every dispatcher.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;

use frontage_tunnel::vxlan;

use crate::replicas::Replica;
use crate::service::{Policy, Service};
use crate::view::View;

/// Most sites that get copies of one flight (X of the paper's evaluation).
pub const MAX_REDUNDANCY: usize = 4;

/// Where a flight goes: ends of tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Targets {
    ends: [Option<IpAddr>; MAX_REDUNDANCY],
}

impl Targets {
    /// Those in `ends`, at most [`MAX_REDUNDANCY`].
    pub fn new(ends: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut targets = Self::default();
        for (slot, end) in targets.ends.iter_mut().zip(ends) {
            *slot = Some(end);
        }
        targets
    }

    /// The ends of the tunnels.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        self.ends.iter().map_while(|end| *end)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.ends[0].is_none()
    }
}

/// Where tunnels end at `address`.
pub const fn tunnel_end(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, vxlan::PORT)
}

/// What identifies a first flight, hashed: FNV-1a over address, port and connection id, then mixed. Dispatchers of a site must
/// agree on it.
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

/// The finaliser of MurmurHash3: every bit of the result depends on every bit of `n`.
#[inline]
const fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    n = (n ^ n >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ n >> 33
}

/// A race of exponential clocks: of several candidates each has the smallest draw with a probability in proportion to its
/// weight, and one that leaves changes nothing among the others (weighted rendezvous hashing).
#[inline]
fn draw(hash: u64, candidate: u64, weight: f64) -> f64 {
    // 53 bits above zero, so that the logarithm is finite.
    let uniform = ((mix(hash ^ mix(candidate)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln() / weight
}

/// Where the flight of `hash` goes, for a client that entered at `origin`; no target if no server is known that accepts it.
#[inline]
pub fn choose(
    view: &View,
    service: &Service,
    origin: NonZeroU8,
    client: IpAddr,
    hash: u64,
) -> Targets {
    let own = view.replicas(service.id());
    let replica = || pick(own, service.policy, hash);
    if origin != view.table.site {
        // It was the other site's choice: steered once, never again.
        return Targets::new(replica());
    }
    let sites = view.table.sites(service, client);
    let end = |site: NonZeroU8| {
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
        Targets::new(order.into_iter().filter_map(end).take(count))
    } else {
        Targets::new(sites.filter_map(end).take(count))
    };
    if targets.is_empty() {
        // No site is mapped, or only this one and it has no replica.
        return Targets::new(replica());
    }
    targets
}

/// A replica of this site.
#[inline]
fn pick(replicas: &[Replica], policy: Policy, hash: u64) -> Option<IpAddr> {
    let (mut first, mut second) = ((f64::INFINITY, None), (f64::INFINITY, None));
    for replica in replicas {
        let drawn = (
            draw(hash, u64::from(replica.sid), replica.weight),
            Some(replica),
        );
        if drawn.0 < first.0 {
            second = std::mem::replace(&mut first, drawn);
        } else if drawn.0 < second.0 {
            second = drawn;
        }
    }
    let first = first.1?;
    // Two choices, the less loaded of them: all but even, and no herd runs to one replica between two heartbeats.
    let less = second
        .1
        .filter(|second| policy == Policy::Load && second.load < first.load);
    Some(less.unwrap_or(first).address)
}
