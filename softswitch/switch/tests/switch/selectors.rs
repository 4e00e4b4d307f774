// SPDX-License-Identifier: Apache-2.0
//! Action selectors (P4Runtime specification, sections "Member Programming", "Group Programming", "Rules
//! on Setting max_size" and "One Shot Action Selector Programming").

use crate::common::features::{self, call, entry, exact, group, member, spread};
use crate::common::{Controller, IntoEntity, TestSwitch};
use p4::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use p4::action_profile_group::member::WatchKind;
use p4::{action_profile_action, table_action::Type as ActionKind};
use softswitch::proto::p4::config::v1 as cfg;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

/// Starts a switch with two ports and features.p4, with changed P4Info of the selector.
async fn start(describe: impl Fn(&mut cfg::ActionProfile)) -> (TestSwitch, Controller) {
    let switch = TestSwitch::start(2, &[]).await;
    let mut c = switch.controller().await;
    let mut config = features::config();
    describe(&mut config.p4info.as_mut().unwrap().action_profiles[0]);
    c.set_pipeline(config).await.unwrap();
    for id in 1..=4 {
        c.insert(member(id, id.into())).await.unwrap();
    }
    (switch, c)
}

async fn delete_members(c: &mut Controller) {
    for id in 1..=4 {
        c.delete(member(id, id.into())).await.unwrap();
    }
}

/// Returns a group of members 1, 2, ... with these weights.
fn weighted(id: u32, max_size: i32, weights: &[i32]) -> p4::ActionProfileGroup {
    let members: Vec<_> = (1..).zip(weights.iter().copied()).collect();
    p4::ActionProfileGroup {
        max_size,
        ..group(id, &members)
    }
}

fn action_set(weights: &[i32]) -> p4::ActionProfileActionSet {
    let actions = weights.iter().map(|weight| p4::ActionProfileAction {
        action: Some(call("forward", &[1])),
        weight: *weight,
        watch_kind: None,
    });
    p4::ActionProfileActionSet {
        action_profile_actions: actions.collect(),
        ..Default::default()
    }
}

fn one_shot(class: u64, set: p4::ActionProfileActionSet) -> p4::TableEntry {
    spread(class, ActionKind::ActionProfileActionSet(set))
}

