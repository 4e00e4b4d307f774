// SPDX-License-Identifier: Apache-2.0
//! Sends Write requests.

use prost::Message;
use softswitch::proto::p4::v1::{WriteRequest, write_request::Atomicity};

use crate::server::{Server, block_on, is_refusal};

/// Sends a Write request. If the batch is atomic or has one update and the server refuses it, nothing may have changed.
pub fn run(data: &[u8]) {
    let Ok(request) = WriteRequest::decode(data) else {
        return;
    };
    block_on(async {
        let mut server = Server::with_features().await;
        let atomic =
            request.atomicity() != Atomicity::ContinueOnError || request.updates.len() <= 1;
        let before = server.read_everything().await;
        if let Err(status) = server.write(request).await {
            assert!(is_refusal(&status), "{status}");
            let after = server.read_everything().await;
            assert!(
                !atomic || before == after,
                "the refused request ({status}) changed something"
            );
        } else {
            server.read_everything().await;
        }
    });
}
