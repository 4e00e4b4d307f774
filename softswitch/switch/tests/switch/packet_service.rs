// SPDX-License-Identifier: Apache-2.0
//! BMv2's service of packets instead of network interfaces.

use softswitch::address::Address;
use softswitch::proto::p4::bm::dataplane_interface_client::DataplaneInterfaceClient;
use softswitch::proto::p4::bm::{
    PacketStreamRequest, PacketStreamResponse, PortOperStatus, SetPortOperStatusRequest,
};
use softswitch::switch::Config;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

use crate::common::features::{self, frame, l2};
use crate::common::{Controller, DEVICE, TEST_TIMEOUT, TestSwitch};

type Client = DataplaneInterfaceClient<Channel>;

/// A switch that forwards frames to address 2 to port 7, and a client of its packets.
async fn start() -> (TestSwitch, Controller, Client) {
    let configure = |config: Config| Config {
        packets: Some(Address::Tcp("127.0.0.1:0".into())),
        ..config
    };
    let switch = TestSwitch::start_with(0, &[], configure).await;
    let mut controller = switch.controller_with(features::config()).await;
    controller.insert(l2(5, 2, "forward", &[7])).await.unwrap();
    let address = switch.switch.packets_address.as_ref().unwrap();
    let client = Client::connect(format!("http://{address}")).await.unwrap();
    (switch, controller, client)
}

fn request(id: u64, device_id: u64) -> PacketStreamRequest {
    PacketStreamRequest {
        id,
        device_id,
        port: 5,
        packet: frame(2, 1, 0x1234, b"hello"),
    }
}

async fn open(
    client: &mut Client,
) -> (
    mpsc::Sender<PacketStreamRequest>,
    Streaming<PacketStreamResponse>,
) {
    let (sender, requests) = mpsc::channel(16);
    let responses = client.packet_stream(ReceiverStream::new(requests)).await;
    (sender, responses.unwrap().into_inner())
}

async fn next(responses: &mut Streaming<PacketStreamResponse>) -> Option<PacketStreamResponse> {
    let response = tokio::time::timeout(TEST_TIMEOUT, responses.message()).await;
    response.expect("no packet in time").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_return_with_their_number_until_the_client_closes() {
    let (_switch, _controller, mut client) = start().await;
    let (sender, mut responses) = open(&mut client).await;
    // Packets for other devices and empty ones are ignored.
    sender.send(request(1, DEVICE + 1)).await.unwrap();
    let empty = PacketStreamRequest {
        packet: Vec::new(),
        ..request(2, DEVICE)
    };
    sender.send(empty).await.unwrap();
    for id in [0, 3, u64::MAX] {
        sender.send(request(id, DEVICE)).await.unwrap();
        let expected = PacketStreamResponse {
            id,
            device_id: DEVICE,
            port: 7,
            packet: frame(2, 1, 0x1234, b"hello"),
        };
        assert_eq!(next(&mut responses).await, Some(expected));
    }
    sender.send(request(9, DEVICE)).await.unwrap();
    drop(sender);
    assert_eq!(next(&mut responses).await.map(|r| r.id), Some(9));
    assert_eq!(next(&mut responses).await, None);
    // Another client can now take its place.
    let (sender, mut responses) = open(&mut client).await;
    sender.send(request(10, DEVICE)).await.unwrap();
    assert_eq!(next(&mut responses).await.map(|r| r.id), Some(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn second_client_and_invalid_port_states_are_refused() {
    let (_switch, _controller, mut client) = start().await;
    let _first = open(&mut client).await;
    let second = client
        .packet_stream(tokio_stream::empty::<PacketStreamRequest>())
        .await;
    assert_eq!(second.unwrap_err().code(), Code::ResourceExhausted);
    let status = |device_id, status: PortOperStatus| SetPortOperStatusRequest {
        device_id,
        port: 5,
        oper_status: status.into(),
    };
    for (device, state) in [
        (DEVICE + 1, PortOperStatus::OperStatusUp),
        (DEVICE, PortOperStatus::OperStatusUnknown),
    ] {
        let error = client.set_port_oper_status(status(device, state)).await;
        assert_eq!(error.unwrap_err().code(), Code::InvalidArgument);
    }
    for state in [PortOperStatus::OperStatusDown, PortOperStatus::OperStatusUp] {
        let done = client.set_port_oper_status(status(DEVICE, state)).await;
        done.unwrap();
    }
}
