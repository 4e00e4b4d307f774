// SPDX-License-Identifier: Apache-2.0
//! Batches (P4Runtime specification, sections "Write RPC", "Batch Atomicity" and "Error Reporting").

use crate::common::features::{self, direct, entry, group, l2, member, replica, route, spread};
use crate::common::{Controller, IntoEntity, TestSwitch, update};
use p4::table_action::Type as ActionKind;
use p4::update::Type::{Delete, Insert, Modify};
use p4::write_request::Atomicity;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

const ALL_OR_NONE: [Atomicity; 2] = [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic];

async fn start() -> (TestSwitch, Controller) {
    TestSwitch::with_features(2, &[]).await
}

fn by_group() -> p4::TableEntry {
    spread(1, ActionKind::ActionProfileGroupId(1))
}

fn register(value: u8) -> p4::RegisterEntry {
    p4::RegisterEntry {
        register_id: features::register("scratch"),
        index: Some(p4::Index { index: 3 }),
        data: Some(p4::P4Data {
            data: Some(p4::p4_data::Data::Bitstring(vec![value].into())),
        }),
    }
}

fn digest(size: i32) -> p4::DigestEntry {
    p4::DigestEntry {
        digest_id: features::digest("learn_t"),
        config: Some(p4::digest_entry::Config {
            max_list_size: size,
            ..Default::default()
        }),
    }
}

fn counted(packets: i64) -> p4::TableEntry {
    p4::TableEntry {
        counter_data: Some(p4::CounterData {
            byte_count: 1,
            packet_count: packets,
        }),
        meter_config: Some(p4::MeterConfig {
            cir: 5,
            pir: packets + 5,
            ..Default::default()
        }),
        metadata: format!("{packets}").into(),
        ..route(0x0a00_0000, 8, 1)
    }
}

/// The default entry of the same table.
fn counted_default(packets: i64) -> p4::TableEntry {
    p4::TableEntry {
        is_default_action: true,
        r#match: vec![],
        ..counted(packets)
    }
}

fn direct_counter(of: p4::TableEntry, packets: i64) -> p4::DirectCounterEntry {
    p4::DirectCounterEntry {
        table_entry: Some(of),
        data: counted(packets).counter_data,
    }
}

fn direct_meter(of: p4::TableEntry, packets: i64) -> p4::DirectMeterEntry {
    p4::DirectMeterEntry {
        table_entry: Some(of),
        config: counted(packets).meter_config,
        counter_data: None,
    }
}

/// Returns all entities that the batches of this file change.
async fn state(c: &mut Controller) -> Vec<p4::Entity> {
    let requests = vec![
        p4::TableEntry {
            counter_data: Some(Default::default()),
            meter_config: Some(Default::default()),
            ..Default::default()
        }
        .entity(),
        p4::TableEntry {
            is_default_action: true,
            counter_data: Some(Default::default()),
            meter_config: Some(Default::default()),
            ..Default::default()
        }
        .entity(),
        p4::ActionProfileMember::default().entity(),
        p4::ActionProfileGroup::default().entity(),
        p4::CounterEntry::default().entity(),
        p4::MeterEntry::default().entity(),
        p4::RegisterEntry::default().entity(),
        p4::ValueSetEntry::default().entity(),
        p4::PacketReplicationEngineEntry::default().entity(),
        p4::DigestEntry::default().entity(),
    ];
    c.read_all(requests).await.unwrap().0
}

