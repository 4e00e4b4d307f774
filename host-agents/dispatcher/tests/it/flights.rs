// SPDX-License-Identifier: Apache-2.0
//! Outcomes of packets: each has a name, and packets go to permitted destinations only.

use frontage_dispatcher::config::Limits;
use frontage_dispatcher::outcome::Outcome;
use frontage_first_flight::compose::{alpn, crypto, hello, initial, server_name, whole};
use frontage_first_flight::packet::Invariants;
use frontage_first_flight::{Fault, Version};
use frontage_tunnel::{Encapsulation, Error, decode};
use proptest::prelude::*;

use crate::testbed::{CLIENT, SWITCH, Testbed, dcid, encapsulate, flight, halves, ip, replica};

/// A ClientHello of two packets, with a post-quantum key share before the name.
fn long_hello() -> Vec<u8> {
    hello(&[
        (51, vec![5; 1216]),
        server_name(b"films.example"),
        alpn(&[b"h3"]),
    ])
}

#[test]
fn all_packets_of_a_flight_go_to_one_replica_unchanged() {
    let mut testbed = Testbed::with_replicas();
    let packet = flight(1, "films.example");
    let out = testbed.process(&packet);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].1, packet);
    assert!([replica(11), replica(12)].contains(&out[0].0));
    // A retransmission, and the same packet at another dispatcher of the site.
    assert_eq!(testbed.process(&packet), out);
    assert_eq!(Testbed::with_replicas().process(&packet), out);
    // Early data has no name, but follows its flight.
    let early = encapsulate(1, CLIENT, &early_data(1));
    assert_eq!(testbed.destinations(&early), [out[0].0]);
    testbed.expect_count(Outcome::Forwarded, 3);
}

/// Replaying a flight gains nothing: it goes to the same replica, and takes no further memory.
#[test]
fn replayed_flight_goes_to_the_same_replica() {
    let mut testbed = Testbed::with_replicas();
    let packet = flight(1, "films.example");
    let out = testbed.process(&packet);
    for _ in 0..100 {
        assert_eq!(testbed.process(&packet), out);
    }
    testbed.expect_count(Outcome::Forwarded, 101);
    // From another address it is a different flight, and its answer goes to that address.
    let datagram = whole(Version::V1, &dcid(1), b"other.example", &[b"h3"]);
    let other_client = encapsulate(1, "[2001:db8:c2::9]:4", &datagram);
    for n in 1..=100 {
        let [(to, answer)] = testbed.process(&other_client).try_into().unwrap();
        assert_eq!(to, ip(SWITCH));
        assert!(answer.len() < other_client.len());
        testbed.expect_count(Outcome::UnknownName, n);
    }
    // Each copy of an incomplete flight is held, up to the limit.
    let [half, _] = halves(2, &long_hello());
    for _ in 0..100 {
        assert_eq!(testbed.process(&half), []);
    }
    testbed.expect_count(Outcome::Held, 6);
    testbed.expect_count(Outcome::HoldLimit, 94);
}

