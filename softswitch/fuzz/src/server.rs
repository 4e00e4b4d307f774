// SPDX-License-Identifier: Apache-2.0
//! An in-process P4Runtime server: real messages to the real gRPC service, without a socket.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use softswitch::dataplane::{Clock, Engine, Setup};
use softswitch::p4rt::deployment::Target;
use softswitch::p4rt::device::Device;
use softswitch::p4rt::service::Service;
use softswitch::proto::p4::v1::{
    self as p4, p4_runtime_client::P4RuntimeClient, p4_runtime_server::P4RuntimeServer,
    packet_replication_engine_entry::Type as Replication,
    set_forwarding_pipeline_config_request::Action, stream_message_request::Update as ToSwitch,
};
use softswitch::thrift::Services;
use softswitch_pipeline::Options;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::programs::FEATURES_CONFIG;

/// Device id. The targets fill it in, so that the fuzzer need not guess it.
pub const DEVICE: u64 = 1;

/// Election id of the primary controller.
pub const ELECTION: p4::Uint128 = p4::Uint128 { high: 0, low: 1 };

/// Maximum duration of one input; a server that takes longer hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("builds a runtime")
});

/// A server with a primary controller.
pub struct Server {
    /// A client that calls the service directly.
    pub client: P4RuntimeClient<P4RuntimeServer<Service>>,
    /// The primary's stream to the switch.
    pub to_switch: mpsc::Sender<p4::StreamMessageRequest>,
    /// The primary's stream from the switch, after the arbitration response.
    pub from_switch: Streaming<p4::StreamMessageResponse>,
    device: Arc<Device>,
    // Packet-out and digests need the engine's descriptors; the worker threads are not started.
    engine: Engine,
}

/// Runs a future to completion.
///
/// # Panics
/// If the future takes longer than [`TEST_TIMEOUT`].
pub fn block_on<F: Future>(f: F) -> F::Output {
    RUNTIME.block_on(async {
        tokio::time::timeout(TEST_TIMEOUT, f)
            .await
            .expect("the server answers in time")
    })
}

impl Server {
    /// Creates a server without a program.
    pub async fn new() -> Self {
        let (events, _) = mpsc::channel(1);
        let setup = Setup {
            clock: Clock::from_zero(),
            ports: Vec::new(),
            threads: NonZeroUsize::MIN,
            cpu_port: Some(510),
            seed: 1,
            events,
            observers: Default::default(),
            packet_stream: None,
        };
        let engine = Engine::new(setup).expect("the kernel provides descriptors");
        // No packets are processed, and generating native code would take longer than the rest of the input.
        let options = Options {
            engine: softswitch_pipeline::Engine::Interpreter,
            ..Options::default()
        };
        let ports = (1..=8).collect();
        let device = Device::new(
            DEVICE,
            engine.handle(),
            Target {
                options,
                ports: Some(ports),
                keeps_program: false,
                lanes: 0,
            },
            None,
            None,
        );
        let device = Arc::new(device);
        let mut client = P4RuntimeClient::new(Service::server(Arc::clone(&device)));
        let (to_switch, requests) = mpsc::channel(64);
        let update = p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: Some(ELECTION),
            ..Default::default()
        };
        let first = p4::StreamMessageRequest {
            update: Some(ToSwitch::Arbitration(update)),
        };
        to_switch.send(first).await.expect("the receiver is below");
        let stream = client.stream_channel(ReceiverStream::new(requests)).await;
        let mut from_switch = stream.expect("the stream opens").into_inner();
        from_switch
            .message()
            .await
            .expect("the switch answers the arbitration update");
        Self {
            client,
            to_switch,
            from_switch,
            device,
            engine,
        }
    }

    /// Returns BMv2's Thrift services of the same device.
    pub fn thrift(&self) -> Services {
        Services::new(Arc::clone(&self.device), self.engine.port_control())
    }

    /// Creates a server that runs [`FEATURES`](crate::programs::FEATURES), which has every kind of entity.
    pub async fn with_features() -> Self {
        let mut server = Self::new().await;
        let request = p4::SetForwardingPipelineConfigRequest {
            action: Action::VerifyAndCommit.into(),
            config: Some(FEATURES_CONFIG.clone()),
            ..Default::default()
        };
        server
            .set_config(request)
            .await
            .expect("the program is valid");
        server
    }

    /// Sets a config as the primary.
    ///
    /// # Errors
    /// The server's status.
    pub async fn set_config(
        &mut self,
        mut request: p4::SetForwardingPipelineConfigRequest,
    ) -> Result<(), Status> {
        request.device_id = DEVICE;
        request.election_id = Some(ELECTION);
        self.client
            .set_forwarding_pipeline_config(request)
            .await
            .map(drop)
    }

    /// Writes as the primary.
    ///
    /// # Errors
    /// The server's status.
    pub async fn write(&mut self, mut request: p4::WriteRequest) -> Result<(), Status> {
        request.device_id = DEVICE;
        request.election_id = Some(ELECTION);
        self.client.write(request).await.map(drop)
    }

    /// Reads `entities`. After an error, entities received before it are lost.
    ///
    /// # Errors
    /// The server's status.
    pub async fn read(&mut self, entities: Vec<p4::Entity>) -> Result<Vec<p4::Entity>, Status> {
        let request = p4::ReadRequest {
            device_id: DEVICE,
            entities,
            ..Default::default()
        };
        let mut responses = self.client.read(request).await?.into_inner();
        let mut found = Vec::new();
        while let Some(response) = responses.message().await? {
            found.extend(response.entities);
        }
        Ok(found)
    }

    /// Reads all entities of all kinds.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn read_everything(&mut self) -> Vec<p4::Entity> {
        self.read(wildcards())
            .await
            .expect("the server answers a wildcard read")
    }
}

/// Returns true for a status with which a server may refuse a request.
pub fn is_refusal(status: &Status) -> bool {
    // INTERNAL and DATA_LOSS would be faults of the server itself.
    !matches!(
        status.code(),
        Code::Ok | Code::Internal | Code::DataLoss | Code::Unavailable | Code::DeadlineExceeded
    )
}

/// Returns wildcard entities of all kinds, for a Read request.
pub fn wildcards() -> Vec<p4::Entity> {
    use p4::entity::Entity as Kind;
    let engine = |kind| {
        Kind::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(kind) })
    };
    let kinds = [
        Kind::TableEntry(Default::default()),
        Kind::ActionProfileMember(Default::default()),
        Kind::ActionProfileGroup(Default::default()),
        Kind::CounterEntry(Default::default()),
        Kind::DirectCounterEntry(Default::default()),
        Kind::MeterEntry(Default::default()),
        Kind::DirectMeterEntry(Default::default()),
        Kind::RegisterEntry(Default::default()),
        Kind::ValueSetEntry(Default::default()),
        Kind::DigestEntry(Default::default()),
        engine(Replication::MulticastGroupEntry(Default::default())),
        engine(Replication::CloneSessionEntry(Default::default())),
    ];
    kinds.map(|kind| p4::Entity { entity: Some(kind) }).into()
}
