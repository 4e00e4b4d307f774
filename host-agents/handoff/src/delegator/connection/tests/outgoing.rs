// SPDX-License-Identifier: Apache-2.0
use std::collections::HashSet;

use frontage_quic::session::Outgoing;
use frontage_quic_wire::frames::{Frame, read};
use frontage_quic_wire::{read_varint, write_varint};
use proptest::prelude::*;

use super::*;
use crate::delegator::RESET_PLACEHOLDER;

/// Return a connection whose path 1 is delegated.
fn connection() -> Connection {
    let mut connection = Connection::default();
    connection.client.max_stream_data = 1 << 40;
    connection.flow.start(1 << 41);
    let path = connection.paths.get_or_new(1).expect("new path");
    path.delegate(1 << 40).expect("owned by noq");
    connection
}

/// Seal a packet of noq. Returns its nonce and the rewritten frames.
fn seal(connection: &mut Connection, path: u32, number: u64, payload: &[u8]) -> (Nonce, Vec<u8>) {
    let mut payload = payload.to_vec();
    let nonce = connection.seal(&mut Outgoing {
        path,
        number,
        generation: 0,
        header: &mut [0x40, 9, number as u8],
        payload: &mut payload,
        needs_long_number: false,
        longer_payload: None,
    });
    (nonce, payload)
}

/// Return RESET_STREAM as noq writes it.
fn reset_by_noq(stream: u64) -> Vec<u8> {
    let mut wire = vec![0x04];
    for value in [stream, RESET_PLACEHOLDER.into_inner(), 0] {
        write_varint(&mut wire, value);
    }
    wire
}

#[test]
fn end_of_delegated_stream_by_noq_is_hidden_from_client() {
    let mut connection = connection();
    connection
        .streams
        .delegate(4, 1, 1 << 40)
        .expect("known limit");
    let end = StreamEnd::Complete { final_size: 7 };
    for end in [None, Some(end)] {
        if let Some(end) = end {
            connection.reclaim_stream(4, end).expect("delegated");
        }
        // FIN with a length, a reset in spite of it, another stream, FIN without a length.
        let payload = [
            &[0x0b, 4, 0][..],
            &reset_by_noq(4),
            &[0x0b, 8, 1, 5, 0x09, 4],
        ]
        .concat();
        let (_, left) = seal(&mut connection, 0, 0, &payload);
        assert_eq!(left.len(), payload.len());
        assert_eq!(left[3 + 11..], [0x0b, 8, 1, 5, 0x01, 0]);
        let streams = read(&left).filter(|frame| matches!(frame, Frame::Stream { id: 4, .. }));
        assert_eq!(streams.count(), 0);
        // noq waits for an acknowledgment.
        assert!(read(&left).any(|frame| frame == Frame::Ping));
        assert!(!read(&left).any(|frame| matches!(frame, Frame::Reset { .. })));
    }
}

#[test]
fn reset_has_final_size_of_real_server() {
    for (stream, code, size, expected) in [
        (4, 0x102, 1000, 0x102),
        (0x4000, 0x102, 1 << 29, 0x102),
        // Only the shortest codes fit next to a size of eight bytes.
        (4, 0x3f, 1 << 39, 0x3f),
        (4, 0x102, 1 << 39, 0),
    ] {
        let mut connection = connection();
        connection
            .streams
            .delegate(stream, 1, 1 << 40)
            .expect("known limit");
        let end = StreamEnd::Reset {
            code,
            final_size: Some(size),
        };
        connection.reclaim_stream(stream, end).expect("delegated");
        let payload = [&reset_by_noq(stream)[..], &[0x01]].concat();
        let (_, left) = seal(&mut connection, 0, 0, &payload);
        assert_eq!(left.len(), payload.len());
        let mut rest = &left[..];
        let values: [_; 4] = std::array::from_fn(|_| read_varint(&mut rest).expect("an integer"));
        assert_eq!(values, [0x04, stream, expected, size]);
        assert!(rest[..rest.len() - 1].iter().all(|octet| *octet == 0) && rest.ends_with(&[1]));
    }
}

#[test]
fn stream_is_forgotten_once_its_end_is_acknowledged() {
    let mut connection = connection();
    connection
        .streams
        .delegate(4, 1, 1000)
        .expect("known limit");
    let end = StreamEnd::Complete { final_size: 0 };
    connection.reclaim_stream(4, end).expect("delegated");
    for number in [5, 9] {
        seal(&mut connection, 0, number, &[0x0b, 4, 0]);
    }
    let is_forgotten = |connection: &mut Connection, number| {
        let wire = [0x3e, 0, number, 0, 0, 0];
        let Some(Frame::Ack(ack)) = read(&wire).next() else {
            panic!("not an ACK");
        };
        connection.streams.on_ack(&ack);
        connection.streams.is_empty()
    };
    assert!(!is_forgotten(&mut connection, 7));
    assert!(is_forgotten(&mut connection, 5));
}

#[test]
fn close_after_violation_is_transport_error() {
    // Type, code, length, reason: a normal frame, the shortest ones, and one with a longer code.
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
        let mut connection = connection();
        connection.violation = Some(code);
        assert_eq!(seal(&mut connection, 0, 0, frame).1, expected);
    }
}

proptest! {
    /// No nonce is used twice while noq sends on paths that are delegated and returned.
    #[test]
    fn no_nonce_is_used_twice(steps in prop::collection::vec((0..4u32, 0..5u8), 1..300)) {
        let mut connection = Connection::default();
        let mut used = HashSet::new();
        let mut next = [0; 4];
        // The real servers' next numbers.
        let mut delegated = [None; 4];
        for (path, step) in steps {
            let at = path as usize;
            match (step, &mut delegated[at]) {
                (0, own @ None) if path > 0 => {
                    let path = connection.paths.get_or_new(path).expect("new path");
                    *own = path.delegate(0).map(|(first, _)| first);
                }
                (1, Some(first)) => {
                    let path = connection.paths.get(path).expect("delegated");
                    path.on_ack(*first, None);
                    path.return_from(*first).expect("valid number");
                    delegated[at] = None;
                }
                (2, Some(number)) => {
                    let nonce = Nonce { path, number: *number };
                    prop_assert!(used.insert(nonce));
                    *number += 1;
                }
                _ => {
                    let (nonce, _) = seal(&mut connection, path, next[at], &[0x01]);
                    prop_assert!(used.insert(nonce));
                    next[at] += 1;
                }
            }
        }
    }

    /// noq sends no malformed packets, but lengths never change.
    #[test]
    fn malformed_packet_keeps_its_length(payload: Vec<u8>, stream in 0..64u64) {
        let mut connection = connection();
        connection.streams.delegate(stream, 1, 1000).expect("known limit");
        connection.violation = Some(1);
        let end = StreamEnd::Reset { code: 9, final_size: Some(1000) };
        connection.reclaim_stream(stream, end).expect("delegated");
        prop_assert_eq!(seal(&mut connection, 2, 0, &payload).1.len(), payload.len());
    }
}
