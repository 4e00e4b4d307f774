// SPDX-License-Identifier: Apache-2.0
//! Opening and closing of connections, and validation of segments.

mod common;

use common::{Direction, Testbed, delay, plain};
use frontage_transport::tcp::{Config, Connection, Flags, Segment, State, Timestamps};
use frontage_transport::{MILLISECOND, Nanos, SECOND};

/// One-direction delay.
const DELAY: Nanos = 50 * MILLISECOND;

#[test]
fn handshake_negotiates_options() {
    let client = Config {
        mss: 1460,
        timestamps: true,
        receive_window: 1 << 20,
        ..plain()
    };
    let server = Config {
        mss: 1000,
        ..client.clone()
    };
    let mut testbed = Testbed::new(&client, &server, 10, delay(DELAY));
    testbed.client.finish();
    testbed.run(10 * SECOND);
    let flags: Vec<_> = testbed
        .log
        .iter()
        .map(|sent| (sent.at / DELAY, sent.direction, sent.segment.flags))
        .collect();
    let ack = Flags::ACK;
    let expected = [
        (0, Direction::ToServer, Flags::SYN),
        (1, Direction::ToClient, Flags::SYN | ack),
        (2, Direction::ToServer, Flags::FIN | ack),
        (3, Direction::ToClient, Flags::FIN | Flags::PSH | ack),
        (4, Direction::ToServer, ack),
    ];
    assert_eq!(flags, expected);
    let syn = &testbed.log[0].segment;
    assert_eq!(
        (syn.mss, syn.window_scale, syn.window, syn.sack_permitted),
        (Some(1460), Some(5), 65535, true)
    );
    assert_eq!((syn.seq, syn.header_length()), (1000, 40));
    let syn_ack = &testbed.log[1].segment;
    assert_eq!(
        (syn_ack.mss, syn_ack.seq, syn_ack.ack),
        (Some(1000), 2_000_000, 1001)
    );
    assert_eq!(syn_ack.ts, Some(Timestamps { val: 50, ecr: 0 }));
    assert_eq!(
        testbed.log[2].segment.ts,
        Some(Timestamps { val: 100, ecr: 50 })
    );
    assert_eq!(u64::from(testbed.log[2].segment.window) << 5, 1 << 20);
    // The server had received the client's FIN before it sent its own, so it closes at once.
    assert_eq!(
        (testbed.client.state(), testbed.server().state()),
        (State::TimeWait, State::Closed)
    );
}

#[test]
fn window_scale_of_one_end_is_not_used() {
    let mut server = Connection::connect(&plain(), 0, 0);
    let mut syn = server.poll_transmit(0).expect("a SYN");
    (syn.window_scale, syn.sack_permitted) = (None, false);
    server = Connection::accept(&plain(), 0, &syn, 0);
    let syn_ack = server.poll_transmit(0).expect("a SYN-ACK");
    assert_eq!(
        (syn_ack.window_scale, syn_ack.sack_permitted, syn_ack.window),
        (None, false, 65535)
    );
}

/// SYNs are retransmitted after 1, 2 and 4 s, and two losses leave an initial window of one segment.
#[test]
fn syn_retransmissions_back_off() {
    let lossy = |losses: usize| {
        move |direction, number, _: &mut Segment| {
            if direction == Direction::ToServer && number < losses {
                vec![]
            } else {
                vec![DELAY]
            }
        }
    };
    let mut testbed = Testbed::new(&plain(), &plain(), 0, lossy(3));
    testbed.client.write(20_000);
    testbed.run(60 * SECOND);
    let syns = testbed
        .log
        .iter()
        .filter(|sent| sent.segment.flags == Flags::SYN);
    assert_eq!(
        syns.map(|sent| sent.at / SECOND).collect::<Vec<_>>(),
        [0, 1, 3, 7]
    );
    let first = testbed.data(Direction::ToServer)[0].0;
    assert_eq!(
        testbed
            .data(Direction::ToServer)
            .iter()
            .filter(|(at, ..)| *at == first)
            .count(),
        1
    );
    assert_eq!(testbed.server().readable(), 20_000);

    let mut testbed = Testbed::new(&plain(), &plain(), 0, lossy(usize::MAX));
    testbed.run(1000 * SECOND);
    assert!(testbed.client.is_aborted() && testbed.client.timeout().is_none());
    assert_eq!(testbed.log.len(), 7);
}

/// RFC 7323, section 5.3: an old segment whose sequence number is in the window again is rejected.
#[test]
fn paws_drops_old_duplicates() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut testbed = Testbed::new(&config, &config, 0, delay(DELAY));
    testbed.run(SECOND);
    testbed.server().write(1000);
    testbed.pump();
    testbed.run(2 * SECOND);
    let last = testbed
        .log
        .iter()
        .rfind(|sent| sent.segment.len > 0)
        .expect("data")
        .segment;
    let ts = last.ts.expect("timestamps");
    let now = testbed.now;
    let mut next = Segment {
        seq: last.seq.wrapping_add(1000),
        ..last
    };
    next.ts = Some(Timestamps {
        val: ts.val - 1,
        ..ts
    });
    testbed.client.receive(now, &next);
    assert_eq!(testbed.client.readable(), 1000);
    assert!(
        testbed
            .client
            .poll_transmit(now)
            .is_some_and(|ack| ack.ack == next.seq),
        "the segment is answered with an ACK"
    );
    next.ts = Some(ts);
    testbed.client.receive(now, &next);
    assert_eq!(testbed.client.readable(), 2000);
    // TS.Recent wraps like sequence numbers.
    next.seq = next.seq.wrapping_add(1000);
    next.ts = Some(Timestamps {
        val: ts.val.wrapping_add((1 << 31) - 1),
        ..ts
    });
    testbed.client.receive(now, &next);
    assert_eq!(testbed.client.readable(), 3000);
}

#[test]
fn reset_ends_a_connection() {
    let mut testbed = Testbed::new(&plain(), &plain(), 0, delay(DELAY));
    testbed.run(SECOND);
    testbed.server().abort();
    testbed.pump();
    assert_eq!(
        testbed.log.last().map(|sent| sent.segment.flags),
        Some(Flags::RST)
    );
    testbed.run(2 * SECOND);
    assert!(testbed.client.is_aborted() && testbed.client.is_closed());
    assert_eq!(testbed.client.poll_transmit(testbed.now), None);

    // A host without the connection answers with a RST.
    let mut client = Connection::connect(&plain(), 7, 0);
    let syn = client.poll_transmit(0).expect("a SYN");
    client.receive(0, &syn.reset().expect("a RST"));
    assert!(client.is_aborted());

    // A RST without the expected sequence number is ignored (RFC 5961).
    let mut testbed = Testbed::new(&plain(), &plain(), 0, delay(DELAY));
    testbed.run(SECOND);
    let ack = testbed.log.last().expect("an ACK").segment;
    let now = testbed.now;
    let mut reset = Segment {
        seq: ack.seq.wrapping_add(1),
        flags: Flags::RST,
        ..ack
    };
    testbed.server().receive(now, &reset);
    assert!(testbed.server().is_established());
    reset.seq = ack.seq;
    testbed.server().receive(now, &reset);
    assert!(testbed.server().is_aborted());
}
