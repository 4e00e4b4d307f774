// SPDX-License-Identifier: Apache-2.0
//! A P4Runtime client whose calls block.

mod connect;

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::error::{Error, Result};
use crate::options::Options;
use crate::proto::google::rpc;
use crate::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use crate::proto::p4::v1::stream_message_request::Update as ToSwitch;
use crate::proto::p4::v1::stream_message_response::Update as FromSwitch;
use crate::proto::p4::v1::{self as p4, p4_runtime_client::P4RuntimeClient};

/// Time without an answer to the arbitration after which it fails.
const ARBITRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Updates in a write request. Longer lists become several requests, because servers limit the size of messages.
const MAX_BATCH: usize = 1000;

/// Largest answer in bytes.
const MAX_MESSAGE: usize = 256 << 20;

/// A connection to a P4Runtime server.
///
/// It becomes primary with the first write, so that sessions that only read do not disturb other controllers.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    grpc: P4RuntimeClient<Channel>,
    device_id: u64,
    election_id: u128,
    stream: Option<Stream>,
}

/// The stream by which the client is primary. It ends when the client is dropped.
#[derive(Debug)]
struct Stream {
    _requests: mpsc::Sender<p4::StreamMessageRequest>,
    arbitration: watch::Receiver<Option<Arbitration>>,
}

/// The last answer of the arbitration; or why the stream has ended.
type Arbitration = std::result::Result<rpc::Status, Status>;

