// SPDX-License-Identifier: Apache-2.0
//! Rules of a packet filter, and packets for them.
//!
//! The rules resemble those of ClassBench (Taylor and Turner, IEEE/ACM ToN 15(3), 2007): prefixes nest in a few hundred
//! networks, most destination ports are single, and most source ports are wildcards. Alternatively, their masks are random
//! bits, which is the worst case for structures that group rules by mask.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use softswitch_pipeline::{EntryKey, MatchField, Value};
use softswitch_random::Rng;

use crate::random::Draws;

/// Kinds of address masks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Masks {
    Prefixes,
    Random,
}

const NETWORKS: usize = 300;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ANY: (u16, u16) = (0, u16::MAX);
const USER: (u16, u16) = (1024, u16::MAX);
const WELL_KNOWN: [u16; 12] = [20, 22, 25, 53, 80, 110, 123, 143, 443, 993, 3306, 8080];

const SRC_LENS: [(usize, u32); 9] = [
    (12, 0),
    (3, 8),
    (10, 16),
    (6, 20),
    (5, 22),
    (24, 24),
    (10, 27),
    (5, 30),
    (25, 32),
];
const DST_LENS: [(usize, u32); 8] = [
    (6, 0),
    (6, 16),
    (5, 20),
    (3, 23),
    (23, 24),
    (12, 27),
    (10, 29),
    (35, 32),
];
const PROTOCOLS: [(usize, (u8, u8)); 3] = [(68, (TCP, 0xff)), (25, (UDP, 0xff)), (7, (0, 0))];

/// A rule over the five-tuple.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Value and mask, also of the protocol.
    src: (u32, u32),
    dst: (u32, u32),
    /// First and last port.
    src_ports: (u16, u16),
    dst_ports: (u16, u16),
    proto: (u8, u8),
}

/// The five-tuple of a packet.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Tuple {
    pub src: SocketAddrV4,
    pub dst: SocketAddrV4,
    pub proto: u8,
}

/// A packet and the number of the first rule that it matches, which it must hit.
#[derive(Serialize, Deserialize)]
pub struct Probe {
    pub tuple: Tuple,
    pub class: u64,
}

/// An entry in the format of a site's file.
#[derive(Serialize)]
struct Entry {
    #[serde(rename = "match")]
    fields: Vec<String>,
    priority: i32,
    class: usize,
}

/// Entries and packets for a site.
#[derive(Serialize)]
pub struct Acl {
    entries: Vec<Entry>,
    packets: Vec<Probe>,
}

impl Acl {
    pub fn new(masks: Masks, count: usize, packets: usize, seed: u64) -> Self {
        let rules = rules(masks, count, seed);
        let random = &mut Rng::new(!seed);
        let probe = |_| {
            let tuple = rules[random.below(count)].tuple(random);
            let class = rules.iter().position(|r| r.matches(&tuple));
            let class =
                class.expect("a packet made for a rule hits that rule or an earlier one") as u64;
            Probe { tuple, class }
        };
        let packets = (0..packets).map(probe).collect();
        let entry = |(class, rule): (usize, &Rule)| Entry {
            fields: rule.text(),
            priority: priority(class, count),
            class,
        };
        Self {
            entries: rules.iter().enumerate().map(entry).collect(),
            packets,
        }
    }
}

/// Returns the priority of a rule: earlier rules have higher priorities.
pub fn priority(class: usize, count: usize) -> i32 {
    (count - class) as i32
}

/// Draws `count` distinct rules, roughly in order of decreasing specificity.
pub fn rules(masks: Masks, count: usize, seed: u64) -> Vec<Rule> {
    let random = &mut Rng::new(seed);
    // More rules refer to more networks.
    let networks = (0..NETWORKS.max(count / 30)).map(|_| random.next() as u32 & 0xffff_ff00);
    let networks: Vec<u32> = networks.collect();
    let mut known = HashSet::new();
    let mut rules: Vec<(u32, Rule)> = Vec::with_capacity(count);
    while rules.len() < count {
        let rule = match masks {
            Masks::Prefixes => Rule::from_networks(&networks, random),
            Masks::Random => Rule::random(random),
        };
        let bits = rule.src.1.count_ones() + rule.dst.1.count_ones();
        if bits >= 8 && known.insert(rule.clone()) {
            rules.push((bits + random.below(24) as u32, rule));
        }
    }
    rules.sort_by_key(|r| std::cmp::Reverse(r.0));
    rules.into_iter().map(|r| r.1).collect()
}

