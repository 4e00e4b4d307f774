// SPDX-License-Identifier: Apache-2.0
//! The objects that a role may access (P4Runtime specification, sections "Role Config", "Write RPC", "Read RPC" and
//! "Packet I/O").

use crate::common::features::{self, l2};
use crate::common::{Controller, DEVICE, IntoEntity, TestSwitch, error_details, uint128, update};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type;
use prost_types::Any;
use softswitch::proto::p4::config::v1::Preamble;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

/// Returns the program with roles of tables (by alias), digest and controller headers.
fn config(roles: &[(&str, &str)]) -> p4::ForwardingPipelineConfig {
    let mut config = features::config();
    let info = config.p4info.as_mut().unwrap();
    let tables = info.tables.iter_mut().map(|t| &mut t.preamble);
    let digests = info.digests.iter_mut().map(|d| &mut d.preamble);
    let headers = info.controller_packet_metadata.iter_mut();
    let headers = headers.map(|h| &mut h.preamble);
    for preamble in tables.chain(digests).chain(headers).flatten() {
        annotate(preamble, roles);
    }
    config
}

fn annotate(preamble: &mut Preamble, roles: &[(&str, &str)]) {
    let roles = roles.iter().filter(|(alias, _)| *alias == preamble.alias);
    let roles = roles.map(|(_, role)| format!("@p4runtime_role(\"{role}\")"));
    preamble.annotations.extend(roles);
}

fn role_config(value: Vec<u8>) -> Any {
    Any {
        type_url: "type.googleapis.com/stratum.P4RoleConfig".into(),
        value,
    }
}

/// Encodes a `stratum.P4RoleConfig` with one shared id.
fn shared(id: u32, receives_packet_ins: bool) -> Any {
    let mut ids = Vec::new();
    prost::encoding::encode_varint(id.into(), &mut ids);
    let mut value = vec![0x12, u8::try_from(ids.len()).unwrap()];
    value.extend(ids);
    value.extend([0x20, u8::from(receives_packet_ins)]);
    role_config(value)
}

/// Connects a role's primary with election id 1, and returns the notification.
async fn join(
    switch: &TestSwitch,
    role: &str,
    config: Option<Any>,
) -> (Controller, p4::MasterArbitrationUpdate) {
    let mut controller = Controller::open(switch.connect().await).await;
    let update = p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(p4::Role {
            name: role.into(),
            config,
            ..Default::default()
        }),
        election_id: Some(uint128(1)),
        status: None,
    };
    controller.send(ToSwitch::Arbitration(update)).await;
    match controller.receive().await.unwrap() {
        FromSwitch::Arbitration(update) => (controller, update),
        other => panic!("expected arbitration, not {other:?}"),
    }
}

/// Writes as a role; returns the errors of the updates.
async fn write(
    controller: &mut Controller,
    role: &str,
    updates: Vec<p4::Update>,
) -> Vec<(Code, String)> {
    let request = p4::WriteRequest {
        device_id: DEVICE,
        role: role.into(),
        election_id: Some(uint128(1)),
        updates,
        ..Default::default()
    };
    let result = controller.client.write(request).await;
    result.map_or_else(|status| error_details(&status), |_| vec![])
}

async fn read(
    controller: &mut Controller,
    role: &str,
    request: impl IntoEntity,
) -> Result<Vec<p4::Entity>, tonic::Status> {
    let request = p4::ReadRequest {
        device_id: DEVICE,
        role: role.into(),
        entities: vec![request.entity()],
    };
    let mut responses = controller.client.read(request).await?.into_inner();
    let mut entities = Vec::new();
    while let Some(response) = responses.message().await? {
        entities.extend(response.entities);
    }
    Ok(entities)
}

