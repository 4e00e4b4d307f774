// SPDX-License-Identifier: Apache-2.0
//! The hand-off messages that a real server decodes.

use bytes::BytesMut;
use frontage_handoff::message::{Message as _, ToServer};

/// Decode messages up to the first that is malformed or incomplete.
pub fn run(data: &[u8]) {
    let mut wire = BytesMut::from(data);
    while let Ok(Some(message)) = ToServer::decode(&mut wire) {
        let mut again = BytesMut::new();
        message.encode(&mut again);
        assert_eq!(ToServer::decode(&mut again), Ok(Some(message)));
        assert!(again.is_empty());
    }
}
