// SPDX-License-Identifier: Apache-2.0
//! Sends messages on the stream channel.

use prost::Message;
use softswitch::proto::p4::v1::StreamMessageRequest;

use crate::server::{Server, block_on};

/// Sends length-delimited messages on the primary's stream. The server must answer until the stream ends, and must still serve
/// other requests afterwards.
pub fn run(mut data: &[u8]) {
    let mut messages = Vec::new();
    while let Ok(message) = StreamMessageRequest::decode_length_delimited(&mut data) {
        messages.push(message);
    }
    if messages.is_empty() {
        return;
    }
    block_on(async {
        let mut server = Server::with_features().await;
        for message in messages {
            // Some messages make the server end the stream; sending then fails.
            let _ = server.to_switch.send(message).await;
        }
        let (closed, _) = tokio::sync::mpsc::channel(1);
        server.to_switch = closed;
        while let Ok(Some(_)) = server.from_switch.message().await {}
        server.read_everything().await;
    });
}
