use super::*;
use bytes::{BufMut as _, BytesMut};
use frontage_quic::session::Incoming;
use frontage_quic_wire::frames::{Frame, read};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

use crate::lend::Event;

/// What a real server of a few lines is told and has not read yet, and what it knows.
struct Told {
    name: u32,
    feedback: Arc<Feedback>,
    inbox: VecDeque<Message>,
    generation: u32,
    numbers: Vec<u64>,
}

enum Message {
    Keys(u32),
    Numbers(Range<u64>),
}

impl Told {
    /// Its owner passes on what there is.
    fn relay(&mut self) {
        let mut events = VecDeque::new();
        self.feedback.pending().take(&mut events);
        let keys = events.into_iter().filter_map(|event| match event {
            Event::Keys(keys) => Some(Message::Keys(keys.generation)),
            _ => None,
        });
        self.inbox.extend(keys);
    }

    fn ask(&mut self, state: &mut State, wanted: u64) {
        let (keys, numbers) = state.more_numbers(self.name, wanted).unwrap();
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
    /// Whoever sends: no packet is sealed by older keys than one of a lower number (RFC 9001, section 6.4).
    #[test]
    fn keys_are_no_older_than_those_of_lower_numbers(steps in prop::collection::vec((0..8u8, 0..2usize), 1..300)) {
        let mut world = World::new(3);
        let mut servers: Vec<Told> = Vec::new();
        for _ in 0..2 {
            let (name, _, _, feedback) = world.state.lend_numbers().unwrap();
            let (inbox, numbers) = (VecDeque::new(), Vec::new());
            servers.push(Told { name, feedback, inbox, generation: 0, numbers });
        }
        let mut sealed = Vec::new();
        for (step, server) in steps {
            let server = &mut servers[server];
            match step {
                0 => world.generation += 1,
                1 | 2 => {
                    world.noq();
                    sealed.push((world.sent.last().unwrap().1, world.generation));
                }
                3 => server.ask(&mut world.state, 3),
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

/// Who sent what, on the wire and, if it is noq, by its own number.
#[derive(Default)]
struct World {
    state: State,
    next: u64,
    /// Of keys, by which noq seals.
    generation: u32,
    sent: Vec<(u32, u64, u64)>,
}

impl World {
    fn new(before: u64) -> Self {
        let mut world = Self::default();
        world.state.credit.begin(1000);
        world.state.ratchet = super::super::ratchet::Ratchet::new(0x1301, vec![1; 32]);
        for _ in 0..before {
            world.noq();
        }
        world
    }

    fn noq(&mut self) {
        let mut outgoing = Outgoing {
            path: 0,
            number: self.next,
            generation: self.generation,
            header: &mut [0x40, 9, self.next as u8],
            payload: &mut [0x01],
            needs_long_number: false,
        };
        let nonce = self.state.seal(&mut outgoing);
        assert_eq!(outgoing.needs_long_number, self.state.shared.is_some());
        self.sent.push((BALANCER, nonce.number, self.next));
        self.next += 1;
    }

    /// A loan takes a number.
    fn take(&mut self, name: u32) {
        let shared = self.state.shared.as_mut().unwrap();
        let number = shared.ledger.take(name, 1).start;
        self.sent.push((name, number, number));
    }

    /// A client's packet that acknowledges `acked`; what is left of it for noq.
    fn ack(&mut self, acked: &BTreeSet<u64>) -> BytesMut {
        let mut ranges = frontage_quic_wire::PacketNumberSet::default();
        for number in acked {
            ranges.insert(*number..=*number);
        }
        let mut wire = Vec::new();
        ranges.write_ack(None, 3, Some([9, 0, 1]), &mut wire);
        let mut payload = BytesMut::new();
        payload.put_slice(&wire);
        self.state.open(&mut Incoming {
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
    /// No number is of two packets, and each sender hears of its own, all and no others.
    #[test]
    fn each_hears_of_its_own(
        before in 1..300u64,
        steps in prop::collection::vec(0..3u32, 1..300),
        heard in prop::collection::vec(any::<bool>(), 600),
    ) {
        let mut world = World::new(before);
        let mut feedback = Vec::new();
        for expected in 1..=2 {
            let (name, _, first, told) = world.state.lend_numbers().unwrap();
            prop_assert_eq!((name, first), (expected, before));
            feedback.push(told);
        }
        for step in steps {
            match step {
                BALANCER => world.noq(),
                name => world.take(name),
            }
        }
        let numbers: BTreeSet<u64> = world.sent.iter().map(|(_, wire, _)| *wire).collect();
        prop_assert_eq!(numbers.len(), world.sent.len());
        let said: BTreeSet<u64> =
            numbers.into_iter().zip(heard).filter(|(_, heard)| *heard).map(|(n, _)| n).collect();
        prop_assume!(!said.is_empty());
        let left = world.ack(&said);
        let of = |name| -> BTreeSet<u64> {
            let sent = world.sent.iter().filter(|(who, wire, _)| *who == name && said.contains(wire));
            sent.map(|(.., own)| *own).collect()
        };
        prop_assert_eq!(acked(&left), of(BALANCER));
        for (name, told) in (1..).zip(&feedback) {
            prop_assert_eq!(acked(&told.frames()), of(name));
        }
    }
}

/// What nobody sent is left as it is, and is above all that noq knows to have sent.
#[test]
fn a_lie_is_for_noq_to_refuse() {
    let mut world = World::new(3);
    let (name, _, _, feedback) = world.state.lend_numbers().unwrap();
    world.take(name);
    world.noq();
    let lie = BTreeSet::from([3, 5]);
    assert_eq!(acked(&world.ack(&lie)), lie);
    assert!(feedback.frames().is_empty());
    let truth = BTreeSet::from([2, 3, 4]);
    assert_eq!(acked(&world.ack(&truth)), BTreeSet::from([2, 3]));
    assert_eq!(acked(&feedback.frames()), BTreeSet::from([3]));
}

/// Names are never given twice, and what a loan did not use is free again.
#[test]
fn loans_come_and_go() {
    let mut world = World::new(1);
    let left = world.state.credit.left();
    for expected in 1..200 {
        let (name, credit, ..) = world.state.lend_numbers().unwrap();
        assert_eq!((name, credit), (expected, left / 64));
        world.state.paths.get(name).unwrap().spend();
        world.state.settle(name);
        assert!(world.state.paths.get(name).is_none());
        assert_eq!(world.state.credit.left(), left);
    }
}

#[test]
fn datagrams_leave_room_and_are_no_smaller_than_any() {
    for (size, told) in [(65_527, 65_525), (1201, 1200), (1200, 1200), (7, 1200)] {
        assert_eq!(payload_size(size), told);
    }
}
