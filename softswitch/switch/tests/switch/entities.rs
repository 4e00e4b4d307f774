// SPDX-License-Identifier: Apache-2.0
//! Entities other than table entries.

use crate::common::features::{
    self, call, direct, entry, exact, group, member, range, replica, route, spread,
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
