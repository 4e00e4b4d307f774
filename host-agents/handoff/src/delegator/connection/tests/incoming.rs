// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use bytes::BytesMut;
use frontage_quic::session::{Incoming, Outgoing};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::write_varint;
use noq::ConnectionId;
use proptest::prelude::*;

use super::*;

/// Packet numbers at which path 1 changes its owner: noq, a real server, noq, the current real server.
const PARTS: [u64; 3] = [20, 50, 70];
/// Shift of noq's second segment: three of its packets had no number on the wire.
const SHIFT: u64 = 27;
/// Delegated streams, and one that was reclaimed.
const DELEGATED: [u64; 2] = [0, 8];
const ENDED: u64 = 4;

/// Return a connection with a delegated path.
fn connection() -> (Connection, Arc<Feedback>) {
    let mut connection = Connection::default();
    connection.client.max_stream_data = 1000;
    connection.flow.start(1 << 20);
    let mut next = 0;
    let mut send = |connection: &mut Connection, count| {
        for _ in 0..count {
            let mut outgoing = Outgoing {
                path: 1,
                number: next,
                generation: 0,
                header: &mut [0x40, 9, 0],
                payload: &mut [0x01],
                needs_long_number: false,
                longer_payload: None,
            };
            connection.seal(&mut outgoing);
            next += 1;
        }
    };
    send(&mut connection, 20);
    let path = connection.paths.get(1).expect("noq sent on it");
    path.on_ack(19, None);
    path.delegate(0);
    send(&mut connection, 3);
    let path = connection.paths.get(1).expect("noq sent on it");
    path.on_ack(49, None);
    path.return_from(PARTS[1]).expect("valid number");
    send(&mut connection, 20);
    let path = connection.paths.get(1).expect("noq sent on it");
    path.on_ack(69, None);
    let (first, feedback) = path.delegate(0).expect("owned by noq");
    assert_eq!(first, PARTS[2]);
    for stream in [DELEGATED[0], DELEGATED[1], ENDED] {
        connection
            .streams
            .delegate(stream, 1, 1000)
            .expect("known limit");
    }
    let end = StreamEnd::Complete { final_size: 0 };
    connection.reclaim_stream(ENDED, end).expect("delegated");
    (connection, feedback)
}

/// Return noq's own number for a number on the wire, if noq sent it.
fn balancer_number(number: u64) -> Option<u64> {
    let [first, second, third] = PARTS;
    match number {
        _ if number < first => Some(number),
        _ if (second..third).contains(&number) => Some(number - SHIFT),
        _ => None,
    }
}

fn ack(path: u32, numbers: &BTreeSet<u64>, ecn: bool) -> Vec<u8> {
    let mut ranges = PacketNumberSet::default();
    numbers
        .iter()
        .for_each(|number| ranges.insert(*number..=*number));
    let mut wire = Vec::new();
    ranges.write_ack(Some(path), 5, ecn.then_some([9, 0, 1]), &mut wire);
    wire
}

fn integers(values: &[u64]) -> Vec<u8> {
    let mut wire = Vec::new();
    values
        .iter()
        .for_each(|value| write_varint(&mut wire, *value));
    wire
}

/// A frame of the client.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop::collection::btree_set(0..120u64, 1..40);
    let data = prop::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        4 => (0..3u32, numbers, any::<bool>()).prop_map(|(path, numbers, ecn)| ack(path, &numbers, ecn)),
        1 => (0..6u64, 0..5000u64).prop_map(|(id, limit)| integers(&[0x11, 4 * id, limit])),
        1 => (0..6u64, 0..500u64).prop_map(|(id, code)| integers(&[0x05, 4 * id, code])),
        1 => (0..1u64 << 40).prop_map(|limit| integers(&[0x10, limit])),
        1 => (0..9u64, data).prop_map(|(id, data)| [integers(&[0x0a, id, data.len() as u64]), data].concat()),
        1 => Just(vec![0x01]),
        1 => (0..9u64).prop_map(|path| integers(&[0x3e77, path, 1])),
    ]
}

/// The end of a packet: nothing, a STREAM frame without length, or a malformed frame.
fn tail() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![0x08, 4, 1, 2, 3]),
        Just(vec![0x7f, 0xff, 1, 2]),
        Just(vec![0x02, 3, 0, 0, 9])
    ]
}

fn open(connection: &mut Connection, payload: &[u8]) -> Vec<u8> {
    let mut payload = BytesMut::from(payload);
    connection.open(&mut Incoming {
        path: 0,
        number: 0,
        generation: 0,
        header: &[0x40],
        payload: &mut payload,
        tag: None,
    });
    payload.to_vec()
}

