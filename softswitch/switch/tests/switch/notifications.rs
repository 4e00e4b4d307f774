// SPDX-License-Identifier: Apache-2.0
//! Digests for nanomsg subscribers, as p4-utils' controllers receive them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use softswitch::notifications::Notifications;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::thrift::Config;
use softswitch_thrift::client::Client;

use crate::common::features::{self, frame};
use crate::common::{DEVICE, TEST_TIMEOUT, TestSwitch};

/// Starts a switch with the program, without P4Info, a Thrift client and a subscriber.
async fn start() -> (TestSwitch, Client, TcpStream) {
    let json = String::from_utf8(features::config().p4_device_config.to_vec()).unwrap();
    let address = "tcp://127.0.0.1:0".parse().unwrap();
    let notifications = Notifications::bind(address, DEVICE).await.unwrap();
    let switch = TestSwitch::start_with(1, &[], |config| softswitch::switch::Config {
        program: Some(LoadedProgram::load(json).unwrap()),
        thrift: Some(Config {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            enable_swap: true,
            priority_queues: 1,
        }),
        notifications: Some(notifications),
        ..config
    })
    .await;
    let mut client = Client::connect(switch.switch.thrift.as_ref().unwrap().address()).unwrap();
    let socket = client
        .bm_mgmt_get_info()
        .unwrap()
        .notifications_socket
        .unwrap();
    let mut subscriber = TcpStream::connect(socket.strip_prefix("tcp://").unwrap()).unwrap();
    subscriber.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    subscriber.write_all(b"\0SP\0\0\x21\0\0").unwrap();
    assert_eq!(read(&mut subscriber, 8), b"\0SP\0\0\x20\0\0");
    (switch, client, subscriber)
}

fn read(stream: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    stream
        .read_exact(&mut bytes)
        .expect("no notification in time");
    bytes
}

/// A received message: the id of its list, its buffer, and its samples.
fn receive(stream: &mut TcpStream) -> (i32, i64, Vec<u8>) {
    let len = u64::from_be_bytes(read(stream, 8).try_into().unwrap());
    let message = read(stream, len as usize);
    assert_eq!(message[..4], *b"LEA|");
    assert_eq!(message[4..12], DEVICE.to_le_bytes());
    let list = i32::from_le_bytes(message[16..20].try_into().unwrap());
    let buffer = i64::from_le_bytes(message[20..28].try_into().unwrap());
    let samples = u32::from_le_bytes(message[28..32].try_into().unwrap()) as usize;
    assert_eq!(message.len(), 32 + 8 * samples);
    (list, buffer, message[32..].to_vec())
}

/// The sample of a packet on port 1 from this source.
fn sample(source: u8) -> Vec<u8> {
    vec![0, 0, 0, 0, 0, source, 0, 1]
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_is_sent_again_after_its_acknowledgement() {
    let (switch, mut client, mut subscriber) = start().await;
    let packet = |source: u64| switch.wires[0].send(&frame(9, source, 0x1234, b""));
    packet(5);
    let (list, buffer, samples) = receive(&mut subscriber);
    assert_eq!((buffer, samples), (0, sample(5)));
    packet(5);
    packet(6);
    assert_eq!(
        receive(&mut subscriber),
        (list, 1, sample(6)),
        "the first sample was not acknowledged"
    );
    client.bm_learning_ack_buffer(0, list, buffer).unwrap();
    packet(5);
    assert_eq!(receive(&mut subscriber), (list, 2, sample(5)));
    client.bm_learning_ack(0, list, 1, vec![0]).unwrap();
    packet(6);
    assert_eq!(receive(&mut subscriber), (list, 3, sample(6)));
    client.bm_reset_state().unwrap();
    packet(6);
    assert_eq!(receive(&mut subscriber), (list, 0, sample(6)));
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_wait_for_size_or_timeout() {
    let (switch, mut client, mut subscriber) = start().await;
    let packet = |source: u64| switch.wires[0].send(&frame(9, source, 0x1234, b""));
    packet(1);
    let (list, ..) = receive(&mut subscriber);
    client.bm_learning_set_buffer_size(0, list, 3).unwrap();
    client.bm_learning_set_timeout(0, list, 0).unwrap();
    (2..=4).for_each(packet);
    assert_eq!(
        receive(&mut subscriber),
        (list, 1, [sample(2), sample(3), sample(4)].concat())
    );
    client.bm_learning_set_timeout(0, list, 20).unwrap();
    packet(5);
    assert_eq!(receive(&mut subscriber), (list, 2, sample(5)));
    for refused in [
        client.bm_learning_set_timeout(0, list, -1),
        client.bm_learning_set_buffer_size(0, list, -1),
        client.bm_learning_ack_buffer(0, 77, 0),
    ] {
        assert!(refused.is_err());
    }
}
