// SPDX-License-Identifier: Apache-2.0
//! `@entry_restriction`, `@action_restriction` (p4-constraints) and `@refers_to` of programs, checked on write.

use crate::common::{Controller, TestSwitch, features, update};
use crate::sources::{compile, start};
use p4::table_action::Type as ActionKind;
use p4::update::Type;
use p4::write_request::Atomicity;
use softswitch::proto::p4::config::v1::{P4Info, Preamble};
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

use features::{Match, exact, lpm, matches, optional, range, ternary};

/// Tables whose entries and actions are restricted.
const RESTRICTED: &str = r#"
    @action_restriction("port != 0; // 0 means none
        port < 500")
    action fwd(bit<9> port) { s.egress_spec = port; }
    @entry_restriction("
        // Only the whole field or nothing.
        a::mask == 0 || a::mask == -1;
        a::mask != 0 -> ::priority > 5 && b::low >= 16;
        c::mask == 0 || c == 7")
    table ternaries {
        key = { h.h.a : ternary @name("a"); h.h.b : range @name("b"); m.c : optional @name("c"); }
        actions = { fwd; NoAction; }
        default_action = NoAction();
    }
    @entry_restriction("d::prefix_length >= 4; d != 0x12" "; e != 3")
    table prefixes {
        key = { h.h.a : lpm @name("d"); h.h.b : exact @name("e"); }
        actions = { fwd; NoAction; }
        default_action = NoAction();
    }
    action_profile(8) members;
    table profiled {
        key = { h.h.a : exact; }
        actions = { fwd; NoAction; }
        implementation = members;
    }
    apply { ternaries.apply(); prefixes.apply(); profiled.apply(); }"#;

/// Tables whose entries refer to each other and to multicast groups.
const REFERRING: &str = r#"
    action fwd(bit<9> port) { s.egress_spec = port; }
    action flood(@refers_to(builtin::multicast_group_table, multicast_group_id) bit<16> group) { s.mcast_grp = group; }
    action set_hop(
        @refers_to(interfaces, rif) @refers_to(hops, rif) bit<8> rif,
        @refers_to(hops, I_hop) bit<8> hop
    ) { m.c = rif; }
    table interfaces {
        key = { h.h.a : exact @name("rif"); }
        actions = { fwd; NoAction; }
    }
    table hops {
        key = { h.h.a : exact @name("rif") @refers_to(interfaces, rif); h.h.b : exact @name("I_hop"); }
        actions = { fwd; NoAction; }
    }
    table routes {
        key = { h.h.b : exact @name("dst"); m.c : optional @name("hint") @refers_to(interfaces, rif); }
        actions = { set_hop; flood; NoAction; }
        default_action = NoAction();
    }
    action_profile(8) members;
    table profiled {
        key = { h.h.a : exact; }
        actions = { flood; NoAction; }
        implementation = members;
    }
    apply { interfaces.apply(); hops.apply(); routes.apply(); profiled.apply(); }"#;

struct Program {
    info: P4Info,
}

fn id_of<'a>(mut preambles: impl Iterator<Item = &'a Option<Preamble>>, alias: &str) -> u32 {
    let found = preambles.find(|p| p.as_ref().is_some_and(|p| p.alias == alias));
    found.unwrap().as_ref().unwrap().id
}

impl Program {
    fn action(&self, alias: &str, args: &[u64]) -> p4::Action {
        let action_id = id_of(self.info.actions.iter().map(|a| &a.preamble), alias);
        let params = (1..).zip(args).map(|(param_id, value)| p4::action::Param {
            param_id,
            value: features::bytes(*value),
        });
        p4::Action {
            action_id,
            params: params.collect(),
        }
    }

    fn entry(
        &self,
        table: &str,
        priority: i32,
        fields: &[Match],
        action: &str,
        args: &[u64],
    ) -> p4::TableEntry {
        p4::TableEntry {
            table_id: id_of(self.info.tables.iter().map(|t| &t.preamble), table),
            r#match: matches(fields),
            priority,
            action: Some(p4::TableAction {
                r#type: Some(ActionKind::Action(self.action(action, args))),
            }),
            ..Default::default()
        }
    }

    fn member(&self, id: u32, action: &str, args: &[u64]) -> p4::ActionProfileMember {
        let profiles = self.info.action_profiles.iter();
        p4::ActionProfileMember {
            action_profile_id: id_of(profiles.map(|p| &p.preamble), "members"),
            member_id: id,
            action: Some(self.action(action, args)),
        }
    }
}

async fn program(ingress: &str) -> (TestSwitch, Controller, Program) {
    let (info, config) = compile("", "bit<8> c;", ingress);
    let (switch, controller) = start(config).await;
    (switch, controller, Program { info })
}

fn violated(result: Result<(), (Code, String)>, expected: &[&str]) {
    let (code, message) = result.unwrap_err();
    assert_eq!(code, Code::InvalidArgument, "{message}");
    for part in expected {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_violate_restriction_are_refused_with_clause_and_values() {
    let (_switch, mut c, p) = program(RESTRICTED).await;
    let ternaries =
        |priority, fields: &[Match]| p.entry("ternaries", priority, fields, "fwd", &[1]);
    for (entry, expected) in [
        (
            ternaries(9, &[ternary(1, 15), range(16, 20)]),
            &[
                "table I.ternaries",
                "`a::mask == 0 || a::mask == -1`",
                "a::mask = 0xf",
            ][..],
        ),
        (
            ternaries(5, &[ternary(1, 255), range(16, 20)]),
            &[
                "`a::mask != 0 -> ::priority > 5 && b::low >= 16`",
                "::priority = 5",
                "b::low = 0x10",
            ],
        ),
        (
            ternaries(6, &[ternary(1, 255), range(15, 20)]),
            &["b::low = 0xf"],
        ),
        // An omitted range begins with 0.
        (ternaries(6, &[ternary(1, 255)]), &["b::low = 0x0"]),
        (
            ternaries(1, &[None, None, optional(8)]),
            &["`c::mask == 0 || c == 7`", "c = 0x8"],
        ),
        (
            p.entry("prefixes", 0, &[lpm(0, 3), exact(1)], "fwd", &[1]),
            &["d::prefix_length = 3"],
        ),
        // An omitted prefix has length 0.
        (
            p.entry("prefixes", 0, &[None, exact(1)], "fwd", &[1]),
            &["d::prefix_length = 0"],
        ),
        (
            p.entry("prefixes", 0, &[lpm(0x12, 8), exact(1)], "fwd", &[1]),
            &["`d != 0x12`"],
        ),
        (
            p.entry("prefixes", 0, &[lpm(0x10, 4), exact(3)], "fwd", &[1]),
            &["`e != 3` with e = 0x3"],
        ),
    ] {
        violated(c.insert(entry).await, expected);
    }
    assert_eq!(c.read_table(p4::TableEntry::default()).await, []);
    for entry in [
        ternaries(6, &[ternary(1, 255), range(16, 20)]),
        ternaries(1, &[None, range(1, 2)]),
        ternaries(1, &[None, None, optional(7)]),
        p.entry("prefixes", 0, &[lpm(0x10, 4), exact(1)], "fwd", &[1]),
    ] {
        c.insert(entry.clone()).await.unwrap();
        c.modify(entry.clone()).await.unwrap();
        c.delete(entry).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_that_violate_restriction_are_refused_everywhere() {
    let (_switch, mut c, p) = program(RESTRICTED).await;
    let entry = |port| p.entry("prefixes", 0, &[lpm(0x10, 4), exact(1)], "fwd", &[port]);
    violated(
        c.insert(entry(0)).await,
        &[
            "action I.fwd",
            "@action_restriction `port != 0` with port = 0x0",
        ],
    );
    violated(
        c.insert(entry(500)).await,
        &["`port < 500` with port = 0x1f4"],
    );
    c.insert(entry(499)).await.unwrap();
    violated(c.modify(entry(0)).await, &["`port != 0`"]);
    violated(c.insert(p.member(1, "fwd", &[0])).await, &["`port != 0`"]);
    let default = p4::TableEntry {
        r#match: vec![],
        is_default_action: true,
        ..entry(0)
    };
    violated(c.modify(default).await, &["`port != 0`"]);
    assert_eq!(c.read_table(p4::TableEntry::default()).await, [entry(499)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_annotations_are_refused_with_place_and_fix() {
    let (_, config) = compile("", "bit<8> c;", RESTRICTED);
    let switch = TestSwitch::start(1, &[]).await;
    let mut c = switch.controller().await;
    for (annotation, expected) in [
        (
            "@entry_restriction(\"a == 1;\n x == 1\")",
            "table I.ternaries, @entry_restriction:2:2: unknown key `x`: use a, b, c",
        ),
        (
            "@entry_restriction(a == 1)",
            "table I.ternaries, @entry_restriction: expected a string",
        ),
        (
            "@p4runtime_role()",
            "table I.ternaries, @p4runtime_role: expected a string",
        ),
    ] {
        let mut config = config.clone();
        let table = &mut config.p4info.as_mut().unwrap().tables[0];
        let annotations = &mut table.preamble.as_mut().unwrap().annotations;
        annotations.push(annotation.into());
        let status = c.set_pipeline(config).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(expected), "{status:?}");
    }
    for (annotation, expected) in [
        (
            "@refers_to(x , y)",
            "match field a, @refers_to(x , y): unknown table x",
        ),
        (
            "@refers_to(prefixes , y)",
            "table prefixes has no match field y: use d, e",
        ),
        (
            "@refers_to(prefixes , d)",
            "references need exact or optional match, not Lpm",
        ),
        (
            "@refers_to(prefixes , e)",
            "match field a: references need exact or optional match",
        ),
        ("@refers_to(prefixes)", "write @refers_to(TABLE, FIELD)"),
        (
            "@refers_to(builtin : : ports , port)",
            "unknown built-in table or field",
        ),
    ] {
        let mut config = config.clone();
        let table = &mut config.p4info.as_mut().unwrap().tables[0];
        table.match_fields[0].annotations.push(annotation.into());
        let status = c.set_pipeline(config).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(expected), "{status:?}");
    }
}

fn dangling(result: Result<(), (Code, String)>, expected: &str) {
    let (code, message) = result.unwrap_err();
    assert_eq!(code, Code::FailedPrecondition, "{message}");
    assert!(message.contains(expected), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_need_entries_and_protect_them() {
    let (_switch, mut c, p) = program(REFERRING).await;
    let interface = |rif| p.entry("interfaces", 0, &[exact(rif)], "fwd", &[1]);
    let hop = |rif, hop| p.entry("hops", 0, &[exact(rif), exact(hop)], "fwd", &[1]);
    let route = |rif, hop| p.entry("routes", 1, &[exact(9)], "set_hop", &[rif, hop]);
    dangling(
        c.insert(hop(1, 5)).await,
        "table I.interfaces: an entry with rif = 0x01 does not exist, but @refers_to demands it",
    );
    c.insert(interface(1)).await.unwrap();
    c.insert(interface(2)).await.unwrap();
    c.insert(hop(1, 5)).await.unwrap();
    c.insert(hop(2, 6)).await.unwrap();
    // Both parameters must be in one entry.
    dangling(
        c.insert(route(1, 6)).await,
        "table I.hops: an entry with rif = 0x01 and I_hop = 0x06 does not exist",
    );
    c.insert(route(1, 5)).await.unwrap();
    dangling(c.modify(route(2, 5)).await, "rif = 0x02 and I_hop = 0x05");
    dangling(c.delete(hop(1, 5)).await, "is in use by @refers_to");
    c.modify(route(2, 6)).await.unwrap();
    c.delete(hop(1, 5)).await.unwrap();
    c.delete(interface(1)).await.unwrap();
    dangling(
        c.delete(interface(2)).await,
        "table I.interfaces: an entry with rif = 0x02 is in use",
    );
    // An omitted field refers to nothing; a present one does.
    let hinted = p.entry("routes", 1, &[exact(9), optional(1)], "NoAction", &[]);
    dangling(c.insert(hinted).await, "rif = 0x01");
    c.delete(route(2, 6)).await.unwrap();
    c.delete(hop(2, 6)).await.unwrap();
    c.delete(interface(2)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn references_to_multicast_groups_are_checked_everywhere() {
    let (_switch, mut c, p) = program(REFERRING).await;
    let group = |id| features::multicast_group(id, vec![features::replica(1, 0)]);
    let flood = |id| p.entry("routes", 1, &[exact(9)], "flood", &[id]);
    let default = |id| p4::TableEntry {
        r#match: vec![],
        priority: 0,
        is_default_action: true,
        ..flood(id)
    };
    let missing = "multicast group 7 does not exist";
    dangling(c.insert(flood(7)).await, missing);
    dangling(c.modify(default(7)).await, missing);
    dangling(c.insert(p.member(1, "flood", &[7])).await, missing);
    c.insert(group(7)).await.unwrap();
    for entity in [flood(7), default(7)] {
        let kind = if entity.is_default_action {
            Type::Modify
        } else {
            Type::Insert
        };
        c.one(kind, entity).await.unwrap();
    }
    c.insert(p.member(1, "flood", &[7])).await.unwrap();
    let in_use = "multicast group 7 is in use";
    dangling(c.delete(group(7)).await, in_use);
    c.delete(flood(7)).await.unwrap();
    dangling(c.delete(group(7)).await, in_use);
    let reset = p4::TableEntry {
        action: None,
        ..default(7)
    };
    c.modify(reset).await.unwrap();
    dangling(c.delete(group(7)).await, in_use);
    c.delete(p.member(1, "flood", &[7])).await.unwrap();
    c.delete(group(7)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_check_references_in_order_and_roll_back() {
    let (_switch, mut c, p) = program(REFERRING).await;
    let interface = p.entry("interfaces", 0, &[exact(1)], "fwd", &[1]);
    let hop = |n| p.entry("hops", 0, &[exact(1), exact(n)], "fwd", &[1]);
    let dangling = p.entry("hops", 0, &[exact(2), exact(1)], "fwd", &[1]);
    let batch = vec![
        update(Type::Insert, interface.clone()),
        update(Type::Insert, hop(1)),
        update(Type::Insert, dangling),
    ];
    let results = c
        .write_batch(Atomicity::DataplaneAtomic, batch.clone())
        .await;
    let codes: Vec<_> = results.unwrap_err().iter().map(|(code, _)| *code).collect();
    assert_eq!(
        codes,
        [Code::Aborted, Code::Aborted, Code::FailedPrecondition]
    );
    assert_eq!(c.read_table(p4::TableEntry::default()).await, []);
    // The counts are those of the state before the batch.
    self::dangling(c.insert(hop(1)).await, "rif = 0x01");
    let results = c.write_batch(Atomicity::ContinueOnError, batch).await;
    let codes: Vec<_> = results.unwrap_err().iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::FailedPrecondition]);
    self::dangling(c.delete(interface).await, "is in use");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconciled_state_keeps_references() {
    let (_switch, mut c, p) = program(REFERRING).await;
    let interface = p.entry("interfaces", 0, &[exact(1)], "fwd", &[1]);
    let hop = p.entry("hops", 0, &[exact(1), exact(2)], "fwd", &[1]);
    c.insert(interface.clone()).await.unwrap();
    c.insert(hop).await.unwrap();
    let (_, config) = compile("", "bit<8> c;", REFERRING);
    let reconcile = p4::set_forwarding_pipeline_config_request::Action::ReconcileAndCommit;
    c.config(reconcile, Some(config)).await.unwrap();
    dangling(c.delete(interface).await, "is in use");
}
