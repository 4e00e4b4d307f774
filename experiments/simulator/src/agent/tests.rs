// SPDX-License-Identifier: Apache-2.0
use frontage_cookie::tcp::{coarse_clock, decode_dynamic};
use frontage_transport::tcp::{Ecn, SackBlocks, Timestamps};

use super::*;
use crate::frame::Datagram;

const MEGABYTE: u64 = 1_000_000;

/// Returns an agent of a server with 8 Gbit/s, which sends a megabyte in a millisecond.
fn agent() -> Agent {
    Agent::new(&scenario::Server {
        sid: 1,
        port: 80,
        look_ahead: 100_000,
        bandwidth: 8_000_000_000,
        cookie: true,
        key: None,
        rank: Rank::Unsent,
    })
}

fn segment(seq: u32, ack: u32, flags: Flags, len: u32, val: u32) -> Segment {
    Segment {
        seq,
        ack,
        flags,
        window: 0,
        window_scale: None,
        mss: None,
        sack_permitted: false,
        ts: Some(Timestamps { val, ecr: 77 }),
        sack: SackBlocks::default(),
        len,
        ecn: Ecn::NotEct,
    }
}

fn local() -> SocketAddr {
    "[2001:db8::1]:443".parse().unwrap()
}

/// Returns the segment as the agent sends it, and its cookie flag. `sent` counts the bytes of the connection including this segment.
fn outgoing(
    agent: &Agent,
    responses: &mut Responses,
    sent: u64,
    segment: Segment,
) -> (Segment, bool) {
    let mut body = Body::Tcp { segment, ck: false };
    agent.outgoing(responses, sent, 0, &mut body, &mut local(), 0);
    match body {
        Body::Tcp { segment, ck } => (segment, ck),
        Body::Quic(_) => unreachable!(),
    }
}

/// Returns a received segment as the agent passes it on.
fn incoming(agent: &Agent, responses: &mut Responses, segment: Segment) -> Segment {
    let mut body = Body::Tcp { segment, ck: false };
    agent.incoming(responses, &mut body);
    match body {
        Body::Tcp { segment, .. } => segment,
        Body::Quic(_) => unreachable!(),
    }
}

#[test]
fn loads_count_responses_until_they_are_sent() {
    let agent = agent();
    let (mut one, mut two) = (Responses::default(), Responses::default());
    let loads = || (agent.loads().n_af(), agent.loads().n_ff());
    let send = |responses: &mut Responses, sent| {
        outgoing(&agent, responses, sent, segment(0, 0, Flags::ACK, 1448, 5));
        loads()
    };
    agent.begin(&mut one, MEGABYTE, None);
    agent.begin(&mut two, 100_000, None);
    assert_eq!(
        loads(),
        (2, 1),
        "the second response is not longer than the look-ahead"
    );
    assert_eq!(send(&mut one, 899_999), (2, 1));
    assert_eq!(send(&mut one, 900_000), (2, 0));
    assert_eq!(send(&mut one, MEGABYTE), (1, 0));
    agent.begin(&mut one, MEGABYTE, None);
    agent.begin(&mut one, 1, None);
    assert_eq!(loads(), (3, 2), "both responses of a connection count");
    // The connection is closed.
    drop(one);
    assert_eq!(loads(), (1, 0));
    assert_eq!(send(&mut two, 100_000), (0, 0));
}

#[test]
fn cookie_carries_loads_and_remaining_bytes() {
    let agent = agent();
    let mut responses = Responses::default();
    let ts = 123_456;
    let syn_ack = segment(9, 0, Flags::SYN | Flags::ACK, 0, ts);
    let (syn_ack, ck) = outgoing(&agent, &mut responses, 0, syn_ack);
    assert!(ck);
    assert_eq!(
        decode_dynamic(syn_ack.ts.unwrap().val),
        (coarse_clock(ts), Signals::default())
    );
    agent.begin(&mut responses, MEGABYTE, None);
    let mut send = |sent| {
        let data = segment(10, 0, Flags::ACK, 1448, ts);
        let (data, ck) = outgoing(&agent, &mut responses, sent, data);
        assert!(ck);
        assert_eq!(data.ts.unwrap().ecr, 77);
        let (_, signals) = decode_dynamic(data.ts.unwrap().val);
        (signals.rpt_us, signals.n_af, signals.n_ff)
    };
    assert_eq!(
        send(936_000),
        (896, 1, 0),
        "1000 us are 125 units, encoded as 112"
    );
    // 64,000 bytes are 64 us, or 8 units. The last packet no longer counts as load.
    assert_eq!(send(MEGABYTE), (64, 0, 0));
    assert_eq!(send(MEGABYTE), (0, 0, 0), "retransmission");
}

