// SPDX-License-Identifier: Apache-2.0
//! BfRuntime: devices without a program, initializations of programs, and programs in different pipes.

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::proto::bfrt::mode::{PredefinedMode, Scope};
use softswitch::proto::bfrt::set_forwarding_pipeline_config_request::{Action, DevInitMode};
use softswitch::proto::bfrt::stream_message_response::Update as Message;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::{self as proto, SetForwardingPipelineConfigResponseType as Progress};
use softswitch_pipeline::Options;
use tonic::{Code, Status};

use crate::bfrt::ints;
use crate::bfrt_pipes::{
    PORTS, TAGS, arrivals, compiled, in_pipe, set_scope, tag, visit, visit_to,
};
use crate::common::TestSwitch;
use crate::common::bfrt::Match::Exact;
use crate::common::bfrt::{Client, number, value};

/// Starts a switch without a program, with a port in each of two pipes, and a client.
async fn connected() -> (TestSwitch, Client) {
    let switch = TestSwitch::start_with(2, &[], |mut config| {
        for (port, number) in config.ports.iter_mut().zip(PORTS) {
            port.number = number.into();
        }
        softswitch::switch::Config {
            options: Options {
                pipes: 2,
                ..config.options
            },
            bfrt: Some(Config {
                address: Address::Tcp("127.0.0.1:0".into()),
                program: None,
                schema: None,
            }),
            ..config
        }
    })
    .await;
    let client = Client::subscribe(&switch.switch, 0).await;
    (switch, client)
}

/// The config of a program in some pipes.
fn config(name: &str, pipe_scope: &[u32]) -> proto::ForwardingPipelineConfig {
    let (json, bfruntime_info) = compiled();
    proto::ForwardingPipelineConfig {
        p4_name: name.into(),
        bfruntime_info,
        profiles: vec![proto::forwarding_pipeline_config::Profile {
            profile_name: "pipe".into(),
            context: vec![],
            binary: json.into(),
            pipe_scope: pipe_scope.to_vec(),
        }],
    }
}

async fn set(
    client: &mut Client,
    action: Action,
    config: Vec<proto::ForwardingPipelineConfig>,
) -> Result<(), Status> {
    let request = proto::SetForwardingPipelineConfigRequest {
        client_id: client.id,
        action: action.into(),
        config,
        ..Default::default()
    };
    let answer = client.rpc.set_forwarding_pipeline_config(request).await;
    answer.map(drop)
}

/// Sets programs that process packets at once, and waits until they do.
async fn load(client: &mut Client, config: Vec<proto::ForwardingPipelineConfig>) {
    let action = Action::VerifyAndWarmInitBeginAndEnd;
    set(client, action, config).await.unwrap();
    assert_eq!(progress(client).await, Progress::WarmInitStarted);
    assert_eq!(progress(client).await, Progress::WarmInitFinished);
    client.load_schema().await;
}

