// SPDX-License-Identifier: Apache-2.0
//! The gRPC service.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};

use super::hub::{Hub, Sender};
use super::tables::Done;
use super::target::{ALL_PIPES, whole_device};
use super::{Bfrt, batch, error, query};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::bf_runtime_server::{BfRuntime, BfRuntimeServer};
use crate::proto::bfrt::set_forwarding_pipeline_config_request::Action;
use crate::proto::bfrt::stream_message_request::Update as Incoming;
use crate::proto::bfrt::stream_message_response::Update as Outgoing;
use crate::proto::bfrt::update::Type;
use crate::proto::bfrt::write_request::Atomicity;
use crate::proto::bfrt::{
    Entity, Error, GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse,
    ReadRequest, ReadResponse, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, StreamMessageResponse, Subscribe,
    TargetDevice, WriteRequest, WriteResponse,
};
use crate::proto::google::rpc;
use crate::tls::{Access, require};

/// Maximum size of a read response, except for one entity or the results of a batch.
const READ_CHUNK: usize = 1 << 20;

/// Maximum size of a request: a program, or a batch of millions of entries.
const MAX_REQUEST: usize = 1 << 30;

/// Maximum number of messages that wait for a client; further ones are dropped.
const STREAM_BACKLOG: usize = 8192;

/// The gRPC service of a device.
pub struct Service(Arc<Bfrt>);

impl Service {
    /// Creates the service.
    pub fn server(state: Arc<Bfrt>) -> BfRuntimeServer<Self> {
        BfRuntimeServer::new(Self(state)).max_decoding_message_size(MAX_REQUEST)
    }
}

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Options of a request, from its metadata.
#[derive(Clone, Copy)]
struct Options {
    /// Errors are in the response, not in the status.
    errors_in_response: bool,
    /// The deletion of an entry that does not exist succeeds.
    ignores_missing: bool,
    /// The time at which the server gives up.
    deadline: Option<Instant>,
}

impl Options {
    fn of(metadata: &MetadataMap) -> Self {
        let has = |key: &str| metadata.get(key).is_some_and(|value| value == "1");
        let number = |key: &str| metadata.get(key)?.to_str().ok()?.parse::<u32>().ok();
        let limit = match (number("deadline_sec"), number("deadline_nsec")) {
            (None, None) => None,
            (seconds, nanos) => {
                let seconds = Duration::from_secs(seconds.unwrap_or(0).into());
                Some(seconds + Duration::from_nanos(nanos.unwrap_or(0).into()))
            }
        };
        Self {
            errors_in_response: has("error_in_resp"),
            ignores_missing: has("ignore_not_found"),
            deadline: limit.map(|limit| Instant::now() + limit),
        }
    }
}

impl Options {
    /// Returns the status of an update.
    fn status(self, result: &P4Result<Done>, operation: Type) -> Error {
        let mut error = error::encode(result);
        let is_missing = error.canonical_code == Code::NotFound as i32;
        if self.ignores_missing && is_missing && operation == Type::Delete {
            (error.code, error.canonical_code) = (error.canonical_code, 0);
        }
        if matches!(result, Ok(Done::Modified)) {
            error.code = Code::AlreadyExists as i32;
            error.message = "the entry existed and was modified".into();
        }
        error
    }
}

/// Returns the pipe of a target.
fn pipe(target: Option<&TargetDevice>) -> u32 {
    target.map_or(ALL_PIPES, |target| target.pipe_id)
}

impl Bfrt {
    fn check_target(&self, target: Option<&TargetDevice>) -> Result<(), Status> {
        let given = target.map_or(0, |target| target.device_id);
        if u64::from(given) == self.device.id() {
            return Ok(());
        }
        let message = format!(
            "unknown device {given}: this is device {}",
            self.device.id()
        );
        Err(Status::invalid_argument(message))
    }

