//! First flights in tunnels, each of a client and connection of its own, and the view that they meet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Instant;

use frontage_first_flight::Version;
use frontage_first_flight::compose::{alpn, crypto, hello, initial, server_name, whole};
use frontage_tunnel::{Encapsulation, Flow, Head};
use serde_json::json;

use crate::replicas::Replicas;
use crate::table::Table;
use crate::view::View;

/// The site's switch, the dispatcher, the replica.
pub const SWITCH: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 1));
pub const DISPATCHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 2));
pub const REPLICA: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 3));
const ORIGIN: NonZeroU8 = NonZeroU8::MIN;
const NAME: &[u8] = b"films.example";

/// Where a packet has the number of its flight: behind VXLAN's, Ethernet's, IPv4's, UDP's headers and QUIC's first six bytes.
const NUMBER_AT: usize = 22 + 20 + 8 + 6;

/// Shapes of first flights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One packet says it all.
    One,
    /// A post-quantum key share comes before the name, which is in the second packet.
    Two,
    /// The name is unknown.
    Unknown,
}

/// The packets of flight `number`.
pub fn flight(kind: Kind, number: u32) -> Vec<Vec<u8>> {
    let dcid = [number.to_be_bytes(), *b"dcid"].concat();
    let datagrams = match kind {
        Kind::One => vec![whole(Version::V1, &dcid, NAME, &[b"h3"])],
        Kind::Unknown => vec![whole(Version::V1, &dcid, b"other.example", &[b"h3"])],
        Kind::Two => {
            let hello = hello(&[(51, vec![5; 1216]), server_name(NAME), alpn(&[b"h3"])]);
            let (first, second) = hello.split_at(1100);
            let one = initial(Version::V1, &dcid, &[], 0, &crypto(0, first));
            vec![
                one,
                initial(Version::V1, &dcid, &[], 1, &crypto(first.len(), second)),
            ]
        }
    };
    let [_, a, b, c] = number.to_be_bytes();
    let flow = Flow {
        source: SocketAddr::from(([198, a, b, c], 40_000)),
        destination: SocketAddr::from(([203, 0, 113, 1], 443)),
    };
    let wrap = |datagram: Vec<u8>| {
        let head = Head::new(Encapsulation::Vxlan, ORIGIN, flow, 0, &datagram);
        [&head.expect("of one family"), datagram.as_slice()].concat()
    };
    datagrams.into_iter().map(wrap).collect()
}

/// The number of a packet's flight.
pub fn number(packet: &[u8]) -> Option<usize> {
    let number = packet.get(NUMBER_AT..)?.first_chunk()?;
    Some(u32::from_be_bytes(*number) as usize)
}

/// One service, one site, one replica.
pub fn view() -> View {
    let table = json!({
        "version": 1, "site": ORIGIN, "sites": [],
        "services": [{"name": "films.example", "id": 3, "deployment": 7, "redundancy": 1, "alpn": ["h3"], "policy": "load"}],
        "clients": [{"prefix": "198.0.0.0/8", "region": 5}],
        "mapping": [{"deployment": 7, "sites": [ORIGIN], "regions": [5]}],
    });
    let whole = serde_json::from_value(table).expect("a table");
    let table = Table::new(whole, DISPATCHER).expect("a right table");
    let heartbeat = json!({
        "services": ["films.example"], "address": REPLICA, "load": 0.1, "accepting": true, "ttl": 3600,
    });
    let mut replicas = Replicas::default();
    let heartbeat = serde_json::from_value(heartbeat).expect("a heartbeat");
    let beaten = replicas.beat(1, heartbeat, Instant::now(), DISPATCHER);
    beaten.expect("a right heartbeat");
    View::new(Arc::new(table), &replicas, &[SWITCH])
}
