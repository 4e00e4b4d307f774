// SPDX-License-Identifier: Apache-2.0
//! A dispatcher of site 1 in process, with its table, replicas and counters.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontage_dispatcher::config::Limits;
use frontage_dispatcher::engine::Engine;
use frontage_dispatcher::outbox::Outbox;
use frontage_dispatcher::outcome::{Counters, Outcome};
use frontage_dispatcher::replicas::Replicas;
use frontage_dispatcher::table::Table;
use frontage_dispatcher::view::View;
use frontage_first_flight::Version;
use frontage_first_flight::compose::{crypto, initial, whole};
use frontage_tunnel::{Encapsulation, Flow, Head};
use serde_json::{Value, json};

pub const CLIENT: &str = "[2001:db8:c1::9]:40000";
pub const SERVICE: &str = "[2001:db8:a::1]:443";
pub const SWITCH: &str = "2001:db8:101::1";
pub const OWN: &str = "2001:db8:1::d";

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A table with three sites and two services.
///
/// `films.example` is mapped to sites 2, 1, 3 for region 5 and to 1, 2 for all others. `copied.example` goes to two sites.
pub fn table() -> Value {
    json!({
        "version": 7, "site": 1,
        "sites": [
            {"id": 1, "vtep": SWITCH}, {"id": 2, "vtep": "2001:db8:102::1"}, {"id": 3, "vtep": "2001:db8:103::1"},
        ],
        "services": [
            {"name": "films.example", "id": 3, "deployment": 7, "redundancy": 1, "alpn": ["h3"], "policy": "latency"},
            {"name": "Copied.Example.", "id": 4, "deployment": 8, "redundancy": 2, "alpn": ["h3"], "policy": "load"},
        ],
        "clients": [{"prefix": "2001:db8:c5::/48", "region": 5}],
        "mapping": [
            {"deployment": 7, "sites": [2, 1, 3], "regions": [5]},
            {"deployment": 7, "sites": [1, 2], "regions": [0]},
            {"deployment": 8, "sites": [1, 3, 2], "regions": [0]},
        ],
    })
}

/// The heartbeat of replica `sid`.
pub fn heartbeat(sid: u16, services: &[&str]) -> Value {
    json!({"services": services, "address": replica(sid), "load": 0.5, "weight": 1, "accepting": true, "ttl": 3})
}

/// The address of replica `sid`, `2001:db8:1::<sid>`.
pub fn replica(sid: u16) -> IpAddr {
    ip(&format!("2001:db8:1::{sid:x}"))
}

pub struct Testbed {
    pub table: Value,
    pub replicas: Replicas,
    pub counters: Arc<Counters>,
    pub engine: Engine,
    pub now: Instant,
}

impl Testbed {
    pub fn new() -> Self {
        Self::with_limits(Limits {
            unfinished: 16,
            recent: 1024,
        })
    }

    pub fn with_limits(limits: Limits) -> Self {
        let counters = Arc::new(Counters::default());
        Self {
            table: table(),
            replicas: Replicas::default(),
            engine: Engine::new(&limits, counters.clone()),
            counters,
            now: Instant::now(),
        }
    }

    /// Creates a testbed with replicas 11 and 12 of both services.
    pub fn with_replicas() -> Self {
        let mut testbed = Self::new();
        for sid in [11, 12] {
            testbed.heartbeat(sid, |_| {});
        }
        testbed
    }

    /// Records a heartbeat of a replica of both services, after `change`.
    pub fn heartbeat(&mut self, sid: u16, change: impl FnOnce(&mut Value)) {
        let mut message = heartbeat(sid, &["films.example", "copied.example"]);
        change(&mut message);
        let heartbeat = serde_json::from_value(message).unwrap();
        let recorded = self.replicas.record(sid, heartbeat, self.now, ip(OWN));
        recorded.unwrap();
    }

    /// Advances the time.
    pub fn advance(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.replicas.expire(self.now);
    }

    pub fn view(&self) -> View {
        let message = serde_json::from_value(self.table.clone()).unwrap();
        let table = Table::new(message, ip(OWN)).unwrap();
        View::new(Arc::new(table), &self.replicas, &[ip(SWITCH)])
    }

    /// Processes a tunnel packet from the switch; returns the packets sent and their destinations.
    pub fn process(&mut self, packet: &[u8]) -> Vec<(IpAddr, Vec<u8>)> {
        self.process_from(ip(SWITCH), packet)
    }

    pub fn process_from(&mut self, peer: IpAddr, packet: &[u8]) -> Vec<(IpAddr, Vec<u8>)> {
        let mut out = Outbox::default();
        self.engine
            .process(Some(&self.view()), peer, packet, &mut out);
        let packet = |entry: &_| out.packet(*entry).to_vec();
        out.entries()
            .iter()
            .map(|entry| (entry.to, packet(entry)))
            .collect()
    }

    /// Processes a tunnel packet from the switch; returns the destinations of the packets sent.
    pub fn destinations(&mut self, packet: &[u8]) -> Vec<IpAddr> {
        self.process(packet).into_iter().map(|(to, _)| to).collect()
    }

    #[track_caller]
    pub fn expect_count(&self, outcome: Outcome, n: u64) {
        assert_eq!(self.counters.get(outcome), n, "{outcome:?}");
    }
}

/// Encapsulates a client's `datagram` that entered at the site `origin`.
pub fn encapsulate(origin: u8, client: &str, datagram: &[u8]) -> Vec<u8> {
    let client: SocketAddr = client.parse().unwrap();
    let service = if client.is_ipv4() {
        "203.0.113.1:443"
    } else {
        SERVICE
    };
    let flow = Flow {
        source: client,
        destination: service.parse().unwrap(),
    };
    let origin = NonZeroU8::new(origin).unwrap();
    let head = Head::new(Encapsulation::Vxlan, origin, flow, 0, datagram).unwrap();
    [&head, datagram].concat()
}

/// A complete first flight for `name`. Each number is a different connection.
pub fn flight(number: u32, name: &str) -> Vec<u8> {
    let datagram = whole(Version::V1, &dcid(number), name.as_bytes(), &[b"h3"]);
    encapsulate(1, CLIENT, &datagram)
}

pub fn dcid(number: u32) -> Vec<u8> {
    [b"flight", number.to_be_bytes().as_slice()].concat()
}

/// The two packets of a flight whose ClientHello is split.
pub fn halves(number: u32, hello: &[u8]) -> [Vec<u8>; 2] {
    let (first, second) = hello.split_at(hello.len() / 2);
    let half = |n: u32, at, data: &[u8]| {
        let datagram = initial(Version::V1, &dcid(number), b"me", n, &crypto(at, data));
        encapsulate(1, CLIENT, &datagram)
    };
    [half(0, 0, first), half(1, first.len(), second)]
}
