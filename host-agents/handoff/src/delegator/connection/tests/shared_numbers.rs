// SPDX-License-Identifier: Apache-2.0
use bytes::{BufMut as _, BytesMut};
use frontage_quic::session::{Incoming, Outgoing};
use frontage_quic_wire::frames::{Frame, read};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

use super::*;
use crate::delegator::Event;

/// noq's id among those of delegations.
const BALANCER: u32 = 0;

/// A minimal real server.
struct RealServer {
    id: u32,
    feedback: Arc<Feedback>,
    /// Messages that it has not read yet.
    inbox: VecDeque<Message>,
    generation: u32,
    numbers: Vec<u64>,
}

enum Message {
    Keys(u32),
    Numbers(Range<u64>),
}

impl RealServer {
    /// Forward pending events.
    fn relay(&mut self) {
        let mut events = VecDeque::new();
        self.feedback.pending().take(&mut events);
        let keys = events.into_iter().filter_map(|event| match event {
            Event::Keys(keys) => Some(Message::Keys(keys.generation)),
            _ => None,
        });
        self.inbox.extend(keys);
    }

    fn request(&mut self, connection: &mut Connection, wanted: u64) {
        let (keys, numbers) = connection.allocate_numbers(self.id, wanted).unwrap();
        let keys = keys.map(|keys| Message::Keys(keys.generation));
        self.inbox.extend(keys);
        self.inbox.push_back(Message::Numbers(numbers));
    }

    fn read(&mut self) {
        match self.inbox.pop_front() {
            Some(Message::Keys(generation)) => {
                self.generation = generation;
                self.numbers.clear();
            }
            Some(Message::Numbers(numbers)) => self.numbers.extend(numbers),
            None => {}
        }
    }
}

proptest! {
    /// No packet is sealed with older keys than a packet with a lower number (RFC 9001, section 6.4).
    #[test]
    fn keys_are_never_older_than_those_of_lower_numbers(steps in prop::collection::vec((0..8u8, 0..2usize), 1..300)) {
        let mut testbed = Testbed::new(3);
        let mut servers: Vec<RealServer> = Vec::new();
        for _ in 0..2 {
            let (id, _, _, feedback) = testbed.connection.start_numbers().unwrap();
            let (inbox, numbers) = (VecDeque::new(), Vec::new());
            servers.push(RealServer { id, feedback, inbox, generation: 0, numbers });
        }
        let mut sealed = Vec::new();
        for (step, server) in steps {
            let server = &mut servers[server];
            match step {
                0 => testbed.generation += 1,
                1 | 2 => {
                    testbed.send();
                    sealed.push((testbed.sent.last().unwrap().1, testbed.generation));
                }
                3 => server.request(&mut testbed.connection, 3),
                4 => server.relay(),
                5 | 6 => server.read(),
                _ if server.numbers.is_empty() => {}
                _ => sealed.push((server.numbers.remove(0), server.generation)),
            }
        }
        sealed.sort_unstable();
        prop_assert!(sealed.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1), "{sealed:?}");
    }
}

/// A connection that records all packets.
#[derive(Default)]
struct Testbed {
    connection: Connection,
    /// noq's next own number.
    next: u64,
    /// noq's key generation.
    generation: u32,
    /// Sender, number on the wire, and noq's own number.
    sent: Vec<(u32, u64, u64)>,
}

impl Testbed {
    fn new(before: u64) -> Self {
        let mut testbed = Self::default();
        testbed.connection.flow.start(1000);
        testbed.connection.keys.install(0x1301, vec![1; 32]);
        for _ in 0..before {
            testbed.send();
        }
        testbed
    }

    /// noq sends a packet.
    fn send(&mut self) {
        let mut outgoing = Outgoing {
            path: 0,
            number: self.next,
            generation: self.generation,
            header: &mut [0x40, 9, self.next as u8],
            payload: &mut [0x01],
            needs_long_number: false,
            longer_payload: None,
        };
        let nonce = self.connection.seal(&mut outgoing);
        assert_eq!(outgoing.needs_long_number, self.connection.shared.is_some());
        self.sent.push((BALANCER, nonce.number, self.next));
        self.next += 1;
    }

