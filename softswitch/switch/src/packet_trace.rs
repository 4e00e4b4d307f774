// SPDX-License-Identifier: Apache-2.0
//! The gRPC service that follows one packet (`softswitch.v1.PacketTrace`), at the address of P4Runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::dataplane::{Handle, Sought, StreamPacket, parse_value};
use crate::proto::softswitch::v1::packet_trace_server::{PacketTrace, PacketTraceServer};
use crate::proto::softswitch::v1::{CaptureRequest, CaptureResponse};
use crate::tls::{Access, require};

/// Maximum time to wait for a packet, in milliseconds.
const MAX_TIMEOUT: u32 = 30_000;

/// Time without a further pass of the packet after which the capture ends: longer than packets wait in queues.
const QUIET: Duration = Duration::from_millis(250);

/// The service of a device.
#[derive(Debug)]
pub struct PacketTraceService {
    device_id: u64,
    dataplane: Arc<Handle>,
}

impl PacketTraceService {
    /// Creates the service for a data plane.
    pub fn server(device_id: u64, dataplane: Arc<Handle>) -> PacketTraceServer<Self> {
        PacketTraceServer::new(Self {
            device_id,
            dataplane,
        })
    }
}

/// Ends the capture when it is dropped.
struct Running(Arc<Handle>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end_capture();
    }
}

#[tonic::async_trait]
impl PacketTrace for PacketTraceService {
    type CaptureStream = Pin<Box<dyn Stream<Item = Result<CaptureResponse, Status>> + Send>>;

    async fn capture(
        &self,
        request: Request<CaptureRequest>,
    ) -> Result<Response<Self::CaptureStream>, Status> {
        // Only a client that may write sends packets into the switch.
        let needed = match request.get_ref().inject {
            Some(_) => Access::Write,
            None => Access::Read,
        };
        require(request.extensions(), needed)?;
        let request = request.into_inner();
        if request.device_id != self.device_id {
            return Err(Status::invalid_argument(format!(
                "unknown device {}: this is device {}",
                request.device_id, self.device_id
            )));
        }
        if !(1..=MAX_TIMEOUT).contains(&request.timeout_ms) {
            return Err(Status::invalid_argument(format!(
                "invalid timeout_ms {}: use 1 to {MAX_TIMEOUT}",
                request.timeout_ms
            )));
        }
        let limit = Duration::from_millis(request.timeout_ms.into());
        let sought = sought(request)?;
        let mut passes = self.dataplane.start_capture(sought).ok_or_else(|| {
            Status::resource_exhausted("another capture is in progress: wait until it ends")
        })?;
        let running = Running(Arc::clone(&self.dataplane));
        let (responses, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            let _running = running;
            let mut wait = limit;
            loop {
                let next = tokio::select! {
                    next = timeout(wait, passes.recv()) => next,
                    () = responses.closed() => return,
                };
                let Ok(Some(trace)) = next else {
                    return;
                };
                wait = QUIET;
                // It cannot fail: all maps have text keys.
                let pass = serde_json::to_string(&trace).unwrap_or_default();
                if responses.send(Ok(CaptureResponse { pass })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

fn sought(request: CaptureRequest) -> Result<Sought, Status> {
    if let Some(frame) = request.inject {
        if frame.frame.len() < 14 {
            return Err(Status::invalid_argument(
                "inject.frame is shorter than an Ethernet header: send at least 14 bytes",
            ));
        }
        return Ok(Sought::Injected(StreamPacket {
            id: 0,
            port: frame.port,
            frame: frame.frame,
        }));
    }
    let fields = request.fields.into_iter().map(|wanted| {
        let value = parse_value(&wanted.value).ok_or_else(|| {
            Status::invalid_argument(format!(
                "{}: invalid value \"{}\": use decimal, or hexadecimal with 0x, of at most 128 bits",
                wanted.field, wanted.value
            ))
        })?;
        Ok((wanted.field, value))
    });
    Ok(Sought::Fields(fields.collect::<Result<_, Status>>()?))
}
