// SPDX-License-Identifier: Apache-2.0
//! Setting and getting the forwarding pipeline config.

use crate::common::features::{self, exact};
use crate::common::{Controller, DEVICE, IntoEntity, TestSwitch};
use p4::get_forwarding_pipeline_config_request::ResponseType;
use p4::set_forwarding_pipeline_config_request::Action;
use softswitch::proto::p4::v1 as p4;
use softswitch::switch::Config;
use tonic::{Code, Status};

async fn get(
    client: &mut crate::common::Client,
    response_type: ResponseType,
) -> Result<p4::ForwardingPipelineConfig, Status> {
    let request = p4::GetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        response_type: response_type.into(),
    };
    let response = client.get_forwarding_pipeline_config(request).await?;
    Ok(response.into_inner().config.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_pipeline_fail_with_known_message() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut controller = switch.controller().await;
    let write = controller.write(vec![]).await.unwrap_err();
    let read = controller
        .read(p4::TableEntry::default())
        .await
        .unwrap_err();
    let get = get(&mut controller.client, ResponseType::All)
        .await
        .unwrap_err();
    for status in [write, read, get] {
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(
            status
                .message()
                .contains("No forwarding pipeline config set for this device")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn config_reads_back_as_set() {
    let (_switch, mut controller) = TestSwitch::with_features(0, &[]).await;
    let config = features::config();
    let empty = p4::ForwardingPipelineConfig {
        cookie: config.cookie,
        ..Default::default()
    };
    for (response_type, expected) in [
        (ResponseType::All, config.clone()),
        (ResponseType::CookieOnly, empty.clone()),
        (
            ResponseType::P4infoAndCookie,
            p4::ForwardingPipelineConfig {
                p4info: config.p4info,
                ..empty.clone()
            },
        ),
        (
            ResponseType::DeviceConfigAndCookie,
            p4::ForwardingPipelineConfig {
                p4_device_config: config.p4_device_config,
                ..empty
            },
        ),
    ] {
        assert_eq!(
            get(&mut controller.client, response_type).await.unwrap(),
            expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_config_is_refused_and_changes_nothing() {
    let (_switch, mut controller) = TestSwitch::with_features(0, &[]).await;
    controller
        .insert(features::l2(1, 2, "forward", &[3]))
        .await
        .unwrap();
    let good = features::config();
    let mut no_p4info = good.clone();
    no_p4info.p4info = None;
    let mut not_json = good.clone();
    not_json.p4_device_config = "no JSON".into();
    let mut empty = good.clone();
    empty.p4_device_config = Default::default();
    let mut not_text = good.clone();
    not_text.p4_device_config = vec![0xff, 0xfe].into();
    let mut other_program = good.clone();
    let p4info = other_program.p4info.as_mut().unwrap();
    p4info.tables[0].preamble.as_mut().unwrap().name = "Other.table".into();
    let mut other_width = good.clone();
    other_width.p4info.as_mut().unwrap().tables[0].match_fields[0].bitwidth = 17;
    for (config, expected) in [
        (None, "no config"),
        (Some(no_p4info), "no P4Info"),
        (Some(not_json), "p4_device_config"),
        (Some(empty), "p4_device_config is empty"),
        (Some(not_text), "not UTF-8"),
        (Some(other_program), "'Other.table'"),
        (Some(other_width), "17 bits"),
    ] {
        for action in [
            Action::Verify,
            Action::VerifyAndSave,
            Action::VerifyAndCommit,
            Action::ReconcileAndCommit,
        ] {
            let status = controller.config(action, config.clone()).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert!(status.message().contains(expected), "{status:?}");
        }
    }
    let status = controller
        .config(Action::Unspecified, Some(good.clone()))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        get(&mut controller.client, ResponseType::All)
            .await
            .unwrap(),
        good
    );
    assert_eq!(
        controller
            .read_table(features::entry("l2", &[], None))
            .await
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_primary_sets_config_and_device_must_match() {
    let switch = TestSwitch::start(0, &[]).await;
    let _primary = switch.controller().await;
    let mut backup = Controller::open(switch.connect().await).await;
    backup.election_id = 0;
    let status = backup.set_pipeline(features::config()).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    let set = p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE + 1,
        ..Default::default()
    };
    let status = backup.client.set_forwarding_pipeline_config(set).await;
    assert_eq!(status.unwrap_err().code(), Code::NotFound);
    let get = p4::GetForwardingPipelineConfigRequest {
        device_id: DEVICE + 1,
        ..Default::default()
    };
    let status = backup.client.get_forwarding_pipeline_config(get).await;
    assert_eq!(status.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn p4info_ids_are_unique_and_not_zero() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut controller = switch.controller().await;
    let with = |change: fn(&mut softswitch::proto::p4::config::v1::P4Info)| {
        let mut config = features::config();
        change(config.p4info.as_mut().unwrap());
        config
    };
    let first_id = with(|info| info.tables[0].preamble.as_mut().unwrap().id = 0);
    let same_id = with(|info| {
        let id = info.tables[1].preamble.as_ref().unwrap().id;
        info.tables[0].preamble.as_mut().unwrap().id = id;
    });
    let field_id = with(|info| info.tables[0].match_fields[1].id = 1);
    let param_id = with(|info| {
        let mut actions = info.actions.iter_mut();
        let action = actions.find(|a| !a.params.is_empty()).unwrap();
        action.params[0].id = 0;
    });
    for (config, expected) in [
        (first_id, "id 0"),
        (same_id, "two objects with id"),
        (field_id, "match field id 1 in P4Info is 0 or not unique"),
        (param_id, "parameter id 0 in P4Info is 0 or not unique"),
    ] {
        let status = controller.set_pipeline(config).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(expected), "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_changes_nothing_and_commit_clears_state() {
    let (_switch, mut controller) = TestSwitch::with_features(0, &[]).await;
    let all = || features::entry("l2", &[], None);
    controller
        .insert(features::l2(1, 2, "forward", &[3]))
        .await
        .unwrap();
    controller
        .config(Action::Verify, Some(features::config()))
        .await
        .unwrap();
    assert_eq!(controller.read_table(all()).await.len(), 1);
    controller
        .config(Action::VerifyAndCommit, Some(features::config()))
        .await
        .unwrap();
    assert_eq!(controller.read_table(all()).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_config_accepts_writes_and_commit_switches_packets() {
    let (switch, mut controller) = TestSwitch::with_features(2, &[]).await;
    let none_saved = controller.config(Action::Commit, None).await.unwrap_err();
    assert_eq!(none_saved.code(), Code::NotFound);
    controller
        .insert(features::l2(1, 2, "forward", &[1]))
        .await
        .unwrap();
    controller
        .config(Action::VerifyAndSave, Some(features::config()))
        .await
        .unwrap();
    // This write changes the saved config, while packets still use the old one.
    controller
        .insert(features::l2(1, 2, "forward", &[2]))
        .await
        .unwrap();
    let frame = features::frame(2, 1, 0x1234, b"before");
    switch.wires[0].send(&frame);
    assert_eq!(switch.wires[0].receive(), frame);
    let with_config = controller
        .config(Action::Commit, Some(features::config()))
        .await;
    assert_eq!(with_config.unwrap_err().code(), Code::InvalidArgument);
    controller.config(Action::Commit, None).await.unwrap();
    let frame = features::frame(2, 1, 0x1234, b"after");
    switch.wires[0].send(&frame);
    assert_eq!(switch.wires[1].receive(), frame);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_keeps_forwarding_state() {
    let (_switch, mut controller) = TestSwitch::with_features(0, &[]).await;
    let register = |data| p4::RegisterEntry {
        register_id: features::register("scratch"),
        index: Some(p4::Index { index: 5 }),
        data,
    };
    let seven = p4::P4Data {
        data: Some(p4::p4_data::Data::Bitstring(vec![7].into())),
    };
    controller
        .insert(features::route(0x0a00_0000, 8, 2))
        .await
        .unwrap();
    controller
        .insert(features::multicast_group(1, vec![features::replica(1, 0)]))
        .await
        .unwrap();
    controller
        .modify(register(Some(seven.clone())))
        .await
        .unwrap();
    let default = p4::TableEntry {
        is_default_action: true,
        ..features::entry("acl", &[], features::direct("set_class", &[3]))
    };
    controller.modify(default.clone()).await.unwrap();
    let missed = |data| p4::DirectCounterEntry {
        table_entry: Some(p4::TableEntry {
            is_default_action: true,
            ..features::entry("routes", &[], None)
        }),
        data,
    };
    let five = Some(p4::CounterData {
        byte_count: 500,
        packet_count: 5,
    });
    controller.modify(missed(five)).await.unwrap();
    let counter = controller.read_one(missed(None)).await;
    let constant = |data| p4::DirectCounterEntry {
        table_entry: Some(features::entry("constant", &[exact(0x86dd)], None)),
        data,
    };
    controller.modify(constant(five)).await.unwrap();
    let of_constant = controller.read_one(constant(None)).await;
    controller
        .config(Action::ReconcileAndCommit, Some(features::config()))
        .await
        .unwrap();
    assert_eq!(
        controller
            .read_table(features::entry("routes", &[], None))
            .await
            .len(),
        1
    );
    assert_eq!(
        controller.read_one(register(None)).await,
        register(Some(seven)).entity()
    );
    let read = p4::TableEntry {
        action: None,
        ..default.clone()
    };
    assert_eq!(controller.read_table(read).await, [default]);
    assert_eq!(controller.read_one(missed(None)).await, counter);
    assert_eq!(controller.read_one(constant(None)).await, of_constant);

    // A program without a needed object is refused, and the state stays.
    let mut smaller = features::config();
    smaller
        .p4info
        .as_mut()
        .unwrap()
        .tables
        .retain(|t| t.preamble.as_ref().unwrap().alias != "routes");
    let status = controller
        .config(Action::ReconcileAndCommit, Some(smaller))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert_eq!(
        controller
            .read_table(features::entry("routes", &[], None))
            .await
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn capabilities_report_api_version() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut client = switch.connect().await;
    let response = client
        .capabilities(p4::CapabilitiesRequest::default())
        .await
        .unwrap();
    assert_eq!(response.into_inner().p4runtime_api_version, "1.5.0");
    let other = p4::CapabilitiesRequest {
        device_id: DEVICE + 1,
    };
    assert_eq!(
        client.capabilities(other).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p4_device_config_may_be_an_envelope() {
    use prost::Message;

    /// `p4.tmp.P4DeviceConfig`, without its extras.
    #[derive(Clone, PartialEq, Message)]
    struct P4DeviceConfig {
        #[prost(bool, tag = "1")]
        reassign: bool,
        #[prost(bytes = "vec", tag = "3")]
        device_data: Vec<u8>,
    }

    let switch = TestSwitch::start(0, &[]).await;
    let mut controller = switch.controller().await;
    let mut config = features::config();
    let envelope = P4DeviceConfig {
        reassign: true,
        device_data: config.p4_device_config.to_vec(),
    };
    config.p4_device_config = envelope.encode_to_vec().into();
    controller.set_pipeline(config.clone()).await.unwrap();
    controller
        .insert(features::l2(1, 2, "forward", &[3]))
        .await
        .unwrap();
    let stored = get(&mut controller.client, ResponseType::All).await;
    assert_eq!(stored.unwrap(), config, "the config is read as it was set");
}

#[tokio::test(flavor = "multi_thread")]
async fn disable_swap_refuses_configs() {
    let switch = TestSwitch::start_with(0, &[], |config| Config {
        keeps_program: true,
        ..config
    });
    let mut controller = switch.await.controller().await;
    let status = controller.set_pipeline(features::config()).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    assert!(status.message().contains("--disable-swap"), "{status:?}");
}
