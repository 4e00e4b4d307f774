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

/// The name of a selector's groups. The profile has the name itself.
fn selector_name(profile: &str) -> String {
    format!("{profile}_sel")
}

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
            let listed = text(&preamble["name"]);
            let separate = self.separate_profile(listed);
            let name = separate.unwrap_or(listed);
            let profile_id = self.profile_id(profile);
            let size = number(&profile["size"]);
            let mut t = table(name, profile_id, "Action", size, annotations(preamble));
            t["key"] = member_key();
            t["action_specs"] = self.action_specs(used_by).0.into();
            tables.push(t);
            if profile["withSelector"] == true {
                let group_size = number(&profile["maxGroupSize"]);
                let selector_id = self.ids.selector(id(profile));
                let name = match separate {
                    Some(_) => listed.to_owned(),
                    None => selector_name(name),
                };
                let groups = self.groups(listed);
                tables.push(selector(
                    &name,
                    (selector_id, profile_id),
                    (groups, group_size),
                ));
                let lookup_id = self.ids.selector_lookup(id(profile));
                tables.push(lookup(&name, (lookup_id, selector_id)));
            }
        }
    }
}

impl Schema<'_> {
    /// Returns the id of an action profile. Those of selectors with a separate profile are not in P4Info.
    pub fn profile_id(&self, profile: &Value) -> u64 {
        match self.separate_profile(text(&profile["preamble"]["name"])) {
            Some(name) => self.ids.profile(self.number(name)),
            None => self.ids.profile(id(profile)),
        }
    }

    fn selector_object(&self, name: &str) -> Option<&Object<'_>> {
        let mut objects = self.ir.objects.iter();
        objects.find(|o| o.name == name && o.kind == ObjectKind::ActionSelector)
    }

    /// Returns the name of the action profile of a selector that has a separate one, as in TNA.
    fn separate_profile(&self, selector: &str) -> Option<&str> {
        match self.selector_object(selector)?.argument("action_profile")? {
            ObjectArg::Object(profile) => Some(&self.ir.objects[*profile].name),
            _ => None,
        }
    }

    /// Returns the number of a selector's groups.
    fn groups(&self, selector: &str) -> u64 {
        let object = self.selector_object(selector);
        let groups = object.and_then(|o| o.number("num_groups")?.to_u64());
        groups.unwrap_or(GROUPS)
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
