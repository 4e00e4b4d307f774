// SPDX-License-Identifier: Apache-2.0
//! The switch answers arbitrary messages of controllers, and refused ones change nothing.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use crate::common::features::{
    self, call, direct, entry, exact, l2, lpm, optional, range, replica, route, ternary,
};
use crate::common::{IntoEntity, TestSwitch, update};
use p4::update::Type;
use p4::write_request::Atomicity::{self, ContinueOnError};
use proptest::prelude::*;
use prost::Message;
use softswitch::dataplane::{Clock, Engine, Setup};
use softswitch::p4rt::deployment::{Deployment, Target};
use softswitch::p4rt::device::Device;
use softswitch::p4rt::role::Role;
use softswitch::p4rt::stream;
use softswitch::proto::p4::v1 as p4;

/// Returns one valid update of each kind.
static CORPUS: LazyLock<Vec<p4::Update>> = LazyLock::new(|| {
    let index = Some(p4::Index { index: 1 });
    let member = p4::ActionProfileMember {
        action_profile_id: features::profile("balancer"),
        member_id: 1,
        action: Some(call("forward", &[1])),
    };
    let group = p4::ActionProfileGroup {
        action_profile_id: features::profile("balancer"),
        group_id: 1,
        members: vec![p4::action_profile_group::Member {
            member_id: 1,
            weight: 2,
            watch_kind: None,
        }],
        max_size: 0,
    };
    let by_group = p4::TableAction {
        r#type: Some(p4::table_action::Type::ActionProfileGroupId(1)),
    };
    let data = Some(p4::P4Data {
        data: Some(p4::p4_data::Data::Bitstring(vec![1].into())),
    });
    vec![
        update(Type::Insert, l2(1, 2, "forward_urgent", &[3, 4])),
        update(Type::Modify, l2(1, 2, "forward", &[3])),
        update(
            Type::Insert,
            p4::TableEntry {
                counter_data: Some(Default::default()),
                meter_config: Some(Default::default()),
                ..route(0x0a00_0000, 8, 1)
            },
        ),
        update(
            Type::Insert,
            p4::TableEntry {
                priority: 4,
                ..entry(
                    "acl",
                    &[ternary(1, 3), range(2, 9), optional(6)],
                    direct("set_class", &[1]),
                )
            },
        ),
        update(
            Type::Insert,
            p4::TableEntry {
                idle_timeout_ns: 5,
                ..entry("seen", &[exact(1)], direct("NoAction", &[]))
            },
        ),
        update(
            Type::Modify,
            p4::TableEntry {
                is_default_action: true,
                ..entry("acl", &[], direct("drop", &[]))
            },
        ),
        update(Type::Insert, member),
        update(Type::Insert, group),
        update(Type::Insert, entry("spread", &[exact(1)], Some(by_group))),
        update(
            Type::Modify,
            p4::CounterEntry {
                counter_id: features::counter("port_counter"),
                index,
                data: Some(p4::CounterData {
                    byte_count: 1,
                    packet_count: 1,
                }),
            },
        ),
        update(
            Type::Modify,
            p4::MeterEntry {
                meter_id: features::meter("port_meter"),
                index,
                config: Some(Default::default()),
                counter_data: None,
            },
        ),
        update(
            Type::Modify,
            p4::RegisterEntry {
                register_id: features::register("scratch"),
                index,
                data,
            },
        ),
        update(
            Type::Modify,
            p4::DirectCounterEntry {
                table_entry: Some(entry("routes", &[lpm(0x0a00_0000, 8)], None)),
                data: Some(Default::default()),
            },
        ),
        update(
            Type::Modify,
            p4::DirectMeterEntry {
                table_entry: Some(entry("routes", &[lpm(0x0a00_0000, 8)], None)),
                config: Some(Default::default()),
                counter_data: None,
            },
        ),
        update(
            Type::Modify,
            p4::ValueSetEntry {
                value_set_id: features::value_set("ip_types"),
                members: vec![p4::ValueSetMember {
                    r#match: features::matches(&[exact(7)]),
                }],
            },
        ),
        update(
            Type::Insert,
            features::multicast_group(1, vec![replica(1, 1)]),
        ),
        update(
            Type::Insert,
            features::clone_session(1, vec![replica(1, 1)]),
        ),
        update(
            Type::Insert,
            p4::DigestEntry {
                digest_id: features::digest("learn_t"),
                config: Some(Default::default()),
            },
        ),
    ]
});

fn deployment() -> Deployment {
    Deployment::new(features::config(), &Target::default()).unwrap()
}

