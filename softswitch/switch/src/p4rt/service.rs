//! The gRPC service.

use std::pin::Pin;
use std::sync::Arc;

use prost::Message;
use tokio::task::block_in_place;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::device::{Device, StreamReceiver};
use super::error::{NO_PIPELINE, batch_status};
use super::stream;
use crate::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, ReadRequest,
    ReadResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    StreamMessageRequest, StreamMessageResponse, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType,
    p4_runtime_server::{P4Runtime, P4RuntimeServer},
    write_request::Atomicity,
};

/// The version of P4Runtime that `proto/` defines.
const API_VERSION: &str = "1.5.0";

/// Read responses are cut at this size; gRPC clients refuse messages above 4 MiB by default.
const READ_CHUNK: usize = 1 << 20;

/// Requests may be larger than gRPC's default: programs and batches are.
const MAX_REQUEST: usize = 256 << 20;

/// The gRPC service of a device.
#[derive(Debug, Clone)]
pub struct Service {
    device: Arc<Device>,
}

impl Service {
    /// Serves a device.
    pub fn server(device: Arc<Device>) -> P4RuntimeServer<Self> {
        P4RuntimeServer::new(Self { device }).max_decoding_message_size(MAX_REQUEST)
    }
}

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        let request = request.into_inner();
        let _writing = self.device.writes.lock().await;
        #[allow(deprecated)]
        let role_id = request.role_id;
        self.device.arbitration.lock().check_primary(
            request.device_id,
            &request.role,
            role_id,
            request.election_id,
        )?;
        let deployment = self.device.deployment()?;
        if request.atomicity() != Atomicity::ContinueOnError {
            return Err(Status::unimplemented(
                "batches are not atomic: use CONTINUE_ON_ERROR",
            ));
        }
        let now = self.device.dataplane.now();
        let results = block_in_place(|| deployment.write(&request.updates, now));
        batch_status("updates", &results)?;
        Ok(Response::new(WriteResponse {}))
    }

    type ReadStream = BoxStream<ReadResponse>;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        self.device
            .arbitration
            .lock()
            .check_device(request.device_id)?;
        let deployment = self.device.deployment()?;
        let now = self.device.dataplane.now();
        let (entities, results) = block_in_place(|| deployment.read(&request.entities, now));
        let mut responses: Vec<_> = chunks(entities).into_iter().map(Ok).collect();
        if let Err(status) = batch_status("read requests", &results) {
            responses.push(Err(status));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        let _writing = self.device.writes.lock().await;
        #[allow(deprecated)]
        let role_id = request.role_id;
        self.device.arbitration.lock().check_primary(
            request.device_id,
            &request.role,
            role_id,
            request.election_id,
        )?;
        block_in_place(|| self.device.set_config(request))?;
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.device
            .arbitration
            .lock()
            .check_device(request.device_id)?;
        // The specification would have an empty response here, but `simple_switch_grpc` answers so,
        // and clients tell by it that a pipeline is wanted.
        let committed = self.device.committed();
        let committed = committed.ok_or_else(|| Status::failed_precondition(NO_PIPELINE))?;
        let whole = committed.config();
        let wanted = request.response_type();
        let all = wanted == ResponseType::All;
        let mut config = ForwardingPipelineConfig {
            cookie: whole.cookie,
            ..Default::default()
        };
        if all || wanted == ResponseType::P4infoAndCookie {
            config.p4info = whole.p4info.clone();
        }
        if all || wanted == ResponseType::DeviceConfigAndCookie {
            config.p4_device_config = whole.p4_device_config.clone();
        }
        Ok(Response::new(GetForwardingPipelineConfigResponse {
            config: Some(config),
        }))
    }

    type StreamChannelStream = BoxStream<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (client, sender, receiver) = self.device.open_stream();
        let device = Arc::clone(&self.device);
        tokio::spawn(stream::serve(device, client, sender, request.into_inner()));
        let StreamReceiver { control, bulk } = receiver;
        let bulk = ReceiverStream::new(bulk).map(Ok);
        let messages = UnboundedReceiverStream::new(control).merge(bulk);
        Ok(Response::new(Box::pin(messages)))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.device.arbitration.lock().check_device(device_id)?;
        }
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.into(),
            experimental: None,
        }))
    }
}

/// Spreads entities over responses of limited size.
fn chunks(entities: Vec<Entity>) -> Vec<ReadResponse> {
    let mut responses = Vec::new();
    let mut current = ReadResponse::default();
    let mut size = 0;
    for entity in entities {
        // The entity with its tag and length.
        size += entity.encoded_len() + 6;
        if size > READ_CHUNK && !current.entities.is_empty() {
            responses.push(std::mem::take(&mut current));
            size = entity.encoded_len() + 6;
        }
        current.entities.push(entity);
    }
    if !current.entities.is_empty() {
        responses.push(current);
    }
    responses
}
