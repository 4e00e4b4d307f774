// SPDX-License-Identifier: Apache-2.0
//! BMv2's gRPC interface for packets (`proto/dataplane.proto`) before a softswitch pipeline.

use std::sync::Arc;

use softswitch::p4rt::device::Device;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use api::dataplane_interface_server::{DataplaneInterface, DataplaneInterfaceServer};
use api::{PacketStreamRequest, PacketStreamResponse};

#[allow(missing_docs, clippy::all)]
mod api {
    tonic::include_proto!("p4.bm");
}

/// Packets of one stream that wait for the client to take them.
const BACKLOG: usize = 256;

/// Serves the packets of a device.
pub fn server(device: Arc<Device>) -> DataplaneInterfaceServer<Dataplane> {
    DataplaneInterfaceServer::new(Dataplane { device })
}

/// The packets' side of a device.
pub struct Dataplane {
    device: Arc<Device>,
}

#[tonic::async_trait]
impl DataplaneInterface for Dataplane {
    type PacketStreamStream = ReceiverStream<Result<PacketStreamResponse, Status>>;

    async fn packet_stream(
        &self,
        request: Request<Streaming<PacketStreamRequest>>,
    ) -> Result<Response<Self::PacketStreamStream>, Status> {
        let deployment = (self.device.committed())
            .ok_or_else(|| Status::failed_precondition("set a forwarding pipeline config first"))?;
        let (responses, stream) = mpsc::channel(BACKLOG);
        let mut requests = request.into_inner();
        let device = Arc::clone(&self.device);
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let now = device.dataplane.now();
                // Locked until all that leaves because of this packet has left.
                let left =
                    (deployment.pipeline().lock()).process(request.port, &request.packet, now);
                for (port, packet) in left {
                    let response = PacketStreamResponse {
                        id: request.id,
                        device_id: request.device_id,
                        port,
                        packet,
                    };
                    if responses.send(Ok(response)).await.is_err() {
                        return; // the client is gone
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
