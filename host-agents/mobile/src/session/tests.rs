// SPDX-License-Identifier: Apache-2.0
//! Two ends, whose carriers break between any two frames or lose any number of them, and applications that read slowly.

use proptest::prelude::*;

use super::*;

const WINDOW: u32 = 100;

/// One end with its application.
struct Peer {
    session: Session,
    /// Bytes that the application has yet to write.
    unwritten: Vec<u8>,
    read: Vec<u8>,
    has_read_end: bool,
}

impl Peer {
    fn new(stream: &[u8]) -> Self {
        Self {
            session: Session::new(WINDOW),
            unwritten: stream.to_vec(),
            read: Vec::new(),
            has_read_end: false,
        }
    }

    /// Let the application write at most `count` bytes, and its end after the last one.
    fn write(&mut self, count: usize) {
        let count = count.min(self.session.room()).min(self.unwritten.len());
        self.session.push(&self.unwritten[..count]);
        self.unwritten.drain(..count);
        if self.unwritten.is_empty() {
            self.session.finish();
        }
    }

    /// Let the application read at most `count` bytes, and the end after the last one.
    fn read(&mut self, count: usize) {
        let bytes = self.session.deliverable();
        let count = count.min(bytes.len());
        self.read.extend(&bytes[..count]);
        self.session.on_delivered(count);
        if self.session.is_end_deliverable() {
            self.has_read_end = true;
            self.session.on_end_delivered();
        }
    }

    fn frames(&mut self, most: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for _ in 0..most {
            let mut frame = Vec::new();
            if !self.session.next_frame(&mut frame) {
                break;
            }
            frames.push(frame);
        }
        frames
    }

    fn receive(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            assert_eq!(self.session.on_record(frame), Ok(Event::Progress));
        }
        assert!(self.session.receiving.buffer.len() <= WINDOW as usize);
    }
}

/// One step of a test.
#[derive(Clone, Debug)]
enum Action {
    /// An application writes and reads some bytes.
    Work {
        side: usize,
        write: usize,
        read: usize,
    },
    /// An end sends frames, all of which arrive.
    Exchange { side: usize, frames: usize },
    /// An end sends frames, of which the first `arrived` arrive, and then the carrier breaks.
    Break {
        side: usize,
        frames: usize,
        arrived: usize,
    },
    /// The carrier breaks, and so does the next one before it transmits anything.
    BreakTwice,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        (0..2usize, 0..150usize, 0..150usize).prop_map(|(side, write, read)| Action::Work {
            side,
            write,
            read
        }),
        (0..2usize, 1..4usize).prop_map(|(side, frames)| Action::Exchange { side, frames }),
        (0..2usize, 0..4usize, 0..4usize).prop_map(|(side, frames, arrived)| Action::Break {
            side,
            frames,
            arrived
        }),
        Just(Action::BreakTwice),
    ];
    prop::collection::vec(action, 0..80)
}

fn reconnect(ends: &mut [Peer; 2]) {
    let received = [ends[0].session.received(), ends[1].session.received()];
    ends[0].session.resume(received[1]).unwrap();
    ends[1].session.resume(received[0]).unwrap();
}

fn perform(ends: &mut [Peer; 2], action: &Action) {
    match *action {
        Action::Work { side, write, read } => {
            ends[side].write(write);
            ends[side].read(read);
        }
        Action::Exchange { side, frames } => {
            let frames = ends[side].frames(frames);
            ends[1 - side].receive(&frames);
        }
        Action::Break {
            side,
            frames,
            arrived,
        } => {
            let frames = ends[side].frames(frames);
            ends[1 - side].receive(&frames[..arrived.min(frames.len())]);
            reconnect(ends);
        }
        Action::BreakTwice => {
            reconnect(ends);
            reconnect(ends);
        }
    }
}

