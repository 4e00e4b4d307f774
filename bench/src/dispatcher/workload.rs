// SPDX-License-Identifier: Apache-2.0
//! First flights in tunnel packets, each from its own client and connection, and the view for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Instant;

use frontage_first_flight::Version;
use frontage_first_flight::compose::{alpn, crypto, hello, initial, server_name, whole};
use frontage_tunnel::{Encapsulation, Flow, Head};
use serde_json::json;

use frontage_dispatcher::replicas::Replicas;
use frontage_dispatcher::table::Table;
use frontage_dispatcher::view::View;

/// Tunnel endpoint of the site's switch.
pub const SWITCH: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 1));
/// Tunnel endpoint of the dispatcher.
pub const DISPATCHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 2));
/// Tunnel endpoint of the replica.
pub const REPLICA: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 4, 3));
const ORIGIN: NonZeroU8 = NonZeroU8::MIN;
const NAME: &[u8] = b"films.example";

/// Offset of the flight number in a packet: after the VXLAN, Ethernet, IPv4 and UDP headers and the first six bytes of QUIC.
const NUMBER_OFFSET: usize = 22 + 20 + 8 + 6;

/// Kinds of first flights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One packet with the whole ClientHello.
    One,
    /// Two packets: a post-quantum key share precedes the name, which is in the second packet.
    Two,
    /// One packet with an unknown name.
    Unknown,
}

/// Creates the packets of flight `number`.
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
        [&head.expect("both addresses are IPv4"), datagram.as_slice()].concat()
    };
    datagrams.into_iter().map(wrap).collect()
}

/// Returns the number of the flight of a packet.
pub fn number(packet: &[u8]) -> Option<usize> {
    let number = packet.get(NUMBER_OFFSET..)?.first_chunk()?;
    Some(u32::from_be_bytes(*number) as usize)
}

/// Creates a view with one service, one site and one replica.
pub fn view() -> View {
    let table = json!({
        "version": 1, "site": ORIGIN, "sites": [],
        "services": [{"name": "films.example", "id": 3, "deployment": 7, "redundancy": 1, "alpn": ["h3"], "policy": "load"}],
        "clients": [{"prefix": "198.0.0.0/8", "region": 5}],
        "mapping": [{"deployment": 7, "sites": [ORIGIN], "regions": [5]}],
    });
    let message = serde_json::from_value(table).expect("the table is valid JSON");
    let table = Table::new(message, DISPATCHER).expect("the table is valid");
    let heartbeat = json!({
        "services": ["films.example"], "address": REPLICA, "load": 0.1, "accepting": true, "ttl": 3600,
    });
    let mut replicas = Replicas::default();
    let heartbeat = serde_json::from_value(heartbeat).expect("the heartbeat is valid JSON");
    let recorded = replicas.record(1, heartbeat, Instant::now(), DISPATCHER);
    recorded.expect("the heartbeat is valid");
    View::new(Arc::new(table), &replicas, &[SWITCH])
}
