// SPDX-License-Identifier: Apache-2.0
//! Digests, idle entries and ports for nanomsg subscribers, such as p4-utils' controllers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use softswitch::notifications::Notifications;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::p4::v1 as p4;
use softswitch::thrift::Config;
use softswitch_thrift::client::Client;
use softswitch_thrift::interface::{EntryOptions, MatchExact, MatchParam, match_kind, resource};
use softswitch_thrift::wire::Binary;

use crate::common::features::{self, frame};
use crate::common::network::{ip, with_veths};
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

/// Receives the next message with a topic; returns the rest of its header, after the device, and its content.
fn receive_topic(stream: &mut TcpStream, topic: &[u8; 4]) -> (Vec<u8>, Vec<u8>) {
    loop {
        let len = u64::from_be_bytes(read(stream, 8).try_into().unwrap());
        let message = read(stream, len as usize);
        assert_eq!(message[4..12], DEVICE.to_le_bytes());
        if message[..4] == *topic {
            return (message[12..32].to_vec(), message[32..].to_vec());
        }
    }
}

/// Receives samples: the id of their list, their buffer, and the samples.
fn receive(stream: &mut TcpStream) -> (i32, i64, Vec<u8>) {
    let (header, samples) = receive_topic(stream, b"LEA|");
    let list = i32::from_le_bytes(header[4..8].try_into().unwrap());
    let buffer = i64::from_le_bytes(header[8..16].try_into().unwrap());
    let count = u32::from_le_bytes(header[16..20].try_into().unwrap()) as usize;
    assert_eq!(samples.len(), 8 * count);
    (list, buffer, samples)
}

/// Decodes numbers of 32 bits.
fn numbers(bytes: &[u8]) -> Vec<i32> {
    let words = bytes.chunks_exact(4);
    assert!(words.remainder().is_empty(), "{bytes:?}");
    let number = |word: &[u8]| i32::from_le_bytes(word.try_into().unwrap());
    words.map(number).collect()
}

/// Receives idle entries: the id of their table, their buffer, and their handles.
fn receive_idle(stream: &mut TcpStream) -> (i32, i64, Vec<i32>) {
    let (header, handles) = receive_topic(stream, b"AGE|");
    let buffer = i64::from_le_bytes(header[4..12].try_into().unwrap());
    let counts = numbers(&header[12..]);
    let handles = numbers(&handles);
    assert_eq!(handles.len() as i32, counts[1]);
    (counts[0], buffer, handles)
}

/// Receives messages about ports until one is about this port; returns whether it is up.
fn receive_port(stream: &mut TcpStream, port: i32) -> bool {
    loop {
        let (header, states) = receive_topic(stream, b"PRT|");
        let states = numbers(&states);
        let states: Vec<(i32, i32)> = states.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(header[..4], (states.len() as u32).to_le_bytes());
        assert_eq!(header[4..], [0; 16]);
        if let Some((_, state)) = states.iter().find(|(number, _)| *number == port) {
            assert!([0, 1].contains(state), "{states:?}");
            return *state == 1;
        }
    }
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

const SEEN: &str = "FeaturesIngress.seen";

/// Adds an entry of the table `seen`; returns its handle.
fn add_seen(client: &mut Client, source: u8) -> i32 {
    let key = MatchParam {
        kind: match_kind::EXACT,
        exact: Some(MatchExact {
            key: Binary(vec![0, 0, 0, 0, 0, source]),
        }),
        ..Default::default()
    };
    let options = EntryOptions::default();
    let (table, action) = (SEEN.into(), "NoAction".into());
    let added = client.bm_mt_add_entry(0, table, vec![key], action, vec![], options);
    added.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_entries_are_sent_until_they_are_hit() {
    let (switch, mut client, mut subscriber) = start().await;
    let table = client.bm_get_id_from_name(0, resource::TABLE, SEEN.into());
    let table = table.unwrap();
    let handles = [1, 2].map(|source| add_seen(&mut client, source));
    let begin = Instant::now();
    client
        .bm_mt_set_entry_ttl(0, SEEN.into(), handles[1], 100)
        .unwrap();
    for buffer in 0..3 {
        let expected = (table, buffer, vec![handles[1]]);
        assert_eq!(receive_idle(&mut subscriber), expected);
    }
    assert!(begin.elapsed() >= Duration::from_millis(300));
    client.bm_reset_state().unwrap();
    let handle = add_seen(&mut client, 3);
    client
        .bm_mt_set_entry_ttl(0, SEEN.into(), handle, 100)
        .unwrap();
    while receive_idle(&mut subscriber) != (table, 0, vec![handle]) {
        // Messages from before the reset.
    }
    drop(switch);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_entry_is_reported_to_subscribers_and_controllers() {
    let (switch, mut client, mut subscriber) = start().await;
    let mut controller = switch.controller_with(features::config()).await;
    let entry = p4::TableEntry {
        idle_timeout_ns: 50_000_000,
        ..features::entry(
            "seen",
            &[features::exact(7)],
            features::direct("NoAction", &[]),
        )
    };
    controller.insert(entry.clone()).await.unwrap();
    let handle = client.bm_mt_get_entries(0, SEEN.into()).unwrap()[0].entry_handle;
    let (_, buffer, handles) = receive_idle(&mut subscriber);
    assert_eq!((buffer, handles), (0, vec![handle]));
    match controller.receive().await.unwrap() {
        p4::stream_message_response::Update::IdleTimeoutNotification(list) => {
            assert_eq!(list.table_entry[0].r#match, entry.r#match);
        }
        other => panic!("expected a notification, not {other:?}"),
    }
}

#[test]
fn ports_that_go_up_or_down_are_sent() {
    with_veths(1, || {
        ip("link set lo up");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let (switch, mut client, mut subscriber) = start().await;
            client
                .bm_dev_mgr_add_port("p1".into(), 7, String::new())
                .unwrap();
            assert!(receive_port(&mut subscriber, 7), "the port was added");
            for (command, is_up) in [
                ("p1 down", false),
                ("p1 up", true),
                ("e1 down", false),
                ("e1 up", true),
            ] {
                ip(&format!("link set {command}"));
                assert_eq!(receive_port(&mut subscriber, 7), is_up, "{command}");
                let ports = client.bm_dev_mgr_show_ports().unwrap();
                assert_eq!((ports[1].port_num, ports[1].is_up), (7, is_up), "{command}");
            }
            switch.switch.stop().await;
        });
    });
}
