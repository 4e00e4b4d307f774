// SPDX-License-Identifier: Apache-2.0
//! The hand-off's messages, as a real server reads them.

use bytes::BytesMut;
use frontage_handoff::message::{Message as _, ToServer};

/// Reads messages up to the first that is none, or is not there whole.
pub fn run(data: &[u8]) {
    let mut wire = BytesMut::from(data);
    while let Ok(Some(message)) = ToServer::decode(&mut wire) {
        let mut again = BytesMut::new();
        message.encode(&mut again);
        assert_eq!(ToServer::decode(&mut again), Ok(Some(message)));
        assert!(again.is_empty());
    }
}
