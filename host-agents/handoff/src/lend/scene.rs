//! A lent path without a connection, for fuzzers.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use frontage_quic::session::{Incoming, Outgoing};

use super::feedback::Feedback;
use super::state::State;

/// Numbers of noq's before the loan.
const BEFORE: u64 = 20;
const PATH: u32 = 1;

/// A connection of which path 1 is lent.
pub struct Scene {
    state: State,
    feedback: Arc<Feedback>,
    /// The real server's first number.
    pub first: u64,
}

impl Scene {
    /// With `streams` lent.
    pub fn new(streams: &[u64]) -> Self {
        let mut state = State::default();
        state.limit = 1000;
        state.credit.begin(1 << 20);
        for path in [0, PATH] {
            for number in 0..BEFORE {
                state.seal(&mut Outgoing {
                    path,
                    number,
                    generation: 0,
                    header: &mut [0x40, 9, 0],
                    payload: &mut [0x01],
                    is_far: false,
                });
            }
        }
        let path = state.paths.get(PATH).expect("noq sent on it");
        let (first, feedback) = path.lend(1000).expect("it is noq's");
        for stream in streams {
            state.streams.lend(*stream, PATH, 1000);
        }
        Self {
            state,
            feedback,
            first,
        }
    }

    /// The client's packet on `path` has these frames: what of that noq gets, and what the real server does.
    pub fn hear(&mut self, path: u32, frames: &[u8]) -> (BytesMut, Bytes) {
        let mut payload = BytesMut::from(frames);
        self.state.open(&mut Incoming {
            path,
            number: 0,
            generation: 0,
            header: &[0x40],
            payload: &mut payload,
            tag: None,
        });
        (payload, self.feedback.frames())
    }
}
