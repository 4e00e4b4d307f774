//! A connection without noq, of which something is lent, for fuzzers.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use frontage_quic::session::{Incoming, Outgoing};

use super::feedback::Feedback;
use super::ratchet::Ratchet;
use super::state::State;

/// Numbers of noq's before the first loan.
const BEFORE: u64 = 20;
/// The path that is lent, if one is.
const PATH: u32 = 1;
/// What the client takes of each stream.
const LIMIT: u64 = 1000;

/// A connection, and its loans.
pub struct Scene {
    state: State,
    /// noq's next number on path 0.
    next: u64,
    loans: Vec<Loan>,
}

struct Loan {
    /// The path, or what stands for one.
    name: u32,
    feedback: Arc<Feedback>,
}

impl Scene {
    fn new() -> Self {
        let mut state = State::default();
        state.limit = LIMIT;
        state.credit.begin(1 << 20);
        state.ratchet = Ratchet::new(0x1301, vec![1; 32]);
        let mut scene = Self {
            state,
            next: 0,
            loans: Vec::new(),
        };
        for _ in 0..BEFORE {
            scene.send();
        }
        scene
    }

    /// Path 1 is lent, with `streams`. The real server's first number.
    pub fn of_paths(streams: &[u64]) -> (Self, u64) {
        let mut scene = Self::new();
        for number in 0..BEFORE {
            scene.seal(PATH, number);
        }
        let path = scene.state.paths.get(PATH).expect("noq sent on it");
        let (first, feedback) = path.lend(LIMIT).expect("it is noq's");
        scene.lent(PATH, feedback, streams);
        (scene, first)
    }

    /// Numbers are lent to a real server for each of `streams`. All of these are this one at least.
    pub fn of_numbers(streams: &[u64]) -> (Self, u64) {
        let mut scene = Self::new();
        for stream in streams {
            let (name, _, _, feedback) = scene.state.lend_numbers().expect("there is one path");
            scene.lent(name, feedback, &[*stream]);
        }
        (scene, BEFORE)
    }

    fn lent(&mut self, name: u32, feedback: Arc<Feedback>, streams: &[u64]) {
        for stream in streams {
            self.state.streams.lend(*stream, name, LIMIT);
        }
        self.loans.push(Loan { name, feedback });
    }

    /// noq sends a packet on path 0.
    pub fn send(&mut self) {
        self.seal(0, self.next);
        self.next += 1;
    }

    fn seal(&mut self, path: u32, number: u64) {
        self.state.seal(&mut Outgoing {
            path,
            number,
            generation: 0,
            header: &mut [0x40, 9, 0],
            payload: &mut [0x01],
            needs_long_number: false,
        });
    }

    /// The next numbers for `loan`, counted from 0.
    pub fn more_numbers(&mut self, loan: usize, wanted: u64) -> Range<u64> {
        let name = self.loans[loan].name;
        let more = self.state.more_numbers(name, wanted);
        more.expect("it is lent by numbers").1
    }

    /// The client's packet on `path` has these frames: what of that noq gets.
    pub fn hear(&mut self, path: u32, frames: &[u8]) -> BytesMut {
        let mut payload = BytesMut::from(frames);
        self.state.open(&mut Incoming {
            path,
            number: 0,
            generation: 0,
            header: &[0x40],
            payload: &mut payload,
            tag: None,
        });
        payload
    }

    /// And what the real server of `loan`.
    pub fn feedback(&self, loan: usize) -> Bytes {
        self.loans[loan].feedback.frames()
    }
}
