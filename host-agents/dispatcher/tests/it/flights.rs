//! What becomes of packets: each has a named outcome, and nothing goes where it should not.

use frontage_dispatcher::config::Limits;
use frontage_dispatcher::counts::Outcome;
use frontage_first_flight::compose::{alpn, crypto, hello, initial, server_name, whole};
use frontage_first_flight::packet::Invariants;
use frontage_first_flight::{Fault, Version};
use frontage_tunnel::{Encapsulation, Error, decode};
use proptest::prelude::*;

use crate::world::{CLIENT, SWITCH, World, dcid, flight, halves, ip, replica, tunnelled};

/// The share of a long ClientHello that comes before its name.
fn long_hello() -> Vec<u8> {
    hello(&[
        (51, vec![5; 1216]),
        server_name(b"films.example"),
        alpn(&[b"h3"]),
    ])
}

#[test]
fn a_flight_goes_to_a_replica_unchanged_and_all_its_packets_with_it() {
    let mut world = World::served();
    let packet = flight(1, "films.example");
    let out = world.take(&packet);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].1, packet);
    assert!([replica(11), replica(12)].contains(&out[0].0));
    // Retransmitted, and by another dispatcher of the site.
    assert_eq!(world.take(&packet), out);
    assert_eq!(World::served().take(&packet), out);
    // Early data names no service: it follows.
    let early = tunnelled(1, CLIENT, &early_data(1));
    assert_eq!(world.ends(&early), [out[0].0]);
    world.expect(Outcome::Forwarded, 3);
}

/// Whoever sends a flight again gains nothing: it goes where it went, and is not remembered twice.
#[test]
fn a_replayed_flight_goes_where_it_went() {
    let mut world = World::served();
    let packet = flight(1, "films.example");
    let out = world.take(&packet);
    for _ in 0..100 {
        assert_eq!(world.take(&packet), out);
    }
    world.expect(Outcome::Forwarded, 101);
    // From elsewhere it is somebody else's flight, and the answer to it goes there.
    let datagram = whole(Version::V1, &dcid(1), b"other.example", &[b"h3"]);
    let elsewhere = tunnelled(1, "[2001:db8:c2::9]:4", &datagram);
    for n in 1..=100 {
        let [(to, answer)] = world.take(&elsewhere).try_into().unwrap();
        assert_eq!(to, ip(SWITCH));
        assert!(answer.len() < elsewhere.len());
        world.expect(Outcome::UnknownName, n);
    }
    // One that is not whole is held once for each time that it comes, up to the bound.
    let [half, _] = halves(2, &long_hello());
    for _ in 0..100 {
        assert_eq!(world.take(&half), []);
    }
    world.expect(Outcome::Held, 6);
    world.expect(Outcome::NoRoom, 94);
}

