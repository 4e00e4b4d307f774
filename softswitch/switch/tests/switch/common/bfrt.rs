// SPDX-License-Identifier: Apache-2.0
//! A client of BfRuntime, which finds ids by names in the schema that the server sends.

use serde_json::Value as Json;
use softswitch::proto::bfrt::bf_runtime_client::BfRuntimeClient;
use softswitch::proto::bfrt::data_field::Value as Field;
use softswitch::proto::bfrt::key_field::{self, MatchType};
use softswitch::proto::bfrt::stream_message_request::Update as Request;
use softswitch::proto::bfrt::stream_message_response::Update as Response;
use softswitch::proto::bfrt::subscribe::Notifications;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::write_request::Atomicity;
use softswitch::proto::bfrt::{self as proto, entity::Entity as Kind};
use softswitch::switch::Switch;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::{DEVICE, TEST_TIMEOUT};

/// A client that is bound to the program.
pub struct Client {
    pub rpc: BfRuntimeClient<Channel>,
    pub id: u32,
    to_switch: mpsc::Sender<proto::StreamMessageRequest>,
    from_switch: Streaming<proto::StreamMessageResponse>,
    schema: Json,
}

/// A value of a key field.
#[derive(Clone)]
pub enum Match {
    Exact(u64),
    Ternary(u64, u64),
    Lpm(u64, i32),
    Range(u64, u64),
    Optional(u64),
}

