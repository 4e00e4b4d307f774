// SPDX-License-Identifier: Apache-2.0
//! Roles (P4Runtime specification, sections "Client Arbitration and Controller Replication", "Default
//! Role" and "Role Config").

use crate::common::features::{self, l2};
use crate::common::{Controller, DEVICE, TestSwitch, uint128, update};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

fn arbitration(role: &str, election_id: Option<u64>) -> p4::MasterArbitrationUpdate {
    p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(p4::Role {
            name: role.into(),
            ..Default::default()
        }),
        election_id: election_id.map(uint128),
        status: None,
    }
}

/// Connects a controller of a role, and returns the code of its first notification.
async fn join(switch: &TestSwitch, role: &str, election_id: Option<u64>) -> (Controller, Code) {
    let mut controller = Controller::open(switch.connect().await).await;
    let update = arbitration(role, election_id);
    controller.send(ToSwitch::Arbitration(update)).await;
    let (code, _) = next_notification(&mut controller, role).await;
    (controller, code)
}

/// Returns code and election id of the next notification.
async fn next_notification(controller: &mut Controller, role: &str) -> (Code, Option<u64>) {
    match controller.receive().await.unwrap() {
        FromSwitch::Arbitration(update) => {
            assert_eq!(update.device_id, DEVICE);
            assert_eq!(update.role.unwrap_or_default().name, role);
            let election_id = update.election_id.map(|id| id.low);
            (Code::from(update.status.unwrap().code), election_id)
        }
        other => panic!("expected arbitration, not {other:?}"),
    }
}

