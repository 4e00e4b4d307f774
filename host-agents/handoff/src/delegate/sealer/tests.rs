// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::header::FIXED;
use super::*;

const SUITE: u16 = 0x1301;
const PATH: u32 = 3;
const FIRST: u64 = 1 << 20;
/// Lengths of the client's connection id.
const ID_LENS: [usize; 4] = [0, 8, 18, 20];

struct Recorder(Mutex<Vec<(u64, u32)>>);

impl Observer for Recorder {
    fn on_sent(&self, packet: &Packet<'_>) {
        let mut seen = self.0.lock();
        seen.push((packet.number, packet.generation));
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

fn keys(generation: u32) -> Keys {
    let mut keys = Keys {
        generation: 0,
        secret: Bytes::from_static(&[9; 32]),
    };
    while keys.generation < generation {
        keys = Suite::of(SUITE).unwrap().update(&keys).unwrap();
    }
    keys
}

fn grant(id: usize) -> Grant {
    let address = "[2001:db8::1]:443".parse().unwrap();
    Grant {
        path: PATH,
        first: FIRST,
        connection_id: ConnectionId::new(&[0xcc; 20][..id]),
        suite: SUITE,
        header_secret: keys(0).secret,
        keys: keys(0),
        client_parameters: Bytes::new(),
        server: address,
        client: address,
        credit: 0,
        rtt: Duration::ZERO,
    }
}

/// Return noq's packet with `frames` and a number of `length` octets, and its header length.
fn packet(id: &ConnectionId, number: u64, length: usize, frames: &[u8]) -> (Vec<u8>, usize) {
    let mut packet = vec![FIXED | (length - 1) as u8];
    packet.extend_from_slice(&placeholder(id));
    packet.extend(&number.to_be_bytes()[8 - length..]);
    let header_len = packet.len();
    packet.extend(frames);
    // noq pads packets for header protection.
    packet.resize(packet.len().max(header_len + 4 - length), 0);
    packet.resize(packet.len() + TAG_LEN, 0);
    (packet, header_len)
}

/// Return the number and the frames that the client reads; `expected` is the number that it expects.
fn open(packet: &mut [u8], id: usize, keys: [&PacketKey; 2], expected: u64) -> (u64, Vec<u8>) {
    let suite = Suite::of(SUITE).unwrap();
    let header = HeaderKey::new(suite, &[9; 32]).unwrap();
    // Masking twice restores the header; the first octet has the length of the number.
    let at = 1 + id;
    let mut first = packet.to_vec();
    header.protect(&mut first, at, 0);
    let length = usize::from(first[0] & 3) + 1;
    header.protect(packet, at, length);
    let (head, sealed) = packet.split_at_mut(at + length);
    let low = head[at..].iter().fold(0, |low, o| low << 8 | u64::from(*o));
    let number = expand(low, 8 * length as u32, expected);
    let key = keys[usize::from(head[0] & PHASE != 0)];
    let payload = key.open(PATH, number, head, sealed).expect("authentic");
    (number, payload.to_vec())
}

/// Decode a packet number (RFC 9000, appendix A.3, without the corner cases).
fn expand(low: u64, bits: u32, expected: u64) -> u64 {
    let window = 1 << bits;
    let candidate = expected & !(window - 1) | low;
    [
        candidate.wrapping_sub(window),
        candidate,
        candidate + window,
    ]
    .into_iter()
    .min_by_key(|number| number.abs_diff(expected))
    .expect("three candidates")
}

/// A step of a test.
#[derive(Clone, Debug)]
enum Event {
    /// noq seals a packet: increment of its number (0 never occurs in practice), length of its number, and whether it
    /// contains data of a delegated stream.
    Seal(u64, usize, bool),
    SetKeys,
    Revoke,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0u64..4, 1usize..=4, any::<bool>()).prop_map(|(step, length, is_delegated)| Event::Seal(step, length, is_delegated)),
        2 => Just(Event::SetKeys),
        1 => Just(Event::Revoke),
    ]
}

