// SPDX-License-Identifier: Apache-2.0
//! Reads (P4Runtime specification, sections "Wildcard Reads", "Read RPC", and the sections on the entities).

use crate::common::features::{self, direct, entry, exact, lpm, optional, replica, route};
use crate::common::{Controller, IntoEntity, TestSwitch, error_details};
use p4::packet_replication_engine_entry::Type as Engine;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

async fn start() -> (TestSwitch, Controller) {
    TestSwitch::with_features(0, &[]).await
}

async fn refused(c: &mut Controller, request: impl IntoEntity) -> Code {
    let status = c.read(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    error_details(&status)[0].0
}

#[tokio::test(flavor = "multi_thread")]
async fn id_0_reads_all_objects_and_other_ids_must_be_in_p4info() {
    let (_switch, mut c) = start().await;
    let index = Some(p4::Index { index: 1 });
    let unknown = 0x00ff_ffff;
    for (all, of_unknown, count) in [
        (
            // With id 0 there is no index.
            p4::CounterEntry {
                index,
                ..Default::default()
            }
            .entity(),
            p4::CounterEntry {
                counter_id: unknown,
                ..Default::default()
            }
            .entity(),
            64,
        ),
        (
            p4::MeterEntry::default().entity(),
            p4::MeterEntry {
                meter_id: unknown,
                ..Default::default()
            }
            .entity(),
            16,
        ),
        (
            p4::RegisterEntry::default().entity(),
            p4::RegisterEntry {
                register_id: unknown,
                ..Default::default()
            }
            .entity(),
            128,
        ),
        (
            p4::ValueSetEntry::default().entity(),
            p4::ValueSetEntry {
                value_set_id: unknown,
                ..Default::default()
            }
            .entity(),
            1,
        ),
        (
            p4::DigestEntry::default().entity(),
            p4::DigestEntry {
                digest_id: unknown,
                ..Default::default()
            }
            .entity(),
            0,
        ),
        (
            p4::ActionProfileMember::default().entity(),
            p4::ActionProfileMember {
                action_profile_id: unknown,
                ..Default::default()
            }
            .entity(),
            0,
        ),
        (
            p4::ActionProfileGroup::default().entity(),
            p4::ActionProfileGroup {
                action_profile_id: unknown,
                ..Default::default()
            }
            .entity(),
            0,
        ),
        (
            p4::TableEntry::default().entity(),
            p4::TableEntry {
                table_id: unknown,
                ..Default::default()
            }
            .entity(),
            2,
        ),
    ] {
        assert_eq!(c.read(all.clone()).await.unwrap().len(), count, "{all:?}");
        let code = refused(&mut c, of_unknown).await;
        assert_eq!(code, Code::InvalidArgument, "{all:?}");
    }
}

/// v1model does not have extern entries: a wildcard gives an empty result, and every id is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn extern_entries_are_not_supported() {
    let (_switch, mut c) = start().await;
    let all = p4::ExternEntry::default();
    assert_eq!(c.read(all).await.unwrap(), []);
    let one = p4::ExternEntry {
        extern_type_id: 0x81,
        ..Default::default()
    };
    assert_eq!(refused(&mut c, one.clone()).await, Code::Unimplemented);
    assert_eq!(c.insert(one).await.unwrap_err().0, Code::Unimplemented);
    let empty = p4::Entity::default();
    assert_eq!(refused(&mut c, empty).await, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_found_by_match_and_priority() {
    let (_switch, mut c) = start().await;
    let acl = |priority, proto| p4::TableEntry {
        priority,
        ..entry("acl", &[None, None, optional(proto)], direct("drop", &[]))
    };
    for (priority, proto) in [(1, 6), (2, 6), (2, 17)] {
        c.insert(acl(priority, proto)).await.unwrap();
    }
    let ask = |priority, proto: Option<u64>| p4::TableEntry {
        priority,
        ..entry("acl", &[None, None, proto.and_then(optional)], None)
    };
    for (request, expected) in [
        (ask(1, Some(6)), &[(1, 6)][..]),
        (ask(0, Some(6)), &[(1, 6), (2, 6)]),
        (ask(2, None), &[(2, 6), (2, 17)]),
        (ask(3, Some(6)), &[]),
        (ask(0, None), &[(1, 6), (2, 6), (2, 17)]),
    ] {
        let mut read = c.read_table(request.clone()).await;
        read.sort_by_key(|e| format!("{e:?}"));
        let mut expected: Vec<_> = expected.iter().map(|(p, m)| acl(*p, *m)).collect();
        expected.sort_by_key(|e| format!("{e:?}"));
        assert_eq!(read, expected, "{request:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_entry_reads_are_refused() {
    let (_switch, mut c) = start().await;
    let default = p4::TableEntry {
        is_default_action: true,
        ..entry("acl", &[], None)
    };
    let member = p4::TableAction {
        r#type: Some(p4::table_action::Type::ActionProfileMemberId(1)),
    };
    use Code::InvalidArgument as Invalid;
    for (what, request, code) in [
        (
            "match in all tables",
            p4::TableEntry {
                r#match: features::matches(&[exact(1)]),
                ..Default::default()
            },
            Invalid,
        ),
        (
            "action in all tables",
            p4::TableEntry {
                action: direct("drop", &[]),
                ..Default::default()
            },
            Invalid,
        ),
        ("half a key", entry("l2", &[exact(1)], None), Invalid),
        (
            "default entry with priority",
            p4::TableEntry {
                priority: 1,
                ..default.clone()
            },
            Invalid,
        ),
        (
            "default entry with idle time-out",
            p4::TableEntry {
                time_since_last_hit: Some(Default::default()),
                ..default
            },
            Invalid,
        ),
        (
            "last hit in table without idle time-outs",
            p4::TableEntry {
                time_since_last_hit: Some(Default::default()),
                ..entry("acl", &[], None)
            },
            Invalid,
        ),
        (
            "by member",
            entry("spread", &[], Some(member)),
            Code::Unimplemented,
        ),
    ] {
        assert_eq!(refused(&mut c, request).await, code, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_since_last_hit_is_returned_on_request() {
    let (_switch, mut c) = start().await;
    // Also for an entry that never expires.
    let seen = entry("seen", &[exact(5)], direct("NoAction", &[]));
    c.insert(seen.clone()).await.unwrap();
    let asking = p4::TableEntry {
        time_since_last_hit: Some(Default::default()),
        action: None,
        ..seen.clone()
    };
    let read = c.read_table(asking).await.remove(0);
    assert!(read.time_since_last_hit.unwrap().elapsed_ns > 0);
    let read = c.read_table(seen).await.remove(0);
    assert_eq!(read.time_since_last_hit, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_are_read_by_entry_by_table_and_all() {
    let (_switch, mut c) = start().await;
    for n in [1, 2] {
        c.insert(route(n << 24, 8, 1)).await.unwrap();
    }
    let of = |table_entry| p4::DirectCounterEntry {
        table_entry,
        data: None,
    };
    let one = entry("routes", &[lpm(1 << 24, 8)], None);
    for (request, expected) in [
        (of(Some(one)), 1),
        (of(Some(entry("routes", &[], None))), 2),
        // Including the two constant entries.
        (of(Some(p4::TableEntry::default())), 4),
        (of(None), 4),
    ] {
        let read = c.read(request).await.unwrap();
        assert_eq!(read.len(), expected);
    }
    let absent = entry("routes", &[lpm(9 << 24, 8)], None);
    let meter = p4::DirectMeterEntry {
        table_entry: Some(absent.clone()),
        ..Default::default()
    };
    assert_eq!(refused(&mut c, of(Some(absent))).await, Code::NotFound);
    assert_eq!(refused(&mut c, meter).await, Code::NotFound);
    let without = entry("l2", &[], None);
    assert_eq!(
        refused(&mut c, of(Some(without))).await,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replication_is_read_by_kind_by_id_and_whole() {
    let (_switch, mut c) = start().await;
    #[allow(deprecated)]
    let old = p4::Replica {
        port_kind: Some(p4::replica::PortKind::EgressPort(3)),
        instance: 1,
        backup_replicas: vec![],
    };
    let group = features::multicast_group(1, vec![replica(1, 0), old]);
    let session = features::clone_session(1, vec![replica(2, 5)]);
    for entity in [&group, &session] {
        c.insert(entity.clone()).await.unwrap();
    }
    let ask = |r#type| p4::PacketReplicationEngineEntry { r#type };
    let all_groups = Some(Engine::MulticastGroupEntry(Default::default()));
    let all_sessions = Some(Engine::CloneSessionEntry(Default::default()));
    let (group, session) = (group.entity(), session.entity());
    for (request, expected) in [
        (ask(None), vec![group.clone(), session.clone()]),
        (ask(all_groups), vec![group]),
        (ask(all_sessions), vec![session.clone()]),
        // Only the id matters.
        (
            features::clone_session(1, vec![replica(9, 9)]),
            vec![session],
        ),
        (features::multicast_group(2, vec![]), vec![]),
    ] {
        assert_eq!(c.read(request).await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entry_of_table_with_selector_is_constant() {
    let (_switch, mut c) = start().await;
    let default = p4::TableEntry {
        is_default_action: true,
        ..entry("spread", &[], None)
    };
    let read = c.read_table(default.clone()).await.remove(0);
    assert!(read.is_const);
    let error = c.modify(default).await.unwrap_err();
    assert_eq!(error.0, Code::PermissionDenied);
}