/// The data of an entry by names.
pub type Data = Vec<(&'static str, Field)>;

/// Returns a number in 8 bytes.
pub fn number(n: u64) -> Field {
    Field::Stream(n.to_be_bytes().to_vec())
}

/// Returns the number in a field.
pub fn value(field: &Field) -> u64 {
    let Field::Stream(bytes) = field else {
        panic!("expected a number, not {field:?}");
    };
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

impl Match {
    fn encode(&self) -> MatchType {
        let bytes = |n: &u64| n.to_be_bytes().to_vec();
        match self {
            Self::Exact(v) => MatchType::Exact(key_field::Exact { value: bytes(v) }),
            Self::Ternary(v, m) => MatchType::Ternary(key_field::Ternary {
                value: bytes(v),
                mask: bytes(m),
            }),
            Self::Lpm(v, prefix_len) => MatchType::Lpm(key_field::Lpm {
                value: bytes(v),
                prefix_len: *prefix_len,
            }),
            Self::Range(low, high) => MatchType::Range(key_field::Range {
                low: bytes(low),
                high: bytes(high),
            }),
            Self::Optional(v) => MatchType::Optional(key_field::Optional {
                value: bytes(v),
                is_valid: true,
            }),
        }
    }
}

/// An entry that was read, by names.
#[derive(Debug)]
pub struct Row {
    pub entry: proto::TableEntry,
    pub fields: Vec<(String, Field)>,
}

impl Row {
    pub fn get(&self, name: &str) -> &Field {
        let found = self.fields.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn id(json: &Json) -> u32 {
    u32::try_from(json["id"].as_u64().expect("an id")).unwrap()
}

/// Returns the alternatives of a data field.
fn alternatives(field: &Json) -> Vec<&Json> {
    match list(&field["oneof"]).collect::<Vec<&Json>>() {
        none if none.is_empty() => vec![field.get("singleton").unwrap_or(field)],
        alternatives => alternatives,
    }
}

fn fields(json: &Json) -> Vec<&Json> {
    list(json).flat_map(alternatives).collect()
}

impl Client {
    /// Connects a client and binds it to a program.
    pub async fn connect(switch: &Switch, id: u32, program: &str) -> Self {
        let mut client = Self::subscribe(switch, id).await;
        client.bind(program).await.unwrap();
        client
    }

    /// Connects a client without a program.
    pub async fn subscribe(switch: &Switch, id: u32) -> Self {
        let address = switch.bfrt_address.as_ref().expect("a BfRuntime server");
        let rpc = BfRuntimeClient::connect(format!("http://{address}")).await;
        let mut rpc = rpc.unwrap();
        let (to_switch, requests) = mpsc::channel(16);
        let subscribe = proto::Subscribe {
            notifications: Some(Notifications {
                enable_learn_notifications: true,
                enable_idletimeout_notifications: true,
                enable_port_status_change_notifications: true,
                enable_entry_active_notifications: true,
                ..Default::default()
            }),
            ..Default::default()
        };
        let message = proto::StreamMessageRequest {
            client_id: id,
            update: Some(Request::Subscribe(subscribe)),
        };
        to_switch.send(message).await.unwrap();
        let stream = rpc.stream_channel(ReceiverStream::new(requests)).await;
        let mut client = Self {
            rpc,
            id,
            to_switch,
            from_switch: stream.unwrap().into_inner(),
            schema: Json::Null,
        };
        match client.receive().await.unwrap() {
            Response::Subscribe(answer) => assert_eq!(answer.status.unwrap().code, 0),
            other => panic!("expected the answer to the subscription, not {other:?}"),
        }
        client.load_schema().await;
        client
    }

    /// Ends the stream, so that the server forgets the client.
    pub async fn close(mut self) {
        drop(self.to_switch);
        while self.from_switch.message().await.is_ok_and(|m| m.is_some()) {}
    }

    /// Loads the schema that the server sends, if there is a program.
    pub async fn load_schema(&mut self) {
        let request = proto::GetForwardingPipelineConfigRequest::default();
        let Ok(response) = self.rpc.get_forwarding_pipeline_config(request).await else {
            return;
        };
        let response = response.into_inner();
        let parse = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes).unwrap();
        self.schema = parse(&response.config[0].bfruntime_info);
        let fixed = parse(&response.non_p4_config.unwrap().bfruntime_info);
        let tables = self.schema["tables"].as_array_mut().unwrap();
        tables.extend(list(&fixed["tables"]).cloned());
    }

    pub async fn bind(&mut self, program: &str) -> Result<(), Status> {
        let request = proto::SetForwardingPipelineConfigRequest {
            client_id: self.id,
            config: vec![proto::ForwardingPipelineConfig {
                p4_name: program.into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        self.rpc
            .set_forwarding_pipeline_config(request)
            .await
            .map(drop)
    }

    /// Returns the next message of the stream.
    pub async fn receive(&mut self) -> Result<Response, Status> {
        let message = tokio::time::timeout(TEST_TIMEOUT, self.from_switch.message()).await;
        let message = message.expect("no message in time")?;
        Ok(message.expect("the stream has ended").update.unwrap())
    }

    pub fn table(&self, name: &str) -> &Json {
        let mut tables = list(&self.schema["tables"]);
        let table = tables.find(|t| t["name"].as_str().is_some_and(|n| n.ends_with(name)));
        table.unwrap_or_else(|| panic!("no table {name}"))
    }

    pub fn action(&self, table: &str, name: &str) -> u32 {
        let mut actions = list(&self.table(table)["action_specs"]);
        let action = actions.find(|a| a["name"].as_str().is_some_and(|n| n.ends_with(name)));
        id(action.unwrap_or_else(|| panic!("no action {name}")))
    }

    fn fields(&self, table: &str, action: u32) -> Vec<&Json> {
        let table = self.table(table);
        let actions = list(&table["action_specs"]).filter(|a| id(a) == action);
        let own = actions.flat_map(|a| fields(&a["data"]));
        own.chain(fields(&table["data"])).collect()
    }

    pub fn key(&self, table: &str, key: &[(&str, Match)]) -> proto::TableKey {
        let fields = list(&self.table(table)["key"]).collect::<Vec<_>>();
        let of = |name: &str| {
            let found = fields
                .iter()
                .find(|f| f["name"].as_str().unwrap().ends_with(name));
            id(found.unwrap_or_else(|| panic!("no key field {name}")))
        };
        let fields = key.iter().map(|(name, m)| proto::KeyField {
            field_id: of(name),
            match_type: Some(m.encode()),
        });
        proto::TableKey {
            fields: fields.collect(),
        }
    }

    /// Returns an entry; an empty key means none.
    pub fn entry(
        &self,
        table: &str,
        key: &[(&str, Match)],
        action: &str,
        data: Data,
    ) -> proto::TableEntry {
        let action_id = match action {
            "" => 0,
            name => self.action(table, name),
        };
        let known = self.fields(table, action_id);
        let fields = data.into_iter().map(|(name, value)| {
            let field = known.iter().find(|f| f["name"] == name);
            proto::DataField {
                field_id: id(field.unwrap_or_else(|| panic!("no data field {name}"))),
                value: Some(value),
            }
        });
        proto::TableEntry {
            table_id: id(self.table(table)),
            value: (!key.is_empty()).then(|| proto::table_entry::Value::Key(self.key(table, key))),
            data: Some(proto::TableData {
                action_id,
                fields: fields.collect(),
            }),
            ..Default::default()
        }
    }

    pub async fn write_all(
        &mut self,
        updates: Vec<(Type, proto::TableEntry)>,
        atomicity: Atomicity,
    ) -> Result<(), Vec<proto::Error>> {
        let updates = updates.into_iter().map(|(kind, entry)| proto::Update {
            r#type: kind.into(),
            entity: Some(proto::Entity {
                entity: Some(Kind::TableEntry(entry)),
            }),
        });
        let request = proto::WriteRequest {
            target: Some(target()),
            client_id: self.id,
            updates: updates.collect(),
            atomicity: atomicity.into(),
            ..Default::default()
        };
        let result = self.rpc.write(request).await;
        result.map(drop).map_err(|status| errors(&status))
    }

    /// Makes one change, and returns the code of an error.
    pub async fn write(&mut self, kind: Type, entry: proto::TableEntry) -> Result<(), Code> {
        let written = self
            .write_all(vec![(kind, entry)], Atomicity::ContinueOnError)
            .await;
        written.map_err(|errors| Code::from(errors[0].canonical_code))
    }

    pub async fn read_entities(
        &mut self,
        entities: Vec<Kind>,
    ) -> Result<Vec<proto::Entity>, Vec<proto::Error>> {
        let entities = entities
            .into_iter()
            .map(|kind| proto::Entity { entity: Some(kind) });
        let request = proto::ReadRequest {
            target: Some(target()),
            client_id: self.id,
            entities: entities.collect(),
            ..Default::default()
        };
        let mut stream = self.rpc.read(request).await.unwrap().into_inner();
        let mut all = vec![];
        loop {
            match stream.message().await {
                Ok(Some(response)) => all.extend(response.entities),
                Ok(None) => return Ok(all),
                Err(status) => return Err(errors(&status)),
            }
        }
    }

    /// Reads the entries that a request selects, or returns the code of the error.
    pub async fn read(&mut self, table: &str, entry: proto::TableEntry) -> Result<Vec<Row>, Code> {
        let read = self.read_entities(vec![Kind::TableEntry(entry)]).await;
        let entities = read.map_err(|errors| Code::from(errors[0].canonical_code))?;
        let rows = entities.into_iter().map(|entity| {
            let Some(Kind::TableEntry(entry)) = entity.entity else {
                panic!("expected an entry");
            };
            let data = entry.data.clone().unwrap_or_default();
            let known = self.fields(table, data.action_id);
            let fields = data.fields.into_iter().map(|f| {
                let field = known
                    .iter()
                    .find(|k| id(k) == f.field_id)
                    .expect("a known field");
                let name = field["name"].as_str().unwrap().to_owned();
                (name, f.value.expect("a value"))
            });
            let fields = fields.collect();
            Row { entry, fields }
        });
        Ok(rows.collect())
    }

    /// Returns the number of entries of a table.
    pub async fn usage(&mut self, table: &str) -> u32 {
        let usage = proto::TableUsage {
            table_id: id(self.table(table)),
            ..Default::default()
        };
        let entities = self
            .read_entities(vec![Kind::TableUsage(usage)])
            .await
            .unwrap();
        match &entities[0].entity {
            Some(Kind::TableUsage(usage)) => usage.usage,
            other => panic!("expected the usage, not {other:?}"),
        }
    }
}

/// The whole device.
pub fn target() -> proto::TargetDevice {
    proto::TargetDevice {
        device_id: DEVICE as u32,
        pipe_id: 0xffff,
        direction: 0xff,
        prsr_id: 0xff,
    }
}

/// Returns the errors in the details of a status.
fn errors(status: &Status) -> Vec<proto::Error> {
    use prost::Message;
    use softswitch::proto::google::rpc;
    assert_eq!(status.code(), Code::Unknown, "{status:?}");
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let details = details
        .iter()
        .map(|any| proto::Error::decode(&any.value[..]).unwrap());
    details.collect()
}