fn table(alias: &str) -> p4::TableEntry {
    features::entry(alias, &[], None)
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_outside_role_are_refused_with_role_and_object() {
    let switch = TestSwitch::start(0, &[]).await;
    let roles = [("l2", "a"), ("routes", "b"), ("spread", "b")];
    let mut default = switch.controller_with(config(&roles)).await;
    let (mut a, _) = join(&switch, "a", None).await;
    let (mut b, _) = join(&switch, "b", None).await;
    let updates = vec![
        update(Type::Insert, l2(1, 2, "forward", &[3])),
        update(Type::Insert, features::route(0x0a00_0000, 8, 2)),
        update(Type::Insert, features::member(1, 2)),
        // Multicast groups are not objects of the program.
        update(
            Type::Insert,
            features::multicast_group(1, vec![features::replica(1, 0)]),
        ),
    ];
    let errors = write(&mut a, "a", updates.clone()).await;
    let codes: Vec<_> = errors.iter().map(|(code, _)| *code).collect();
    let denied = Code::PermissionDenied;
    assert_eq!(codes, [Code::Ok, denied, denied, Code::Ok]);
    let message = &errors[1].1;
    assert!(
        message.contains("role 'a'") && message.contains("table FeaturesIngress.routes"),
        "{message}"
    );
    assert!(
        errors[2]
            .1
            .contains("action profile FeaturesIngress.balancer"),
        "{errors:?}"
    );
    // Nothing of the refused updates has been applied.
    assert_eq!(default.read_table(table("routes")).await, []);
    // An action profile belongs to the roles of its tables.
    assert_eq!(write(&mut b, "b", updates[1..3].to_vec()).await, []);
    // An object without role belongs to the default role, which has full access.
    let acl = features::entry("acl", &[], features::direct("drop", &[]));
    let acl = update(Type::Insert, p4::TableEntry { priority: 1, ..acl });
    let errors = write(&mut b, "b", vec![acl.clone()]).await;
    assert_eq!(errors[0].0, Code::PermissionDenied, "{errors:?}");
    default.write(vec![acl]).await.unwrap();
    default.delete(l2(1, 2, "forward", &[3])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_with_role_are_restricted_to_its_objects() {
    let switch = TestSwitch::start(0, &[]).await;
    let program = config(&[("l2", "a"), ("routes", "b")]);
    let mut controller = switch.controller_with(program).await;
    controller.insert(l2(1, 2, "drop", &[])).await.unwrap();
    controller
        .insert(features::route(0x0a00_0000, 8, 2))
        .await
        .unwrap();
    let all = read(&mut controller, "a", p4::TableEntry::default()).await;
    let all = all.unwrap();
    assert_eq!(all, [l2(1, 2, "drop", &[]).entity()]);
    let status = read(&mut controller, "a", table("routes")).await;
    let status = status.unwrap_err();
    let details = error_details(&status);
    assert_eq!(details[0].0, Code::PermissionDenied);
    assert!(details[0].1.contains("table FeaturesIngress.routes"));
    // Without a role, everything is visible.
    let everything = read(&mut controller, "", p4::TableEntry::default()).await;
    assert!(everything.unwrap().len() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_and_digests_reach_only_their_roles() {
    let switch = TestSwitch::start(1, &[]).await;
    let roles = [("packet_in", "a"), ("packet_out", "a"), ("learn_t", "a")];
    let mut default = switch.controller_with(config(&roles)).await;
    default.insert(l2(1, 2, "to_cpu", &[])).await.unwrap();
    let digest = p4::DigestEntry {
        digest_id: features::digest("learn_t"),
        config: Some(Default::default()),
    };
    default.insert(digest).await.unwrap();
    let (mut a, _) = join(&switch, "a", None).await;
    let (mut b, _) = join(&switch, "b", None).await;
    switch.wires[0].send(&features::frame(2, 1, 0x1234, b"to the CPU"));
    for controller in [&mut a, &mut default] {
        let (mut packets, mut digests) = (0, 0);
        for _ in 0..2 {
            match controller.receive().await.unwrap() {
                FromSwitch::Packet(_) => packets += 1,
                FromSwitch::Digest(_) => digests += 1,
                other => panic!("unexpected {other:?}"),
            }
        }
        assert_eq!((packets, digests), (1, 1));
    }
    // The first message that the other role receives is the error of its packet.
    let packet = p4::PacketOut {
        payload: features::frame(2, 1, 0x1234, b"from the CPU").into(),
        metadata: vec![p4::PacketMetadata {
            metadata_id: 1,
            value: vec![1].into(),
        }],
    };
    b.send(ToSwitch::Packet(packet.clone())).await;
    match b.receive().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
            assert!(error.message.contains("role 'b'"), "{error:?}");
            assert!(error.message.contains("packet_out"), "{error:?}");
        }
        other => panic!("expected an error, not {other:?}"),
    }
    a.send(ToSwitch::Packet(packet)).await;
    let sent = switch.wires[0].receive();
    assert!(sent.ends_with(b"from the CPU"));
}

#[tokio::test(flavor = "multi_thread")]
async fn role_config_restricts_access_and_is_remembered() {
    let (switch, mut default) = TestSwitch::with_features(1, &[]).await;
    default.insert(l2(1, 2, "to_cpu", &[])).await.unwrap();
    let config = shared(features::table("l2"), false);
    let (mut a, notice) = join(&switch, "a", Some(config.clone())).await;
    assert_eq!(notice.role.unwrap().config, Some(config));
    let updates = vec![
        update(Type::Modify, l2(1, 2, "to_cpu", &[])),
        update(Type::Insert, features::route(0x0a00_0000, 8, 2)),
    ];
    let errors = write(&mut a, "a", updates.clone()).await;
    assert_eq!(errors[0].0, Code::Ok);
    assert_eq!(errors[1].0, Code::PermissionDenied);
    assert!(errors[1].1.contains("role configuration"), "{errors:?}");
    let request = p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        role: "a".into(),
        election_id: Some(uint128(1)),
        action: p4::set_forwarding_pipeline_config_request::Action::Verify.into(),
        config: Some(features::config()),
        ..Default::default()
    };
    let status = a.client.set_forwarding_pipeline_config(request).await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    // The role receives no packets; another role without configuration does.
    let (mut b, _) = join(&switch, "b", None).await;
    switch.wires[0].send(&features::frame(2, 1, 0x1234, b"to the CPU"));
    let received = b.receive().await.unwrap();
    assert!(matches!(received, FromSwitch::Packet(_)), "{received:?}");
    // A primary that sends no configuration gives its role full access.
    let renewed = p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(p4::Role {
            name: "a".into(),
            ..Default::default()
        }),
        election_id: Some(uint128(1)),
        status: None,
    };
    a.send(ToSwitch::Arbitration(renewed)).await;
    let notice = a.receive().await.unwrap();
    assert!(matches!(notice, FromSwitch::Arbitration(_)), "{notice:?}");
    assert_eq!(write(&mut a, "a", updates).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_or_conflicting_role_configs_end_stream() {
    let (switch, _default) = TestSwitch::with_features(1, &[]).await;
    // exclusive_p4_ids: 7
    let exclusive = role_config(vec![0x0a, 1, 7]);
    let (_a, _) = join(&switch, "a", Some(exclusive.clone())).await;
    for (role, config) in [
        ("b", role_config(vec![0x0a])),
        ("b", exclusive.clone()),
        ("b", shared(7, false)),
        ("", exclusive),
    ] {
        let mut controller = Controller::open(switch.connect().await).await;
        let update = p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            role: Some(p4::Role {
                name: role.into(),
                config: Some(config.clone()),
                ..Default::default()
            }),
            election_id: Some(uint128(5)),
            status: None,
        };
        controller.send(ToSwitch::Arbitration(update)).await;
        let status = controller.receive().await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{role} {config:?}");
        assert!(status.message().contains("role.config"), "{status:?}");
    }
}