/// Exchange everything on a carrier that does not break.
fn complete(ends: &mut [Peer; 2]) {
    for _ in 0..1000 {
        for side in 0..2 {
            ends[side].write(usize::MAX);
            let frames = ends[side].frames(usize::MAX);
            ends[1 - side].receive(&frames);
            ends[1 - side].read(usize::MAX);
        }
    }
}

proptest! {
    #[test]
    fn streams_arrive_once_and_whole_whatever_breaks(
        streams in prop::array::uniform2(prop::collection::vec(any::<u8>(), 0..1000)),
        actions in actions(),
    ) {
        let mut ends = [Peer::new(&streams[0]), Peer::new(&streams[1])];
        for action in &actions {
            perform(&mut ends, action);
            for (end, stream) in ends.iter().zip([&streams[1], &streams[0]]) {
                prop_assert!(stream.starts_with(&end.read));
                prop_assert!(!end.has_read_end || end.read.len() == stream.len());
            }
        }
        complete(&mut ends);
        for (end, stream) in ends.iter().zip([&streams[1], &streams[0]]) {
            prop_assert_eq!(&end.read, stream);
            prop_assert!(end.has_read_end && end.session.is_complete());
        }
    }

    #[test]
    fn records_of_a_hostile_peer_do_not_panic(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        kinds in prop::collection::vec(0..6u8, 20),
    ) {
        let mut end = Peer::new(&[1; 300]);
        for (mut record, kind) in records.into_iter().zip(kinds) {
            if let Some(first) = record.first_mut() {
                *first = kind;
            }
            if end.session.on_record(&record).is_err() {
                break;
            }
            end.write(50);
            end.frames(2);
            end.read(30);
        }
    }
}

/// Return the violation that a frame causes at an end that has received `hello` and sent `hi`.
fn violation(frame: &Frame<'_>) -> Violation {
    let mut end = Peer::new(b"hi");
    end.write(2);
    end.frames(1);
    let mut record = Vec::new();
    let (offset, bytes) = (0, &b"hello"[..]);
    Frame::Data { offset, bytes }.encode(&mut record);
    end.receive(&[record.clone()]);
    record.clear();
    frame.encode(&mut record);
    end.session.on_record(&record).unwrap_err()
}

#[test]
fn rejects_frames_that_do_not_follow() {
    let long = [0; WINDOW as usize];
    let digest = [0; DIGEST_LEN];
    let data = |offset, bytes| violation(&Frame::Data { offset, bytes });
    assert_eq!(
        data(6, b"x"),
        Violation::Gap {
            offset: 6,
            received: 5
        }
    );
    assert_eq!(
        data(0, b"hello"),
        Violation::Gap {
            offset: 0,
            received: 5
        }
    );
    assert_eq!(data(5, &long), Violation::Window(WINDOW.into()));
    let end = violation(&Frame::End { offset: 5, digest });
    assert_eq!(end, Violation::Digest);
    let (offset, first, last) = (3, 0, 2);
    assert_eq!(
        violation(&Frame::Ack(3)),
        Violation::Offset {
            offset,
            first,
            last
        }
    );
}

#[test]
fn rejects_a_resumption_at_an_offset_that_was_never_sent() {
    let mut end = Peer::new(b"hello");
    end.write(5);
    assert!(end.session.resume(1).is_err(), "nothing was sent");
    end.frames(1);
    assert_eq!(end.session.resume(2), Ok(3));
    assert!(end.session.resume(6).is_err());
}

#[test]
fn slow_application_stops_its_own_direction_only() {
    let mut ends = [Peer::new(&[1; 1000]), Peer::new(&[2; 1000])];
    for _ in 0..50 {
        for side in 0..2 {
            ends[side].write(50);
            let frames = ends[side].frames(usize::MAX);
            ends[1 - side].receive(&frames);
        }
        ends[0].read(usize::MAX);
    }
    assert_eq!(ends[0].read.len(), 1000);
    assert_eq!(ends[0].session.room(), 0);
    assert_eq!(ends[1].session.deliverable().len(), WINDOW as usize);
}
