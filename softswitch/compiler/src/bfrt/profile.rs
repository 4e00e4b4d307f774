// SPDX-License-Identifier: Apache-2.0
//! Action profiles, and the groups of action selectors.

use num_traits::ToPrimitive;
use serde_json::{Value, json};

use super::json::{
    annotations, field, id, key, list, number, repeated, single, table, text, uint, uint_or,
};
use super::{Schema, ids};
use crate::ir::{Object, ObjectArg, ObjectKind};

/// Groups of a selector whose program does not limit their number.
const GROUPS: u64 = 1024;

/// The default of `$ADT_OFFSET`, as in the open compiler's schemas.
const NO_OFFSET: u64 = 0xdead_beef;

impl Schema<'_> {
    /// Appends the action profiles and selectors that tables use.
    pub fn profiles(&self, tables: &mut Vec<Value>) {
        for profile in list(&self.info["actionProfiles"]) {
            let Some(used_by) = list(&profile["tableIds"]).next() else {
                continue;
            };
            let Some(used_by) = self.object("tables", number(used_by)) else {
                continue;
            };
            let preamble = &profile["preamble"];
            let profile_id = self.profile_id(profile);
            let size = number(&profile["size"]);
            let name = self.profile_name(profile);
            let mut t = table(name, profile_id, "Action", size, annotations(preamble));
            t["key"] = member_key();
            t["action_specs"] = self.action_specs(used_by).0.into();
            tables.push(t);
            if profile["withSelector"] == true {
                let group_size = number(&profile["maxGroupSize"]);
                let selector_id = self.selector_id(profile);
                let name = self.selector_name(profile);
                let groups = self.groups(profile);
                tables.push(selector(
                    &name,
                    (selector_id, profile_id),
                    (groups, group_size),
                ));
                let lookup_id = self.ids.selector_lookup(selector_id);
                tables.push(lookup(&name, (lookup_id, selector_id)));
            }
        }
    }
}

impl<'a> Schema<'a> {
    /// Returns the id of an action profile.
    pub fn profile_id(&self, profile: &Value) -> u64 {
        self.ids
            .profile(self.part_id(profile, self.profile_name(profile)))
    }

    /// Returns the id of the groups of an action profile with a selector.
    pub fn selector_id(&self, profile: &Value) -> u64 {
        self.ids
            .selector(self.part_id(profile, &self.selector_name(profile)))
    }

    /// Returns the id of one of the two tables of a profile with a selector: P4Info has only the id of one of them.
    fn part_id(&self, profile: &Value, name: &str) -> u64 {
        match self.selector(profile) {
            Some(_) if name != text(&profile["preamble"]["name"]) => self.number(name),
            _ => id(profile),
        }
    }

    /// Returns the selector of TNA with a separate profile that P4Info lists as this one.
    fn selector(&self, profile: &Value) -> Option<(&'a Object<'a>, &'a Object<'a>)> {
        let name = text(&profile["preamble"]["name"]);
        let objects = &self.ir.objects;
        let is_listed = |o: &usize| objects[self.ir.listed_profile(*o)].name == name;
        let mut selectors =
            (0..objects.len()).filter(|o| objects[*o].kind == ObjectKind::ActionSelector);
        let selector = &objects[selectors.find(is_listed)?];
        match selector.argument("action_profile")? {
            ObjectArg::Object(separate) => Some((selector, &objects[*separate])),
            _ => None,
        }
    }

    /// Returns the name of the table of a profile's members.
    fn profile_name(&self, profile: &'a Value) -> &'a str {
        match self.selector(profile) {
            Some((_, separate)) => &separate.name,
            None => text(&profile["preamble"]["name"]),
        }
    }

    /// Returns the name of the table of a selector's groups.
    fn selector_name(&self, profile: &Value) -> String {
        match self.selector(profile) {
            Some((selector, _)) => selector.name.clone(),
            None => format!("{}_sel", text(&profile["preamble"]["name"])),
        }
    }

    /// Returns the number of a selector's groups.
    fn groups(&self, profile: &Value) -> u64 {
        let limit = |(selector, _): (&Object, _)| selector.number("num_groups")?.to_u64();
        self.selector(profile).and_then(limit).unwrap_or(GROUPS)
    }
}

fn member_key() -> Value {
    let of = uint("uint32");
    json!([key(
        ids::ACTION_MEMBER_ID,
        "$ACTION_MEMBER_ID",
        true,
        "Exact",
        of
    )])
}

/// The groups of a selector. The ids are its own and its profile's; the numbers are those of groups and of a group's
/// members.
fn selector(name: &str, (id, profile): (u64, u64), (groups, group_size): (u64, u64)) -> Value {
    let mut t = table(name, id, "Selector", groups, vec![]);
    let group = uint("uint32");
    t["key"] = json!([key(
        ids::SELECTOR_GROUP_ID,
        "$SELECTOR_GROUP_ID",
        true,
        "Exact",
        group
    )]);
    let members = field(ids::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", uint("uint32"));
    let status = field(
        ids::ACTION_MEMBER_STATUS,
        "$ACTION_MEMBER_STATUS",
        uint("bool"),
    );
    let size = uint_or("uint32", group_size);
    let offset = uint_or("uint32", NO_OFFSET);
    t["data"] = json!([
        single(repeated(members), false),
        single(repeated(status), false),
        single(field(ids::MAX_GROUP_SIZE, "$MAX_GROUP_SIZE", size), false),
        single(field(ids::ADT_OFFSET, "$ADT_OFFSET", offset), false),
    ]);
    t["depends_on"] = json!([profile]);
    t
}

/// The lookup of a hash in a selector's groups.
fn lookup(selector: &str, (id, selector_id): (u64, u64)) -> Value {
    let mut t = table(
        &format!("{selector}_get_member"),
        id,
        "SelectorGetMember",
        1,
        vec![],
    );
    let exact = |id, name| key(id, name, true, "Exact", uint("uint64"));
    t["key"] = json!([
        exact(ids::LOOKUP_GROUP_ID, "$SELECTOR_GROUP_ID"),
        exact(ids::HASH_VALUE, "hash_value"),
    ]);
    let member = field(ids::FOUND_MEMBER_ID, "$ACTION_MEMBER_ID", uint("uint64"));
    t["data"] = json!([single(member, false)]);
    t["depends_on"] = json!([selector_id]);
    t
}