/// Mutations of bytes: a position, and bytes to overwrite, insert or cut.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 1..6)
}

fn mutate(bytes: &mut Vec<u8>, mutations: &[(prop::sample::Index, u8, u8)]) {
    for (place, kind, value) in mutations {
        if bytes.is_empty() {
            return;
        }
        let at = place.index(bytes.len());
        match kind {
            0 => bytes[at] = *value,
            1 => bytes[at] ^= 1 << (value % 8),
            2 => bytes.insert(at, *value),
            _ => drop(bytes.remove(at)),
        }
    }
}

fn read_everything(deployment: &Deployment) -> Vec<p4::Entity> {
    use p4::packet_replication_engine_entry::Type as Engine;
    let requests = [
        p4::TableEntry::default().entity(),
        p4::ActionProfileMember::default().entity(),
        p4::ActionProfileGroup::default().entity(),
        p4::CounterEntry::default().entity(),
        p4::DirectCounterEntry::default().entity(),
        p4::MeterEntry::default().entity(),
        p4::DirectMeterEntry::default().entity(),
        p4::RegisterEntry::default().entity(),
        p4::ValueSetEntry::default().entity(),
        p4::PacketReplicationEngineEntry {
            r#type: Some(Engine::MulticastGroupEntry(Default::default())),
        }
        .entity(),
        p4::PacketReplicationEngineEntry {
            r#type: Some(Engine::CloneSessionEntry(Default::default())),
        }
        .entity(),
        p4::DigestEntry::default().entity(),
    ];
    let (entities, results) = deployment.read(&requests, &Role::default(), 0);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    entities
}

