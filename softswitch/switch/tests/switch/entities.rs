// SPDX-License-Identifier: Apache-2.0
//! Entities other than table entries.

use crate::common::features::{
    self, call, direct, entry, exact, group, l2, member, range, replica, route, spread,
};
use crate::common::{Controller, IntoEntity, TestSwitch};
use p4::action_profile_group::member::WatchKind;
use p4::{p4_data::Data, table_action::Type as ActionKind};
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

async fn start() -> (TestSwitch, Controller) {
    TestSwitch::with_features(2, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_groups_are_written_and_read() {
    let (_switch, mut c) = start().await;
    for id in 1..=3 {
        c.insert(member(id, id.into())).await.unwrap();
    }
    assert_eq!(
        c.insert(member(1, 1)).await.unwrap_err().0,
        Code::AlreadyExists
    );
    assert_eq!(c.modify(member(9, 1)).await.unwrap_err().0, Code::NotFound);
    c.modify(member(3, 30)).await.unwrap();
    let all = p4::ActionProfileMember::default();
    assert_eq!(c.read(all).await.unwrap().len(), 3);
    let third = p4::ActionProfileMember {
        action: None,
        ..member(3, 0)
    };
    assert_eq!(c.read_one(third).await, member(3, 30).entity());

    let mut watched = group(7, &[(1, 2), (2, 1)]);
    watched.members[0].watch_kind = Some(WatchKind::WatchPort(vec![1].into()));
    c.insert(watched.clone()).await.unwrap();
    assert_eq!(
        c.read_one(p4::ActionProfileGroup::default()).await,
        watched.entity()
    );
    for (bad, expected) in [
        (group(8, &[(9, 1)]), Code::NotFound),
        (group(8, &[(1, 0)]), Code::InvalidArgument),
        (group(8, &[(1, 1), (1, 1)]), Code::InvalidArgument),
        (group(0, &[(1, 1)]), Code::InvalidArgument),
        (group(7, &[(1, 1)]), Code::AlreadyExists),
    ] {
        assert_eq!(
            c.insert(bad.clone()).await.unwrap_err().0,
            expected,
            "{bad:?}"
        );
    }
    let resized = p4::ActionProfileGroup {
        max_size: 4,
        ..group(7, &[(1, 1)])
    };
    assert_eq!(
        c.modify(resized).await.unwrap_err().0,
        Code::InvalidArgument
    );
    c.modify(group(7, &[(1, 2), (3, 1)])).await.unwrap();

    // Objects in use cannot be deleted.
    c.insert(spread(1, ActionKind::ActionProfileGroupId(7)))
        .await
        .unwrap();
    c.insert(spread(2, ActionKind::ActionProfileMemberId(2)))
        .await
        .unwrap();
    for used in [
        member(1, 0).entity(),
        member(2, 0).entity(),
        group(7, &[]).entity(),
    ] {
        assert_eq!(
            c.delete(used).await.unwrap_err().0,
            Code::FailedPrecondition
        );
    }
    let dangling = spread(3, ActionKind::ActionProfileGroupId(99));
    assert_eq!(c.insert(dangling).await.unwrap_err().0, Code::NotFound);
    c.delete(spread(1, ActionKind::ActionProfileGroupId(7)))
        .await
        .unwrap();
    c.delete(group(7, &[])).await.unwrap();
    c.delete(member(1, 0)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_action_sets_are_read_back_as_written() {
    let (_switch, mut c) = start().await;
    let set = |weights: &[i32]| {
        let actions = (1..)
            .zip(weights)
            .map(|(port, weight)| p4::ActionProfileAction {
                action: Some(call("forward", &[port])),
                weight: *weight,
                watch_kind: None,
            });
        let set = p4::ActionProfileActionSet {
            action_profile_actions: actions.collect(),
            ..Default::default()
        };
        spread(1, ActionKind::ActionProfileActionSet(set))
    };
    c.insert(set(&[2, 1, 1])).await.unwrap();
    assert_eq!(
        c.read_table(entry("spread", &[], None)).await,
        [set(&[2, 1, 1])]
    );
    c.modify(set(&[1])).await.unwrap();
    assert_eq!(
        c.modify(set(&[0])).await.unwrap_err().0,
        Code::InvalidArgument
    );
    assert_eq!(
        c.modify(set(&[-1])).await.unwrap_err().0,
        Code::InvalidArgument
    );
    let wrong_kind = entry("spread", &[exact(2)], direct("forward", &[1]));
    assert_eq!(
        c.insert(wrong_kind).await.unwrap_err().0,
        Code::InvalidArgument
    );
    assert_eq!(c.read_table(entry("spread", &[], None)).await, [set(&[1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_written_and_read() {
    let (_switch, mut c) = start().await;
    let cell = |index: Option<i64>, packets| p4::CounterEntry {
        counter_id: features::counter("port_counter"),
        index: index.map(|index| p4::Index { index }),
        data: Some(p4::CounterData {
            byte_count: 1,
            packet_count: packets,
        }),
    };
    c.modify(cell(Some(3), 5)).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(3), 0)).await,
        cell(Some(3), 5).entity()
    );
    let all = p4::CounterEntry::default();
    assert_eq!(c.read(all).await.unwrap().len(), 64);
    c.modify(cell(None, 9)).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(63), 0)).await,
        cell(Some(63), 9).entity()
    );
    let negative = c.modify(cell(Some(-1), 1)).await.unwrap_err();
    assert_eq!(negative.0, Code::InvalidArgument);
    assert_eq!(
        c.modify(cell(Some(64), 1)).await.unwrap_err().0,
        Code::OutOfRange
    );
    assert_eq!(
        c.modify(cell(Some(1), -1)).await.unwrap_err().0,
        Code::InvalidArgument
    );
    assert_eq!(
        c.insert(cell(Some(1), 1)).await.unwrap_err().0,
        Code::InvalidArgument
    );
    let unknown = p4::CounterEntry {
        counter_id: 5,
        ..cell(None, 1)
    };
    assert_eq!(
        c.modify(unknown).await.unwrap_err().0,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_counters_and_meters_are_written_and_read() {
    let (_switch, mut c) = start().await;
    let count = p4::CounterData {
        byte_count: 100,
        packet_count: 2,
    };
    let rates = p4::MeterConfig {
        cir: 1000,
        cburst: 100,
        pir: 2000,
        pburst: 200,
        eburst: 0,
    };
    let plain = route(0x0a00_0000, 8, 2);
    let full = p4::TableEntry {
        counter_data: Some(count),
        meter_config: Some(rates),
        ..plain.clone()
    };
    c.insert(full.clone()).await.unwrap();
    // Direct resources are returned only on request.
    let key = p4::TableEntry {
        action: None,
        ..plain.clone()
    };
    assert_eq!(
        c.read_table(key.clone()).await,
        std::slice::from_ref(&plain)
    );
    let asking = p4::TableEntry {
        counter_data: Some(Default::default()),
        meter_config: Some(Default::default()),
        ..key.clone()
    };
    assert_eq!(c.read_table(asking.clone()).await, [full]);
    let counter = |data| p4::DirectCounterEntry {
        table_entry: Some(key.clone()),
        data,
    };
    let meter = |config| p4::DirectMeterEntry {
        table_entry: Some(key.clone()),
        config,
        counter_data: None,
    };
    let more = p4::CounterData {
        byte_count: 500,
        packet_count: 5,
    };
    c.modify(counter(Some(more))).await.unwrap();
    let read = c.read_one(counter(None)).await;
    let expected = p4::DirectCounterEntry {
        table_entry: Some(plain.clone()),
        data: Some(more),
    };
    assert_eq!(read, expected.entity());
    // Without a configuration, all packets are green.
    c.modify(meter(None)).await.unwrap();
    assert_eq!(c.read_table(asking.clone()).await[0].meter_config, None);
    c.modify(meter(Some(rates))).await.unwrap();
    // A modification of the entry without a meter resets the meter, and keeps the counter.
    c.modify(plain.clone()).await.unwrap();
    let after = c.read_table(asking).await.remove(0);
    assert_eq!((after.meter_config, after.counter_data), (None, Some(more)));

    assert_eq!(
        c.insert(counter(None)).await.unwrap_err().0,
        Code::InvalidArgument
    );
    let absent = p4::DirectCounterEntry {
        table_entry: Some(route(0x0b00_0000, 8, 1)),
        data: Some(count),
    };
    assert_eq!(c.modify(absent).await.unwrap_err().0, Code::NotFound);
    let without = p4::DirectCounterEntry {
        table_entry: Some(entry("l2", &[exact(1), exact(1)], None)),
        data: None,
    };
    assert_eq!(
        c.modify(without).await.unwrap_err().0,
        Code::InvalidArgument
    );
    // Including another table's two constant entries.
    let all = p4::DirectCounterEntry::default();
    assert_eq!(c.read(all).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_are_written_and_read() {
    let (_switch, mut c) = start().await;
    let cell = |index: Option<i64>, config| p4::MeterEntry {
        meter_id: features::meter("port_meter"),
        index: index.map(|index| p4::Index { index }),
        config,
        counter_data: None,
    };
    let rates = p4::MeterConfig {
        cir: 10,
        cburst: 1,
        pir: 20,
        pburst: 2,
        eburst: 0,
    };
    c.modify(cell(Some(1), Some(rates))).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(1), None)).await,
        cell(Some(1), Some(rates)).entity()
    );
    assert_eq!(c.read(p4::MeterEntry::default()).await.unwrap().len(), 16);
    c.modify(cell(None, None)).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(1), None)).await,
        cell(Some(1), None).entity()
    );
    for bad in [
        p4::MeterConfig { cir: -1, ..rates },
        p4::MeterConfig { pir: 5, ..rates },
        p4::MeterConfig { eburst: 1, ..rates },
    ] {
        let error = c.modify(cell(Some(1), Some(bad))).await.unwrap_err();
        assert_eq!(error.0, Code::InvalidArgument);
    }
    assert_eq!(
        c.modify(cell(Some(16), None)).await.unwrap_err().0,
        Code::OutOfRange
    );
}

/// Colour counters and meters with one rate (sections "MeterEntry & DirectMeterEntry" and "MeterCounterData").
#[tokio::test(flavor = "multi_thread")]
async fn meters_count_packets_of_each_colour() {
    let (switch, mut c) = TestSwitch::with_features(2, &[]).await;
    let cell = |config, counter_data| p4::MeterEntry {
        meter_id: features::meter("port_meter"),
        index: Some(p4::Index { index: 1 }),
        config,
        counter_data,
    };
    let rates = p4::MeterConfig {
        cir: 0,
        cburst: 1,
        pir: 0,
        pburst: 3,
        eburst: 0,
    };
    c.modify(cell(Some(rates), None)).await.unwrap();
    c.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    let frame = features::frame(2, 1, 0x1234, b"metered");
    for _ in 0..5 {
        switch.wires[0].send(&frame);
        switch.wires[1].receive();
    }
    let count = |packets: i64| {
        Some(p4::CounterData {
            byte_count: packets * frame.len() as i64,
            packet_count: packets,
        })
    };
    let counted = p4::MeterCounterData {
        green: count(1),
        yellow: count(2),
        red: count(2),
    };
    let read = c.read_one(cell(None, Some(Default::default()))).await;
    assert_eq!(read, cell(Some(rates), Some(counted)).entity());
    // Without a request for them, the counters are not read; other values than 0 cannot be written.
    assert_eq!(
        c.read_one(cell(None, None)).await,
        cell(Some(rates), None).entity()
    );
    let error = c
        .modify(cell(Some(rates), Some(counted)))
        .await
        .unwrap_err();
    assert_eq!(error.0, Code::InvalidArgument);
    // A new configuration keeps them; a write with counters resets them.
    c.modify(cell(None, None)).await.unwrap();
    let read = c.read_one(cell(None, Some(Default::default()))).await;
    assert_eq!(read, cell(None, Some(counted)).entity());
    c.modify(cell(None, Some(Default::default())))
        .await
        .unwrap();
    let zero = p4::MeterCounterData {
        green: count(0),
        yellow: count(0),
        red: count(0),
    };
    let read = c.read_one(cell(None, Some(Default::default()))).await;
    assert_eq!(read, cell(None, Some(zero)).entity());
}

#[tokio::test(flavor = "multi_thread")]
async fn colors_of_direct_meters_are_read_and_reset_with_entry() {
    let (switch, mut c) = TestSwitch::with_features(2, &[]).await;
    let rates = p4::MeterConfig {
        cir: 0,
        cburst: 0,
        pir: 0,
        pburst: 0,
        eburst: 0,
    };
    let written = p4::TableEntry {
        meter_config: Some(rates),
        ..route(0x0a00_0001, 32, 2)
    };
    c.insert(written.clone()).await.unwrap();
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[16..].copy_from_slice(&[10, 0, 0, 1]);
    let frame = features::frame(2, 1, 0x0800, &packet);
    switch.wires[0].send(&frame);
    switch.wires[1].receive();
    let zero = || Some(p4::CounterData::default());
    let red = |packet_count: i64| p4::MeterCounterData {
        green: zero(),
        yellow: zero(),
        red: Some(p4::CounterData {
            byte_count: packet_count * frame.len() as i64,
            packet_count,
        }),
    };
    let request = p4::TableEntry {
        meter_counter_data: Some(Default::default()),
        ..route(0x0a00_0001, 32, 2)
    };
    let read = c.read_table(request.clone()).await.remove(0);
    assert_eq!(read.meter_counter_data, Some(red(1)));
    let direct = |config, counter_data| p4::DirectMeterEntry {
        table_entry: Some(entry("routes", &[features::lpm(0x0a00_0001, 32)], None)),
        config,
        counter_data,
    };
    let read = c.read_one(direct(None, Some(Default::default()))).await;
    match read.entity {
        Some(p4::entity::Entity::DirectMeterEntry(read)) => {
            assert_eq!(
                (read.config, read.counter_data),
                (Some(rates), Some(red(1)))
            );
        }
        other => panic!("not a direct meter: {other:?}"),
    }
    for bad in [
        direct(Some(rates), Some(red(1))).entity(),
        p4::TableEntry {
            meter_counter_data: Some(red(1)),
            ..written.clone()
        }
        .entity(),
        p4::TableEntry {
            meter_counter_data: Some(Default::default()),
            ..l2(1, 2, "drop", &[])
        }
        .entity(),
    ] {
        let error = c.modify(bad).await.unwrap_err();
        assert_eq!(error.0, Code::InvalidArgument, "{error:?}");
    }
    // Without the field, a write keeps the counters.
    c.modify(written.clone()).await.unwrap();
    let read = c.read_table(request.clone()).await.remove(0);
    assert_eq!(read.meter_counter_data, Some(red(1)));
    let reset = p4::TableEntry {
        meter_counter_data: Some(Default::default()),
        ..written
    };
    c.modify(reset).await.unwrap();
    let read = c.read_table(request).await.remove(0);
    assert_eq!(read.meter_counter_data, Some(red(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn single_rate_meters_have_excess_bursts() {
    let switch = TestSwitch::start(0, &[]).await;
    let mut c = switch.controller().await;
    let rates = p4::MeterConfig {
        cir: 10,
        cburst: 1,
        pir: 10,
        pburst: 1,
        eburst: 5,
    };
    let cell = |config| p4::MeterEntry {
        meter_id: features::meter("port_meter"),
        index: Some(p4::Index { index: 1 }),
        config: Some(config),
        counter_data: None,
    };
    use softswitch::proto::p4::config::v1::meter_spec::Type as MeterType;
    for (kind, config, expected) in [
        (MeterType::SingleRateThreeColor, rates, None),
        (
            MeterType::TwoRateThreeColor,
            rates,
            Some(Code::InvalidArgument),
        ),
        (
            MeterType::SingleRateTwoColor,
            rates,
            Some(Code::InvalidArgument),
        ),
        (
            MeterType::SingleRateThreeColor,
            p4::MeterConfig { pir: 11, ..rates },
            Some(Code::InvalidArgument),
        ),
        (
            MeterType::SingleRateThreeColor,
            p4::MeterConfig {
                eburst: -1,
                ..rates
            },
            Some(Code::InvalidArgument),
        ),
    ] {
        let mut program = features::config();
        for meter in &mut program.p4info.as_mut().unwrap().meters {
            meter.spec.as_mut().unwrap().r#type = kind.into();
        }
        c.set_pipeline(program).await.unwrap();
        let result = c.modify(cell(config)).await.map_err(|(code, _)| code);
        assert_eq!(result.err(), expected, "{kind:?} {config:?}");
        if expected.is_none() {
            let read = c.read_one(cell(rates)).await;
            assert_eq!(read, cell(rates).entity());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_read_and_written() {
    let (_switch, mut c) = start().await;
    let cell = |index: Option<i64>, value: Option<&'static [u8]>| p4::RegisterEntry {
        register_id: features::register("scratch"),
        index: index.map(|index| p4::Index { index }),
        data: value.map(|v| p4::P4Data {
            data: Some(Data::Bitstring(v.into())),
        }),
    };
    c.modify(cell(Some(5), Some(b"\x00\x01\x02")))
        .await
        .unwrap();
    assert_eq!(
        c.read_one(cell(Some(5), None)).await,
        cell(Some(5), Some(b"\x01\x02")).entity()
    );
    c.modify(cell(None, Some(b"\x07"))).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(127), None)).await,
        cell(Some(127), Some(b"\x07")).entity()
    );
    assert_eq!(c.read(cell(None, None)).await.unwrap().len(), 128);
    c.modify(cell(None, Some(b"\x00"))).await.unwrap();
    assert_eq!(
        c.read_one(cell(Some(9), None)).await,
        cell(Some(9), Some(b"\x00")).entity()
    );
    for (bad, expected) in [
        (cell(Some(128), Some(b"\x01")), Code::OutOfRange),
        (cell(Some(-1), Some(b"\x01")), Code::InvalidArgument),
        (
            cell(Some(1), Some(b"\x01\x00\x00\x00\x00")),
            Code::OutOfRange,
        ),
        (cell(Some(1), None), Code::InvalidArgument),
    ] {
        assert_eq!(c.modify(bad).await.unwrap_err().0, expected);
    }
    let wrong_type = p4::RegisterEntry {
        data: Some(p4::P4Data {
            data: Some(Data::Bool(true)),
        }),
        ..cell(Some(1), None)
    };
    assert_eq!(
        c.modify(wrong_type).await.unwrap_err().0,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_groups_and_clone_sessions_are_written_and_read() {
    let (_switch, mut c) = start().await;
    for make in [features::multicast_group, features::clone_session] {
        let first = make(5, vec![replica(1, 0), replica(2, 0), replica(2, 1)]);
        c.insert(first.clone()).await.unwrap();
        assert_eq!(c.read_one(make(5, vec![])).await, first.entity());
        assert_eq!(
            c.read_one(make(0, vec![])).await,
            make(5, vec![replica(1, 0), replica(2, 0), replica(2, 1)]).entity()
        );
        for (bad, expected) in [
            (make(0, vec![]), Code::InvalidArgument),
            (make(5, vec![]), Code::AlreadyExists),
            (
                make(6, vec![replica(1, 0), replica(1, 0)]),
                Code::InvalidArgument,
            ),
            (make(6, vec![replica(1, 0x1_0000)]), Code::InvalidArgument),
            (make(6, vec![p4::Replica::default()]), Code::InvalidArgument),
            (make(100_000, vec![]), Code::InvalidArgument),
        ] {
            assert_eq!(
                c.insert(bad.clone()).await.unwrap_err().0,
                expected,
                "{bad:?}"
            );
        }
        assert_eq!(
            c.modify(make(6, vec![])).await.unwrap_err().0,
            Code::NotFound
        );
        assert_eq!(
            c.delete(make(6, vec![])).await.unwrap_err().0,
            Code::NotFound
        );
        c.modify(make(5, vec![replica(3, 0)])).await.unwrap();
        c.delete(make(5, vec![])).await.unwrap();
        assert_eq!(c.read(make(0, vec![])).await.unwrap().len(), 0);
    }
}

/// Section "MulticastGroupEntry".
#[tokio::test(flavor = "multi_thread")]
async fn backup_replicas_replace_replicas_whose_port_is_down() {
    let (switch, mut c) = TestSwitch::with_features(3, &[]).await;
    let with_backups = |port, backups: &[(u64, u32)]| {
        let backups = backups.iter().map(|(port, instance)| p4::BackupReplica {
            port: features::bytes(*port),
            instance: *instance,
        });
        p4::Replica {
            backup_replicas: backups.collect(),
            ..replica(port, 0)
        }
    };
    for make in [features::multicast_group, features::clone_session] {
        for bad in [
            vec![with_backups(1, &[(1, 7)])],
            vec![with_backups(1, &[(2, 7), (2, 7)])],
            vec![with_backups(1, &[(2, 0)]), replica(2, 0)],
            vec![with_backups(1, &[(2, 0x1_0000)])],
        ] {
            let error = c.insert(make(5, bad.clone())).await.unwrap_err();
            assert_eq!(error.0, Code::InvalidArgument, "{bad:?}");
        }
        let written = make(5, vec![with_backups(1, &[(2, 1), (3, 2)])]);
        c.insert(written.clone()).await.unwrap();
        assert_eq!(c.read_one(make(5, vec![])).await, written.entity());
    }
    c.insert(l2(1, 2, "flood", &[5])).await.unwrap();
    let frame = features::frame(2, 1, 0x1234, b"flooded");
    let port_of_copy = |switch: &TestSwitch| {
        switch.wires[0].send(&frame);
        let deadline = std::time::Instant::now() + crate::common::TEST_TIMEOUT;
        loop {
            let wires = switch.wires.iter().zip(1u32..);
            let mut received = wires.filter_map(|(wire, port)| {
                wire.receive_within(std::time::Duration::from_millis(5))?;
                Some(port)
            });
            if let Some(port) = received.next() {
                break port;
            }
            assert!(std::time::Instant::now() < deadline, "no copy in time");
        }
    };
    let dataplane = &switch.switch.metrics.dataplane;
    assert_eq!(port_of_copy(&switch), 1);
    dataplane.set_port_up(1, false);
    assert_eq!(port_of_copy(&switch), 2);
    dataplane.set_port_up(2, false);
    assert_eq!(port_of_copy(&switch), 3);
    dataplane.set_port_up(1, true);
    assert_eq!(port_of_copy(&switch), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn value_sets_are_written_and_read() {
    let (_switch, mut c) = start().await;
    let set = |values: &[u64]| {
        let members = values.iter().map(|v| p4::ValueSetMember {
            r#match: features::matches(&[exact(*v)]),
        });
        p4::ValueSetEntry {
            value_set_id: features::value_set("ip_types"),
            members: members.collect(),
        }
    };
    c.modify(set(&[0x88b6, 0x88b7])).await.unwrap();
    assert_eq!(
        c.read_one(p4::ValueSetEntry::default()).await,
        set(&[0x88b6, 0x88b7]).entity()
    );
    assert_eq!(
        c.modify(set(&[1, 2, 3, 4, 5])).await.unwrap_err().0,
        Code::ResourceExhausted
    );
    assert_eq!(
        c.modify(set(&[1, 1])).await.unwrap_err().0,
        Code::AlreadyExists
    );
    assert_eq!(
        c.insert(set(&[])).await.unwrap_err().0,
        Code::InvalidArgument
    );
    let mut other_kind = set(&[1]);
    other_kind.members[0].r#match = features::matches(&[range(1, 2)]);
    assert_eq!(
        c.modify(other_kind).await.unwrap_err().0,
        Code::InvalidArgument
    );
    c.modify(set(&[])).await.unwrap();
    assert_eq!(
        c.read_one(p4::ValueSetEntry::default()).await,
        set(&[]).entity()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_configurations_are_written_and_read() {
    let (_switch, mut c) = start().await;
    let digest = |size| p4::DigestEntry {
        digest_id: features::digest("learn_t"),
        config: Some(p4::digest_entry::Config {
            max_timeout_ns: 1,
            max_list_size: size,
            ack_timeout_ns: 2,
        }),
    };
    assert_eq!(c.modify(digest(1)).await.unwrap_err().0, Code::NotFound);
    c.insert(digest(1)).await.unwrap();
    assert_eq!(
        c.insert(digest(1)).await.unwrap_err().0,
        Code::AlreadyExists
    );
    c.modify(digest(2)).await.unwrap();
    assert_eq!(
        c.read_one(p4::DigestEntry::default()).await,
        digest(2).entity()
    );
    assert_eq!(
        c.modify(digest(-1)).await.unwrap_err().0,
        Code::InvalidArgument
    );
    c.delete(digest(0)).await.unwrap();
    assert_eq!(c.read(p4::DigestEntry::default()).await.unwrap().len(), 0);
    let extern_entry = p4::ExternEntry::default();
    assert_eq!(
        c.insert(extern_entry).await.unwrap_err().0,
        Code::Unimplemented
    );
}
