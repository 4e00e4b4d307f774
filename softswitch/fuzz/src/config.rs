//! Forwarding pipeline configs.

use prost::Message;
use softswitch::proto::p4::v1::{
    GetForwardingPipelineConfigRequest, SetForwardingPipelineConfigRequest,
};

use crate::server::{DEVICE, Server, block_on, is_refusal};

/// Sets a config over another. If it is refused, the other and its entries are still there.
pub fn run(data: &[u8]) {
    let Ok(request) = SetForwardingPipelineConfigRequest::decode(data) else {
        return;
    };
    block_on(async {
        let mut server = Server::with_features().await;
        let get = GetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            response_type: 0,
        };
        let before = server
            .client
            .get_forwarding_pipeline_config(get)
            .await
            .expect("it is set");
        match server.set_config(request).await {
            Ok(()) => drop(server.read_everything().await),
            Err(status) => {
                assert!(is_refusal(&status), "{status}");
                let after = server
                    .client
                    .get_forwarding_pipeline_config(get)
                    .await
                    .expect("it is still set");
                assert!(
                    before.into_inner() == after.into_inner(),
                    "refused, but the config changed"
                );
            }
        }
    });
}