impl Rule {
    fn from_networks(networks: &[u32], random: &mut Rng) -> Self {
        let mut address = |lens: &[(usize, u32)]| {
            let network = networks[random.below(networks.len())];
            let mask = u32::MAX.checked_shl(32 - random.share(lens)).unwrap_or(0);
            ((network | random.below(256) as u32) & mask, mask)
        };
        let (src, dst) = (address(&SRC_LENS), address(&DST_LENS));
        let well_known = WELL_KNOWN[random.below(WELL_KNOWN.len())];
        let single = random.port(ANY);
        let low = random.port((0, 60_000));
        let range = (low, low + random.port((1, 5000)));
        let one = |port| (port, port);
        let src_shares = [(84, ANY), (9, USER), (4, one(single)), (3, range)];
        let dst_shares = [
            (24, ANY),
            (9, USER),
            (35, one(well_known)),
            (16, one(single)),
            (16, range),
        ];
        Self {
            src,
            dst,
            src_ports: random.share(&src_shares),
            dst_ports: random.share(&dst_shares),
            proto: random.share(&PROTOCOLS),
        }
    }

    fn random(random: &mut Rng) -> Self {
        let mut address = || {
            let mask = random.next() as u32;
            (random.next() as u32 & mask, mask)
        };
        Self {
            src: address(),
            dst: address(),
            src_ports: ANY,
            dst_ports: ANY,
            proto: random.share(&PROTOCOLS),
        }
    }

    fn matches(&self, t: &Tuple) -> bool {
        let address =
            |(value, mask): (u32, u32), a: &SocketAddrV4| a.ip().to_bits() & mask == value;
        let within =
            |(low, high): (u16, u16), a: &SocketAddrV4| low <= a.port() && a.port() <= high;
        address(self.src, &t.src)
            && address(self.dst, &t.dst)
            && within(self.src_ports, &t.src)
            && within(self.dst_ports, &t.dst)
            && t.proto & self.proto.1 == self.proto.0
    }

    /// Draws a matching packet; fields that the rule does not restrict are random.
    pub fn tuple(&self, random: &mut Rng) -> Tuple {
        let mut address = |(value, mask): (u32, u32), ports| {
            let ip = Ipv4Addr::from_bits(random.next() as u32 & !mask | value);
            SocketAddrV4::new(ip, random.port(ports))
        };
        let (src, dst) = (
            address(self.src, self.src_ports),
            address(self.dst, self.dst_ports),
        );
        let any = [TCP, UDP][random.below(2)];
        Tuple {
            src,
            dst,
            proto: if self.proto.1 == 0 { any } else { self.proto.0 },
        }
    }

    pub fn key(&self, priority: i32) -> EntryKey {
        let ternary = |(value, mask): (u32, u32)| MatchField::Ternary {
            value: value.into(),
            mask: mask.into(),
        };
        let range = |(low, high): (u16, u16)| MatchField::Range {
            low: u32::from(low).into(),
            high: u32::from(high).into(),
        };
        let (proto, mask) = self.proto;
        let fields = vec![
            ternary(self.src),
            ternary(self.dst),
            range(self.src_ports),
            range(self.dst_ports),
            ternary((proto.into(), mask.into())),
        ];
        EntryKey { fields, priority }
    }

    /// Returns the match fields in the format of a site's file.
    fn text(&self) -> Vec<String> {
        let ternary = |(value, mask): (u32, u32)| format!("{value:x}&{mask:x}");
        let range = |(low, high): (u16, u16)| format!("{low:x}-{high:x}");
        let (proto, mask) = self.proto;
        let ports = [range(self.src_ports), range(self.dst_ports)];
        let [src_ports, dst_ports] = ports;
        let proto = ternary((proto.into(), mask.into()));
        vec![
            ternary(self.src),
            ternary(self.dst),
            src_ports,
            dst_ports,
            proto,
        ]
    }
}

impl Tuple {
    /// Returns the fields in the order of the table's key.
    pub fn values(&self) -> Vec<Value> {
        let (src, dst) = (&self.src, &self.dst);
        vec![
            src.ip().to_bits().into(),
            dst.ip().to_bits().into(),
            u32::from(src.port()).into(),
            u32::from(dst.port()).into(),
            u32::from(self.proto).into(),
        ]
    }
}
