// SPDX-License-Identifier: Apache-2.0
//! Controllers over real gRPC: primary, backups, roles and their permissions.

use crate::common::{Controller, DEVICE, TestSwitch, features, uint128};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

fn code(update: &p4::MasterArbitrationUpdate) -> Code {
    Code::from(update.status.as_ref().unwrap().code)
}

async fn next_notice(controller: &mut Controller) -> (Code, u64) {
    match controller.receive().await.unwrap() {
        FromSwitch::Arbitration(update) => (code(&update), update.election_id.unwrap().low),
        other => panic!("expected arbitration, not {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn highest_election_id_writes_and_others_are_notified() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut a = Controller::open(switch.connect().await).await;
    let mut b = Controller::open(switch.connect().await).await;
    assert_eq!(code(&a.arbitrate(5).await), Code::Ok);
    assert_eq!(code(&b.arbitrate(3).await), Code::AlreadyExists);
    a.set_pipeline(features::config()).await.unwrap();
    let refused = b.write(vec![]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    assert_eq!(code(&b.arbitrate(6).await), Code::Ok);
    assert_eq!(next_notice(&mut a).await, (Code::AlreadyExists, 6));
    b.write(vec![]).await.unwrap();
    assert_eq!(
        a.write(vec![]).await.unwrap_err().code(),
        Code::PermissionDenied
    );

    // The primary disconnects: there is no primary until a controller claims its id or a higher one.
    drop(b);
    assert_eq!(next_notice(&mut a).await, (Code::NotFound, 6));
    assert_eq!(
        a.write(vec![]).await.unwrap_err().code(),
        Code::PermissionDenied
    );
    assert_eq!(code(&a.arbitrate(6).await), Code::Ok);
    a.write(vec![]).await.unwrap();
    // All controllers may read.
    let mut reader = Controller::open(switch.connect().await).await;
    assert!(reader.read(p4::CounterEntry::default()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_arbitration_ends_stream_with_status() {
    let switch = TestSwitch::start(0, &[]).await;
    let _primary = switch.controller().await;
    let other_device = p4::MasterArbitrationUpdate {
        device_id: DEVICE + 1,
        election_id: Some(uint128(9)),
        ..Default::default()
    };
    let used_id = p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        ..Default::default()
    };
    for (update, expected) in [
        (other_device, Code::NotFound),
        (used_id, Code::InvalidArgument),
    ] {
        let mut controller = Controller::open(switch.connect().await).await;
        controller.send(ToSwitch::Arbitration(update)).await;
        assert_eq!(controller.receive().await.unwrap_err().code(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_checked_in_specified_order() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut controller = switch.controller().await;
    let request = |device_id, role: &str, election| p4::WriteRequest {
        device_id,
        role: role.into(),
        election_id: Some(uint128(election)),
        ..Default::default()
    };
    for (request, expected) in [
        (request(DEVICE + 1, "", 0), Code::NotFound),
        (request(DEVICE, "unknown", 1), Code::NotFound),
        (request(DEVICE, "", 0), Code::PermissionDenied),
        (request(DEVICE, "", 1), Code::FailedPrecondition),
    ] {
        let status = controller.client.write(request).await.unwrap_err();
        assert_eq!(status.code(), expected, "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_primary_sends_packets() {
    let (switch, _primary) = TestSwitch::with_features(1, &[]).await;
    let mut backup = Controller::open(switch.connect().await).await;
    let packet = p4::PacketOut {
        payload: "x".into(),
        metadata: vec![],
    };
    backup.send(ToSwitch::Packet(packet.clone())).await;
    match backup.receive().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
            let returned = p4::stream_error::Details::PacketOut(p4::PacketOutError {
                packet_out: Some(packet),
            });
            assert_eq!(error.details, Some(returned));
        }
        other => panic!("expected an error, not {other:?}"),
    }
}
