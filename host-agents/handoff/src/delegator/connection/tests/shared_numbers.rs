// SPDX-License-Identifier: Apache-2.0
use bytes::{BufMut as _, BytesMut};
use frontage_quic::session::{Incoming, Outgoing};
use frontage_quic_wire::frames::{Frame, read};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap, VecDeque};

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
    /// Numbers ahead that the balancer has allocated and not sent yet, with their key generation.
    ahead: Option<(u32, Range<u64>)>,
}

enum Message {
    Keys(u32),
    Numbers(Vec<Range<u64>>),
    NumbersAhead(u32, Range<u64>),
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

    /// Allocate numbers ahead, or send those that were allocated. Events may be relayed in between.
    fn allocate_ahead(&mut self, connection: &mut Connection) {
        match self.ahead.take() {
            Some((generation, numbers)) => self
                .inbox
                .push_back(Message::NumbersAhead(generation, numbers)),
            None => self.ahead = connection.allocate_numbers_ahead(self.id),
        }
    }

    fn request(&mut self, connection: &mut Connection, ahead: u64) {
        if self.ahead.is_some() {
            self.allocate_ahead(connection);
        }
        let (keys, numbers) = connection
            .allocate_numbers(self.id, NumberRequest { count: 3, ahead })
            .unwrap();
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
            Some(Message::Numbers(numbers)) => self.numbers.extend(numbers.into_iter().flatten()),
            Some(Message::NumbersAhead(generation, numbers)) if generation == self.generation => {
                self.numbers = numbers.collect();
            }
            Some(Message::NumbersAhead(..)) | None => {}
        }
    }
}

