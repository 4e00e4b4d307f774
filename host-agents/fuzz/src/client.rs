//! What a client says, as a balancer takes it apart and a real server hears its part.

use bytes::Buf as _;
use frontage_handoff::borrow::Error;
use frontage_handoff::fuzzing::Hearing;

/// Packets of an octet for the path, two for the length, and frames.
pub fn run(mut data: &[u8]) {
    let mut hearing = Hearing::default();
    while data.len() > 3 {
        let path = u32::from(data.get_u8() % 3);
        let length = usize::from(data.get_u16()).min(data.len());
        let (frames, rest) = data.split_at(length);
        data = rest;
        let (noqs, feedback) = hearing.hear(path, frames);
        assert!(!noqs.is_empty() || frames.is_empty());
        // A client's acknowledgement may have more ranges than a packet of noq's takes, no more.
        match hearing.pass_on(&feedback) {
            Ok(()) | Err(Error::Feedback("a frame longer than a packet")) => {}
            Err(error) => panic!("{feedback:x?}: {error}"),
        }
    }
}
