// SPDX-License-Identifier: Apache-2.0
//! Packets through a switch whose ports' other ends are in the test, and the messages to controllers.

use std::time::{Duration, Instant};

use crate::common::features::{self, direct, entry, exact, frame, l2, replica};
use crate::common::{CPU_PORT, Controller, IntoEntity, TestSwitch, update};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type;
use softswitch::proto::p4::v1 as p4;
use softswitch_queue::DEFAULT_CLASS_DEPTH;

/// Time after which a packet in flight has certainly arrived.
const A_WHILE: Duration = Duration::from_millis(300);

/// EtherType of frames with a `probe` header, which contains time stamps.
const PROBE: u16 = 0x88b5;

fn metadata(values: &[(u32, &'static [u8])]) -> Vec<p4::PacketMetadata> {
    let all = values.iter().map(|(id, value)| p4::PacketMetadata {
        metadata_id: *id,
        value: (*value).into(),
    });
    all.collect()
}

async fn next_packet(controller: &mut Controller) -> p4::PacketIn {
    match controller.receive().await.unwrap() {
        FromSwitch::Packet(packet) => packet,
        other => panic!("expected a packet, not {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_forwarded_unchanged_and_counted() {
    let (switch, mut controller) = TestSwitch::with_features(3, &[]).await;
    controller.insert(l2(1, 2, "forward", &[3])).await.unwrap();
    for len in [0, 1, 46, 1500, 9000] {
        let sent = frame(2, 1, 0x1234, &vec![7; len]);
        switch.wires[0].send(&sent);
        assert_eq!(switch.wires[2].receive(), sent);
    }
    // There is no entry for this address: the default action sends it to port 0, which does not exist.
    switch.wires[0].send(&frame(9, 1, 0x1234, b""));
    let counter = p4::CounterEntry {
        counter_id: features::counter("port_counter"),
        index: Some(p4::Index { index: 1 }),
        data: None,
    };
    let deadline = Instant::now() + crate::common::TEST_TIMEOUT;
    loop {
        let read = controller.read_one(counter).await;
        let expected = p4::CounterEntry {
            data: Some(p4::CounterData {
                packet_count: 6,
                byte_count: 10_547 + 6 * 14,
            }),
            ..counter
        };
        if read == expected.entity() {
            break;
        }
        assert!(Instant::now() < deadline, "{read:?}");
    }
    let metrics = switch.switch.metrics.prometheus();
    for line in [
        "softswitch_port_rx_packets_total{port=\"1\",interface=\"wire1\"} 6\n",
        "softswitch_port_tx_packets_total{port=\"3\",interface=\"wire3\"} 5\n",
        "softswitch_drops_total{cause=\"no_such_port\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_and_clone_copies_leave_through_their_ports() {
    let (switch, mut controller) = TestSwitch::with_features(3, &[]).await;
    let group = features::multicast_group(4, vec![replica(2, 0), replica(3, 0)]);
    controller.insert(group).await.unwrap();
    controller.insert(l2(1, 0xff, "flood", &[4])).await.unwrap();
    let flooded = frame(0xff, 1, 0x1234, b"to all");
    switch.wires[0].send(&flooded);
    assert_eq!(switch.wires[1].receive(), flooded);
    assert_eq!(switch.wires[2].receive(), flooded);
    assert_eq!(switch.wires[0].receive_within(A_WHILE), None);

    let session = features::clone_session(5, vec![replica(3, 0), replica(CPU_PORT.into(), 0)]);
    controller.insert(session).await.unwrap();
    controller.insert(l2(1, 2, "mirror", &[2])).await.unwrap();
    let mirrored = frame(2, 1, 0x1234, b"seen twice");
    switch.wires[0].send(&mirrored);
    assert_eq!(switch.wires[1].receive(), mirrored);
    assert_eq!(switch.wires[2].receive(), mirrored);
    assert_eq!(next_packet(&mut controller).await.payload, mirrored);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_to_and_from_controllers_carry_their_metadata() {
    let (switch, mut controller) = TestSwitch::with_features(2, &[]).await;
    controller.insert(l2(2, 5, "to_cpu", &[])).await.unwrap();
    let sent = frame(5, 1, 0x1234, b"for the controller");
    switch.wires[1].send(&sent);
    let packet = next_packet(&mut controller).await;
    assert_eq!(packet.payload, sent);
    assert_eq!(packet.metadata, metadata(&[(1, b"\x02"), (2, b"\x01")]));

    let out = p4::PacketOut {
        payload: frame(1, 2, 0x1234, b"from the controller").into(),
        metadata: metadata(&[(1, b"\x01"), (2, b"\x00")]),
    };
    controller.send(ToSwitch::Packet(out.clone())).await;
    assert_eq!(switch.wires[0].receive(), out.payload);

    let incomplete = p4::PacketOut {
        metadata: metadata(&[(1, b"\x01")]),
        ..out.clone()
    };
    controller.send(ToSwitch::Packet(incomplete)).await;
    assert_eq!(
        switch.wires[0].receive(),
        out.payload,
        "the padding is zero"
    );

    let repeated = p4::PacketOut {
        metadata: metadata(&[(1, b"\x01"), (2, b"\x00"), (2, b"\x00")]),
        ..out
    };
    controller.send(ToSwitch::Packet(repeated)).await;
    match controller.receive().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, tonic::Code::InvalidArgument as i32);
            assert!(
                error.message.contains("metadata 2 (pad)"),
                "{}",
                error.message
            );
        }
        other => panic!("expected an error, not {other:?}"),
    }
    assert_eq!(switch.wires[0].receive_within(A_WHILE), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_are_listed_and_acknowledged_ones_not_repeated() {
    let (switch, mut controller) = TestSwitch::with_features(2, &[]).await;
    let digest_id = features::digest("learn_t");
    let config = p4::digest_entry::Config {
        max_timeout_ns: 50_000_000,
        max_list_size: 2,
        ack_timeout_ns: 3_600_000_000_000,
    };
    // A digest that is not enabled is not sent.
    switch.wires[0].send(&frame(9, 99, 0x1234, b""));
    tokio::time::sleep(A_WHILE).await;
    controller
        .insert(p4::DigestEntry {
            digest_id,
            config: Some(config),
        })
        .await
        .unwrap();
    let mut next_list = async || match controller.receive().await.unwrap() {
        FromSwitch::Digest(list) => list,
        other => panic!("expected digests, not {other:?}"),
    };
    for src in [1, 2, 1] {
        switch.wires[0].send(&frame(9, src, 0x1234, b""));
    }
    let full = next_list().await;
    assert_eq!((full.digest_id, full.data.len()), (digest_id, 2));
    use p4::p4_data::Data;
    let bits = |v: u8| p4::P4Data {
        data: Some(Data::Bitstring(vec![v].into())),
    };
    let learned = p4::P4StructLike {
        members: vec![bits(1), bits(1)],
    };
    assert_eq!(full.data[0].data, Some(Data::Struct(learned)));

    // A single message is sent after the time-out.
    let sent = Instant::now();
    switch.wires[1].send(&frame(9, 3, 0x1234, b""));
    let single = next_list().await;
    assert_eq!(single.data.len(), 1);
    assert!(sent.elapsed() >= Duration::from_millis(50));
    assert!(single.list_id > full.list_id);

    // An unacknowledged message is not repeated; an acknowledged one is sent again.
    let ack = p4::DigestListAck {
        digest_id,
        list_id: full.list_id,
    };
    controller.send(ToSwitch::DigestAck(ack)).await;
    tokio::time::sleep(A_WHILE).await;
    switch.wires[1].send(&frame(9, 3, 0x1234, b""));
    switch.wires[0].send(&frame(9, 1, 0x1234, b""));
    let mut next_list = async || match controller.receive().await.unwrap() {
        FromSwitch::Digest(list) => list,
        other => panic!("expected digests, not {other:?}"),
    };
    assert_eq!(next_list().await.data, [full.data[0].clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_entries_are_reported_until_they_are_hit() {
    let (switch, mut controller) = TestSwitch::with_features(1, &[]).await;
    let idle = p4::TableEntry {
        idle_timeout_ns: 200_000_000,
        metadata: "mine".into(),
        ..entry("seen", &[exact(7)], direct("NoAction", &[]))
    };
    controller.insert(idle.clone()).await.unwrap();
    let inserted = Instant::now();
    for _ in 0..2 {
        match controller.receive().await.unwrap() {
            FromSwitch::IdleTimeoutNotification(n) => {
                let expected = p4::TableEntry {
                    action: None,
                    ..idle.clone()
                };
                assert_eq!(n.table_entry, [expected]);
            }
            other => panic!("expected a notification, not {other:?}"),
        }
    }
    assert!(inserted.elapsed() >= Duration::from_millis(400));
    let hit = Instant::now();
    switch.wires[0].send(&frame(1, 7, 0x1234, b""));
    let request = p4::TableEntry {
        time_since_last_hit: Some(Default::default()),
        ..entry("seen", &[exact(7)], None)
    };
    loop {
        let read = controller.read_table(request.clone()).await.remove(0);
        let elapsed = read.time_since_last_hit.unwrap().elapsed_ns;
        if u128::try_from(elapsed).unwrap() <= hit.elapsed().as_nanos() {
            break;
        }
        assert!(
            hit.elapsed() < crate::common::TEST_TIMEOUT,
            "the switch did not record the hit"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn link_spaces_frames_exactly_and_egress_sees_queue() {
    // 1,000 bytes take 160 ms at 50 kbit/s.
    let (switch, mut controller) =
        TestSwitch::with_features(2, &["2:rate=50kbit,queue-packets=5,delay=10ms"]).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    let sent = Instant::now();
    for n in 0..10 {
        switch.wires[0].send(&frame(2, 1, PROBE, &[n; 986]));
    }
    let mut deltas = Vec::new();
    let mut depths = Vec::new();
    for _ in 0..6 {
        let frame = switch.wires[1].receive();
        assert_eq!(frame.len(), 1000);
        let number = |range: std::ops::Range<usize>| {
            frame[range]
                .iter()
                .fold(0u64, |n, b| n << 8 | u64::from(*b))
        };
        deltas.push((number(14..20), number(20..24)));
        depths.push((number(24..27), number(27..30)));
    }
    let elapsed = sent.elapsed();
    assert!(
        elapsed >= Duration::from_millis(6 * 160 + 10),
        "{elapsed:?}"
    );
    // The first is sent at once, the queue holds 5, and 4 are dropped.
    assert_eq!(depths, [(0, 0), (0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]);
    // Departures are 160 ms apart and do not depend on the time of enqueueing (in microseconds).
    let departures: Vec<_> = deltas
        .iter()
        .map(|(enqueued, waited)| enqueued + waited)
        .collect();
    for pair in departures.windows(2) {
        assert!(pair[1].abs_diff(pair[0] + 160_000) <= 2, "{departures:?}");
    }
    assert_eq!(switch.wires[1].receive_within(A_WHILE), None);
    let metrics = switch.switch.metrics.prometheus();
    assert!(
        metrics.contains("drops_total{port=\"2\",interface=\"wire2\",cause=\"tail_drop\"} 4"),
        "{metrics}"
    );
}

/// Returns the number of frames to port 2 that found the queue full.
fn tail_drops(switch: &TestSwitch) -> usize {
    let metrics = switch.switch.metrics.prometheus();
    let (_, rest) = metrics
        .split_once("drops_total{port=\"2\",interface=\"wire2\",cause=\"tail_drop\"} ")
        .unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_wait_in_queue_while_interface_accepts_none() {
    let (switch, mut controller) = TestSwitch::with_features(2, &[]).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    let (wire, far) = (&switch.wires[0], &switch.wires[1]);
    far.shut(true);
    let (begin, mut sent) = (Instant::now(), 0u32);
    while tail_drops(&switch) == 0 {
        assert!(begin.elapsed() < crate::common::TEST_TIMEOUT);
        wire.send(&frame(
            2,
            1,
            PROBE,
            &[&[0; 16][..], &sent.to_be_bytes()].concat(),
        ));
        sent += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The last frames wait at the port's input at most.
    tokio::time::sleep(A_WHILE).await;
    let kept = sent as usize - tail_drops(&switch);
    assert!(kept >= DEFAULT_CLASS_DEPTH as usize, "{kept} of {sent}");
    far.shut(false);
    let depth = |frame: &[u8]| u32::from_be_bytes([0, frame[24], frame[25], frame[26]]);
    let frames: Vec<_> = (0..kept).map(|_| far.receive()).collect();
    let numbers: Vec<_> = frames
        .iter()
        .map(|frame| u32::from_be_bytes(frame[30..34].try_into().unwrap()))
        .collect();
    assert!(numbers.is_sorted() && numbers.iter().all(|n| *n < sent));
    let deepest = frames.iter().map(|frame| depth(frame)).max();
    assert_eq!(deepest, Some(DEFAULT_CLASS_DEPTH as u32 - 1));
    // The queue is empty again, and its packets waited at least as long as the interface was shut.
    let last = frames.last().unwrap();
    let waited = u32::from_be_bytes(last[20..24].try_into().unwrap());
    assert!(waited >= A_WHILE.as_micros() as u32, "{waited} us");
    wire.send(&frame(2, 1, PROBE, &[0; 20]));
    assert_eq!(depth(&far.receive()), 0);
    assert_eq!(far.receive_within(A_WHILE), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn urgent_packets_overtake() {
    let (switch, mut controller) = TestSwitch::with_features(2, &["2:rate=50kbit"]).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    controller
        .insert(l2(1, 3, "forward_urgent", &[2, 7]))
        .await
        .unwrap();
    for dst in [2, 2, 2, 3] {
        switch.wires[0].send(&frame(dst, 1, 0x1234, &[0; 1236]));
    }
    let order: Vec<_> = (0..4).map(|_| switch.wires[1].receive()[5]).collect();
    assert_eq!(order, [2, 3, 2, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_forwarded_during_bulk_writes_and_new_programs() {
    let (switch, mut controller) = TestSwitch::with_features(2, &["2:rate=10mbit"]).await;
    let rule = || l2(1, 2, "forward", &[2]);
    controller.insert(rule()).await.unwrap();
    let TestSwitch {
        switch: _switch,
        wires,
    } = switch;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = std::sync::Arc::clone(&done);
    let traffic = std::thread::spawn(move || {
        let mut received = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            wires[0].send(&frame(2, 1, 0x1234, &[5; 100]));
            // Every frame is either complete or missing.
            if let Some(frame) = wires[1].receive_within(Duration::from_millis(50)) {
                assert_eq!(frame.len(), 114);
                received += 1;
            }
        }
        received
    });
    for round in 0..3 {
        let updates = (0..5000).map(|n| update(Type::Insert, l2(7, n, "forward", &[2])));
        controller.write(updates.collect()).await.unwrap();
        controller.set_pipeline(features::config()).await.unwrap();
        controller
            .insert(rule())
            .await
            .unwrap_or_else(|e| panic!("round {round}: {e:?}"));
    }
    tokio::time::sleep(A_WHILE).await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(traffic.join().unwrap() > 10);
}
