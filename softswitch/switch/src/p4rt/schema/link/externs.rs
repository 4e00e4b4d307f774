// SPDX-License-Identifier: Apache-2.0
//! Links the objects of P4Info other than tables and actions.

use softswitch_pipeline::{Info, RegisterId};

use super::{check_ids, link_field, match_kind, missing, preamble};
use crate::p4rt::schema::{Counter, Digest, Meter, Profile, Register, Schema, ValueSet};
use crate::p4rt::translation::Translations;
use crate::p4rt::types::Shape;
use crate::proto::p4::config::v1 as cfg;
use cfg::p4_data_type_spec::TypeSpec;

pub(super) fn link(
    schema: &mut Schema,
    p4info: &cfg::P4Info,
    translations: &Translations,
    info: &Info,
) -> Result<(), String> {
    for profile in &p4info.action_profiles {
        let (id, _) = preamble(profile.preamble.as_ref(), "action profile")?;
        if !schema.removed.contains_key(&id) {
            let profile = link_profile(schema, profile, info)?;
            schema.profiles.insert(id, profile)?;
        }
    }
    for counter in &p4info.counters {
        let (id, name) = preamble(counter.preamble.as_ref(), "counter")?;
        let target = info.counter(&name);
        let target = target.ok_or_else(|| missing("counter", &name))?;
        let size = info.counters[target.index()].size;
        schema.counters.insert(id, Counter { name, target, size })?;
    }
    for meter in &p4info.meters {
        let (id, name) = preamble(meter.preamble.as_ref(), "meter")?;
        let target = info.meter(&name).ok_or_else(|| missing("meter", &name))?;
        let meter = Meter {
            size: info.meters[target.index()].size,
            kind: meter
                .spec
                .as_ref()
                .map(cfg::MeterSpec::r#type)
                .unwrap_or_default(),
            name,
            target,
        };
        schema.meters.insert(id, meter)?;
    }
    for set in &p4info.value_sets {
        let (id, set) = link_value_set(set, translations, info)?;
        schema.value_sets.insert(id, set)?;
    }
    let shape = |spec: Option<&cfg::P4DataTypeSpec>, widths: &[u32], what: &str| {
        let types = p4info.type_info.as_ref();
        let mut shape =
            Shape::resolve(spec, types, translations).map_err(|e| format!("{what}: {e}"))?;
        if shape.fit(widths) {
            return Ok(shape);
        }
        Err(format!(
            "{what}: the types in P4Info and in the program differ"
        ))
    };
    for register in &p4info.registers {
        let (id, name) = preamble(register.preamble.as_ref(), "register")?;
        let spec = register.type_spec.as_ref();
        let targets = register_arrays(spec, p4info, info, &name);
        let targets = targets.ok_or_else(|| missing("register", &name))?;
        let linked = targets.iter().map(|t| &info.registers[t.index()]);
        let widths: Vec<u32> = linked.clone().map(|r| r.width).collect();
        let what = format!("register {name}");
        let register = Register {
            size: linked.map(|r| r.size).min().unwrap_or(0),
            shape: shape(spec, &widths, &what)?,
            name,
            targets,
        };
        schema.registers.insert(id, register)?;
    }
    for digest in &p4info.digests {
        let (id, name) = preamble(digest.preamble.as_ref(), "digest")?;
        let target = info.digest(&name).ok_or_else(|| missing("digest", &name))?;
        let widths = &info.digests[target.index()].fields;
        let digest = Digest {
            shape: shape(digest.type_spec.as_ref(), widths, &format!("digest {name}"))?,
            name,
            target,
        };
        schema.digests.insert(id, digest)?;
    }
    Ok(())
}

/// Returns the pipeline's array of a register. TNA's registers of structs have an array for each member.
fn register_arrays(
    spec: Option<&cfg::P4DataTypeSpec>,
    p4info: &cfg::P4Info,
    info: &Info,
    name: &str,
) -> Option<Vec<RegisterId>> {
    if let Some(target) = info.register(name) {
        return Some(vec![target]);
    }
    let Some(TypeSpec::Struct(of)) = &spec?.type_spec else {
        return None;
    };
    let spec = p4info.type_info.as_ref()?.structs.get(&of.name)?;
    let members = spec.members.iter();
    members
        .map(|m| info.register(&format!("{name}.{}", m.name)))
        .collect()
}

fn link_profile(
    schema: &Schema,
    profile: &cfg::ActionProfile,
    info: &Info,
) -> Result<Profile, String> {
    let (_, name) = preamble(profile.preamble.as_ref(), "action profile")?;
    let target = info.profile(&name);
    let target = target.ok_or_else(|| missing("action profile", &name))?;
    let mut tables = profile.table_ids.iter().copied();
    let table = tables.find(|t| schema.tables.get(*t).is_some());
    use cfg::action_profile::SelectorSizeSemantics::SumOfMembers;
    let (size_in_members, max_member_weight) = match &profile.selector_size_semantics {
        Some(SumOfMembers(s)) => (true, s.max_member_weight.try_into().unwrap_or(0)),
        _ => (false, 0),
    };
    Ok(Profile {
        target,
        table,
        selector: profile.with_selector,
        size: profile.size.try_into().unwrap_or(0),
        max_group_size: profile.max_group_size.try_into().unwrap_or(0),
        size_in_members,
        max_member_weight,
        weights_disallowed: profile.weights_disallowed,
        name,
    })
}

fn link_value_set(
    set: &cfg::ValueSet,
    translations: &Translations,
    info: &Info,
) -> Result<(u32, ValueSet), String> {
    let (id, name) = preamble(set.preamble.as_ref(), "value set")?;
    let target = info.value_set(&name);
    let target = target.ok_or_else(|| missing("value set", &name))?;
    let linked = &info.value_sets[target.index()];
    if linked.fields.len() != set.r#match.len() {
        return Err(format!(
            "value set {name}: the fields in P4Info and in the program differ"
        ));
    }
    let fields = set.r#match.iter().zip(&linked.fields);
    let fields = fields.map(|(field, width)| {
        let mut field = field.clone();
        if field.bitwidth == 0 && field.type_name.is_none() {
            field.bitwidth = i32::try_from(*width).unwrap_or(0);
        }
        let what = format!("value set {name}");
        let kind = match_kind(&field, &what)?;
        link_field(&field, kind, *width, translations, &what)
    });
    let fields = fields.collect::<Result<Vec<_>, String>>()?;
    check_ids("match field", &name, fields.iter().map(|f| f.id))?;
    let set = ValueSet {
        size: usize::try_from(set.size).unwrap_or(0),
        target,
        fields,
        name,
    };
    Ok((id, set))
}