    fn write(&self, request: &WriteRequest, options: Options) -> Result<WriteResponse, Status> {
        self.check_target(request.target.as_ref())?;
        let running = self.device.running();
        let program = self
            .hub
            .program_of(request.client_id, &request.p4_name, running.as_ref())?;
        let atomicity = Atomicity::try_from(request.atomicity)
            .map_err(|e| Status::invalid_argument(format!("unknown atomicity {}", e.0)))?;
        let now = self.device.dataplane.now();
        let updates = (&request.updates[..], pipe(request.target.as_ref()));
        let outcome = batch::write(
            &program,
            &self.ports,
            updates,
            (atomicity, options.ignores_missing),
            (now, options.deadline),
        );
        self.hub.notify_ports(&program, outcome.port_changes);
        if outcome.is_late {
            return Err(Status::deadline_exceeded("Write RPC request timed out"));
        }
        let results = outcome.results.iter().zip(&request.updates);
        let results = results.map(|(result, update)| options.status(result, update.r#type()));
        let results: Vec<Error> = results.collect();
        // With errors in the response, Tofino's drivers return them in the status as well.
        error::batch_status("Write Error Status", &results)?;
        let are_all_wanted = options.errors_in_response;
        let status = results.into_iter();
        let status = status.filter(|result| are_all_wanted || result.code != 0);
        Ok(WriteResponse {
            status: status.collect(),
        })
    }

    fn read(
        &self,
        request: &ReadRequest,
        options: Options,
    ) -> Result<Vec<Result<ReadResponse, Status>>, Status> {
        self.check_target(request.target.as_ref())?;
        let running = self.device.running();
        let program = self
            .hub
            .program_of(request.client_id, &request.p4_name, running.as_ref())?;
        let now = self.device.dataplane.now();
        let target = request.target.unwrap_or_else(whole_device);
        let requests = (&request.entities[..], target);
        let read = query::read(&program, &self.ports, requests, (now, options.deadline));
        let (entities, results) =
            read.ok_or_else(|| Status::deadline_exceeded("Read RPC request timed out"))?;
        let results: Vec<Error> = results.iter().map(error::encode).collect();
        let mut responses: Vec<_> = chunks(entities).into_iter().map(Ok).collect();
        if options.errors_in_response {
            responses.push(Ok(ReadResponse {
                status: results,
                ..Default::default()
            }));
        } else if let Err(status) = error::batch_status("Read Error Status", &results) {
            responses.push(Err(status));
        }
        Ok(responses)
    }
}

#[tonic::async_trait]
impl BfRuntime for Service {
    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        require(request.extensions(), Access::Write)?;
        let options = Options::of(request.metadata());
        let response = block_in_place(|| self.0.write(request.get_ref(), options))?;
        Ok(Response::new(response))
    }

    type ReadStream = BoxStream<ReadResponse>;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        require(request.extensions(), Access::Read)?;
        let options = Options::of(request.metadata());
        let responses = block_in_place(|| self.0.read(request.get_ref(), options))?;
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        // Clients bind to a program to read its tables.
        let binds = request.get_ref().action == Action::Bind as i32;
        let needed = if binds { Access::Read } else { Access::Write };
        require(request.extensions(), needed)?;
        block_in_place(|| self.0.set_config(request.get_ref()))?;
        Ok(Response::new(SetForwardingPipelineConfigResponse::default()))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        require(request.extensions(), Access::Read)?;
        self.0.get_config().map(Response::new)
    }

    type StreamChannelStream = BoxStream<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        require(request.extensions(), Access::Read)?;
        let (sender, receiver) = mpsc::channel(STREAM_BACKLOG);
        let hub = Arc::clone(&self.0.hub);
        tokio::spawn(serve(hub, request.into_inner(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

/// Serves a stream until the client closes it or an error ends it. The client is known in between.
async fn serve(hub: Arc<Hub>, mut requests: Streaming<StreamMessageRequest>, sender: Sender) {
    let mut client = None;
    while let Ok(Some(request)) = requests.message().await {
        // A stream belongs to one client, so further subscriptions change nothing.
        let Some(Incoming::Subscribe(subscribe)) = request.update else {
            continue;
        };
        if client.is_none() {
            let notifications = subscribe.notifications.unwrap_or_default();
            let subscribed = hub.subscribe(request.client_id, sender.clone(), notifications);
            if let Err(status) = subscribed {
                // It fails if the stream has already ended.
                let _ = sender.send(Err(status)).await;
                return;
            }
            client = Some(request.client_id);
        }
        let answer = Subscribe {
            status: Some(rpc::Status::default()),
            ..Default::default()
        };
        let update = Some(Outgoing::Subscribe(answer));
        if sender
            .send(Ok(StreamMessageResponse { update }))
            .await
            .is_err()
        {
            break;
        }
    }
    if let Some(client) = client {
        hub.unsubscribe(client, &sender);
    }
}

/// Splits entities into responses of limited size.
fn chunks(entities: Vec<Entity>) -> Vec<ReadResponse> {
    let mut responses = vec![];
    let (mut current, mut size) = (ReadResponse::default(), 0);
    for entity in entities {
        let len = entity.encoded_len();
        if size + len > READ_CHUNK && !current.entities.is_empty() {
            responses.push(std::mem::take(&mut current));
            size = 0;
        }
        size += len;
        current.entities.push(entity);
    }
    if !current.entities.is_empty() {
        responses.push(current);
    }
    responses
}
