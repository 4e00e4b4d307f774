// SPDX-License-Identifier: Apache-2.0
//! First inputs of the fuzzer: valid ones, made from the programs' P4Info, so that it starts behind the first checks.

use arbitrary::Unstructured;
use prost::Message;
use prost::bytes::Bytes;
use softswitch::proto::p4::config::v1::{self as info, P4Info, match_field};
use softswitch::proto::p4::v1::{
    self as p4, entity::Entity as Kind, field_match::FieldMatchType,
    packet_replication_engine_entry::Type as Replication,
    set_forwarding_pipeline_config_request::Action, stream_message_request::Update as ToSwitch,
    table_action, update::Type,
};
use softswitch_thrift::interface::functions;

use crate::calls::message;
use crate::programs::{EVERYTHING, FEATURES, FEATURES_CONFIG, ROUTER, compiled};
use crate::server::{Server, wildcards};

const SOURCES: [&str; 3] = [EVERYTHING, FEATURES, ROUTER];

/// Returns the seeds of a target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    match target {
        "compiler" => SOURCES.map(|source| source.into()).into(),
        "json" => SOURCES.map(|source| compiled(source).0.into()).into(),
        "packets" | "thrift_calls" => (0..16u8).map(mixed).collect(),
        "thrift" => calls(),
        "write" => writes().iter().map(Message::encode_to_vec).collect(),
        "read" => reads().iter().map(Message::encode_to_vec).collect(),
        "config" => configs().iter().map(Message::encode_to_vec).collect(),
        "stream" => streams()
            .iter()
            .map(Message::encode_length_delimited_to_vec)
            .collect(),
        other => panic!("unknown target {other}"),
    }
}

/// Returns 256 different bytes in an order that depends on `i`.
fn mixed(i: u8) -> Vec<u8> {
    let factor = i.wrapping_mul(2).wrapping_add(1);
    (0..=255u8).map(|b| b.wrapping_mul(factor)).collect()
}

/// Returns a call of each Thrift function.
fn calls() -> Vec<Vec<u8>> {
    let call = |(function, i)| {
        let bytes = mixed(i);
        message(function, &mut Unstructured::new(&bytes))
    };
    functions().zip((0..=255).cycle()).map(call).collect()
}

/// Creates a server that runs [`FEATURES`](crate::programs::FEATURES) and has an entity of every kind.
pub async fn server_with_every_entity() -> Server {
    let mut server = Server::with_features().await;
    server
        .write(batch_with_every_entity())
        .await
        .expect("the batch is valid");
    server
}

/// Returns a batch that inserts or modifies an entity of every kind.
pub fn batch_with_every_entity() -> p4::WriteRequest {
    let info = FEATURES_CONFIG
        .p4info
        .as_ref()
        .expect("the config has P4Info");
    p4::WriteRequest {
        updates: updates(info),
        ..Default::default()
    }
}

fn writes() -> Vec<p4::WriteRequest> {
    let all = batch_with_every_entity();
    let single = all.updates.iter().map(|update| p4::WriteRequest {
        updates: vec![update.clone()],
        ..Default::default()
    });
    let atomic = [1, 2].map(|atomicity| p4::WriteRequest {
        atomicity,
        ..all.clone()
    });
    single.chain(atomic).chain([all.clone()]).collect()
}

fn reads() -> Vec<p4::ReadRequest> {
    let wild = wildcards();
    let written = batch_with_every_entity()
        .updates
        .into_iter()
        .filter_map(|update| update.entity);
    let single = wild
        .iter()
        .cloned()
        .chain(written)
        .map(|entity| vec![entity]);
    single
        .chain([wild.clone()])
        .map(|entities| p4::ReadRequest {
            entities,
            ..Default::default()
        })
        .collect()
}

fn configs() -> Vec<p4::SetForwardingPipelineConfigRequest> {
    let actions = [
        Action::Verify,
        Action::VerifyAndSave,
        Action::VerifyAndCommit,
        Action::ReconcileAndCommit,
    ];
    let request = |action: Action| p4::SetForwardingPipelineConfigRequest {
        action: action.into(),
        config: Some(FEATURES_CONFIG.clone()),
        ..Default::default()
    };
    actions.map(request).into()
}

fn streams() -> Vec<p4::StreamMessageRequest> {
    let info = FEATURES_CONFIG
        .p4info
        .as_ref()
        .expect("the config has P4Info");
    let header = info
        .controller_packet_metadata
        .iter()
        .find(|m| name(&m.preamble) == "packet_out");
    let metadata = header.into_iter().flat_map(|h| &h.metadata);
    let metadata = metadata
        .map(|m| p4::PacketMetadata {
            metadata_id: m.id,
            value: one(),
        })
        .collect();
    let ack = info.digests.first().map(|d| p4::DigestListAck {
        digest_id: id(&d.preamble),
        list_id: 1,
    });
    [
        ToSwitch::Packet(p4::PacketOut {
            payload: vec![1; 60].into(),
            metadata,
        }),
        ToSwitch::DigestAck(ack.unwrap_or_default()),
        ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
            device_id: 1,
            ..Default::default()
        }),
        ToSwitch::Other(Default::default()),
    ]
    .map(|update| p4::StreamMessageRequest {
        update: Some(update),
    })
    .into()
}

