// SPDX-License-Identifier: Apache-2.0
//! A switch in the test's process: controllers connect over gRPC, and its ports are sockets instead of network
//! interfaces.

pub mod bfrt;
pub mod features;
pub mod network;
pub mod port;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use softswitch::address::Address;
use softswitch::dataplane::PortSetup;
use softswitch::proto::google::rpc;
use softswitch::proto::p4::config::v1::P4Info;
use softswitch::proto::p4::v1::{self as p4, p4_runtime_client::P4RuntimeClient};
use softswitch::switch::{Config, Switch};
use softswitch_queue::PortLink;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

pub use port::Wire;

/// Maximum duration of a wait; generous, for slow machines. Waits end as soon as the event occurs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub const DEVICE: u64 = 1;
pub const CPU_PORT: u32 = 510;

pub type Client = P4RuntimeClient<Channel>;

/// A running switch with its wires.
pub struct TestSwitch {
    pub switch: Switch,
    pub wires: Vec<Wire>,
}

impl TestSwitch {
    /// Starts a switch with ports 1, 2, ... and these links (in the syntax of `--link`).
    pub async fn start(ports: u32, links: &[&str]) -> Self {
        Self::start_with(ports, links, |config| config).await
    }

    /// Starts a switch with a changed configuration.
    pub async fn start_with(
        ports: u32,
        links: &[&str],
        configure: impl FnOnce(Config) -> Config,
    ) -> Self {
        let links: Vec<PortLink> = links.iter().map(|l| l.parse().unwrap()).collect();
        let mut wires = Vec::new();
        let setups = (1..=ports).map(|number| {
            let (receiver, transmitter, wire) = port::pair();
            wires.push(wire);
            let link = links.iter().find(|l| l.port == number);
            PortSetup {
                number,
                name: format!("wire{number}"),
                receiver: Box::new(receiver),
                transmitter: Box::new(transmitter),
                link: link.map(|l| l.link).unwrap_or_default(),
            }
        });
        let config = Config {
            ports: setups.collect(),
            ..config()
        };
        let switch = Switch::start(configure(config)).await.unwrap();
        Self { switch, wires }
    }

    pub async fn connect(&self) -> Client {
        let client = P4RuntimeClient::connect(format!("http://{}", self.switch.grpc)).await;
        client.unwrap().max_decoding_message_size(4 << 20)
    }

    /// Connects a primary controller.
    pub async fn controller(&self) -> Controller {
        let mut controller = Controller::open(self.connect().await).await;
        let update = controller.arbitrate(1).await;
        assert_eq!(update.status.unwrap().code, Code::Ok as i32);
        controller
    }

    /// Connects a primary controller and sets a program.
    pub async fn controller_with(&self, program: p4::ForwardingPipelineConfig) -> Controller {
        let mut controller = self.controller().await;
        controller.set_pipeline(program).await.unwrap();
        controller
    }

    /// Connects a primary controller and sets the program `features.p4`.
    pub async fn with_features(ports: u32, links: &[&str]) -> (Self, Controller) {
        let switch = Self::start(ports, links).await;
        let controller = switch.controller_with(features::config()).await;
        (switch, controller)
    }
}

/// Returns the configuration of a switch without ports.
pub fn config() -> Config {
    Config {
        device_id: DEVICE,
        threads: NonZeroUsize::new(2).unwrap(),
        cpu_port: Some(CPU_PORT),
        ..Config::new(Address::Tcp("127.0.0.1:0".into()))
    }
}

/// A controller with its stream.
pub struct Controller {
    pub client: Client,
    pub to_switch: mpsc::Sender<p4::StreamMessageRequest>,
    pub from_switch: Streaming<p4::StreamMessageResponse>,
    pub election_id: u64,
}

impl Controller {
    pub async fn open(client: Client) -> Self {
        Self::open_with(client, None).await
    }

    /// Opens a stream with a first message, because some servers answer only then.
    pub async fn open_with(
        mut client: Client,
        first: Option<p4::stream_message_request::Update>,
    ) -> Self {
        let (to_switch, requests) = mpsc::channel(16);
        if first.is_some() {
            let message = p4::StreamMessageRequest { update: first };
            to_switch.send(message).await.unwrap();
        }
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let from_switch = client.stream_channel(requests).await.unwrap().into_inner();
        Self {
            client,
            to_switch,
            from_switch,
            election_id: 1,
        }
    }

    pub async fn send(&self, update: p4::stream_message_request::Update) {
        let message = p4::StreamMessageRequest {
            update: Some(update),
        };
        self.to_switch.send(message).await.unwrap();
    }

    pub async fn receive(&mut self) -> Result<p4::stream_message_response::Update, Status> {
        let message = tokio::time::timeout(TEST_TIMEOUT, self.from_switch.message()).await;
        let message = message.expect("no message in time")?;
        Ok(message.expect("the stream has ended").update.unwrap())
    }

