// SPDX-License-Identifier: Apache-2.0
//! Sets forwarding pipeline configs.

use prost::Message;
use softswitch::proto::p4::v1::{
    GetForwardingPipelineConfigRequest, SetForwardingPipelineConfigRequest,
};

use crate::server::{DEVICE, Server, block_on, is_refusal};

/// Replaces a config by another one. If the server refuses it, the first config must stay in place.
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
            .expect("a config is set");
        match server.set_config(request).await {
            Ok(()) => drop(server.read_everything().await),
            Err(status) => {
                assert!(is_refusal(&status), "{status}");
                let after = server
                    .client
                    .get_forwarding_pipeline_config(get)
                    .await
                    .expect("the first config is still set");
                assert!(
                    before.into_inner() == after.into_inner(),
                    "the refused request changed the config"
                );
            }
        }
    });
}
