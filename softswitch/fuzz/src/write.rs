//! Write requests.

use prost::Message;
use softswitch::proto::p4::v1::{WriteRequest, write_request::Atomicity};

use crate::server::{Server, block_on, is_refusal};

/// Answers a write request. If the batch is atomic, or of one update, being refused changes nothing.
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
                "refused ({status}), but it changed something"
            );
        } else {
            server.read_everything().await;
        }
    });
}
