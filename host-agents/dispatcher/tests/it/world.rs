//! A dispatcher of site 1 in process, with what it is told and what it counts.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontage_dispatcher::config::Limits;
use frontage_dispatcher::counts::{Counts, Outcome};
use frontage_dispatcher::engine::Engine;
use frontage_dispatcher::outbox::Outbox;
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

/// Three sites and two services: `films.example` is best at sites 2, 1, 3 for region 5 and at 1, 2 for others, `copied.example`
/// goes to two sites.
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

/// Replica `sid`, at the address `2001:db8:1::<sid>`.
pub fn heartbeat(sid: u16, services: &[&str]) -> Value {
    json!({"services": services, "address": replica(sid), "load": 0.5, "weight": 1, "accepting": true, "ttl": 3})
}

pub fn replica(sid: u16) -> IpAddr {
    ip(&format!("2001:db8:1::{sid:x}"))
}

pub struct World {
    pub table: Value,
    pub replicas: Replicas,
    pub counts: Arc<Counts>,
    pub engine: Engine,
    pub now: Instant,
}

impl World {
    pub fn new() -> Self {
        Self::with(Limits {
            unfinished: 16,
            recent: 1024,
        })
    }

    pub fn with(limits: Limits) -> Self {
        let counts = Arc::new(Counts::default());
        Self {
            table: table(),
            replicas: Replicas::default(),
            engine: Engine::new(&limits, counts.clone()),
            counts,
            now: Instant::now(),
        }
    }

    /// With replicas 11 and 12 of both services.
    pub fn served() -> Self {
        let mut world = Self::new();
        for sid in [11, 12] {
            world.beat(sid, |_| {});
        }
        world
    }

    /// A heartbeat of both services, changed.
    pub fn beat(&mut self, sid: u16, change: impl FnOnce(&mut Value)) {
        let mut beat = heartbeat(sid, &["films.example", "copied.example"]);
        change(&mut beat);
        let beat = serde_json::from_value(beat).unwrap();
        self.replicas.beat(sid, beat, self.now, ip(OWN)).unwrap();
    }

    /// Time passes.
    pub fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.replicas.expire(self.now);
    }

    pub fn view(&self) -> View {
        let whole = serde_json::from_value(self.table.clone()).unwrap();
        let table = Table::new(whole, ip(OWN)).unwrap();
        View::new(Arc::new(table), &self.replicas, &[ip(SWITCH)])
    }

    /// What goes out, and whereto, after the switch sent `packet`.
    pub fn take(&mut self, packet: &[u8]) -> Vec<(IpAddr, Vec<u8>)> {
        self.take_from(ip(SWITCH), packet)
    }

    pub fn take_from(&mut self, peer: IpAddr, packet: &[u8]) -> Vec<(IpAddr, Vec<u8>)> {
        let mut out = Outbox::default();
        self.engine.take(Some(&self.view()), peer, packet, &mut out);
        let packet = |entry: &_| out.packet(*entry).to_vec();
        out.entries()
            .iter()
            .map(|entry| (entry.to, packet(entry)))
            .collect()
    }

    /// Only where it goes.
    pub fn ends(&mut self, packet: &[u8]) -> Vec<IpAddr> {
        self.take(packet).into_iter().map(|(to, _)| to).collect()
    }

    #[track_caller]
    pub fn expect(&self, outcome: Outcome, n: u64) {
        assert_eq!(self.counts.of(outcome), n, "{outcome:?}");
    }
}

/// `datagram` in a tunnel, of a client that entered at `origin`.
pub fn tunnelled(origin: u8, client: &str, datagram: &[u8]) -> Vec<u8> {
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

/// A whole first flight for `name`, numbered so that each is a connection of its own.
pub fn flight(number: u32, name: &str) -> Vec<u8> {
    let datagram = whole(Version::V1, &dcid(number), name.as_bytes(), &[b"h3"]);
    tunnelled(1, CLIENT, &datagram)
}

pub fn dcid(number: u32) -> Vec<u8> {
    [b"flight", number.to_be_bytes().as_slice()].concat()
}

/// The packets of a ClientHello in two.
pub fn halves(number: u32, hello: &[u8]) -> [Vec<u8>; 2] {
    let (first, second) = hello.split_at(hello.len() / 2);
    let half = |n: u32, at, data: &[u8]| {
        let datagram = initial(Version::V1, &dcid(number), b"me", n, &crypto(at, data));
        tunnelled(1, CLIENT, &datagram)
    };
    [half(0, 0, first), half(1, first.len(), second)]
}