/// Returns valid updates that depend on each other, at least one of each kind.
fn dependent() -> Vec<p4::Update> {
    let default = p4::TableEntry {
        is_default_action: true,
        ..entry("acl", &[], direct("drop", &[]))
    };
    vec![
        update(Insert, member(1, 1)),
        update(Insert, member(2, 2)),
        update(Insert, group(1, &[(1, 1), (2, 1)])),
        update(Insert, by_group()),
        update(Modify, member(1, 2)),
        update(Modify, group(1, &[(2, 1)])),
        update(Delete, member(1, 0)),
        update(Insert, counted(1)),
        update(Modify, counted(2)),
        update(Insert, l2(1, 2, "forward", &[2])),
        update(Delete, l2(1, 2, "forward", &[2])),
        update(Modify, default),
        update(Modify, counted_default(3)),
        update(Modify, direct_counter(counted_default(0), 4)),
        update(Modify, direct_meter(counted_default(0), 4)),
        update(Modify, register(7)),
        update(Insert, features::multicast_group(1, vec![replica(1, 0)])),
        update(Modify, features::multicast_group(1, vec![replica(2, 0)])),
        update(Insert, features::clone_session(1, vec![replica(1, 0)])),
        update(Insert, digest(1)),
        update(Modify, digest(2)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn atomic_batch_applies_all_valid_updates() {
    for atomicity in ALL_OR_NONE {
        let (_switch, mut c) = start().await;
        c.write_batch(atomicity, dependent()).await.unwrap();
        let read = c.read_table(entry("spread", &[], None)).await;
        assert_eq!(read, [by_group()], "{atomicity:?}");
        assert_eq!(c.read_one(register(0)).await, register(7).entity());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn atomic_batch_applies_nothing_after_failure() {
    for atomicity in ALL_OR_NONE {
        for (failing, code) in [
            // One fault that P4Info reveals, and one that is found only when the update is applied.
            (
                update(Insert, l2(1, 3, "forward", &[512])),
                Code::OutOfRange,
            ),
            (update(Delete, l2(1, 3, "forward", &[2])), Code::NotFound),
        ] {
            let (_switch, mut c) = start().await;
            let before = state(&mut c).await;
            let mut batch = dependent();
            batch.push(failing);
            let mut errors = c.write_batch(atomicity, batch).await.unwrap_err();
            // One error for each update, in their order.
            assert_eq!(errors.pop().unwrap().0, code);
            assert_eq!(errors.len(), dependent().len());
            assert!(errors.iter().all(|(code, _)| *code == Code::Aborted));
            assert_eq!(state(&mut c).await, before, "{atomicity:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_batch_restores_previous_state() {
    let (_switch, mut c) = start().await;
    c.write(dependent()).await.unwrap();
    let before = state(&mut c).await;
    let reset = p4::TableEntry {
        is_default_action: true,
        ..entry("routes", &[], None)
    };
    let batch = vec![
        update(Modify, direct_counter(counted(0), 8)),
        update(Modify, direct_meter(counted(0), 8)),
        update(Modify, reset.clone()),
        update(Modify, direct_counter(reset.clone(), 8)),
        update(Modify, direct_meter(reset, 8)),
        update(Modify, counted(9)),
        update(Delete, counted(0)),
        update(Delete, by_group()),
        update(Delete, group(1, &[])),
        update(Delete, member(2, 0)),
        update(Modify, register(0)),
        update(Delete, features::multicast_group(1, vec![])),
        update(Modify, features::clone_session(1, vec![replica(2, 1)])),
        update(Delete, digest(0)),
        update(Modify, digest(0)),
    ];
    let errors = c.write_batch(Atomicity::DataplaneAtomic, batch).await;
    assert_eq!(errors.unwrap_err()[14].0, Code::NotFound);
    assert_eq!(state(&mut c).await, before);
}

/// The table `routes` rewrites a frame's destination, and `l2` sends the frame to port 2 if it knows that
/// destination. Batches change both tables. With half a batch, the frame would return to port 1.
#[tokio::test(flavor = "multi_thread")]
async fn packets_never_see_partial_batch() {
    let (switch, mut c) = start().await;
    let via = |dst: u64| {
        let action = direct("route", &[dst, 1]);
        entry("routes", &[features::lpm(0x0a00_0000, 8)], action)
    };
    let known = |dst: u64| l2(1, dst, "forward", &[2]);
    let first = vec![update(Insert, via(0xa)), update(Insert, known(0xa))];
    c.write(first).await.unwrap();
    let change = move |from: u64, to: u64| {
        vec![
            update(Delete, known(from)),
            update(Modify, via(to)),
            update(Insert, known(to)),
        ]
    };
    let writing = tokio::spawn(async move {
        for _ in 0..50 {
            for (from, to) in [(0xa, 0xb), (0xb, 0xa)] {
                let mut failing = change(from, to);
                failing.push(update(Delete, known(0xc)));
                let failed = c.write_batch(Atomicity::DataplaneAtomic, failing).await;
                assert_eq!(failed.unwrap_err()[3].0, Code::NotFound);
                let good = change(from, to);
                c.write_batch(Atomicity::DataplaneAtomic, good)
                    .await
                    .unwrap();
            }
        }
    });
    let mut ipv4 = [0; 20];
    ipv4[0] = 0x45;
    ipv4[16] = 10;
    let frame = features::frame(1, 1, 0x0800, &ipv4);
    while !writing.is_finished() {
        switch.wires[0].send(&frame);
        switch.wires[1].receive();
    }
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_atomicity_is_refused() {
    let (_switch, mut c) = start().await;
    let request = p4::WriteRequest {
        device_id: crate::common::DEVICE,
        election_id: Some(crate::common::uint128(1)),
        atomicity: 17,
        ..Default::default()
    };
    let status = c.client.write(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}
