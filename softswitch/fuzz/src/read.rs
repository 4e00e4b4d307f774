//! Read requests.

use prost::Message;
use softswitch::proto::p4::v1::ReadRequest;

use crate::seeds;
use crate::server::{Server, block_on, is_refusal};

/// Answers a read request, of a server that has something of every kind.
pub fn run(data: &[u8]) {
    let Ok(request) = ReadRequest::decode(data) else {
        return;
    };
    block_on(async {
        let mut server = Server::with_features().await;
        server
            .write(seeds::something_of_everything())
            .await
            .expect("it is valid");
        if let Err(status) = server.read(request.entities).await {
            assert!(is_refusal(&status), "{status}");
        }
    });
}