async fn write(controller: &mut Controller, role: &str, election_id: u64) -> Result<(), Code> {
    let request = p4::WriteRequest {
        device_id: DEVICE,
        role: role.into(),
        election_id: Some(uint128(election_id)),
        ..Default::default()
    };
    let result = controller.client.write(request).await;
    result.map(drop).map_err(|status| status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_has_its_own_primary_and_election_ids() {
    let (switch, mut default) = TestSwitch::with_features(1, &[]).await;
    let (mut a, code) = join(&switch, "a", Some(9)).await;
    assert_eq!(code, Code::Ok);
    let (mut b, code) = join(&switch, "b", Some(1)).await;
    assert_eq!(code, Code::Ok);
    let (mut standby, code) = join(&switch, "a", Some(3)).await;
    assert_eq!(code, Code::AlreadyExists);

    assert_eq!(write(&mut a, "a", 9).await, Ok(()));
    assert_eq!(write(&mut b, "b", 1).await, Ok(()));
    default.write(vec![]).await.unwrap();
    // Device, role and election id together identify the writer.
    for (role, election_id, expected) in [
        ("a", 1, Code::PermissionDenied),
        ("b", 9, Code::PermissionDenied),
        ("", 9, Code::PermissionDenied),
        ("c", 1, Code::NotFound),
    ] {
        let result = write(&mut a, role, election_id).await;
        assert_eq!(result, Err(expected), "{role} {election_id}");
    }
    // Without role configuration, each role has full access; reads need no role.
    let request = p4::WriteRequest {
        device_id: DEVICE,
        role: "a".into(),
        election_id: Some(uint128(9)),
        updates: vec![update(p4::update::Type::Insert, l2(1, 2, "to_cpu", &[]))],
        ..Default::default()
    };
    a.client.write(request).await.unwrap();
    let read = b.read_table(features::entry("l2", &[], None)).await;
    assert_eq!(read.len(), 1);
    // Packets to controllers reach the primary of each role, and no backup.
    switch.wires[0].send(&features::frame(2, 1, 0x1234, b"to the CPU"));
    for controller in [&mut a, &mut b, &mut default] {
        let packet = controller.receive().await.unwrap();
        assert!(matches!(packet, FromSwitch::Packet(_)), "{packet:?}");
    }
    // When a primary leaves, only the controllers of its role are notified.
    drop(a);
    assert_eq!(
        next_notification(&mut standby, "a").await,
        (Code::NotFound, Some(9))
    );
    assert_eq!(
        write(&mut standby, "a", 9).await,
        Err(Code::PermissionDenied)
    );
    assert_eq!(write(&mut b, "b", 1).await, Ok(()));
    standby
        .send(ToSwitch::Arbitration(arbitration("a", Some(9))))
        .await;
    assert_eq!(
        next_notification(&mut standby, "a").await,
        (Code::Ok, Some(9))
    );
    assert_eq!(write(&mut standby, "a", 9).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_without_election_id_is_never_primary() {
    let switch = TestSwitch::start(0, &[]).await;
    let (mut first, code) = join(&switch, "", None).await;
    assert_eq!(code, Code::NotFound);
    // Several controllers may have no election id, and zero is a normal election id.
    let (_second, code) = join(&switch, "", None).await;
    assert_eq!(code, Code::NotFound);
    let (mut zero, code) = join(&switch, "", Some(0)).await;
    assert_eq!(code, Code::Ok);
    assert_eq!(write(&mut zero, "", 0).await, Err(Code::FailedPrecondition));
    let request = p4::WriteRequest {
        device_id: DEVICE,
        ..Default::default()
    };
    let unset = first.client.write(request).await.unwrap_err();
    assert_eq!(unset.code(), Code::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn arbitration_error_ends_only_its_own_stream() {
    let switch = TestSwitch::start(0, &[]).await;
    let (mut primary, _) = join(&switch, "a", Some(5)).await;
    let mut configured = arbitration("a", Some(6));
    configured.role.as_mut().unwrap().config = Some(prost_types::Any::default());
    for (first, second, expected) in [
        (None, arbitration("a", Some(5)), Code::InvalidArgument),
        // Role configurations are not supported.
        (None, configured.clone(), Code::InvalidArgument),
        // The ids differ, because the switch may remove an ended stream after the next one has joined.
        (Some(4), configured, Code::InvalidArgument),
        (Some(3), arbitration("b", Some(3)), Code::FailedPrecondition),
        (Some(2), arbitration("a", Some(5)), Code::InvalidArgument),
        (
            Some(1),
            p4::MasterArbitrationUpdate {
                device_id: DEVICE + 1,
                ..arbitration("a", Some(1))
            },
            Code::FailedPrecondition,
        ),
    ] {
        let mut controller = match first {
            Some(id) => join(&switch, "a", Some(id)).await.0,
            None => Controller::open(switch.connect().await).await,
        };
        controller.send(ToSwitch::Arbitration(second.clone())).await;
        let status = controller.receive().await.unwrap_err();
        assert_eq!(status.code(), expected, "{second:?}");
    }
    assert_eq!(
        write(&mut primary, "a", 5).await,
        Err(Code::FailedPrecondition)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_notified_when_primary_renews_or_steps_down() {
    let switch = TestSwitch::start(0, &[]).await;
    let (mut a, _) = join(&switch, "r", Some(5)).await;
    let (mut b, _) = join(&switch, "r", Some(3)).await;
    for (election_id, to_a, to_b) in [
        (Some(5), (Code::Ok, Some(5)), (Code::AlreadyExists, Some(5))),
        (Some(8), (Code::Ok, Some(8)), (Code::AlreadyExists, Some(8))),
        (
            Some(2),
            (Code::NotFound, Some(8)),
            (Code::NotFound, Some(8)),
        ),
    ] {
        a.send(ToSwitch::Arbitration(arbitration("r", election_id)))
            .await;
        assert_eq!(next_notification(&mut a, "r").await, to_a);
        assert_eq!(next_notification(&mut b, "r").await, to_b);
    }
    // With an id below the highest one so far, there is no primary, and only the requesting controller is notified.
    b.send(ToSwitch::Arbitration(arbitration("r", Some(7))))
        .await;
    assert_eq!(
        next_notification(&mut b, "r").await,
        (Code::NotFound, Some(8))
    );
    b.send(ToSwitch::Arbitration(arbitration("r", Some(8))))
        .await;
    assert_eq!(next_notification(&mut b, "r").await, (Code::Ok, Some(8)));
    assert_eq!(
        next_notification(&mut a, "r").await,
        (Code::AlreadyExists, Some(8))
    );
}
