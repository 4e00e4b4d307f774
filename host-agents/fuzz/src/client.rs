// SPDX-License-Identifier: Apache-2.0
//! What a client says, as a balancer takes it apart and a real server hears its part.

use bytes::Buf as _;
use frontage_handoff::delegate::Error;
use frontage_handoff::fuzzing::{FeedbackReader, Scene};

/// Streams of the real server.
const STREAMS: [u64; 2] = [0, 8];

/// Packets of an octet for the path, two for the length, and frames.
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

/// Two octets for the length, and frames.
pub(crate) fn frames<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(data.get_u16()).min(data.len());
    let (frames, rest) = data.split_at(length);
    *data = rest;
    frames
}

/// What `server` tells its noq.
pub(crate) fn read(server: &FeedbackReader, feedback: &[u8]) -> Vec<Vec<u8>> {
    match server.read(feedback) {
        Ok(packets) => packets,
        // A client's acknowledgement may have more ranges than a packet of noq's takes, no more.
        Err(Error::Feedback("frame longer than a packet")) => Vec::new(),
        Err(error) => panic!("{feedback:x?}: {error}"),
    }
}
