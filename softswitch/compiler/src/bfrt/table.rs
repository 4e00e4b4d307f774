// SPDX-License-Identifier: Apache-2.0
//! Match-action tables.

use serde_json::{Value, json};

use super::arrays::{counter_fields, meter_fields};
use super::json::{
    annotations, bytes, choice, field, id, key, list, number, one_of, single, table, text, uint,
    uint_or,
};
use super::{Schema, ids};

/// Returns BfRuntime's name of a match type.
fn match_type(field: &Value) -> &'static str {
    match (text(&field["matchType"]), text(&field["otherMatchType"])) {
        ("LPM", _) => "LPM",
        ("TERNARY", _) => "Ternary",
        ("RANGE", _) => "Range",
        ("OPTIONAL", _) => "Optional",
        (_, "atcam_partition_index") => "ATCAM",
        _ => "Exact",
    }
}

/// Returns the name of a key field: `stack$0.field` for a field of a header stack's element, `header.$valid` for its
/// validity.
fn key_name(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((index, behind)) = after.split_once(']') else {
            break;
        };
        out.push_str(before);
        match index.bytes().all(|b| b.is_ascii_digit()) {
            true => out.push_str(&format!("${index}")),
            false => out.push_str(&format!("[{index}]")),
        }
        rest = behind;
    }
    let name = out + rest;
    // P4Runtime's name of isValid().
    match name.strip_suffix(".$valid$") {
        Some(header) => format!("{header}.$valid"),
        None => name,
    }
}

/// Returns true for the name of a slice of a field, `field[7:0]`.
fn is_slice(name: &str) -> bool {
    let slice = name.rsplit_once('[').map(|(_, slice)| slice);
    let bounds = slice.and_then(|s| s.split_once(']')?.0.split_once(':'));
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    bounds.is_some_and(|(high, low)| is_number(high) && is_number(low))
}

fn key_field(f: &Value) -> Value {
    let name = text(&f["name"]);
    let mut annotations = annotations(f);
    if is_slice(name) {
        annotations.push(json!({"name": "isFieldSlice", "value": "true"}));
    }
    let of = bytes(number(&f["bitwidth"]));
    let mut field = key(number(&f["id"]), &key_name(name), false, match_type(f), of);
    field["annotations"] = annotations.into();
    field
}

fn scope(action_ref: &Value) -> &'static str {
    match text(&action_ref["scope"]) {
        "TABLE_ONLY" => "TableOnly",
        "DEFAULT_ONLY" => "DefaultOnly",
        _ => "TableAndDefault",
    }
}

fn parameter(p: &Value) -> Value {
    let of = bytes(number(&p["bitwidth"]));
    let mut f = field(number(&p["id"]), text(&p["name"]), of);
    f["mandatory"] = true.into();
    f["read_only"] = false.into();
    f["annotations"] = annotations(p).into();
    f
}

