// SPDX-License-Identifier: Apache-2.0
//! A client's packets, which the balancer splits between its own stack and a real server.

use bytes::Buf as _;
use frontage_handoff::delegate::Error;
use frontage_handoff::fuzzing::{FeedbackReader, Scene};

/// Streams delegated to the real server.
const STREAMS: [u64; 2] = [0, 8];

/// Run packets, each of which has a byte for the path, two bytes for the length, and frames.
pub fn run(mut data: &[u8]) {
    let (mut balancer, first) = Scene::with_path(&STREAMS);
    let server = FeedbackReader::with_path(first, &STREAMS);
    while data.len() > 3 {
        let path = u32::from(data.get_u8() % 3);
        let frames = frames(&mut data);
        let noqs = balancer.receive(path, frames);
        assert!(!noqs.is_empty() || frames.is_empty());
        read(&server, &balancer.feedback(0));
    }
}

/// Remove two bytes of length and that many bytes of frames from the front of `data`, and return the frames.
pub(crate) fn frames<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(data.get_u16()).min(data.len());
    let (frames, rest) = data.split_at(length);
    *data = rest;
    frames
}

/// Return the packets that `server` makes of `feedback` for its stack.
pub(crate) fn read(server: &FeedbackReader, feedback: &[u8]) -> Vec<Vec<u8>> {
    match server.read(feedback) {
        Ok(packets) => packets,
        // Only an acknowledgment may be too long: it can have more ranges than fit into a packet for noq.
        Err(Error::Feedback("frame longer than a packet")) => Vec::new(),
        Err(error) => panic!("{feedback:x?}: {error}"),
    }
}