#[test]
fn encrypted_client_hello_is_dispatched_by_its_outer_name() {
    let mut testbed = Testbed::with_replicas();
    let hello = hello(&[
        (0xfe0d, vec![0; 200]),
        server_name(b"films.example"),
        alpn(&[b"h3"]),
    ]);
    let datagram = initial(Version::V1, &dcid(1), b"me", 0, &crypto(0, &hello));
    assert_eq!(
        testbed
            .destinations(&encapsulate(1, CLIENT, &datagram))
            .len(),
        1
    );
    testbed.expect_count(Outcome::Forwarded, 1);
    let ech = &testbed.counters.ech;
    assert_eq!(ech.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// A 0-RTT packet of version 1, which only the server can decrypt.
fn early_data(number: u32) -> Vec<u8> {
    let dcid = dcid(number);
    let head = [
        &[0xd0, 0, 0, 0, 1, dcid.len() as u8],
        dcid.as_slice(),
        &[0, 0x44, 0x00],
    ];
    [head.concat(), vec![9; 0x400]].concat()
}

#[test]
fn incomplete_flight_is_held_until_its_name_is_known() {
    for order in [[0, 1], [1, 0]] {
        let mut testbed = Testbed::with_replicas();
        let packets = halves(1, &long_hello());
        assert_eq!(testbed.process(&packets[order[0]]), []);
        let out = testbed.process(&packets[order[1]]);
        assert_eq!(out.len(), 2);
        assert_eq!(out[0].0, out[1].0);
        assert_eq!(
            (&out[0].1, &out[1].1),
            (&packets[order[0]], &packets[order[1]])
        );
        testbed.expect_count(Outcome::Held, 1);
        // The flight is known now.
        assert_eq!(testbed.destinations(&packets[0]), [out[0].0]);
    }
}

#[test]
fn early_data_waits_for_its_initial() {
    let mut testbed = Testbed::with_replicas();
    let early = encapsulate(1, CLIENT, &early_data(1));
    assert_eq!(testbed.process(&early), []);
    let first = flight(1, "films.example");
    let out = testbed.process(&first);
    assert_eq!((&out[0].1, &out[1].1), (&early, &first));
}

#[test]
fn flood_of_incomplete_flights_has_bounded_memory_and_delays_no_complete_flight() {
    let mut testbed = Testbed::with_replicas();
    let hello = long_hello();
    for number in 0..1000 {
        assert_eq!(testbed.process(&halves(number, &hello)[0]), []);
    }
    let unfinished = testbed
        .counters
        .unfinished
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(unfinished, 16);
    let evicted = testbed
        .counters
        .evicted
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(evicted, 1000 - 16);
    assert_eq!(
        testbed.destinations(&flight(5000, "films.example")).len(),
        1
    );
    // The oldest flights were evicted, the youngest were not.
    assert_eq!(testbed.process(&halves(999, &hello)[1]).len(), 2);
    assert_eq!(testbed.process(&halves(0, &hello)[1]), []);
}

#[test]
fn held_packets_of_a_flight_are_bounded() {
    let mut testbed = Testbed::with_replicas();
    let [first, second] = halves(1, &long_hello());
    for _ in 0..9 {
        assert_eq!(testbed.process(&first), []);
    }
    testbed.expect_count(Outcome::Held, 6);
    testbed.expect_count(Outcome::HoldLimit, 3);
    assert_eq!(testbed.process(&second).len(), 7);
}

/// Checks that the client receives an answer, through the tunnel of its packet.
#[track_caller]
fn expect_refusal(testbed: &mut Testbed, datagram: &[u8], outcome: Outcome) {
    let out = testbed.process(&encapsulate(1, CLIENT, datagram));
    let [(to, packet)] = out.as_slice() else {
        panic!("{outcome:?}: {} packets", out.len());
    };
    assert_eq!(*to, ip(SWITCH));
    let answer = decode(Encapsulation::Vxlan, packet).unwrap();
    assert_eq!(answer.origin.get(), 1);
    assert_eq!(answer.inner.flow.destination, CLIENT.parse().unwrap());
    assert_eq!(answer.inner.flow.source.port(), 443);
    assert!(answer.inner.payload.len() < datagram.len());
    let request = Invariants::parse(datagram).unwrap();
    let response = Invariants::parse(answer.inner.payload).unwrap();
    assert_eq!(response.dcid, request.scid);
    testbed.expect_count(outcome, 1);
}

#[test]
fn refused_flight_has_its_outcome() {
    let mut testbed = Testbed::with_replicas();
    let hello_with = |extensions: &[_]| {
        initial(
            Version::V2,
            &dcid(1),
            b"me",
            0,
            &crypto(0, &hello(extensions)),
        )
    };
    let h3 = || alpn(&[b"h3"]);
    expect_refusal(
        &mut testbed,
        &hello_with(&[server_name(b"other.example"), h3()]),
        Outcome::UnknownName,
    );
    expect_refusal(&mut testbed, &hello_with(&[h3()]), Outcome::MissingName);
    expect_refusal(
        &mut testbed,
        &hello_with(&[server_name(b"films.example"), alpn(&[b"hq"])]),
        Outcome::Alpn,
    );
    let outer = hello_with(&[(0xfe0d, vec![0; 200]), server_name(b"public.example"), h3()]);
    let mut testbed = Testbed::with_replicas();
    expect_refusal(&mut testbed, &outer, Outcome::UnknownName);
    assert_eq!(
        testbed
            .counters
            .ech
            .load(std::sync::atomic::Ordering::Relaxed),
        1
    );
    expect_refusal(
        &mut testbed,
        &hello_with(&[h3(), h3()]),
        Outcome::FirstFlight(Fault::BadHello),
    );
    let far = initial(Version::V1, &dcid(1), b"me", 0, &crypto(9000, b"x"));
    expect_refusal(
        &mut testbed,
        &far,
        Outcome::FirstFlight(Fault::CryptoTooLong),
    );
    let mut unknown = whole(Version::V1, &dcid(1), b"films.example", &[b"h3"]);
    unknown[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    expect_refusal(
        &mut testbed,
        &unknown,
        Outcome::FirstFlight(Fault::UnknownVersion),
    );
    let mut unserved = Testbed::new();
    unserved.table["mapping"] = serde_json::json!([]);
    expect_refusal(
        &mut unserved,
        &hello_with(&[server_name(b"films.example"), h3()]),
        Outcome::NoServer,
    );
}

#[test]
fn held_packets_of_a_refused_flight_are_freed() {
    let mut testbed = Testbed::with_replicas();
    let hello = hello(&[
        (51, vec![5; 1216]),
        server_name(b"other.example"),
        alpn(&[b"h3"]),
    ]);
    let [first, second] = halves(1, &hello);
    assert_eq!(testbed.process(&first), []);
    assert_eq!(testbed.process(&second).len(), 1);
    assert_eq!(
        testbed
            .counters
            .unfinished
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
}

#[test]
fn dropped_packet_has_its_outcome() {
    let mut testbed = Testbed::with_replicas();
    let valid = flight(1, "films.example");
    assert_eq!(testbed.process_from(ip("2001:db8:bad::1"), &valid), []);
    testbed.expect_count(Outcome::UnknownPeer, 1);
    assert_eq!(testbed.process(&valid[..60]), []);
    testbed.expect_count(Outcome::Tunnel(Error::InnerShort), 1);
    for source in [
        "[ff02::1]:1",
        "[::]:1",
        "[::1]:1",
        "127.0.0.1:9",
        "255.255.255.255:9",
        "[2001:db8::1]:0",
    ] {
        let datagram = whole(Version::V1, &dcid(1), b"films.example", &[b"h3"]);
        assert_eq!(testbed.process(&encapsulate(1, source, &datagram)), []);
    }
    testbed.expect_count(Outcome::InvalidSource, 6);
    let ping = initial(Version::V1, &dcid(2), b"", 3, &[1]);
    assert_eq!(testbed.process(&encapsulate(1, CLIENT, &ping)), []);
    testbed.expect_count(Outcome::NoCryptoData, 1);
    let mut damaged = ping.clone();
    damaged[1199] ^= 1;
    assert_eq!(testbed.process(&encapsulate(1, CLIENT, &damaged)), []);
    testbed.expect_count(Outcome::FirstFlight(Fault::Undecryptable), 1);
    // A packet of an unknown version that is too short for an answer.
    assert_eq!(
        testbed.process(&encapsulate(1, CLIENT, &[0xc0, 9, 9, 9, 9, 0, 0, 1])),
        []
    );
    assert_eq!(testbed.process(&encapsulate(1, CLIENT, &[0x40; 1200])), []);
    testbed.expect_count(Outcome::FirstFlight(Fault::SmallDatagram), 1);
    testbed.expect_count(Outcome::FirstFlight(Fault::ShortHeader), 1);
    let mut out = frontage_dispatcher::outbox::Outbox::default();
    testbed.engine.process(None, ip(SWITCH), &valid, &mut out);
    assert!(out.entries().is_empty());
    testbed.expect_count(Outcome::NoTable, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any input, a packet sent is either unchanged and for a replica, or shorter and for the switch.
    #[test]
    fn damaged_packet_is_forwarded_unchanged_or_answered(
        changes in prop::collection::vec((0..1270_usize, any::<u8>()), 0..6),
        cut in 0..1271_usize,
    ) {
        let mut testbed = Testbed::with_limits(Limits { unfinished: 4, recent: 16 });
        testbed.heartbeat(11, |_| {});
        let mut packet = flight(1, "films.example");
        for (at, byte) in changes {
            packet[at] = byte;
        }
        packet.truncate(cut.max(1));
        let sent = testbed.process(&packet);
        let outcomes: u64 = Outcome::all().map(|outcome| testbed.counters.get(outcome)).sum();
        prop_assert_eq!(outcomes, 1);
        for (to, out) in sent {
            if to == replica(11) {
                prop_assert_eq!(&out, &packet);
            } else {
                prop_assert_eq!(to, ip(SWITCH));
                prop_assert!(out.len() < packet.len());
            }
        }
    }
}
