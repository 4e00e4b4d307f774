//! BMv2's gRPC interface for packets (`proto/dataplane.proto`) before a softswitch pipeline.

use std::collections::VecDeque;
use std::sync::Arc;

use softswitch::dataplane::SharedPipeline;
use softswitch::p4rt::device::Device;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, Nanos, Pipeline, QueueInfo, Recirculated,
};
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

/// Recirculations after which a packet is given up, so that a program that never stops does not stop the test.
const MAX_PASSES: usize = 64;

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
                for (port, packet) in
                    run_to_completion(deployment.pipeline(), request.port, &request.packet, now)
                {
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

/// Everything that leaves because of this packet.
fn run_to_completion(
    pipeline: &SharedPipeline,
    port: u32,
    frame: &[u8],
    now: Nanos,
) -> Vec<(u32, Vec<u8>)> {
    let mut pipeline = pipeline.lock();
    let (mut queue, mut out, mut left) = (Vec::new(), EgressOutput::default(), Vec::new());
    let mut passes = 0;
    pipeline.ingress(port, frame, now, &mut queue);
    let mut waiting: VecDeque<Descriptor> = queue.drain(..).collect();
    let again = |pipeline: &mut Pipeline, packet: Recirculated| {
        let mut queue = Vec::new();
        pipeline.ingress_recirculated(packet, now, &mut queue);
        queue
    };
    while let Some(descriptor) = waiting.pop_front() {
        let queued = QueueInfo {
            enq_timestamp: now,
            ..QueueInfo::default()
        };
        match pipeline.egress(descriptor, queued, now, &mut out) {
            EgressOutcome::Transmit { port } => left.push((port, out.frame.clone())),
            EgressOutcome::Recirculate(packet) if passes < MAX_PASSES => {
                passes += 1;
                waiting.extend(again(&mut pipeline, packet));
            }
            EgressOutcome::Recirculate(_)
            | EgressOutcome::Dropped
            | EgressOutcome::AssertionFailed => {}
        }
        waiting.extend(out.clones.drain(..));
    }
    left
}