impl Schema<'_> {
    /// Returns the match-action tables.
    pub fn match_tables(&self) -> Vec<Value> {
        let tables = list(&self.info["tables"]);
        tables.map(|t| self.match_table(t)).collect()
    }

    /// Returns the type of a table, and the ids of the tables that it refers to.
    fn kind(&self, t: &Value) -> (&'static str, Vec<u64>) {
        let implementation = number(&t["implementationId"]);
        match self.object("actionProfiles", implementation) {
            None => ("MatchAction_Direct", vec![]),
            Some(profile) if profile["withSelector"] == true => {
                let mut depends_on = vec![self.selector_id(profile)];
                // If tables share a selector, the first one refers to the profile.
                if list(&profile["tableIds"]).next().map(number) == Some(id(t)) {
                    depends_on.push(self.profile_id(profile));
                }
                ("MatchAction_Indirect_Selector", depends_on)
            }
            Some(_) => (
                "MatchAction_Indirect",
                vec![self.ids.profile(implementation)],
            ),
        }
    }

    fn match_table(&self, t: &Value) -> Value {
        let preamble = &t["preamble"];
        let (kind, depends_on) = self.kind(t);
        let name = text(&preamble["name"]);
        let size = number(&t["size"]);
        let mut out = table(name, id(t), kind, size, annotations(preamble));
        out["depends_on"] = depends_on.into();
        out["has_const_default_action"] = (number(&t["constDefaultActionId"]) != 0).into();
        let mut keys: Vec<_> = list(&t["matchFields"]).map(key_field).collect();
        let by_priority = ["Ternary", "Range", "Optional"];
        if keys
            .iter()
            .any(|k| by_priority.contains(&text(&k["match_type"])))
        {
            let (id, of) = (ids::MATCH_PRIORITY, uint("uint32"));
            keys.push(key(id, "$MATCH_PRIORITY", false, "Exact", of));
        }
        out["key"] = keys.into();
        let mut data = Vec::new();
        let mut next = 1;
        let member = || field(ids::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", uint("uint32"));
        match kind {
            "MatchAction_Direct" => {
                let (specs, last) = self.action_specs(t);
                out["action_specs"] = specs.into();
                next = last + 1;
            }
            "MatchAction_Indirect" => data.push(single(member(), true)),
            _ => {
                let id = ids::SELECTOR_GROUP_ID;
                let group = field(id, "$SELECTOR_GROUP_ID", uint("uint32"));
                data.push(one_of(vec![member(), group]));
            }
        }
        let (mut operations, mut attributes) = (Vec::new(), Vec::new());
        self.direct_resources(t, next, &mut data, (&mut operations, &mut attributes));
        self.attached(name, next, &mut data, &mut operations);
        attributes.push("EntryScope");
        let has = |wanted: &str| list(&preamble["annotations"]).any(|a| text(a) == wanted);
        if has("@dynamic_table_key_masks(1)") {
            attributes.push("DynamicKeyMask");
        }
        if t["isConstTable"] == true {
            attributes.push("ConstTable");
        }
        if text(&t["idleTimeoutBehavior"]) == "NOTIFY_CONTROL" {
            operations.push("UpdateHitState");
            attributes.push("IdleTimeout");
            let states = choice(&["ENTRY_IDLE", "ENTRY_ACTIVE"]);
            let hit = field(ids::ENTRY_HIT_STATE, "$ENTRY_HIT_STATE", states);
            data.push(single(hit, false));
            if !has("@idletime_precision(1)") {
                let ttl = field(ids::ENTRY_TTL, "$ENTRY_TTL", uint_or("uint32", 0));
                data.push(single(ttl, false));
            }
        }
        out["data"] = data.into();
        out["supported_operations"] = operations.into();
        out["attributes"] = attributes.into();
        out
    }

    /// Adds the fields, operations and attributes of direct resources. `next` is the first free id.
    fn direct_resources(
        &self,
        t: &Value,
        next: u64,
        data: &mut Vec<Value>,
        (operations, attributes): (&mut Vec<&str>, &mut Vec<&str>),
    ) {
        for resource in list(&t["directResourceIds"]) {
            let resource = number(resource);
            if let Some(counter) = self.object("directCounters", resource) {
                data.extend(counter_fields(counter));
                operations.push("SyncCounters");
            } else if let Some(meter) = self.object("directMeters", resource) {
                data.extend(meter_fields(meter));
                attributes.push("MeterByteCountAdjust");
            } else if let Some(register) = self.object("registers", resource) {
                data.extend(self.register_fields(register, next));
                operations.push("SyncRegisters");
            }
        }
    }

    /// Returns a table's actions, and the highest id of their parameters.
    pub fn action_specs(&self, t: &Value) -> (Vec<Value>, u64) {
        let mut last = 0;
        let mut specs = Vec::new();
        for reference in list(&t["actionRefs"]) {
            let Some(action) = self.object("actions", number(&reference["id"])) else {
                continue;
            };
            let parameters = list(&action["params"]);
            let data: Vec<_> = parameters.map(parameter).collect();
            last = data.iter().map(|p| number(&p["id"])).fold(last, u64::max);
            specs.push(json!({
                "id": id(action),
                "name": text(&action["preamble"]["name"]),
                "action_scope": scope(reference),
                "annotations": annotations(reference),
                "data": data,
            }));
        }
        (specs, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_of_bfruntime() {
        assert_eq!(key_name("hdr.mpls[0].label"), "hdr.mpls$0.label");
        assert_eq!(key_name("hdr.a[7:0]"), "hdr.a[7:0]");
        assert_eq!(key_name("hdr.a[1].b[7:0]"), "hdr.a$1.b[7:0]");
        assert_eq!(key_name("a[b"), "a[b");
        assert_eq!(key_name("hdr.mpls[0].$valid$"), "hdr.mpls$0.$valid");
    }

    #[test]
    fn slices_have_two_bounds() {
        assert!(is_slice("hdr.a[7:0]"));
        assert!(!is_slice("hdr.a[7]"));
        assert!(!is_slice("hdr.a"));
    }
}
