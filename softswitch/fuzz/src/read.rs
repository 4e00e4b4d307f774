// SPDX-License-Identifier: Apache-2.0
//! Sends Read requests.

use prost::Message;
use softswitch::proto::p4::v1::ReadRequest;

use crate::seeds;
use crate::server::{block_on, is_refusal};

/// Sends a Read request to a server that has an entity of every kind.
pub fn run(data: &[u8]) {
    let Ok(request) = ReadRequest::decode(data) else {
        return;
    };
    block_on(async {
        let mut server = seeds::server_with_every_entity().await;
        if let Err(status) = server.read(request.entities).await {
            assert!(is_refusal(&status), "{status}");
        }
    });
}