/// Returns the next message about the progress of a config.
async fn progress(client: &mut Client) -> Progress {
    match client.receive().await.unwrap() {
        Message::SetForwardingPipelineConfigResponse(response) => {
            response.set_forwarding_pipeline_config_response_type()
        }
        other => panic!("expected the progress, not {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn device_without_program_has_its_fixed_tables() {
    let (_switch, mut client) = connected().await;
    let request = proto::GetForwardingPipelineConfigRequest::default();
    let response = client.rpc.get_forwarding_pipeline_config(request).await;
    let names = response.unwrap().into_inner().config.into_iter();
    let names: Vec<_> = names.map(|config| config.p4_name).collect();
    assert_eq!(names, ["$SHARED"]);
    client.bind("$SHARED").await.unwrap();
    let device = "tf1.dev.device_configuration";
    let mut entry = client.entry(device, &[], "", vec![]);
    entry.is_default_entry = true;
    let rows = client.read(device, entry).await.unwrap();
    assert_eq!(value(rows[0].get("num_pipes")), 2);
    assert_eq!(
        client.bind("unknown").await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_follow_the_earlier_program_until_the_initialization_ends() {
    let (switch, mut client) = connected().await;
    load(&mut client, vec![config("pipes", &[0, 1])]).await;
    client.bind("pipes").await.unwrap();
    let entry = tag(&client, 5);
    client.write(Type::Insert, entry).await.unwrap();
    let begin = Action::VerifyAndWarmInitBegin;
    set(&mut client, begin, vec![config("pipes", &[0, 1])])
        .await
        .unwrap();
    assert_eq!(progress(&mut client).await, Progress::WarmInitStarted);
    assert_eq!(
        client.usage(TAGS).await,
        0,
        "the new program has no entries"
    );
    let entry = tag(&client, 6);
    client.write(Type::Insert, entry).await.unwrap();
    assert_eq!(visit(&switch, 0).0, 5);
    let with_config = vec![config("pipes", &[0, 1])];
    let refused = set(&mut client, Action::WarmInitEnd, with_config).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    set(&mut client, Action::WarmInitEnd, vec![]).await.unwrap();
    assert_eq!(progress(&mut client).await, Progress::WarmInitFinished);
    assert_eq!(visit(&switch, 0).0, 6);
    let again = set(&mut client, Action::WarmInitEnd, vec![]).await;
    assert_eq!(again.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn hitless_initialization_keeps_scopes_of_entries() {
    let (switch, mut client) = connected().await;
    load(&mut client, vec![config("pipes", &[0, 1])]).await;
    client.bind("pipes").await.unwrap();
    let single = Scope::Predef(PredefinedMode::Single.into());
    set_scope(&mut client, single).await;
    for (mode, written) in [
        (DevInitMode::Hitless, Ok(())),
        (DevInitMode::FastReconfig, Err(Code::InvalidArgument)),
    ] {
        let request = proto::SetForwardingPipelineConfigRequest {
            client_id: client.id,
            action: Action::VerifyAndWarmInitBeginAndEnd.into(),
            dev_init_mode: mode.into(),
            config: vec![config("pipes", &[0, 1])],
            ..Default::default()
        };
        let answer = client.rpc.set_forwarding_pipeline_config(request).await;
        answer.unwrap();
        let entry = in_pipe(1, tag(&client, 9));
        assert_eq!(client.write(Type::Insert, entry).await, written);
    }
    drop(switch);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_of_replaced_programs_are_dismissed() {
    let (switch, mut client) = connected().await;
    load(
        &mut client,
        vec![config("left", &[0]), config("right", &[1])],
    )
    .await;
    client.bind("left").await.unwrap();
    let mut other = Client::connect(&switch.switch, 1, "right").await;
    let next = vec![config("new", &[0]), config("right", &[1])];
    load(&mut client, next).await;
    let status = client.receive().await.unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
    assert_eq!(progress(&mut other).await, Progress::WarmInitStarted);
    assert_eq!(progress(&mut other).await, Progress::WarmInitFinished);
    let entry = tag(&other, 5);
    other.write(Type::Insert, entry).await.unwrap();
    // The client can subscribe again under its id.
    Client::connect(&switch.switch, 0, "new").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_in_different_pipes() {
    let (switch, mut left) = connected().await;
    load(&mut left, vec![config("left", &[0]), config("right", &[1])]).await;
    left.bind("left").await.unwrap();
    let mut right = Client::connect(&switch.switch, 1, "right").await;
    let entry = tag(&left, 5);
    left.write(Type::Insert, entry).await.unwrap();
    let entry = tag(&right, 6);
    right.write(Type::Insert, entry).await.unwrap();
    assert_eq!(visit(&switch, 0), (5, 1));
    assert_eq!(visit(&switch, 1), (6, 1));
    // Egress belongs to the program of the other pipe.
    assert_eq!(visit_to(&switch, 0, 1), (5, 2));
    assert_eq!(arrivals(&mut left, 0xffff).await, [2]);
    assert_eq!(arrivals(&mut right, 0xffff).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_share_fixed_tables() {
    let (switch, mut left) = connected().await;
    load(&mut left, vec![config("left", &[0]), config("right", &[1])]).await;
    left.bind("left").await.unwrap();
    let mut right = Client::connect(&switch.switch, 1, "right").await;
    let data = vec![
        ("$MULTICAST_RID", number(7)),
        ("$MULTICAST_LAG_ID", ints(&[])),
        ("$DEV_PORT", ints(&[1])),
    ];
    let node = left.entry("$pre.node", &[("$MULTICAST_NODE_ID", Exact(1))], "", data);
    left.write(Type::Insert, node.clone()).await.unwrap();
    let rows = right.read("$pre.node", node.clone()).await.unwrap();
    assert_eq!(value(rows[0].get("$MULTICAST_RID")), 7);
    assert_eq!(
        right.write(Type::Insert, node).await,
        Err(Code::AlreadyExists)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pipe_needs_one_program() {
    let (_switch, mut client) = connected().await;
    for (scopes, fault) in [
        ([vec![0], vec![0, 1]], "pipe 0 has several"),
        ([vec![0], vec![]], "pipe 1 has none"),
        ([vec![0], vec![1, 2]], "unknown pipe 2"),
    ] {
        let config = vec![config("left", &scopes[0]), config("right", &scopes[1])];
        let refused = set(&mut client, Action::VerifyAndWarmInitBegin, config).await;
        let status = refused.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(fault), "{status:?}");
    }
    let same = vec![config("left", &[0]), config("left", &[1])];
    let refused = set(&mut client, Action::Verify, same).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
}