/// Return the acknowledged numbers by path, and all other frames.
fn decode(payload: &[u8]) -> ([BTreeSet<u64>; 3], Vec<Frame<'_>>) {
    let (mut acked, mut others) = <([BTreeSet<u64>; 3], Vec<_>)>::default();
    for frame in frames::read(payload) {
        match frame {
            Frame::Ack(ack) => acked[ack.path as usize].extend(ack.ranges().flatten()),
            Frame::MaxData { .. } | Frame::Ping | Frame::Probing => {}
            frame => others.push(frame),
        }
    }
    (acked, others)
}

/// Return whether a receiver acknowledges the packet.
fn is_ack_eliciting(payload: &[u8]) -> bool {
    frames::read(payload).any(|frame| !matches!(frame, Frame::Ack(_) | Frame::Probing))
}

fn stream_of(frame: &Frame<'_>) -> Option<u64> {
    match frame {
        Frame::MaxStreamData { id, .. } | Frame::StopSending { id, .. } => Some(*id),
        _ => None,
    }
}

proptest! {
    #[test]
    fn each_frame_reaches_exactly_its_recipient(frames in prop::collection::vec(frame(), 0..12), tail in tail()) {
        let payload = [frames.concat(), tail.clone()].concat();
        prop_assume!(!payload.is_empty());
        let (mut connection, feedback) = connection();
        let before = decode(&payload);
        let left = open(&mut connection, &payload);
        let sent = feedback.take_frames();
        let (own, delegated) = (decode(&left), decode(&sent));

        // ACKs reach their owners, those of path 1 with noq's own numbers.
        prop_assert_eq!(&own.0[0], &before.0[0]);
        prop_assert_eq!(&own.0[2], &before.0[2]);
        let expected: BTreeSet<u64> = before.0[1].iter().filter_map(|n| balancer_number(*n)).collect();
        prop_assert_eq!(&own.0[1], &expected);
        let theirs = before.0[1].iter().filter(|number| **number >= PARTS[2]);
        let expected: BTreeSet<u64> = theirs.copied().collect();
        prop_assert_eq!(&delegated.0[0], &expected);

        // All other frames keep their order.
        let known = |id: &u64| DELEGATED.contains(id) || *id == ENDED;
        let is_own = |frame: &&Frame<'_>| !stream_of(frame).as_ref().is_some_and(known);
        let others: Vec<_> = before.1.iter().filter(is_own).collect();
        prop_assert_eq!(own.1.iter().collect::<Vec<_>>(), others);
        for frame in &before.1 {
            let Some(id) = stream_of(frame).filter(|id| DELEGATED.contains(id)) else {
                continue;
            };
            let is_same_kind = |other: &Frame<'_>| {
                stream_of(other) == Some(id)
                    && std::mem::discriminant(other) == std::mem::discriminant(frame)
            };
            prop_assert_eq!(delegated.1.iter().filter(|other| is_same_kind(other)).count(), 1);
        }
        prop_assert!(delegated.1.iter().all(|frame| stream_of(frame).is_some_and(|id| DELEGATED.contains(&id))));

        // noq acknowledges and rejects the same packets as without hand-off.
        prop_assert!(!left.is_empty());
        prop_assert!(!is_ack_eliciting(&payload) || is_ack_eliciting(&left));
        prop_assert!(left.ends_with(&tail));
        // An ACK range may be split at each change of the owner.
        prop_assert!(left.len() <= payload.len() + 8 * frames.len() + 9);
    }

    #[test]
    fn malformed_packet_is_left_to_noq(payload in prop::collection::vec(any::<u8>(), 1..200)) {
        let (mut connection, _feedback) = connection();
        prop_assert!(!open(&mut connection, &payload).is_empty());
    }
}

#[test]
fn acks_of_a_batch_are_merged() {
    let (mut connection, feedback) = connection();
    for number in 70..100 {
        let numbers = (number - 5..=number).filter(|number| number % 7 != 0);
        open(&mut connection, &ack(1, &numbers.collect(), true));
    }
    let frames = feedback.take_frames();
    assert_eq!(frames::read(&frames).count(), 1);
    let expected: BTreeSet<u64> = (70..100).filter(|number| number % 7 != 0).collect();
    assert_eq!(decode(&frames).0[0], expected);
    assert!(feedback.take_frames().is_empty());
}

#[test]
fn new_connection_id_is_forwarded() {
    let (mut connection, feedback) = connection();
    let id = |last| [&[4, 9, 9, 9, last][..], &[0; 16]].concat();
    for (sequence, retire_prior_to) in [(0, 0), (1, 0), (2, 1)] {
        let head = integers(&[0x3e78, 1, sequence, retire_prior_to]);
        if sequence == 0 {
            let path = connection.paths.get(1).expect("known path");
            path.on_new_connection_id(0, 0, path.connection_id().expect("used by noq"));
        } else {
            open(&mut connection, &[head, id(sequence as u8)].concat());
        }
    }
    let expected = Some(ConnectionId::new(&[9, 9, 9, 1]));
    assert_eq!(
        connection.paths.get(1).expect("known path").connection_id(),
        expected
    );
    assert_eq!(feedback.new_connection_id(), expected);
}