async fn refused(c: &mut Controller, entity: impl IntoEntity) -> Code {
    c.insert(entity).await.unwrap_err().0
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_sets_and_members_cannot_be_mixed() {
    let (_switch, mut c) = start(|_| {}).await;
    let mixed = refused(&mut c, one_shot(1, action_set(&[1]))).await;
    assert_eq!(mixed, Code::InvalidArgument, "with members");
    delete_members(&mut c).await;
    c.insert(weighted(1, 0, &[])).await.unwrap();
    let mixed = refused(&mut c, one_shot(1, action_set(&[1]))).await;
    assert_eq!(mixed, Code::InvalidArgument, "with an empty group");
    c.delete(weighted(1, 0, &[])).await.unwrap();
    c.insert(one_shot(1, action_set(&[1]))).await.unwrap();
    assert_eq!(refused(&mut c, member(1, 1)).await, Code::InvalidArgument);
    assert_eq!(
        refused(&mut c, weighted(1, 0, &[])).await,
        Code::InvalidArgument
    );
    c.delete(one_shot(1, action_set(&[]))).await.unwrap();
    c.insert(member(1, 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn action_sets_read_back_as_written() {
    let (_switch, mut c) = start(|_| {}).await;
    delete_members(&mut c).await;
    // Two equal actions are not merged, and the members keep their order.
    let mut set = action_set(&[3, 1, 2]);
    set.set_action_selection_mode(ActionSelectionMode::Hash);
    set.set_size_semantics(SizeSemantics::SumOfMembers);
    let watch = action_profile_action::WatchKind::WatchPort(vec![2].into());
    set.action_profile_actions[1].watch_kind = Some(watch);
    #[allow(deprecated)]
    let watch = action_profile_action::WatchKind::Watch(1);
    set.action_profile_actions[2].watch_kind = Some(watch);
    c.insert(one_shot(1, set.clone())).await.unwrap();
    let read = c.read_table(entry("spread", &[exact(1)], None)).await;
    assert_eq!(read, [one_shot(1, set.clone())]);
    // Byte strings become canonical.
    let mut padded = set.clone();
    let watch = action_profile_action::WatchKind::WatchPort(vec![0, 0, 2].into());
    padded.action_profile_actions[1].watch_kind = Some(watch);
    c.modify(one_shot(1, padded)).await.unwrap();
    // A MODIFY without action keeps the action set.
    let without = entry("spread", &[exact(1)], None);
    c.modify(without.clone()).await.unwrap();
    assert_eq!(c.read_table(without).await, [one_shot(1, set.clone())]);
    // The set does not create visible members or groups.
    let all = p4::ActionProfileMember::default();
    assert_eq!(c.read(all).await.unwrap(), []);
    let all = p4::ActionProfileGroup::default();
    assert_eq!(c.read(all).await.unwrap(), []);

    set.set_action_selection_mode(ActionSelectionMode::Random);
    c.insert(one_shot(2, set.clone())).await.unwrap();
    let read = c.read_table(entry("spread", &[exact(2)], None)).await;
    assert_eq!(read, [one_shot(2, set.clone())]);
    c.modify(one_shot(1, set.clone())).await.unwrap();
    let read = c.read_table(entry("spread", &[exact(1)], None)).await;
    assert_eq!(read, [one_shot(1, set.clone())]);
    set.action_selection_mode = 9;
    assert_eq!(
        refused(&mut c, one_shot(2, set)).await,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn max_size_must_not_exceed_max_group_size() {
    let (_switch, mut c) = start(|p| p.max_group_size = 4).await;
    for max_size in [-1, 0, 5] {
        let code = refused(&mut c, weighted(1, max_size, &[1])).await;
        assert_eq!(code, Code::InvalidArgument, "{max_size}");
    }
    let code = refused(&mut c, weighted(1, 3, &[2, 2])).await;
    assert_eq!(code, Code::ResourceExhausted);
    c.insert(weighted(1, 4, &[2, 2])).await.unwrap();
    let read = c.read_one(p4::ActionProfileGroup::default()).await;
    assert_eq!(read, weighted(1, 4, &[2, 2]).entity());
    for (bad, code) in [
        (weighted(1, 3, &[1]), Code::InvalidArgument),
        (weighted(1, 4, &[2, 3]), Code::ResourceExhausted),
        (weighted(2, 4, &[1]), Code::NotFound),
        (weighted(1, 4, &[1, 1, 1, 1, 1]), Code::ResourceExhausted),
    ] {
        assert_eq!(c.modify(bad.clone()).await.unwrap_err().0, code, "{bad:?}");
    }
    let read = c.read_one(p4::ActionProfileGroup::default()).await;
    assert_eq!(read, weighted(1, 4, &[2, 2]).entity());
    c.delete(weighted(1, 0, &[])).await.unwrap();
    delete_members(&mut c).await;
    let too_large = refused(&mut c, one_shot(1, action_set(&[3, 2]))).await;
    assert_eq!(too_large, Code::InvalidArgument);
    c.insert(one_shot(1, action_set(&[3, 1]))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn size_counts_weights_or_members() {
    // The selector's size limits the sum over all groups.
    let (_switch, mut c) = start(|p| p.size = 10).await;
    c.insert(weighted(1, 0, &[4, 4])).await.unwrap();
    let full = refused(&mut c, weighted(2, 0, &[3])).await;
    assert_eq!(full, Code::ResourceExhausted);
    c.insert(weighted(2, 0, &[2])).await.unwrap();
    let full = c.modify(weighted(2, 0, &[2, 1])).await.unwrap_err();
    assert_eq!(full.0, Code::ResourceExhausted);
    c.delete(weighted(1, 0, &[])).await.unwrap();
    c.modify(weighted(2, 0, &[9, 1])).await.unwrap();

    use cfg::action_profile::{SelectorSizeSemantics, SumOfMembers};
    let (_switch, mut c) = start(|p| {
        let max_member_weight = 100;
        let semantics = SelectorSizeSemantics::SumOfMembers(SumOfMembers { max_member_weight });
        p.selector_size_semantics = Some(semantics);
        (p.size, p.max_group_size) = (4, 3);
    })
    .await;
    c.insert(weighted(1, 3, &[100, 100, 1])).await.unwrap();
    let heavy = refused(&mut c, weighted(2, 3, &[101])).await;
    assert_eq!(heavy, Code::InvalidArgument);
    let full = refused(&mut c, weighted(2, 3, &[1, 1])).await;
    assert_eq!(full, Code::ResourceExhausted);
    c.delete(weighted(1, 0, &[])).await.unwrap();
    delete_members(&mut c).await;
    let too_many = refused(&mut c, one_shot(1, action_set(&[1, 1, 1, 1]))).await;
    assert_eq!(too_many, Code::InvalidArgument);
    c.insert(one_shot(1, action_set(&[100, 100, 1])))
        .await
        .unwrap();
    let full = refused(&mut c, one_shot(2, action_set(&[1, 1]))).await;
    assert_eq!(full, Code::ResourceExhausted);
    c.insert(one_shot(2, action_set(&[1]))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_may_be_disallowed() {
    let (_switch, mut c) = start(|p| p.weights_disallowed = true).await;
    assert_eq!(
        refused(&mut c, weighted(1, 0, &[1])).await,
        Code::InvalidArgument
    );
    c.insert(weighted(1, 0, &[0, 0])).await.unwrap();
    let read = c.read_one(p4::ActionProfileGroup::default()).await;
    assert_eq!(read, weighted(1, 0, &[0, 0]).entity());
    let (_switch, mut c) = start(|_| {}).await;
    for weight in [0, -1] {
        let code = refused(&mut c, weighted(1, 0, &[weight])).await;
        assert_eq!(code, Code::InvalidArgument);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_port_must_be_a_port_of_the_device() {
    let (_switch, mut c) = start(|_| {}).await;
    #[allow(deprecated)]
    let old = |port| Some(WatchKind::Watch(port));
    let new = |port: &'static [u8]| Some(WatchKind::WatchPort(port.into()));
    for (watch_kind, read_back) in [
        (None, None),
        (new(b""), new(b"")),
        (new(b"\x02"), new(b"\x02")),
        (new(b"\x00\x00\x02"), new(b"\x02")),
        (old(2), old(2)),
        (old(0), old(0)),
    ] {
        let mut watching = weighted(1, 0, &[1, 1]);
        watching.members[0].watch_kind = watch_kind;
        c.insert(watching.clone()).await.unwrap();
        watching.members[0].watch_kind = read_back;
        let read = c.read_one(p4::ActionProfileGroup::default()).await;
        assert_eq!(read, watching.clone().entity());
        c.delete(watching).await.unwrap();
    }
    for watch_kind in [new(b"\x03"), old(3), old(-1)] {
        let mut watching = weighted(1, 0, &[1]);
        watching.members[0].watch_kind = watch_kind;
        assert_eq!(refused(&mut c, watching).await, Code::InvalidArgument);
    }
}