    /// A real server sends a packet.
    fn send_remotely(&mut self, id: u32) {
        let shared = self.connection.shared.as_mut().unwrap();
        let number = shared.allocate(id, 1).start;
        self.sent.push((id, number, number));
    }

    /// Receive an ACK of `acked`. Returns the frames that noq gets.
    fn ack(&mut self, acked: &BTreeSet<u64>) -> BytesMut {
        let mut ranges = PacketNumberSet::default();
        for number in acked {
            ranges.insert(*number..=*number);
        }
        let mut wire = Vec::new();
        ranges.write_ack(None, 3, Some([9, 0, 1]), &mut wire);
        let mut payload = BytesMut::new();
        payload.put_slice(&wire);
        self.connection.open(&mut Incoming {
            path: 0,
            number: 0,
            generation: 0,
            header: &[],
            payload: &mut payload,
            tag: None,
        });
        payload
    }
}

fn acked(frames: &[u8]) -> BTreeSet<u64> {
    let acks = read(frames).filter_map(|frame| match frame {
        Frame::Ack(ack) => Some(ack),
        _ => None,
    });
    acks.flat_map(|ack| ack.ranges().flatten().collect::<Vec<_>>())
        .collect()
}

proptest! {
    /// No number is used for two packets, and each sender gets the ACKs of all its own packets only.
    #[test]
    fn each_sender_gets_acks_of_its_own_packets(
        before in 1..300u64,
        steps in prop::collection::vec(0..3u32, 1..300),
        received in prop::collection::vec(any::<bool>(), 600),
    ) {
        let mut testbed = Testbed::new(before);
        let mut feedback = Vec::new();
        for expected in 1..=2 {
            let (id, _, first, queue) = testbed.connection.start_numbers().unwrap();
            prop_assert_eq!((id, first), (expected, before));
            feedback.push(queue);
        }
        for step in steps {
            match step {
                BALANCER => testbed.send(),
                id => testbed.send_remotely(id),
            }
        }
        let numbers: BTreeSet<u64> = testbed.sent.iter().map(|(_, wire, _)| *wire).collect();
        prop_assert_eq!(numbers.len(), testbed.sent.len());
        let acknowledged: BTreeSet<u64> =
            numbers.into_iter().zip(received).filter(|(_, received)| *received).map(|(n, _)| n).collect();
        prop_assume!(!acknowledged.is_empty());
        let left = testbed.ack(&acknowledged);
        let sent_by = |id| -> BTreeSet<u64> {
            let sent = testbed.sent.iter().filter(|(sender, wire, _)| *sender == id && acknowledged.contains(wire));
            sent.map(|(.., own)| *own).collect()
        };
        prop_assert_eq!(acked(&left), sent_by(BALANCER));
        for (id, queue) in (1..).zip(&feedback) {
            prop_assert_eq!(acked(&queue.take_frames()), sent_by(id));
        }
    }
}

/// noq gets an ACK of an unsent number unchanged; the number is above all that noq has sent.
#[test]
fn ack_of_unsent_number_is_left_to_noq() {
    let mut testbed = Testbed::new(3);
    let (id, _, _, feedback) = testbed.connection.start_numbers().unwrap();
    testbed.send_remotely(id);
    testbed.send();
    let unsent = BTreeSet::from([3, 5]);
    assert_eq!(acked(&testbed.ack(&unsent)), unsent);
    assert!(feedback.take_frames().is_empty());
    let sent = BTreeSet::from([2, 3, 4]);
    assert_eq!(acked(&testbed.ack(&sent)), BTreeSet::from([2, 3]));
    assert_eq!(acked(&feedback.take_frames()), BTreeSet::from([3]));
}

/// Ids are never reused, and unused credit is released.
#[test]
fn abandoned_delegation_releases_credit() {
    let mut testbed = Testbed::new(1);
    let unassigned = testbed.connection.flow.unassigned();
    for expected in 1..200 {
        let (id, credit, ..) = testbed.connection.start_numbers().unwrap();
        assert_eq!((id, credit), (expected, unassigned / 64));
        testbed.connection.abandon(id).unwrap();
        assert!(testbed.connection.paths.get(id).is_none());
        assert_eq!(testbed.connection.flow.unassigned(), unassigned);
    }
}
