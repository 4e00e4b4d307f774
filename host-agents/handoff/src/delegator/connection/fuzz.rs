// SPDX-License-Identifier: Apache-2.0
//! A connection without noq that has delegations, for fuzzers.

use bytes::BytesMut;
use frontage_quic::session::{Incoming, Outgoing};

use super::*;

/// Packets of noq before the first delegation.
const PACKETS_BEFORE: u64 = 20;
/// The delegated path.
const PATH: u32 = 1;
/// The client's limit for each stream.
const STREAM_LIMIT: u64 = 1000;

/// A connection and its delegations.
pub struct Scene {
    connection: Connection,
    /// noq's next number on path 0.
    next: u64,
    delegations: Vec<Delegated>,
}

struct Delegated {
    /// Path id, or id of the delegation by packet numbers.
    id: u32,
    feedback: Arc<Feedback>,
}

impl Scene {
    fn new() -> Self {
        let mut connection = Connection::default();
        connection.client.max_stream_data = STREAM_LIMIT;
        connection.flow.start(1 << 20);
        connection.keys.install(0x1301, vec![1; 32]);
        let mut scene = Self {
            connection,
            next: 0,
            delegations: Vec::new(),
        };
        for _ in 0..PACKETS_BEFORE {
            scene.send();
        }
        scene
    }

    /// Delegate path 1 with `streams`. Also returns the real server's first packet number.
    pub fn with_path(streams: &[u64]) -> (Self, u64) {
        let mut scene = Self::new();
        for number in 0..PACKETS_BEFORE {
            scene.seal(PATH, number);
        }
        let path = scene.connection.paths.get(PATH).expect("noq sent on it");
        let (first, feedback) = path.delegate(STREAM_LIMIT).expect("owned by noq");
        scene.delegate_streams(PATH, feedback, streams);
        (scene, first)
    }

    /// Start one delegation by packet numbers for each of `streams`. Also returns a lower bound of the real servers'
    /// numbers.
    pub fn with_numbers(streams: &[u64]) -> (Self, u64) {
        let mut scene = Self::new();
        for stream in streams {
            let (id, _, _, feedback) = scene
                .connection
                .start_numbers(Duration::ZERO)
                .expect("single path");
            scene.delegate_streams(id, feedback, &[*stream]);
        }
        (scene, PACKETS_BEFORE)
    }

    fn delegate_streams(&mut self, id: u32, feedback: Arc<Feedback>, streams: &[u64]) {
        for stream in streams {
            let streams = &mut self.connection.streams;
            streams
                .delegate(*stream, id, STREAM_LIMIT)
                .expect("known limit");
        }
        self.delegations.push(Delegated { id, feedback });
    }

    /// Have noq send a packet on path 0.
    pub fn send(&mut self) {
        self.seal(0, self.next);
        self.next += 1;
    }

    fn seal(&mut self, path: u32, number: u64) {
        self.connection.seal(&mut Outgoing {
            path,
            number,
            generation: 0,
            header: &mut [0x40, 9, 0],
            payload: &mut [0x01],
            needs_long_number: false,
            longer_payload: None,
        });
    }

    /// Allocate packet numbers to a delegation, counted from 0.
    pub fn allocate_numbers(&mut self, delegation: usize, count: u64) -> Vec<Range<u64>> {
        let id = self.delegations[delegation].id;
        let request = NumberRequest { count, ahead: 0 };
        let numbers = self.connection.allocate_numbers(id, request);
        numbers.expect("delegated by numbers").1
    }

    /// Receive a packet of the client on `path`. Returns the frames that noq gets.
    pub fn receive(&mut self, path: u32, frames: &[u8]) -> BytesMut {
        let mut payload = BytesMut::from(frames);
        self.connection.open(&mut Incoming {
            path,
            number: 0,
            generation: 0,
            header: &[0x40],
            payload: &mut payload,
            tag: None,
        });
        payload
    }

    /// Return the frames that the real server of a delegation gets.
    pub fn feedback(&self, delegation: usize) -> Bytes {
        self.delegations[delegation].feedback.take_frames()
    }
}