proptest! {
    #[test]
    fn no_packet_number_is_used_twice(
        id in prop::sample::select(ID_LENS.to_vec()),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let counters = Arc::<Counters>::default();
        let sealer = Sealer::new(&grant(id), counters.clone()).unwrap();
        sealer.streams(|streams| streams.add(8)).unwrap();
        let seen = Recorder(Mutex::default());
        let id = sealer.state().connection_id;
        let opening = [0, 1, 2].map(|n| PacketKey::new(sealer.suite, &keys(n).secret).unwrap());
        let (mut used, mut generation, mut revoked) = (BTreeSet::new(), 0, None);
        let (mut number, mut made, mut sent) = (0, 0, 0);
        for event in events {
            match event {
                Event::Seal(step, length, is_delegated) => {
                    number += step;
                    // STREAM 0, which is the client's stream 8, or ACK.
                    let frames: &[u8] = if is_delegated { &[0x0a, 0, 1, 7] } else { &[0x02, 0, 0, 0, 0] };
                    let (mut packet, header_len) = packet(&id, number, length, frames);
                    sealer.seal(number, &mut packet, header_len, &seen);
                    made += 1;
                    if is_sealed(&packet) {
                        sent += 1;
                        prop_assert!(is_delegated && revoked.is_none());
                        let phases = [&opening[generation & 2], &opening[1]];
                        let (on_wire, payload) = open(&mut packet, id.len(), phases, FIRST + number);
                        prop_assert_eq!(on_wire, FIRST + number);
                        prop_assert!(used.last().is_none_or(|last| *last < on_wire));
                        prop_assert!(used.insert(on_wire));
                        let start = payload.iter().position(|octet| *octet != 0).unwrap();
                        prop_assert_eq!(&payload[start..start + 4], &[0x0a, 8, 1, 7]);
                    }
                }
                Event::SetKeys if generation < 2 => {
                    generation += 1;
                    sealer.set_keys(&keys(generation as u32)).unwrap();
                    // Older keys have no effect.
                    sealer.set_keys(&keys(0)).unwrap();
                }
                Event::SetKeys => {}
                Event::Revoke => revoked = Some(sealer.revoke()),
            }
            let next = used.last().map_or(FIRST, |last| last + 1);
            prop_assert_eq!(sealer.next(), next);
            prop_assert_eq!(revoked.unwrap_or(next), next);
        }
        prop_assert_eq!(counters.withheld.load(Relaxed), made - sent);
        prop_assert_eq!(seen.0.lock().len() as u64, sent);
    }
}

#[test]
fn number_out_of_range_and_longer_connection_id_are_rejected() {
    let mut grant = grant(8);
    grant.first = PACKET_NUMBERS - 1;
    let sealer = Sealer::new(&grant, Arc::default()).unwrap();
    let seen = Recorder(Mutex::default());
    for (number, expected) in [(0, true), (1, false), (u64::MAX, false)] {
        let (mut packet, header_len) = packet(&grant.connection_id, number, 1, &[0x01]);
        sealer.seal(number, &mut packet, header_len, &seen);
        assert_eq!(is_sealed(&packet), expected, "{number}");
    }
    assert_eq!(sealer.next(), PACKET_NUMBERS);
    let long = ConnectionId::new(&[1; 9]);
    assert_eq!(sealer.set_connection_id(long), Err(Error::ConnectionId(9)));
    assert_eq!(sealer.set_connection_id(ConnectionId::new(&[1; 4])), Ok(()));
}

#[tokio::test]
async fn owner_is_notified_of_exhausted_key() {
    let grant = grant(8);
    let sealer = Sealer::new(&grant, Arc::default()).unwrap();
    let seen = Recorder(Mutex::default());
    let limit = sealer.suite.confidentiality_limit;
    let seal = |number| {
        let (mut packet, header_len) = packet(&grant.connection_id, number, 1, &[0x01]);
        sealer.seal(number, &mut packet, header_len, &seen);
        is_sealed(&packet)
    };
    sealer.state().sealed = limit - 1;
    assert!(seal(0) && !seal(1));
    sealer.keys_exhausted().await;
    assert!(!seal(2));
    sealer.set_keys(&keys(1)).unwrap();
    assert!(seal(3));
    // The new key is not exhausted.
    let mut exhausted = std::pin::pin!(sealer.keys_exhausted());
    let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(exhausted.as_mut().poll(cx).is_pending());
}