#[test]
fn unmodified_updates_are_valid() {
    let deployment = deployment();
    let batch = deployment.decode(&CORPUS);
    let results = deployment.write(batch, &Role::default(), ContinueOnError, 0);
    for (update, result) in CORPUS.iter().zip(results) {
        assert_eq!(result, Ok(()), "{update:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn refused_mutated_update_changes_nothing(
        batch in prop::collection::vec((any::<prop::sample::Index>(), mutations()), 1..12),
    ) {
        let deployment = deployment();
        deployment.write(deployment.decode(&CORPUS), &Role::default(), ContinueOnError, 0);
        for (which, mutations) in batch {
            let mut bytes = which.get(&CORPUS[..]).encode_to_vec();
            mutate(&mut bytes, &mutations);
            let Ok(update) = p4::Update::decode(&bytes[..]) else {
                continue;
            };
            let before = read_everything(&deployment);
            let updates = std::slice::from_ref(&update);
            let result = deployment.write(deployment.decode(updates), &Role::default(), ContinueOnError, 0).remove(0);
            let after = read_everything(&deployment);
            if let Err(error) = result {
                prop_assert_eq!(before, after, "{:?} was refused: {}", update, error);
            }
            // It is also answered as a read request.
            deployment.read(update.entity.as_slice(), &Role::default(), 0);
        }
    }

    // Section "Batch Atomicity".
    #[test]
    fn atomic_batch_changes_all_or_nothing(
        batch in prop::collection::vec((any::<prop::sample::Index>(), mutations(), 0..4), 1..24),
        begin_full: bool,
    ) {
        let deployment = deployment();
        if begin_full {
            deployment.write(deployment.decode(&CORPUS), &Role::default(), ContinueOnError, 0);
        }
        let updates = batch.iter().filter_map(|(which, mutations, kind)| {
            let mut bytes = which.get(&CORPUS[..]).encode_to_vec();
            if *kind == 0 {
                mutate(&mut bytes, mutations);
            }
            let mut update = p4::Update::decode(&bytes[..]).ok()?;
            // Of any type, so that existing entities are modified and deleted, too.
            match kind {
                1 => update.set_type(Type::Modify),
                2 => update.set_type(Type::Delete),
                _ => {}
            }
            Some(update)
        });
        let updates: Vec<_> = updates.collect();
        let before = read_everything(&deployment);
        let results = deployment.write(deployment.decode(&updates), &Role::default(), Atomicity::DataplaneAtomic, 0);
        if results.iter().all(Result::is_ok) {
            prop_assert_eq!(results.len(), updates.len());
        } else {
            prop_assert!(results.iter().all(Result::is_err), "{:?}", results);
            prop_assert_eq!(before, read_everything(&deployment), "{:?}\n{:?}", updates, results);
        }
    }

    #[test]
    fn mutated_p4info_is_linked_or_refused(mutations in mutations()) {
        let mut config = features::config();
        let mut bytes = config.p4info.take().unwrap().encode_to_vec();
        mutate(&mut bytes, &mutations);
        if let Ok(p4info) = Message::decode(&bytes[..]) {
            config.p4info = Some(p4info);
            if let Ok(deployment) = Deployment::new(config, &Target::default()) {
                deployment.write(deployment.decode(&CORPUS), &Role::default(), ContinueOnError, 0);
                deployment.read(&[p4::TableEntry::default().entity()], &Role::default(), 0);
            }
        }
    }

    #[test]
    fn mutated_programs_are_loaded_or_refused(mutations in mutations()) {
        let mut config = features::config();
        let mut bytes = config.p4_device_config.to_vec();
        mutate(&mut bytes, &mutations);
        config.p4_device_config = bytes.into();
        if let Ok(deployment) = Deployment::new(config, &Target::default()) {
            deployment.write(deployment.decode(&CORPUS), &Role::default(), ContinueOnError, 0);
        }
    }
}

/// Sends requests and stream messages directly to the device, in one thread.
#[test]
fn device_works_without_sockets_or_runtime() {
    use p4::stream_message_request::Update as ToSwitch;
    let (events, _events) = tokio::sync::mpsc::channel(1);
    let setup = Setup {
        clock: Clock::from_zero(),
        ports: vec![],
        threads: NonZeroUsize::MIN,
        cpu_port: Some(crate::common::CPU_PORT),
        seed: 1,
        events,
        observers: Default::default(),
        packet_stream: None,
    };
    let dataplane = Engine::new(setup).unwrap().handle();
    let device = Device::new(
        crate::common::DEVICE,
        dataplane,
        Target::default(),
        None,
        None,
    );
    let (client, sender, mut receiver) = device.open_stream();
    let election_id = Some(crate::common::uint128(1));
    let arbitration = p4::MasterArbitrationUpdate {
        device_id: crate::common::DEVICE,
        election_id,
        ..Default::default()
    };
    let message = p4::StreamMessageRequest {
        update: Some(ToSwitch::Arbitration(arbitration)),
    };
    stream::handle(&device, client, &sender, message).unwrap();
    assert!(receiver.control.try_recv().unwrap().is_ok());
    let mut request = p4::SetForwardingPipelineConfigRequest {
        device_id: crate::common::DEVICE,
        election_id,
        config: Some(features::config()),
        ..Default::default()
    };
    request.set_action(p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit);
    device.set_config(request).unwrap();
    let write = p4::WriteRequest {
        device_id: crate::common::DEVICE,
        election_id,
        updates: vec![update(Type::Insert, l2(1, 2, "forward", &[1]))],
        ..Default::default()
    };
    device.write(&write).unwrap();
    let read = p4::ReadRequest {
        device_id: crate::common::DEVICE,
        entities: vec![entry("l2", &[], None).entity()],
        ..Default::default()
    };
    let (entities, end) = device.read(&read).unwrap();
    assert_eq!((entities.len(), end.is_ok()), (1, true));
    device.close_stream(client);
    assert!(
        device.write(&write).is_err(),
        "there is no longer a primary"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn random_stream_messages_do_not_stop_the_switch() {
    use p4::stream_message_request::Update as ToSwitch;
    let (switch, controller) = TestSwitch::with_features(1, &[]).await;
    let messages = [
        ToSwitch::Packet(p4::PacketOut::default()),
        ToSwitch::Packet(p4::PacketOut {
            payload: vec![1; 70_000].into(),
            metadata: vec![
                p4::PacketMetadata {
                    metadata_id: 1,
                    value: vec![1].into(),
                },
                p4::PacketMetadata {
                    metadata_id: 2,
                    value: vec![0].into(),
                },
            ],
        }),
        ToSwitch::DigestAck(p4::DigestListAck {
            digest_id: u32::MAX,
            list_id: u64::MAX,
        }),
        ToSwitch::DigestAck(p4::DigestListAck {
            digest_id: features::digest("learn_t"),
            list_id: 5,
        }),
        ToSwitch::Other(prost_types::Any::default()),
    ];
    for message in messages {
        controller.send(message).await;
    }
    // An empty message ends only its stream.
    controller
        .to_switch
        .send(p4::StreamMessageRequest::default())
        .await
        .unwrap();
    let mut next = crate::common::Controller::open(switch.connect().await).await;
    next.arbitrate(2).await;
    next.insert(l2(1, 2, "forward", &[1])).await.unwrap();
    let frame = features::frame(2, 1, 0x1234, b"still here");
    switch.wires[0].send(&frame);
    loop {
        // The large packet-out may come first.
        if switch.wires[0].receive() == frame {
            break;
        }
    }
}