fn id(preamble: &Option<info::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

fn name(preamble: &Option<info::Preamble>) -> &str {
    preamble.as_ref().map_or("", |p| &p.name)
}

fn one() -> Bytes {
    Bytes::from_static(&[1])
}

fn update(kind: Type, entity: Kind) -> p4::Update {
    p4::Update {
        r#type: kind.into(),
        entity: Some(p4::Entity {
            entity: Some(entity),
        }),
    }
}

fn updates(info: &P4Info) -> Vec<p4::Update> {
    let index = Some(p4::Index { index: 1 });
    let mut all = Vec::new();
    for profile in &info.action_profiles {
        let action_profile_id = id(&profile.preamble);
        let table = info
            .tables
            .iter()
            .find(|t| profile.table_ids.contains(&id(&t.preamble)));
        let action = table.and_then(|t| call(info, t));
        let member = p4::ActionProfileMember {
            action_profile_id,
            member_id: 1,
            action,
        };
        all.push(update(Type::Insert, Kind::ActionProfileMember(member)));
        if profile.with_selector {
            let member = p4::action_profile_group::Member {
                member_id: 1,
                weight: 2,
                watch_kind: None,
            };
            let group = p4::ActionProfileGroup {
                action_profile_id,
                group_id: 1,
                members: vec![member],
                max_size: 0,
            };
            all.push(update(Type::Insert, Kind::ActionProfileGroup(group)));
        }
    }
    all.extend(
        info.tables
            .iter()
            .filter(|t| !t.is_const_table)
            .map(|t| table_entry(info, t)),
    );
    all.extend(info.counters.iter().map(|c| {
        let counter = p4::CounterEntry {
            counter_id: id(&c.preamble),
            index,
            data: Some(Default::default()),
        };
        update(Type::Modify, Kind::CounterEntry(counter))
    }));
    all.extend(info.meters.iter().map(|m| {
        let config = Some(p4::MeterConfig {
            cir: 100,
            cburst: 10,
            pir: 200,
            pburst: 20,
            ..Default::default()
        });
        let meter = p4::MeterEntry {
            meter_id: id(&m.preamble),
            index,
            config,
            counter_data: None,
        };
        update(Type::Modify, Kind::MeterEntry(meter))
    }));
    all.extend(info.registers.iter().map(|r| {
        let data = Some(p4::P4Data {
            data: Some(p4::p4_data::Data::Bitstring(one())),
        });
        let register = p4::RegisterEntry {
            register_id: id(&r.preamble),
            index,
            data,
        };
        update(Type::Modify, Kind::RegisterEntry(register))
    }));
    all.extend(info.digests.iter().map(|d| {
        let digest = p4::DigestEntry {
            digest_id: id(&d.preamble),
            config: Some(Default::default()),
        };
        update(Type::Insert, Kind::DigestEntry(digest))
    }));
    let port_kind = Some(p4::replica::PortKind::Port(one()));
    let replicas = vec![p4::Replica {
        instance: 1,
        port_kind,
        ..Default::default()
    }];
    let group = p4::MulticastGroupEntry {
        multicast_group_id: 1,
        replicas: replicas.clone(),
        ..Default::default()
    };
    let session = p4::CloneSessionEntry {
        session_id: 1,
        replicas,
        ..Default::default()
    };
    for kind in [
        Replication::MulticastGroupEntry(group),
        Replication::CloneSessionEntry(session),
    ] {
        let engine = p4::PacketReplicationEngineEntry { r#type: Some(kind) };
        all.push(update(
            Type::Insert,
            Kind::PacketReplicationEngineEntry(engine),
        ));
    }
    all
}

/// Returns an entry that matches the value 1 in each field, with the table's first action.
fn table_entry(info: &P4Info, table: &info::Table) -> p4::Update {
    let priority = i32::from(table.match_fields.iter().any(|f| {
        use match_field::MatchType::{Optional, Range, Ternary};
        matches!(kind(f), Ternary | Range | Optional)
    }));
    let action = match table.implementation_id {
        0 => call(info, table).map(table_action::Type::Action),
        _ => Some(table_action::Type::ActionProfileMemberId(1)),
    };
    let entry = p4::TableEntry {
        table_id: id(&table.preamble),
        r#match: table.match_fields.iter().map(field).collect(),
        action: Some(p4::TableAction { r#type: action }),
        priority,
        ..Default::default()
    };
    update(Type::Insert, Kind::TableEntry(entry))
}

fn kind(field: &info::MatchField) -> match_field::MatchType {
    match field.r#match {
        Some(match_field::Match::MatchType(kind)) => kind.try_into().unwrap_or_default(),
        _ => match_field::MatchType::Unspecified,
    }
}

fn field(field: &info::MatchField) -> p4::FieldMatch {
    use match_field::MatchType;
    use p4::field_match::{Exact, Lpm, Optional, Range, Ternary};
    let what = match kind(field) {
        MatchType::Lpm => {
            let zero = Bytes::from_static(&[0]);
            FieldMatchType::Lpm(Lpm {
                value: zero,
                prefix_len: 1,
            })
        }
        MatchType::Ternary => FieldMatchType::Ternary(Ternary {
            value: one(),
            mask: one(),
        }),
        MatchType::Range => FieldMatchType::Range(Range {
            low: Bytes::from_static(&[0]),
            high: one(),
        }),
        MatchType::Optional => FieldMatchType::Optional(Optional { value: one() }),
        MatchType::Exact | MatchType::Unspecified => FieldMatchType::Exact(Exact { value: one() }),
    };
    p4::FieldMatch {
        field_id: field.id,
        field_match_type: Some(what),
    }
}

/// Returns a call of the first action that entries of the table may have, with the value 1 for each parameter.
fn call(info: &P4Info, table: &info::Table) -> Option<p4::Action> {
    let allowed = table
        .action_refs
        .iter()
        .find(|a| a.scope() != info::action_ref::Scope::DefaultOnly)?;
    let action = info
        .actions
        .iter()
        .find(|a| id(&a.preamble) == allowed.id)?;
    let param = |p: &info::action::Param| p4::action::Param {
        param_id: p.id,
        value: one(),
    };
    Some(p4::Action {
        action_id: allowed.id,
        params: action.params.iter().map(param).collect(),
    })
}
