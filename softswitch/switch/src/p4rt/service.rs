// SPDX-License-Identifier: Apache-2.0
//! The gRPC service.

use std::pin::Pin;
use std::sync::Arc;

use prost::Message;
use tokio::task::block_in_place;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::device::{Device, StreamReceiver};
use super::stream;
use crate::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamMessageRequest,
    StreamMessageResponse, WriteRequest, WriteResponse,
    p4_runtime_server::{P4Runtime, P4RuntimeServer},
};
use crate::tls::{Access, Client, require};

/// Maximum size of a read response. gRPC clients refuse messages above 4 MiB by default.
const READ_CHUNK: usize = 1 << 20;

/// Maximum size of a request. Programs and batches may exceed gRPC's default.
const MAX_REQUEST: usize = 256 << 20;

/// The gRPC service of a device.
#[derive(Debug, Clone)]
pub struct Service {
    device: Arc<Device>,
}

impl Service {
    /// Creates the service of a device.
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
        require(request.extensions(), Access::Write)?;
        block_in_place(|| self.device.write(request.get_ref()))?;
        Ok(Response::new(WriteResponse {}))
    }

    type ReadStream = BoxStream<ReadResponse>;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        require(request.extensions(), Access::Read)?;
        let (entities, end) = block_in_place(|| self.device.read(request.get_ref()))?;
        let responses = chunks(entities).into_iter().map(Ok);
        let responses: Vec<_> = responses.chain(end.err().map(Err)).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        require(request.extensions(), Access::Write)?;
        block_in_place(|| self.device.set_config(request.into_inner()))?;
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        require(request.extensions(), Access::Read)?;
        let config = Some(self.device.get_config(request.get_ref())?);
        let response = GetForwardingPipelineConfigResponse { config };
        Ok(Response::new(response))
    }

    type StreamChannelStream = BoxStream<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        require(request.extensions(), Access::Read)?;
        let peer = request.extensions().get::<Client>().cloned();
        let (client, sender, receiver) = self.device.open_stream();
        let device = Arc::clone(&self.device);
        let requests = request.into_inner();
        tokio::spawn(stream::serve(device, (client, peer), sender, requests));
        let StreamReceiver { control, bulk } = receiver;
        let bulk = ReceiverStream::new(bulk).map(Ok);
        let messages = UnboundedReceiverStream::new(control).merge(bulk);
        Ok(Response::new(Box::pin(messages)))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        require(request.extensions(), Access::Read)?;
        self.device
            .capabilities(request.into_inner())
            .map(Response::new)
    }
}

/// Splits entities into responses of limited size.
fn chunks(entities: Vec<Entity>) -> Vec<ReadResponse> {
    let mut responses = Vec::new();
    let mut current = ReadResponse::default();
    let mut size = 0;
    for entity in entities {
        // The size of the entity with its tag and length.
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