proptest! {
    /// No number is used twice, and no packet is sealed with older keys than a packet with a lower number (RFC 9001, section
    /// 6.4). A real server that has the only stream gets many numbers ahead.
    #[test]
    fn keys_are_never_older_than_those_of_lower_numbers(steps in prop::collection::vec((0..12u8, 0..2usize), 1..300)) {
        let mut testbed = Testbed::new(3);
        let mut servers: Vec<RealServer> = Vec::new();
        let (mut open, mut next_stream) = ([None; 2], 0);
        for _ in 0..2 {
            let (id, _, _, feedback) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
            let (inbox, numbers) = (VecDeque::new(), Vec::new());
            servers.push(RealServer { id, feedback, inbox, generation: 0, numbers, ahead: None });
        }
        let mut sealed = Vec::new();
        for (step, index) in steps {
            let server = &mut servers[index];
            match step {
                0 => testbed.generation += 1,
                1 | 2 => {
                    testbed.send();
                    sealed.push((testbed.sent.last().unwrap().1, testbed.generation));
                }
                3 => server.request(&mut testbed.connection, 0),
                10 => server.request(&mut testbed.connection, 100),
                11 => match open[index].take() {
                    Some(stream) => testbed.connection.reject_stream(stream).unwrap(),
                    None => {
                        testbed.connection.delegate_stream(server.id, next_stream).unwrap();
                        open[index] = Some(next_stream);
                        next_stream += 4;
                    }
                },
                4 => server.relay(),
                5 | 6 => server.read(),
                7 => server.allocate_ahead(&mut testbed.connection),
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
    /// Unused numbers of each real server.
    unused: HashMap<u32, VecDeque<u64>>,
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

    /// A real server sends a packet. If it needs a number, it requests `ahead` more, as the only sender if there are any.
    fn send_remotely(&mut self, id: u32, ahead: u64) {
        let shared = self.connection.shared.as_mut().unwrap();
        let unused = self.unused.entry(id).or_default();
        if unused.is_empty() {
            let numbers = shared.allocate(id, (1, ahead), ahead > 0, Instant::now());
            unused.extend(numbers.into_iter().flatten());
        }
        let number = unused.pop_front().unwrap();
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
    /// No number is used for two packets, and each sender gets the ACKs of its own packets.
    #[test]
    fn each_sender_gets_acks_of_its_own_packets(
        before in 1..300u64,
        steps in prop::collection::vec((0..3u32, prop::sample::select(vec![0, 5, 100])), 1..300),
        received in prop::collection::vec(any::<bool>(), 600),
    ) {
        let mut testbed = Testbed::new(before);
        let mut feedback = Vec::new();
        for expected in 1..=2 {
            let (id, _, first, queue) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
            prop_assert_eq!((id, first), (expected, before));
            feedback.push(queue);
        }
        for (sender, ahead) in steps {
            match sender {
                BALANCER => testbed.send(),
                id => testbed.send_remotely(id, ahead),
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
            // It ignores numbers of others.
            let sent = testbed.sent.iter().filter(|(sender, ..)| *sender == id).map(|(_, wire, _)| *wire);
            let unused = testbed.unused.get(&id).into_iter().flatten().copied();
            let numbers: BTreeSet<u64> = sent.chain(unused).collect();
            let acked: BTreeSet<u64> = acked(&queue.take_frames()).intersection(&numbers).copied().collect();
            prop_assert_eq!(acked, sent_by(id));
        }
    }
}

/// noq gets an ACK of an unsent number unchanged; the number is above all that noq has sent.
#[test]
fn ack_of_unsent_number_is_left_to_noq() {
    let mut testbed = Testbed::new(3);
    let (id, _, _, feedback) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
    testbed.send_remotely(id, 0);
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
        let (id, credit, ..) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
        assert_eq!((id, credit), (expected, unassigned / 64));
        testbed.connection.abandon(id).unwrap();
        assert!(testbed.connection.paths.get(id).is_none());
        assert_eq!(testbed.connection.flow.unassigned(), unassigned);
    }
}

/// Real servers must not use numbers that clients may treat as duplicates.
#[test]
fn numbers_ahead_expire_when_noq_sends_many_packets() {
    let mut testbed = Testbed::new(3);
    let (id, _, _, feedback) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
    let (generation, numbers) = testbed.connection.allocate_numbers_ahead(id).unwrap();
    assert_eq!((generation, numbers), (0, 3..13));
    let expired = |feedback: &Feedback| {
        let mut events = VecDeque::new();
        feedback.pending().take(&mut events);
        events.contains(&Event::NumbersExpired(13))
    };
    (0..63).for_each(|_| testbed.send());
    assert!(!expired(&feedback));
    testbed.send();
    assert!(expired(&feedback));
    testbed.send();
    assert!(!expired(&feedback));
}

/// A real server that has the only stream gets numbers ahead, with reserved numbers for noq. They expire when another real server
/// gets a stream, when the stream ends, or when noq sends much.
#[test]
fn numbers_ahead_of_the_only_sender_expire_when_others_send() {
    let request = NumberRequest {
        count: 0,
        ahead: 500,
    };
    for end in 0..3 {
        let mut testbed = Testbed::new(3);
        let (id, _, _, feedback) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
        let (other, ..) = testbed.connection.start_numbers(Duration::ZERO).unwrap();
        let allocate = |testbed: &mut Testbed| {
            let (_, numbers) = testbed.connection.allocate_numbers(id, request).unwrap();
            numbers.into_iter().flatten().count()
        };
        // No stream, no numbers ahead.
        assert_eq!(allocate(&mut testbed), 0);
        testbed.connection.delegate_stream(id, 0).unwrap();
        assert_eq!(allocate(&mut testbed), 500);
        testbed.send();
        let first = testbed.sent.last().unwrap().1;
        assert!(first < 3 + 32, "noq uses a reserved number");
        match end {
            0 => _ = testbed.connection.delegate_stream(other, 4).unwrap(),
            1 => testbed.connection.reject_stream(0).unwrap(),
            _ => (0..80).for_each(|_| testbed.send()),
        }
        let mut events = VecDeque::new();
        feedback.pending().take(&mut events);
        let [Event::NumbersExpired(below)] = events.make_contiguous() else {
            panic!("{end}: {events:?}");
        };
        let below = *below;
        testbed.send();
        let next = testbed.sent.last().unwrap().1;
        assert!((3 + 400..next).contains(&below), "{end}: {below} {next}");
        assert_eq!(allocate(&mut testbed), 0, "{end}");
    }
}
