// SPDX-License-Identifier: Apache-2.0
//! Table entries: valid and refused writes, and reads.

use crate::common::features::{
    self, direct, entry, exact, l2, lpm, optional, range, route, ternary,
};
use crate::common::{Controller, TestSwitch, error_details, update};
use p4::update::Type;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

async fn start() -> (TestSwitch, Controller) {
    TestSwitch::with_features(0, &[]).await
}

fn acl(priority: i32, fields: &[features::Match]) -> p4::TableEntry {
    p4::TableEntry {
        priority,
        ..entry("acl", fields, direct("set_class", &[1]))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_read_back_as_written() {
    let (_switch, mut controller) = start().await;
    #[allow(deprecated)]
    let entries = [
        p4::TableEntry {
            metadata: "from the controller".into(),
            controller_metadata: 77,
            ..l2(1, 0x0200_0000_0001, "forward_urgent", &[511, 7])
        },
        route(0x0a01_0000, 16, 3),
        route(0, 0, 1),
        acl(
            3,
            &[
                ternary(0x0a00_0000, 0xff00_0000),
                range(10, 20),
                optional(6),
            ],
        ),
        acl(1, &[None, None, None]),
        p4::TableEntry {
            idle_timeout_ns: 3_600_000_000_000,
            ..entry("seen", &[exact(5)], direct("NoAction", &[]))
        },
    ];
    for mut entry in entries {
        // A prefix of length 0 matches anything, so it is omitted.
        entry.r#match.retain(|m| {
            !matches!(&m.field_match_type,
            Some(p4::field_match::FieldMatchType::Lpm(lpm)) if lpm.prefix_len == 0)
        });
        controller.insert(entry.clone()).await.unwrap();
        let key = p4::TableEntry {
            action: None,
            metadata: Default::default(),
            idle_timeout_ns: 0,
            ..entry.clone()
        };
        let read = controller.read_table(key).await;
        assert!(read.contains(&entry), "{entry:?}\n{read:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn byte_strings_read_back_in_canonical_form() {
    let (_switch, mut controller) = start().await;
    let canonical = l2(1, 0x0200, "forward", &[2]);
    let mut padded = canonical.clone();
    for field in &mut padded.r#match {
        if let Some(p4::field_match::FieldMatchType::Exact(m)) = &mut field.field_match_type {
            m.value = [vec![0; 9], m.value.to_vec()].concat().into();
        }
    }
    controller.insert(padded.clone()).await.unwrap();
    let again = controller.insert(canonical.clone()).await.unwrap_err();
    assert_eq!(again.0, Code::AlreadyExists);
    assert_eq!(
        controller.read_table(entry("l2", &[], None)).await,
        [canonical]
    );
    controller.delete(padded).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_can_be_inserted_modified_and_deleted() {
    let (_switch, mut controller) = start().await;
    let first = l2(1, 2, "forward", &[2]);
    assert_eq!(
        controller.modify(first.clone()).await.unwrap_err().0,
        Code::NotFound
    );
    assert_eq!(
        controller.delete(first.clone()).await.unwrap_err().0,
        Code::NotFound
    );
    controller.insert(first.clone()).await.unwrap();
    assert_eq!(
        controller.insert(first.clone()).await.unwrap_err().0,
        Code::AlreadyExists
    );
    let changed = l2(1, 2, "flood", &[9]);
    controller.modify(changed.clone()).await.unwrap();
    assert_eq!(
        controller.read_table(first.clone()).await.len(),
        0,
        "filtered by action"
    );
    // Without an action, the action stays.
    let no_action = p4::TableEntry {
        metadata: "m".into(),
        action: None,
        ..changed.clone()
    };
    controller.modify(no_action).await.unwrap();
    let expected = p4::TableEntry {
        metadata: "m".into(),
        ..changed.clone()
    };
    assert_eq!(
        controller.read_table(entry("l2", &[], None)).await,
        [expected]
    );
    // For a deletion, only the key matters.
    controller.delete(l2(1, 2, "forward", &[])).await.unwrap();
    assert_eq!(controller.read_table(entry("l2", &[], None)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_entry_is_refused_with_specified_code_and_changes_nothing() {
    let (_switch, mut controller) = start().await;
    let good = || l2(1, 2, "forward", &[2]);
    let mut unknown_table = good();
    unknown_table.table_id = 0x0200_1234;
    let mut unknown_action = good();
    unknown_action.action = Some(p4::TableAction {
        r#type: Some(p4::table_action::Type::Action(p4::Action {
            action_id: 0x0100_1234,
            params: vec![],
        })),
    });
    let mut twice = good();
    twice.r#match.push(twice.r#match[0].clone());
    let mut unknown_field = good();
    unknown_field.r#match[0].field_id = 9;
    let mut empty_value = good();
    empty_value.r#match[0].field_match_type =
        Some(p4::field_match::FieldMatchType::Exact(Default::default()));
    let mut unknown_param = good();
    if let Some(p4::table_action::Type::Action(a)) =
        &mut unknown_param.action.as_mut().unwrap().r#type
    {
        a.params.push(p4::action::Param {
            param_id: 8,
            value: vec![1].into(),
        });
    }
    let member = Some(p4::TableAction {
        r#type: Some(p4::table_action::Type::ActionProfileMemberId(1)),
    });
    use Code::{InvalidArgument as Invalid, OutOfRange, PermissionDenied};
    for (name, entry, expected) in [
        ("unknown table", unknown_table, Invalid),
        ("unknown action", unknown_action, Invalid),
        (
            "action of another table",
            l2(1, 2, "set_class", &[1]),
            Invalid,
        ),
        (
            "no action",
            p4::TableEntry {
                action: None,
                ..good()
            },
            Invalid,
        ),
        ("missing parameter", l2(1, 2, "forward", &[]), Invalid),
        ("unknown parameter", unknown_param, Invalid),
        (
            "parameter too wide",
            l2(1, 2, "forward", &[512]),
            OutOfRange,
        ),
        (
            "member for a direct table",
            p4::TableEntry {
                action: member,
                ..good()
            },
            Invalid,
        ),
        (
            "default-only action",
            entry("l2", &[exact(1), exact(2)], direct("NoAction", &[])),
            PermissionDenied,
        ),
        ("field given twice", twice, Invalid),
        ("unknown field", unknown_field, Invalid),
        (
            "missing exact field",
            entry("l2", &[exact(1)], direct("drop", &[])),
            Invalid,
        ),
        ("value too wide", l2(512, 2, "drop", &[]), OutOfRange),
        ("empty value", empty_value, OutOfRange),
        (
            "wrong kind of match",
            entry("l2", &[lpm(1, 9), exact(2)], direct("drop", &[])),
            Invalid,
        ),
        (
            "priority in table without priorities",
            p4::TableEntry {
                priority: 1,
                ..good()
            },
            Invalid,
        ),
        ("missing priority", acl(0, &[None, None, None]), Invalid),
        ("negative priority", acl(-1, &[None, None, None]), Invalid),
        (
            "bits outside the mask",
            acl(1, &[ternary(3, 1), None, None]),
            Invalid,
        ),
        ("empty mask", acl(1, &[ternary(0, 0), None, None]), Invalid),
        (
            "low above high",
            acl(1, &[None, range(2, 1), None]),
            Invalid,
        ),
        (
            "full range",
            acl(1, &[None, range(0, 0xffff), None]),
            Invalid,
        ),
        ("bits beyond the prefix", route(0x0a00_0001, 8, 1), Invalid),
        (
            "prefix too long",
            entry("routes", &[lpm(0, 33)], direct("route_drop", &[])),
            Invalid,
        ),
        (
            "prefix of length 0",
            entry("routes", &[lpm(0, 0)], direct("route_drop", &[])),
            Invalid,
        ),
        (
            "idle time-out not supported",
            p4::TableEntry {
                idle_timeout_ns: 1,
                ..good()
            },
            Invalid,
        ),
        (
            "negative idle time-out",
            p4::TableEntry {
                idle_timeout_ns: -1,
                ..entry("seen", &[exact(1)], direct("NoAction", &[]))
            },
            Invalid,
        ),
        (
            "time since last hit",
            p4::TableEntry {
                time_since_last_hit: Some(Default::default()),
                ..entry("seen", &[exact(1)], direct("NoAction", &[]))
            },
            Invalid,
        ),
        (
            "is_const",
            p4::TableEntry {
                is_const: true,
                ..good()
            },
            Invalid,
        ),
        (
            "direct counter in table without one",
            p4::TableEntry {
                counter_data: Some(Default::default()),
                ..good()
            },
            Invalid,
        ),
        (
            "direct meter in table without one",
            p4::TableEntry {
                meter_config: Some(Default::default()),
                ..good()
            },
            Invalid,
        ),
        (
            "constant table",
            entry("constant", &[exact(1)], direct("set_class", &[1])),
            PermissionDenied,
        ),
        (
            "inserting the default entry",
            p4::TableEntry {
                is_default_action: true,
                ..entry("acl", &[], direct("drop", &[]))
            },
            Invalid,
        ),
    ] {
        let error = controller.insert(entry).await.expect_err(name);
        assert_eq!(error.0, expected, "{name}: {error:?}");
        assert!(!error.1.is_empty(), "{name}");
    }
    let (entries, _) = controller
        .read_all(vec![crate::common::IntoEntity::entity(
            p4::TableEntry::default(),
        )])
        .await
        .unwrap();
    assert_eq!(
        entries.len(),
        2,
        "expected only the constant entries: {entries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_continues_after_errors_and_reports_each_update() {
    let (_switch, mut controller) = start().await;
    let updates = vec![
        update(Type::Insert, l2(1, 1, "forward", &[2])),
        update(Type::Insert, l2(1, 1, "forward", &[2])),
        update(Type::Delete, l2(1, 9, "forward", &[2])),
        update(Type::Insert, l2(1, 2, "forward", &[2])),
        p4::Update::default(),
        update(Type::Unspecified, l2(1, 3, "forward", &[2])),
    ];
    let status = controller.write(updates).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let codes: Vec<_> = error_details(&status)
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    use Code::{AlreadyExists, InvalidArgument, NotFound, Ok};
    assert_eq!(
        codes,
        [
            Ok,
            AlreadyExists,
            NotFound,
            Ok,
            InvalidArgument,
            InvalidArgument
        ]
    );
    assert_eq!(controller.read_table(entry("l2", &[], None)).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_table_refuses_insert_and_keeps_entries() {
    let (_switch, mut controller) = start().await;
    for priority in 1..=8 {
        controller
            .insert(acl(priority, &[None, None, optional(6)]))
            .await
            .unwrap();
    }
    let full = controller
        .insert(acl(9, &[None, None, optional(6)]))
        .await
        .unwrap_err();
    assert_eq!(full.0, Code::ResourceExhausted);
    assert!(full.1.contains("acl") && full.1.contains('8'), "{}", full.1);
    controller
        .delete(acl(3, &[None, None, optional(6)]))
        .await
        .unwrap();
    controller
        .insert(acl(9, &[None, None, optional(6)]))
        .await
        .unwrap();
    assert_eq!(
        controller.read_table(entry("acl", &[], None)).await.len(),
        8
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entry_can_be_modified_and_reset() {
    let (_switch, mut controller) = start().await;
    let default = |table, action| p4::TableEntry {
        is_default_action: true,
        ..entry(table, &[], action)
    };
    let initial = default("acl", direct("NoAction", &[]));
    assert_eq!(
        controller.read_table(default("acl", None)).await,
        std::slice::from_ref(&initial)
    );
    let drop = default("acl", direct("drop", &[]));
    controller.modify(drop.clone()).await.unwrap();
    assert_eq!(controller.read_table(default("acl", None)).await, [drop]);
    // Without an action, it returns to the program's default action.
    controller.modify(default("acl", None)).await.unwrap();
    assert_eq!(controller.read_table(default("acl", None)).await, [initial]);
    let constant = controller
        .modify(default("l2", direct("NoAction", &[])))
        .await
        .unwrap_err();
    assert_eq!(constant.0, Code::PermissionDenied);
    for bad in [
        p4::TableEntry {
            priority: 1,
            ..default("acl", direct("drop", &[]))
        },
        p4::TableEntry {
            idle_timeout_ns: 1,
            ..default("seen", direct("learn", &[]))
        },
        p4::TableEntry {
            r#match: features::matches(&[exact(1)]),
            ..default("seen", direct("learn", &[]))
        },
    ] {
        assert_eq!(
            controller.modify(bad).await.unwrap_err().0,
            Code::InvalidArgument
        );
    }
    assert_eq!(
        controller.delete(default("acl", None)).await.unwrap_err().0,
        Code::InvalidArgument
    );
    let learn = controller
        .insert(entry("seen", &[exact(1)], direct("learn", &[])))
        .await;
    assert_eq!(
        learn.unwrap_err().0,
        Code::PermissionDenied,
        "a default-only action"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn constant_entries_are_read_only() {
    let (_switch, mut controller) = start().await;
    let read = controller.read_table(entry("constant", &[], None)).await;
    assert_eq!(read.len(), 2);
    assert!(read.iter().all(|e| e.is_const && e.action.is_some()));
    let class_of_ipv6 = controller
        .read_table(entry("constant", &[exact(0x86dd)], None))
        .await;
    assert_eq!(class_of_ipv6[0].action, direct("set_class", &[6]));
    for action in [Type::Modify, Type::Delete] {
        let written = entry("constant", &[exact(0x86dd)], direct("set_class", &[1]));
        let error = controller.one(action, written).await.unwrap_err();
        assert_eq!(error.0, Code::PermissionDenied, "{action:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_filter_by_match_action_and_table() {
    let (_switch, mut controller) = start().await;
    for priority in 1..=3 {
        let entry = p4::TableEntry {
            metadata: format!("m{priority}").into(),
            ..acl(priority, &[None, None, optional(6)])
        };
        controller.insert(entry).await.unwrap();
    }
    controller
        .insert(p4::TableEntry {
            priority: 2,
            ..entry("acl", &[None, range(1, 2), None], direct("drop", &[]))
        })
        .await
        .unwrap();
    let all = || entry("acl", &[], None);
    let count =
        async |controller: &mut Controller, request| controller.read_table(request).await.len();
    assert_eq!(count(&mut controller, all()).await, 4);
    assert_eq!(
        count(
            &mut controller,
            p4::TableEntry {
                priority: 2,
                ..all()
            }
        )
        .await,
        2
    );
    assert_eq!(
        count(
            &mut controller,
            p4::TableEntry {
                metadata: "m3".into(),
                ..all()
            }
        )
        .await,
        1
    );
    let by_action = entry("acl", &[], direct("drop", &[]));
    assert_eq!(count(&mut controller, by_action).await, 1);
    let absent = acl(7, &[None, None, optional(6)]);
    assert_eq!(count(&mut controller, absent).await, 0);
    // Table 0 selects all tables, including the two constant entries.
    assert_eq!(count(&mut controller, p4::TableEntry::default()).await, 6);
    let unknown = p4::TableEntry {
        table_id: 0x0200_4444,
        ..Default::default()
    };
    let status = controller.read(unknown).await.unwrap_err();
    assert_eq!(error_details(&status)[0].0, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_with_one_invalid_request_returns_the_rest() {
    let (_switch, mut controller) = start().await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    let request = p4::ReadRequest {
        device_id: crate::common::DEVICE,
        entities: vec![
            crate::common::IntoEntity::entity(entry("l2", &[], None)),
            p4::Entity::default(),
        ],
        ..Default::default()
    };
    let mut responses = controller.client.read(request).await.unwrap().into_inner();
    assert_eq!(
        responses.message().await.unwrap().unwrap().entities.len(),
        1
    );
    let status = responses.message().await.unwrap_err();
    let codes: Vec<_> = error_details(&status)
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert_eq!(codes, [Code::Ok, Code::InvalidArgument]);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_table_is_written_fast_and_read_in_several_messages() {
    let (_switch, mut controller) = start().await;
    const ENTRIES: u64 = 20_000;
    for first in (0..ENTRIES).step_by(2000) {
        let updates = (first..first + 2000).map(|n| {
            let entry = p4::TableEntry {
                metadata: vec![b'x'; 40].into(),
                ..l2(1, 0x0200_0000_0000 + n, "forward", &[2])
            };
            update(Type::Insert, entry)
        });
        controller.write(updates.collect()).await.unwrap();
    }
    let all = crate::common::IntoEntity::entity(entry("l2", &[], None));
    // The client refuses messages above gRPC's 4 MiB.
    let (entities, messages) = controller.read_all(vec![all.clone(), all]).await.unwrap();
    assert_eq!(entities.len() as u64, 2 * ENTRIES);
    assert!(messages > 1);
}