impl Client {
    /// Connects to the server of the options.
    ///
    /// # Errors
    /// If the address or a TLS file is invalid, or the server does not answer.
    pub fn connect(options: &Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|e| Error::new(format!("cannot start threads: {e}")))?;
        let channel = runtime.block_on(connect::channel(options))?;
        Ok(Self {
            runtime,
            grpc: P4RuntimeClient::new(channel).max_decoding_message_size(MAX_MESSAGE),
            device_id: options.device_id,
            election_id: options.election_id,
            stream: None,
        })
    }

    /// Returns the forwarding pipeline config, with P4Info and program; `None` without a program.
    ///
    /// # Errors
    /// The fault that the server reports.
    pub fn config(&mut self) -> Result<Option<p4::ForwardingPipelineConfig>> {
        let request = p4::GetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            ..Default::default()
        };
        let call = self.grpc.get_forwarding_pipeline_config(request);
        match self.runtime.block_on(call) {
            Ok(response) => Ok(response.into_inner().config),
            Err(status) if status.code() == Code::FailedPrecondition => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    /// Sets a forwarding pipeline config.
    ///
    /// # Errors
    /// The fault that the server reports, or that another controller is primary.
    pub fn set_config(
        &mut self,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<()> {
        self.become_primary()?;
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            election_id: Some(self.election_id()),
            action: action.into(),
            config,
            ..Default::default()
        };
        let call = self.grpc.set_forwarding_pipeline_config(request);
        Ok(self.runtime.block_on(call).map(drop)?)
    }

    /// Returns the version of P4Runtime that the server implements.
    ///
    /// # Errors
    /// The fault that the server reports.
    pub fn version(&mut self) -> Result<String> {
        let call = self.grpc.capabilities(p4::CapabilitiesRequest::default());
        let response = self.runtime.block_on(call)?;
        Ok(response.into_inner().p4runtime_api_version)
    }

    /// Returns the id of the device.
    pub fn device_id(&self) -> u64 {
        self.device_id
    }

    /// Reads entities.
    ///
    /// # Errors
    /// The fault that the server reports.
    pub fn read(&mut self, entity: p4::entity::Entity) -> Result<Vec<p4::entity::Entity>> {
        let entity = p4::Entity {
            entity: Some(entity),
        };
        let request = p4::ReadRequest {
            device_id: self.device_id,
            entities: vec![entity],
            ..Default::default()
        };
        let grpc = &mut self.grpc;
        let entities = self.runtime.block_on(async {
            let mut responses = grpc.read(request).await?.into_inner();
            let mut entities = Vec::new();
            while let Some(response) = responses.message().await? {
                entities.extend(response.entities.into_iter().filter_map(|e| e.entity));
            }
            Ok::<_, Status>(entities)
        });
        Ok(entities?)
    }

    /// Writes one update.
    ///
    /// # Errors
    /// The fault that the server reports, or that another controller is primary.
    pub fn write(&mut self, kind: p4::update::Type, entity: p4::entity::Entity) -> Result<()> {
        self.write_all(kind, vec![entity])
    }

    /// Writes updates of one type, in order.
    ///
    /// # Errors
    /// The fault that the server reports, or that another controller is primary. Earlier batches of a long list stay written.
    pub fn write_all(
        &mut self,
        kind: p4::update::Type,
        entities: Vec<p4::entity::Entity>,
    ) -> Result<()> {
        self.become_primary()?;
        let mut updates = entities.into_iter().map(|entity| p4::Update {
            r#type: kind.into(),
            entity: Some(p4::Entity {
                entity: Some(entity),
            }),
        });
        loop {
            let batch: Vec<p4::Update> = updates.by_ref().take(MAX_BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let request = p4::WriteRequest {
                device_id: self.device_id,
                election_id: Some(self.election_id()),
                updates: batch,
                ..Default::default()
            };
            self.runtime.block_on(self.grpc.write(request))?;
        }
    }

    fn election_id(&self) -> p4::Uint128 {
        p4::Uint128 {
            high: (self.election_id >> 64) as u64,
            low: self.election_id as u64,
        }
    }

    /// Opens the stream and takes part in the arbitration, if this has not happened; checks that this client is
    /// primary.
    fn become_primary(&mut self) -> Result<()> {
        if self.stream.is_none() {
            self.stream = Some(self.open_stream()?);
        }
        let id = self.election_id;
        let Some(stream) = &mut self.stream else {
            unreachable!("it was opened above")
        };
        let answer = self.runtime.block_on(async {
            let answer = stream.arbitration.wait_for(Option::is_some);
            let answer = tokio::time::timeout(ARBITRATION_TIMEOUT, answer).await;
            answer.ok()?.ok()?.clone()
        });
        let result = match answer {
            Some(Ok(status)) if status.code == Code::Ok as i32 => return Ok(()),
            Some(Ok(_)) => Err(Error::new(format!(
                "another controller is primary, with an election id above {id}: use a higher --election-id"
            ))),
            Some(Err(status)) => Err(Error::new(format!(
                "election id {id}: {}: use another --election-id",
                Error::from(status)
            ))),
            None => Err(Error::new(
                "the server does not answer the arbitration: check --addr",
            )),
        };
        // A later command tries again.
        self.stream = None;
        result
    }

    fn open_stream(&mut self) -> Result<Stream> {
        let (requests, receiver) = mpsc::channel(1);
        let update = p4::MasterArbitrationUpdate {
            device_id: self.device_id,
            election_id: Some(self.election_id()),
            ..Default::default()
        };
        let first = p4::StreamMessageRequest {
            update: Some(ToSwitch::Arbitration(update)),
        };
        // The first message waits in the channel, because some servers answer only when they have received it.
        requests
            .try_send(first)
            .map_err(|_| Error::new("the stream is closed: try again"))?;
        let call = self.grpc.stream_channel(ReceiverStream::new(receiver));
        let responses = self.runtime.block_on(call)?.into_inner();
        let (sender, arbitration) = watch::channel(None);
        self.runtime.spawn(follow(responses, sender));
        Ok(Stream {
            _requests: requests,
            arbitration,
        })
    }
}

/// Keeps the last answer of the arbitration, and discards packets and digests.
async fn follow(
    mut responses: Streaming<p4::StreamMessageResponse>,
    arbitration: watch::Sender<Option<Arbitration>>,
) {
    loop {
        let answer = match responses.message().await {
            Ok(Some(message)) => match message.update {
                Some(FromSwitch::Arbitration(update)) => Ok(update.status.unwrap_or_default()),
                _ => continue,
            },
            Ok(None) => Err(Status::cancelled("the server has closed the stream")),
            Err(status) => Err(status),
        };
        let has_ended = answer.is_err();
        if arbitration.send(Some(answer)).is_err() || has_ended {
            return;
        }
    }
}
