// SPDX-License-Identifier: Apache-2.0
use bytes::BytesMut;
use frontage_quic::session::{Incoming, Outgoing};
use frontage_quic_wire::frames::{self, Frame};

use super::*;

const STREAM: u64 = 4;
const LIMIT: u64 = 10_000;
const CREDIT: u64 = 20_000;

/// Return a connection whose real server on path 1 has sent an unknown part of a stream.
fn connection() -> Connection {
    let mut connection = Connection::default();
    connection.client.max_stream_data = LIMIT;
    connection.flow.start(1 << 18);
    seal(&mut connection, &[0x01]);
    let credit = connection.flow.reserve(CREDIT);
    let path = connection.paths.get(1).expect("noq sent on it");
    path.on_ack(0, None);
    path.delegate(credit).expect("owned by noq");
    connection
        .streams
        .delegate(STREAM, 1, LIMIT)
        .expect("known limit");
    connection
}

/// Seal a packet, and return the frames that the client receives.
fn seal(connection: &mut Connection, payload: &[u8]) -> Vec<u8> {
    let mut own = payload.to_vec();
    let mut outgoing = Outgoing {
        path: 1,
        number: 0,
        generation: 0,
        header: &mut [0x40, 9, 0],
        payload: &mut own,
        needs_long_number: false,
        longer_payload: None,
    };
    connection.seal(&mut outgoing);
    outgoing.longer_payload.unwrap_or(own)
}

/// Open a packet of the client, and return the frames that noq receives.
fn open(connection: &mut Connection, payload: &[u8]) -> Vec<u8> {
    let mut payload = BytesMut::from(payload);
    connection.open(&mut Incoming {
        path: 0,
        number: 0,
        generation: 0,
        header: &[],
        payload: &mut payload,
        tag: None,
    });
    payload.to_vec()
}

/// A STREAM frame of noq with a length: `octets` zeros from `from` on.
fn stream_frame(from: u16, octets: u16) -> Vec<u8> {
    let mut frame = vec![0x0e, STREAM as u8, 0x80, 0];
    frame.extend(from.to_be_bytes());
    frame.extend([0x80, 0]);
    frame.extend(octets.to_be_bytes());
    frame.resize(frame.len() + usize::from(octets), 0);
    frame
}

fn limits(payload: &[u8]) -> Vec<u64> {
    let limits = frames::read(payload).filter_map(|frame| match frame {
        Frame::MaxStreamData { id: STREAM, limit } => Some(limit),
        _ => None,
    });
    limits.collect()
}

#[test]
fn resumed_stream_continues_where_the_client_has_acknowledged_it() {
    let mut connection = connection();
    let limit = connection.resume_stream(STREAM, 3000, 50_000);
    let limit = limit.expect("the real server is gone");
    assert_eq!(*limit.borrow(), LIMIT);
    let payload = [&stream_frame(0, 500)[..], &[0x01], &stream_frame(500, 200)].concat();
    let sent = seal(&mut connection, &payload);
    let sent: Vec<_> = frames::read(&sent).collect();
    let stream = |from, to| Frame::Stream {
        id: STREAM,
        from,
        to,
        fin: false,
    };
    assert_eq!(sent, [stream(3000, 3500), Frame::Ping, stream(3500, 3700)]);
    // noq's own limit is that of the transport parameter at first.
    assert_eq!(limits(&open(&mut connection, &[0x01])), [LIMIT - 3000]);
    let raise = [0x11, STREAM as u8, 0x80, 0, 0x75, 0x30];
    assert_eq!(limits(&open(&mut connection, &raise)), [27_000]);
    assert_eq!(*limit.borrow(), 30_000);
    assert_eq!(
        connection.resume_stream(STREAM, 0, 50_000).unwrap_err(),
        Error::Ended(STREAM)
    );
}

/// Credit that the real server may have used becomes noq's when noq sends the same bytes again.
#[test]
fn credit_of_the_real_server_serves_what_noq_repeats() {
    let mut connection = connection();
    connection.abandon(1).expect("delegated");
    let free = connection.flow.unassigned();
    connection
        .resume_stream(STREAM, 3000, 50_000)
        .expect("the real server is gone");
    // The rest of its credit is free.
    assert_eq!(connection.flow.unassigned(), free + CREDIT - LIMIT);
    let before = connection.flow.announce();
    seal(&mut connection, &stream_frame(0, 6000));
    assert_eq!(connection.flow.announce(), before + 6000);
    seal(&mut connection, &stream_frame(6000, 6000));
    assert_eq!(connection.flow.announce(), before + LIMIT - 3000);
    // A retransmission changes nothing.
    seal(&mut connection, &stream_frame(6000, 6000));
    assert_eq!(connection.flow.announce(), before + LIMIT - 3000);
    connection.forget_resumed(STREAM);
    assert!(connection.streams.is_empty());
}

#[test]
fn resumed_stream_is_not_reset_below_what_the_client_may_have_received() {
    let mut connection = connection();
    connection
        .resume_stream(STREAM, 3000, 50_000)
        .expect("the real server is gone");
    seal(&mut connection, &stream_frame(0, 100));
    let sent = seal(
        &mut connection,
        &[0x04, STREAM as u8, 0x41, 0x02, 0x40, 100],
    );
    assert_eq!(sent, [0x04, STREAM as u8, 0x41, 0x02, 0x67, 0x10]);
}

#[test]
fn stream_is_not_resumed_beyond_its_limit_or_end() {
    for (from, end) in [(LIMIT + 1, 50_000), (2000, 1999)] {
        let refused = connection().resume_stream(STREAM, from, end);
        let expected = Error::FinalSize {
            stream: STREAM,
            size: from,
        };
        assert_eq!(refused.unwrap_err(), expected);
    }
    assert_eq!(
        connection().resume_stream(8, 0, 1).unwrap_err(),
        Error::Stream(8)
    );
}