#[test]
fn an_encrypted_hello_goes_where_its_outer_name_says() {
    let mut world = World::served();
    let hello = hello(&[
        (0xfe0d, vec![0; 200]),
        server_name(b"films.example"),
        alpn(&[b"h3"]),
    ]);
    let datagram = initial(Version::V1, &dcid(1), b"me", 0, &crypto(0, &hello));
    assert_eq!(world.ends(&tunnelled(1, CLIENT, &datagram)).len(), 1);
    world.expect(Outcome::Forwarded, 1);
    let ech = &world.counts.ech;
    assert_eq!(ech.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// 0-RTT of version 1, of which nobody but the server can read more.
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
fn halves_are_held_until_the_name_is_known() {
    for order in [[0, 1], [1, 0]] {
        let mut world = World::served();
        let packets = halves(1, &long_hello());
        assert_eq!(world.take(&packets[order[0]]), []);
        let out = world.take(&packets[order[1]]);
        assert_eq!(out.len(), 2);
        assert_eq!(out[0].0, out[1].0);
        assert_eq!(
            (&out[0].1, &out[1].1),
            (&packets[order[0]], &packets[order[1]])
        );
        world.expect(Outcome::Held, 1);
        // Once more: it is known by now.
        assert_eq!(world.ends(&packets[0]), [out[0].0]);
    }
}

#[test]
fn early_data_that_comes_first_waits_for_its_initial() {
    let mut world = World::served();
    let early = tunnelled(1, CLIENT, &early_data(1));
    assert_eq!(world.take(&early), []);
    let first = flight(1, "films.example");
    let out = world.take(&first);
    assert_eq!((&out[0].1, &out[1].1), (&early, &first));
}

#[test]
fn a_flood_of_halves_costs_no_memory_and_no_whole_flight() {
    let mut world = World::served();
    let hello = long_hello();
    for number in 0..1000 {
        assert_eq!(world.take(&halves(number, &hello)[0]), []);
    }
    let unfinished = world
        .counts
        .unfinished
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(unfinished, 16);
    let evicted = world
        .counts
        .evicted
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(evicted, 1000 - 16);
    assert_eq!(world.ends(&flight(5000, "films.example")).len(), 1);
    // The youngest are still there, the oldest are not.
    assert_eq!(world.take(&halves(999, &hello)[1]).len(), 2);
    assert_eq!(world.take(&halves(0, &hello)[1]), []);
}

#[test]
fn of_one_flight_only_so_much_is_held() {
    let mut world = World::served();
    let [first, second] = halves(1, &long_hello());
    for _ in 0..9 {
        assert_eq!(world.take(&first), []);
    }
    world.expect(Outcome::Held, 6);
    world.expect(Outcome::NoRoom, 3);
    assert_eq!(world.take(&second).len(), 7);
}

/// What the client is told, through the tunnel that it came by.
#[track_caller]
fn refused(world: &mut World, datagram: &[u8], outcome: Outcome) {
    let out = world.take(&tunnelled(1, CLIENT, datagram));
    let [(to, packet)] = out.as_slice() else {
        panic!("{outcome:?}: {} packets", out.len());
    };
    assert_eq!(*to, ip(SWITCH));
    let answer = decode(Encapsulation::Vxlan, packet).unwrap();
    assert_eq!(answer.origin.get(), 1);
    assert_eq!(answer.inner.flow.destination, CLIENT.parse().unwrap());
    assert_eq!(answer.inner.flow.source.port(), 443);
    assert!(answer.inner.payload.len() < datagram.len());
    let asked = Invariants::parse(datagram).unwrap();
    let answered = Invariants::parse(answer.inner.payload).unwrap();
    assert_eq!(answered.dcid, asked.scid);
    world.expect(outcome, 1);
}

#[test]
fn each_refusal_has_its_outcome() {
    let mut world = World::served();
    let of = |extensions: &[_]| {
        initial(
            Version::V2,
            &dcid(1),
            b"me",
            0,
            &crypto(0, &hello(extensions)),
        )
    };
    let h3 = || alpn(&[b"h3"]);
    refused(
        &mut world,
        &of(&[server_name(b"other.example"), h3()]),
        Outcome::UnknownName,
    );
    refused(&mut world, &of(&[h3()]), Outcome::MissingName);
    refused(
        &mut world,
        &of(&[server_name(b"films.example"), alpn(&[b"hq"])]),
        Outcome::Alpn,
    );
    let outer = of(&[(0xfe0d, vec![0; 200]), server_name(b"public.example"), h3()]);
    let mut world = World::served();
    refused(&mut world, &outer, Outcome::UnknownName);
    assert_eq!(
        world.counts.ech.load(std::sync::atomic::Ordering::Relaxed),
        1
    );
    refused(
        &mut world,
        &of(&[h3(), h3()]),
        Outcome::FirstFlight(Fault::BadHello),
    );
    let far = initial(Version::V1, &dcid(1), b"me", 0, &crypto(9000, b"x"));
    refused(&mut world, &far, Outcome::FirstFlight(Fault::CryptoTooLong));
    let mut unknown = whole(Version::V1, &dcid(1), b"films.example", &[b"h3"]);
    unknown[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    refused(
        &mut world,
        &unknown,
        Outcome::FirstFlight(Fault::UnknownVersion),
    );
    let mut nobody = World::new();
    nobody.table["mapping"] = serde_json::json!([]);
    refused(
        &mut nobody,
        &of(&[server_name(b"films.example"), h3()]),
        Outcome::NoServer,
    );
}

/// A flight that a service has refused is over: its halves are not held on.
#[test]
fn a_refused_flight_is_forgotten() {
    let mut world = World::served();
    let hello = hello(&[
        (51, vec![5; 1216]),
        server_name(b"other.example"),
        alpn(&[b"h3"]),
    ]);
    let [first, second] = halves(1, &hello);
    assert_eq!(world.take(&first), []);
    assert_eq!(world.take(&second).len(), 1);
    assert_eq!(
        world
            .counts
            .unfinished
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
}

#[test]
fn each_drop_has_its_outcome() {
    let mut world = World::served();
    let good = flight(1, "films.example");
    assert_eq!(world.take_from(ip("2001:db8:bad::1"), &good), []);
    world.expect(Outcome::Peer, 1);
    assert_eq!(world.take(&good[..60]), []);
    world.expect(Outcome::Tunnel(Error::InnerShort), 1);
    for source in [
        "[ff02::1]:1",
        "[::]:1",
        "[::1]:1",
        "127.0.0.1:9",
        "255.255.255.255:9",
        "[2001:db8::1]:0",
    ] {
        let datagram = whole(Version::V1, &dcid(1), b"films.example", &[b"h3"]);
        assert_eq!(world.take(&tunnelled(1, source, &datagram)), []);
    }
    world.expect(Outcome::Source, 6);
    let ping = initial(Version::V1, &dcid(2), b"", 3, &[1]);
    assert_eq!(world.take(&tunnelled(1, CLIENT, &ping)), []);
    world.expect(Outcome::NothingSaid, 1);
    let mut damaged = ping.clone();
    damaged[1199] ^= 1;
    assert_eq!(world.take(&tunnelled(1, CLIENT, &damaged)), []);
    world.expect(Outcome::FirstFlight(Fault::Undecryptable), 1);
    // An unknown version that did not pay for an answer.
    assert_eq!(
        world.take(&tunnelled(1, CLIENT, &[0xc0, 9, 9, 9, 9, 0, 0, 1])),
        []
    );
    assert_eq!(world.take(&tunnelled(1, CLIENT, &[0x40; 1200])), []);
    world.expect(Outcome::FirstFlight(Fault::SmallDatagram), 1);
    world.expect(Outcome::FirstFlight(Fault::ShortHeader), 1);
    let mut out = frontage_dispatcher::outbox::Outbox::default();
    world.engine.take(None, ip(SWITCH), &good, &mut out);
    assert!(out.entries().is_empty());
    world.expect(Outcome::NoTable, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes: what goes out goes to a replica, unchanged, or back to the switch, shorter.
    #[test]
    fn damage_is_forwarded_to_nobody_else(
        changes in prop::collection::vec((0..1270_usize, any::<u8>()), 0..6),
        cut in 0..1271_usize,
    ) {
        let mut world = World::with(Limits { unfinished: 4, recent: 16 });
        world.beat(11, |_| {});
        let mut packet = flight(1, "films.example");
        for (at, byte) in changes {
            packet[at] = byte;
        }
        packet.truncate(cut.max(1));
        let sent = world.take(&packet);
        let outcomes: u64 = Outcome::all().map(|outcome| world.counts.of(outcome)).sum();
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
