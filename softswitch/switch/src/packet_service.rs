// SPDX-License-Identifier: Apache-2.0
//! BMv2's gRPC service of packets (`--dp-grpc-server-addr`).

use std::pin::Pin;
use std::sync::Arc;

use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::dataplane::{Handle, StreamPacket};
use crate::proto::p4::bm::dataplane_interface_server::{
    DataplaneInterface, DataplaneInterfaceServer,
};
use crate::proto::p4::bm::{
    PacketStreamRequest, PacketStreamResponse, PortOperStatus, SetPortOperStatusRequest,
    SetPortOperStatusResponse,
};

/// The service of a device's packets.
#[derive(Debug)]
pub struct PacketService {
    device_id: u64,
    dataplane: Arc<Handle>,
}

impl PacketService {
    /// Creates the service for a data plane with a packet stream.
    pub fn server(device_id: u64, dataplane: Arc<Handle>) -> DataplaneInterfaceServer<Self> {
        DataplaneInterfaceServer::new(Self {
            device_id,
            dataplane,
        })
    }
}

#[tonic::async_trait]
impl DataplaneInterface for PacketService {
    type PacketStreamStream =
        Pin<Box<dyn Stream<Item = Result<PacketStreamResponse, Status>> + Send>>;

    async fn packet_stream(
        &self,
        request: Request<Streaming<PacketStreamRequest>>,
    ) -> Result<Response<Self::PacketStreamStream>, Status> {
        let packets = self.dataplane.open_packet_stream().ok_or_else(|| {
            Status::resource_exhausted("another client has the packet stream: close it first")
        })?;
        let (device_id, dataplane) = (self.device_id, Arc::clone(&self.dataplane));
        tokio::spawn(receive(device_id, dataplane, request.into_inner()));
        let responses = ReceiverStream::new(packets).map(move |packet| {
            let StreamPacket { id, port, frame } = packet;
            Ok(PacketStreamResponse {
                id,
                device_id,
                port,
                packet: frame,
            })
        });
        Ok(Response::new(Box::pin(responses)))
    }

    async fn set_port_oper_status(
        &self,
        request: Request<SetPortOperStatusRequest>,
    ) -> Result<Response<SetPortOperStatusResponse>, Status> {
        let request = request.into_inner();
        let device_id = self.device_id;
        if request.device_id != device_id {
            let message = format!(
                "unknown device {}: this is device {device_id}",
                request.device_id
            );
            return Err(Status::invalid_argument(message));
        }
        let is_up = match request.oper_status() {
            PortOperStatus::OperStatusUp => true,
            PortOperStatus::OperStatusDown => false,
            PortOperStatus::OperStatusUnknown => {
                return Err(Status::invalid_argument(
                    "invalid oper_status: use OPER_STATUS_UP or OPER_STATUS_DOWN",
                ));
            }
        };
        self.dataplane.set_port_up(request.port, is_up);
        Ok(Response::new(SetPortOperStatusResponse {}))
    }
}

/// Passes a client's packets to the data plane, until the client closes its side and all packets have been processed.
async fn receive(
    device_id: u64,
    dataplane: Arc<Handle>,
    mut requests: Streaming<PacketStreamRequest>,
) {
    // An error ends the stream, too.
    while let Ok(Some(request)) = requests.message().await {
        // Like BMv2, it ignores packets for other devices and empty ones.
        if request.device_id != device_id || request.packet.is_empty() {
            continue;
        }
        dataplane
            .receive_packet(StreamPacket {
                id: request.id,
                port: request.port,
                frame: request.packet,
            })
            .await;
    }
    dataplane.close_packet_stream().await;
}
