use std::collections::BTreeSet;
use std::sync::Arc;

use frontage_quic::session::Outgoing;
use noq::ConnectionId;
use proptest::prelude::*;

use super::*;
use crate::lend::End;
use crate::lend::feedback::Feedback;

/// Packets of noq's on path 1, then of a real server's, then of noq's, then of the real server's that has it now.
const PARTS: [u64; 3] = [20, 50, 70];
/// Of those, noq's by its own numbers: three more had none on the wire.
const SHIFT: u64 = 27;
/// Streams that are lent, and one that was.
const LENT: [u64; 2] = [0, 8];
const ENDED: u64 = 4;

/// A connection with a lent path.
fn state() -> (State, Arc<Feedback>) {
    let mut state = State::default();
    state.limit = 1000;
    state.credit.begin(1 << 20);
    let mut next = 0;
    let mut send = |state: &mut State, count| {
        for _ in 0..count {
            let mut outgoing = Outgoing {
                path: 1,
                number: next,
                generation: 0,
                header: &mut [0x40, 9, 0],
                payload: &mut [0x01],
                needs_long_number: false,
            };
            state.seal(&mut outgoing);
            next += 1;
        }
    };
    send(&mut state, 20);
    let lent = state.paths.get(1).expect("noq sent on it");
    lent.acked(19, None);
    lent.lend(0);
    send(&mut state, 3);
    let lent = state.paths.get(1).expect("noq sent on it");
    lent.acked(49, None);
    lent.give_back(PARTS[1]);
    send(&mut state, 20);
    let lent = state.paths.get(1).expect("noq sent on it");
    lent.acked(69, None);
    let (first, feedback) = lent.lend(0).expect("it is noq's");
    assert_eq!(first, PARTS[2]);
    for stream in [LENT[0], LENT[1], ENDED] {
        state.streams.lend(stream, 1, 1000);
    }
    let end = End::Whole { final_size: 0 };
    state.take_back(ENDED, end).expect("it is lent");
    (state, feedback)
}

/// noq's number of one of the wire's, if it is noq's.
fn of_noq(number: u64) -> Option<u64> {
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

/// One frame.
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

/// The end of a packet: nothing, a stream to its end, or what cannot be read.
fn tail() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![0x08, 4, 1, 2, 3]),
        Just(vec![0x7f, 0xff, 1, 2]),
        Just(vec![0x02, 3, 0, 0, 9])
    ]
}

fn open(state: &mut State, payload: &[u8]) -> Vec<u8> {
    let mut payload = BytesMut::from(payload);
    state.open(&mut Incoming {
        path: 0,
        number: 0,
        generation: 0,
        header: &[0x40],
        payload: &mut payload,
        tag: None,
    });
    payload.to_vec()
}

/// What frames say: numbers acknowledged, by path; all the others.
fn said(payload: &[u8]) -> ([BTreeSet<u64>; 3], Vec<Frame<'_>>) {
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

/// Whether a receiver acknowledges the packet.
fn eliciting(payload: &[u8]) -> bool {
    frames::read(payload).any(|frame| !matches!(frame, Frame::Ack(_) | Frame::Probing))
}

fn of_real_server(frame: &Frame<'_>) -> Option<u64> {
    match frame {
        Frame::MaxStreamData { id, .. } | Frame::StopSending { id, .. } => Some(*id),
        _ => None,
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_doubled(frames in prop::collection::vec(frame(), 0..12), tail in tail()) {
        let payload = [frames.concat(), tail.clone()].concat();
        prop_assume!(!payload.is_empty());
        let (mut state, feedback) = state();
        let before = said(&payload);
        let left = open(&mut state, &payload);
        let sent = feedback.frames();
        let (own, lent) = (said(&left), said(&sent));

        // Acknowledgements: each of its owner, of path 1 by noq's numbers.
        prop_assert_eq!(&own.0[0], &before.0[0]);
        prop_assert_eq!(&own.0[2], &before.0[2]);
        let expected: BTreeSet<u64> = before.0[1].iter().filter_map(|n| of_noq(*n)).collect();
        prop_assert_eq!(&own.0[1], &expected);
        let theirs = before.0[1].iter().filter(|number| **number >= PARTS[2]);
        let expected: BTreeSet<u64> = theirs.copied().collect();
        prop_assert_eq!(&lent.0[0], &expected);

        // All the rest, in its order.
        let known = |id: &u64| LENT.contains(id) || *id == ENDED;
        let is_own = |frame: &&Frame<'_>| !of_real_server(frame).as_ref().is_some_and(known);
        let others: Vec<_> = before.1.iter().filter(is_own).collect();
        prop_assert_eq!(own.1.iter().collect::<Vec<_>>(), others);
        for frame in &before.1 {
            let Some(id) = of_real_server(frame).filter(|id| LENT.contains(id)) else {
                continue;
            };
            let about = |other: &Frame<'_>| {
                of_real_server(other) == Some(id)
                    && std::mem::discriminant(other) == std::mem::discriminant(frame)
            };
            prop_assert_eq!(lent.1.iter().filter(|other| about(other)).count(), 1);
        }
        prop_assert!(lent.1.iter().all(|frame| of_real_server(frame).is_some_and(|id| LENT.contains(&id))));

        // noq acknowledges what it would have, and refuses what it would have.
        prop_assert!(!left.is_empty());
        prop_assert!(!eliciting(&payload) || eliciting(&left));
        prop_assert!(left.ends_with(&tail));
        // A range may become two at each border.
        prop_assert!(left.len() <= payload.len() + 8 * frames.len() + 9);
    }

    #[test]
    fn noise_is_left_to_noq(payload in prop::collection::vec(any::<u8>(), 1..200)) {
        let (mut state, _feedback) = state();
        prop_assert!(!open(&mut state, &payload).is_empty());
    }
}

#[test]
fn acknowledgements_of_a_batch_are_one() {
    let (mut state, feedback) = state();
    for number in 70..100 {
        let numbers = (number - 5..=number).filter(|number| number % 7 != 0);
        open(&mut state, &ack(1, &numbers.collect(), true));
    }
    let frames = feedback.frames();
    assert_eq!(frames::read(&frames).count(), 1);
    let expected: BTreeSet<u64> = (70..100).filter(|number| number % 7 != 0).collect();
    assert_eq!(said(&frames).0[0], expected);
    assert!(feedback.frames().is_empty());
}

#[test]
fn a_new_connection_id_is_passed_on() {
    let (mut state, feedback) = state();
    let id = |last| [&[4, 9, 9, 9, last][..], &[0; 16]].concat();
    for (sequence, retire_prior_to) in [(0, 0), (1, 0), (2, 1)] {
        let head = integers(&[0x3e78, 1, sequence, retire_prior_to]);
        if sequence == 0 {
            let path = state.paths.get(1).expect("it is known");
            path.identify(0, 0, path.ids.used.expect("noq sent by it"));
        } else {
            open(&mut state, &[head, id(sequence as u8)].concat());
        }
    }
    let expected = Some(ConnectionId::new(&[9, 9, 9, 1]));
    assert_eq!(state.paths.get(1).expect("it is known").ids.used, expected);
    assert_eq!(feedback.new_connection_id(), expected);
}