#[test]
fn server_receives_its_own_timestamp_echo() {
    let agent = agent();
    let mut responses = Responses::default();
    let mut send = |seq, flags, len, ts| {
        outgoing(&agent, &mut responses, 0, segment(seq, 0, flags, len, ts));
    };
    send(99, Flags::SYN | Flags::ACK, 0, 5);
    for (n, ts) in [(0, 20), (1, 20), (2, 21), (3, 21), (4, 30)] {
        send(100 + n * 1000, Flags::ACK, 1000, ts);
    }
    send(100 + 4000, Flags::ACK, 1000, 50); // retransmission
    send(100 + 5000, Flags::ACK, 1000, 51);
    let mut echo = |ack| {
        let segment = incoming(&agent, &mut responses, segment(0, ack, Flags::ACK, 0, 0));
        segment.ts.unwrap().ecr
    };
    assert_eq!(echo(100), 5, "timestamp of the SYN-ACK");
    assert_eq!(
        echo(2100),
        20,
        "timestamp of the first segment that a delayed acknowledgment covers"
    );
    assert_eq!(echo(2100), 20, "duplicate acknowledgment");
    assert_eq!(echo(3100), 21);
    assert_eq!(echo(4100), 21);
    assert_eq!(echo(5100), 0, "it is unknown which copy arrived");
    assert_eq!(echo(6100), 51);
}

#[test]
fn segments_are_unchanged_without_cookies() {
    let mut agent = agent();
    agent.cookie = false;
    let mut responses = Responses::default();
    let sent = segment(1, 2, Flags::ACK, 3, 4);
    assert_eq!(outgoing(&agent, &mut responses, 0, sent), (sent, false));
    assert_eq!(incoming(&agent, &mut responses, sent), sent);
}

#[test]
fn configured_rpt_is_signalled_from_its_time_on() {
    let agent = agent();
    let mut responses = Responses::default();
    agent.begin(&mut responses, MEGABYTE, Some([(10, 80), (20, 0)].into()));
    for (now, expected) in [(9, 896), (10, 80), (19, 80), (20, 0), (99, 0)] {
        let segment = segment(0, 0, Flags::ACK, 1448, 5);
        let mut body = Body::Tcp { segment, ck: false };
        let rank = agent.outgoing(&mut responses, 0, 0, &mut body, &mut local(), now);
        let Body::Tcp { segment, .. } = body else {
            unreachable!()
        };
        let (_, signals) = decode_dynamic(segment.ts.unwrap().val);
        assert_eq!(signals.rpt_us, expected, "at {now}");
        assert_eq!(
            IPV6.decode(rank),
            [expected, 960][usize::from(now == 9)] / RPT_UNIT_US
        );
    }
}

#[test]
fn quic_address_carries_loads_and_connection_id_names_the_server() {
    let key = Key::new(8, &frontage_cookie::Secret::new(&[3; 16]).unwrap());
    let mut agent = agent();
    agent.key = Some(Box::new(key.clone()));
    let mut responses = Responses::default();
    agent.begin(&mut responses, MEGABYTE, None);
    let ids = [agent.connection_id(1), agent.connection_id(1)];
    assert!(ids[0] != ids[1] && ids.iter().all(|id| cid::open([&key], id) == Some(1)));
    let mut from = local();
    let packet = frontage_transport::quic::Connection::connect(&Default::default())
        .poll_transmit(0)
        .unwrap();
    let mut body = Body::Quic(Datagram {
        packet,
        to: ids[0],
        from: None,
    });
    let rank = agent.outgoing(&mut responses, 0, 0, &mut body, &mut from, 0);
    let IpAddr::V6(address) = from.ip() else {
        panic!("{from} is not an IPv6 address");
    };
    assert_eq!(address.segments()[..4], [0x2001, 0xdb8, 0, 0]);
    let cookie = key.open(address.to_bits() as u64).unwrap();
    // 1000 us are 125 units, which are encoded as 120.
    let signals = Signals {
        rpt_us: 960,
        n_af: 1,
        n_ff: 1,
    };
    assert_eq!((cookie.sid, cookie.signals), (1, Some(signals)));
    assert_eq!(IPV6.decode(rank) * RPT_UNIT_US, 960);
    agent.key = None;
    assert_eq!(cid::open([], &agent.connection_id(1)), Some(1), "unsealed");
}

#[test]
fn segment_rank_is_the_number_of_bytes_to_the_end_of_the_response() {
    let agent = Agent {
        rank: Rank::Segment,
        ..agent()
    };
    let mut responses = Responses::default();
    let isn = u32::MAX - 1000;
    let rank = |responses: &mut Responses, sent, unanswered, seq: u32, flags| {
        let segment = segment(isn.wrapping_add(seq), 0, flags, 0, 5);
        let mut body = Body::Tcp { segment, ck: false };
        let rank = agent.outgoing(responses, sent, unanswered, &mut body, &mut local(), 0);
        let Body::Tcp { segment, .. } = body else {
            unreachable!()
        };
        (rank, segment.ts.map(|ts| decode_dynamic(ts.val).1.rpt_us))
    };
    let syn = rank(&mut responses, 0, 20_000, 0, Flags::SYN | Flags::ACK);
    agent.begin(&mut responses, 20_000, None);
    let ranks = [
        (1000, 1),
        (2000, 1001),
        (20_000, 19_001),
        (20_000, 1),
        (20_000, 20_001),
    ]
    .map(|(sent, seq)| rank(&mut responses, sent, 0, seq, Flags::ACK));
    // A retransmission has the rank of its data, and a pure acknowledgment has rank 0.
    assert_eq!(ranks.map(|r| r.0), [20_000, 19_000, 1000, 20_000, 0]);
    assert_eq!(syn.0, 20_000);
    // The cookies of SYN-ACK, first segment and retransmission have 20 us.
    assert_eq!((syn.1, ranks[3].1), (ranks[0].1, ranks[0].1));
    assert_ne!(ranks[0].1, ranks[4].1);
}
