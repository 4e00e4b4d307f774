use std::collections::HashSet;

use frontage_quic_wire::frames::read;
use proptest::prelude::*;

use super::*;
use crate::lend::RESET;

/// A connection whose path 1 is lent.
fn state() -> State {
    let mut state = State::default();
    state.limit = 1 << 40;
    state.credit.begin(1 << 41);
    let path = state.paths.get_or_new(1).expect("it is new");
    path.lend(1 << 40).expect("it is noq's");
    state
}

/// What noq's frames become.
fn seal(state: &mut State, path: u32, number: u64, payload: &[u8]) -> (Nonce, Vec<u8>) {
    let mut payload = payload.to_vec();
    let nonce = state.seal(&mut Outgoing {
        path,
        number,
        generation: 0,
        header: &mut [0x40, 9, number as u8],
        payload: &mut payload,
        needs_long_number: false,
    });
    (nonce, payload)
}

/// RESET_STREAM as noq writes it.
fn noqs_reset(stream: u64) -> Vec<u8> {
    let mut wire = vec![0x04];
    for value in [stream, RESET.into_inner(), 0] {
        write_varint(&mut wire, value);
    }
    wire
}

#[test]
fn noqs_end_of_a_lent_stream_is_not_seen() {
    let mut state = state();
    state.streams.lend(4, 1, 1 << 40);
    let end = End::Whole { final_size: 7 };
    for end in [None, Some(end)] {
        if let Some(end) = end {
            state.take_back(4, end).expect("it is lent");
        }
        // FIN with a length, without; a reset in spite of it; and what is not lent.
        let payload = [&[0x0b, 4, 0][..], &noqs_reset(4), &[0x0b, 8, 1, 5, 0x09, 4]].concat();
        let (_, left) = seal(&mut state, 0, 0, &payload);
        assert_eq!(left.len(), payload.len());
        assert_eq!(left[3 + 11..], [0x0b, 8, 1, 5, 0x01, 0]);
        let streams = read(&left).filter(|frame| matches!(frame, Frame::Stream { id: 4, .. }));
        assert_eq!(streams.count(), 0);
        // noq awaits an acknowledgement.
        assert!(read(&left).any(|frame| frame == Frame::Ping));
        assert!(!read(&left).any(|frame| matches!(frame, Frame::Reset { .. })));
    }
}

#[test]
fn a_reset_has_the_final_size_that_is_true() {
    for (stream, code, size, expected) in [
        (4, 0x102, 1000, 0x102),
        (0x4000, 0x102, 1 << 29, 0x102),
        // No code but the shortest has room beside a size of eight bytes.
        (4, 0x3f, 1 << 39, 0x3f),
        (4, 0x102, 1 << 39, 0),
    ] {
        let mut state = state();
        state.streams.lend(stream, 1, 1 << 40);
        let end = End::Reset {
            code,
            final_size: Some(size),
        };
        state.take_back(stream, end).expect("it is lent");
        let payload = [&noqs_reset(stream)[..], &[0x01]].concat();
        let (_, left) = seal(&mut state, 0, 0, &payload);
        assert_eq!(left.len(), payload.len());
        let mut rest = &left[..];
        let values: [_; 4] = std::array::from_fn(|_| read_varint(&mut rest).expect("an integer"));
        assert_eq!(values, [0x04, stream, expected, size]);
        assert!(rest[..rest.len() - 1].iter().all(|octet| *octet == 0) && rest.ends_with(&[1]));
    }
}

#[test]
fn noq_forgets_a_stream_when_its_end_is_acknowledged() {
    let mut state = state();
    state.streams.lend(4, 1, 1000);
    let end = End::Whole { final_size: 0 };
    state.take_back(4, end).expect("it is lent");
    for number in [5, 9] {
        seal(&mut state, 0, number, &[0x0b, 4, 0]);
    }
    let acked = |state: &mut State, number| {
        let wire = [0x3e, 0, number, 0, 0, 0];
        let Some(Frame::Ack(ack)) = read(&wire).next() else {
            panic!("it is one");
        };
        state.streams.acked(&ack);
        state.streams.none()
    };
    assert!(!acked(&mut state, 7));
    assert!(acked(&mut state, 5));
}

#[test]
fn a_close_is_the_transports_after_a_violation() {
    // Type, code, length, reason; as short as can be, and with a longer code.
    for (frame, code, expected) in [
        (
            &[0x1d, 0, 3, 7, 8, 9][..],
            0x0a,
            &[0x1c, 0x0a, 0, 2, 7, 8][..],
        ),
        (&[0x1d, 0, 0], 0x0a, &[0x1d, 0, 0]),
        (&[0x1d, 0, 1, 7], 0x0a, &[0x1c, 0x0a, 0, 0]),
        (&[0x1c, 1, 0, 1, 7], 0x0a, &[0x1c, 1, 0, 1, 7]),
        (&[0x1d, 0, 3, 7, 8, 9], 0x100, &[0x1c, 0x41, 0, 0, 1, 7]),
    ] {
        let mut state = state();
        state.violation = Some(code);
        assert_eq!(seal(&mut state, 0, 0, frame).1, expected);
    }
}

proptest! {
    /// Whatever noq sends on whatever path while these are lent and come back, no nonce is used twice, and none of a real server's at all.
    #[test]
    fn no_nonce_is_used_twice(steps in prop::collection::vec((0..4u32, 0..5u8), 1..300)) {
        let mut state = State::default();
        let mut used = HashSet::new();
        let mut next = [0; 4];
        // The real servers' next numbers.
        let mut lent = [None; 4];
        for (path, step) in steps {
            let at = path as usize;
            match (step, &mut lent[at]) {
                (0, own @ None) if path > 0 => {
                    let path = state.paths.get_or_new(path).expect("it is known");
                    *own = path.lend(0).map(|(first, _)| first);
                }
                (1, Some(first)) => {
                    let path = state.paths.get(path).expect("it is lent");
                    path.acked(*first, None);
                    path.give_back(*first);
                    lent[at] = None;
                }
                (2, Some(number)) => {
                    let nonce = Nonce { path, number: *number };
                    prop_assert!(used.insert(nonce));
                    *number += 1;
                }
                _ => {
                    let (nonce, _) = seal(&mut state, path, next[at], &[0x01]);
                    prop_assert!(used.insert(nonce));
                    next[at] += 1;
                }
            }
        }
    }

    /// Noise from noq there is none, but lengths stay whatever comes.
    #[test]
    fn noise_is_survived(payload: Vec<u8>, stream in 0..64u64) {
        let mut state = state();
        state.streams.lend(stream, 1, 1000);
        state.violation = Some(1);
        let end = End::Reset { code: 9, final_size: Some(1000) };
        state.take_back(stream, end).expect("it is lent");
        prop_assert_eq!(seal(&mut state, 2, 0, &payload).1.len(), payload.len());
    }
}