    pub async fn arbitrate(&mut self, election_id: u64) -> p4::MasterArbitrationUpdate {
        self.election_id = election_id;
        let update = p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: Some(uint128(election_id)),
            ..Default::default()
        };
        self.send(p4::stream_message_request::Update::Arbitration(update))
            .await;
        match self.receive().await.unwrap() {
            p4::stream_message_response::Update::Arbitration(update) => update,
            other => panic!("expected arbitration, not {other:?}"),
        }
    }

    pub async fn set_pipeline(
        &mut self,
        config: p4::ForwardingPipelineConfig,
    ) -> Result<(), Status> {
        use p4::set_forwarding_pipeline_config_request::Action;
        self.config(Action::VerifyAndCommit, Some(config)).await
    }

    pub async fn config(
        &mut self,
        action: p4::set_forwarding_pipeline_config_request::Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(uint128(self.election_id)),
            action: action.into(),
            config,
            ..Default::default()
        };
        let result = self.client.set_forwarding_pipeline_config(request).await;
        result.map(drop)
    }

    pub async fn write(&mut self, updates: Vec<p4::Update>) -> Result<(), Status> {
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: Some(uint128(self.election_id)),
            updates,
            ..Default::default()
        };
        self.client.write(request).await.map(drop)
    }

    /// Writes a batch; returns the error of each update if any failed.
    pub async fn write_batch(
        &mut self,
        atomicity: p4::write_request::Atomicity,
        updates: Vec<p4::Update>,
    ) -> Result<(), Vec<(Code, String)>> {
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: Some(uint128(self.election_id)),
            updates,
            atomicity: atomicity.into(),
            ..Default::default()
        };
        let result = self.client.write(request).await;
        result.map(drop).map_err(|status| error_details(&status))
    }

    pub async fn insert(&mut self, entity: impl IntoEntity) -> Result<(), (Code, String)> {
        self.one(p4::update::Type::Insert, entity).await
    }

    pub async fn modify(&mut self, entity: impl IntoEntity) -> Result<(), (Code, String)> {
        self.one(p4::update::Type::Modify, entity).await
    }

    pub async fn delete(&mut self, entity: impl IntoEntity) -> Result<(), (Code, String)> {
        self.one(p4::update::Type::Delete, entity).await
    }

    /// Writes one update; returns its error.
    pub async fn one(
        &mut self,
        action: p4::update::Type,
        entity: impl IntoEntity,
    ) -> Result<(), (Code, String)> {
        match self.write(vec![update(action, entity)]).await {
            Ok(()) => Ok(()),
            Err(status) => {
                let mut details = error_details(&status);
                assert_eq!(
                    (status.code(), details.len()),
                    (Code::Unknown, 1),
                    "{status:?}"
                );
                Err(details.remove(0))
            }
        }
    }

    pub async fn read(&mut self, request: impl IntoEntity) -> Result<Vec<p4::Entity>, Status> {
        self.read_all(vec![request.entity()])
            .await
            .map(|(entities, _)| entities)
    }

    /// Reads entities; also returns the number of response messages.
    pub async fn read_all(
        &mut self,
        entities: Vec<p4::Entity>,
    ) -> Result<(Vec<p4::Entity>, usize), Status> {
        let request = p4::ReadRequest {
            device_id: DEVICE,
            entities,
            ..Default::default()
        };
        let mut responses = self.client.read(request).await?.into_inner();
        let (mut entities, mut messages) = (Vec::new(), 0);
        while let Some(response) = responses.message().await? {
            entities.extend(response.entities);
            messages += 1;
        }
        Ok((entities, messages))
    }

    pub async fn read_one(&mut self, request: impl IntoEntity) -> p4::Entity {
        let mut entities = self.read(request).await.unwrap();
        assert_eq!(entities.len(), 1, "{entities:?}");
        entities.remove(0)
    }

    pub async fn read_table(&mut self, request: p4::TableEntry) -> Vec<p4::TableEntry> {
        let entities = self.read(request).await.unwrap();
        let entries = entities.into_iter().map(|e| match e.entity {
            Some(p4::entity::Entity::TableEntry(entry)) => entry,
            other => panic!("not a table entry: {other:?}"),
        });
        entries.collect()
    }
}

/// Returns the errors of a failed batch: code and message of each update.
pub fn error_details(status: &Status) -> Vec<(Code, String)> {
    let details = rpc::Status::decode(status.details()).unwrap();
    assert_eq!(details.code, status.code() as i32);
    assert_eq!(details.message, status.message());
    let errors = details.details.iter().map(|any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        let error = p4::Error::decode(&any.value[..]).unwrap();
        (Code::from(error.canonical_code), error.message)
    });
    errors.collect()
}

pub fn uint128(low: u64) -> p4::Uint128 {
    p4::Uint128 { high: 0, low }
}

pub fn update(action: p4::update::Type, entity: impl IntoEntity) -> p4::Update {
    p4::Update {
        r#type: action.into(),
        entity: Some(entity.entity()),
    }
}

/// Conversion of an entity of one kind to [`p4::Entity`].
pub trait IntoEntity {
    fn entity(self) -> p4::Entity;
}

impl IntoEntity for p4::Entity {
    fn entity(self) -> p4::Entity {
        self
    }
}

macro_rules! into_entity {
    ($($kind:ident),* $(,)?) => {$(
        impl IntoEntity for p4::$kind {
            fn entity(self) -> p4::Entity {
                p4::Entity { entity: Some(p4::entity::Entity::$kind(self)) }
            }
        }
    )*};
}

into_entity! {
    TableEntry, ActionProfileMember, ActionProfileGroup, CounterEntry, DirectCounterEntry, MeterEntry,
    DirectMeterEntry, RegisterEntry, ValueSetEntry, PacketReplicationEngineEntry, DigestEntry, ExternEntry,
}

/// Parses P4Info in text form.
pub fn p4info(text: &str) -> P4Info {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = protox::compile(["p4/config/v1/p4info.proto"], [proto]).unwrap();
    let pool = prost_reflect::DescriptorPool::from_file_descriptor_set(files).unwrap();
    let message = pool.get_message_by_name("p4.config.v1.P4Info").unwrap();
    let message = prost_reflect::DynamicMessage::parse_text_format(message, text).unwrap();
    message.transcode_to().unwrap()
}
