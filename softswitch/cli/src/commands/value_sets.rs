// SPDX-License-Identifier: Apache-2.0
//! Commands for parser value sets.
//!
//! BMv2 joins the fields of a value into one number, without gaps. P4Runtime keeps them apart.

use num_bigint::BigUint;
use serde_json::json;

use crate::error::{Error, Result};
use crate::key::{match_type, width};
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::field_match::{Exact, FieldMatchType, Optional, Ternary};
use crate::proto::p4::v1::{
    FieldMatch, ValueSetEntry, ValueSetMember, entity::Entity, update::Type as Update,
};
use crate::schema::Kind;
use crate::session::Session;
use crate::value::{hex, ones, parse};

/// A value set with its members.
struct ValueSet {
    id: u32,
    fields: Vec<info::MatchField>,
    members: Vec<ValueSetMember>,
}

impl ValueSet {
    fn read(session: &mut Session, name: &str) -> Result<Self> {
        let id = session.schema.id(Kind::ValueSet, name)?;
        let definition = session.schema.value_set(id).cloned().unwrap_or_default();
        let request = ValueSetEntry {
            value_set_id: id,
            members: vec![],
        };
        let entities = session.client.read(Entity::ValueSetEntry(request))?;
        let members = entities.into_iter().filter_map(|entity| match entity {
            Entity::ValueSetEntry(entry) => Some(entry.members),
            _ => None,
        });
        Ok(Self {
            id,
            fields: definition.r#match,
            members: members.flatten().collect(),
        })
    }

    fn write(self, session: &mut Session) -> Result<Answer> {
        let entry = ValueSetEntry {
            value_set_id: self.id,
            members: self.members,
        };
        session
            .client
            .write(Update::Modify, Entity::ValueSetEntry(entry))?;
        Ok(Answer::default())
    }

    fn width(&self) -> u32 {
        self.fields.iter().map(width).sum()
    }

    /// Splits a number into the fields of a member.
    fn member(&self, value: &BigUint) -> ValueSetMember {
        let mut rest = self.width();
        let fields = self.fields.iter().map(|field| {
            let width = width(field);
            rest -= width;
            FieldMatch {
                field_id: field.id,
                field_match_type: Some(field_match(field, (value >> rest) & ones(width))),
            }
        });
        ValueSetMember {
            r#match: fields.collect(),
        }
    }

    /// Joins the fields of a member.
    fn value(&self, member: &ValueSetMember) -> BigUint {
        let fields = self.fields.iter().map(|field| {
            let found = member.r#match.iter().find(|m| m.field_id == field.id);
            let bytes = match found.and_then(|m| m.field_match_type.as_ref()) {
                Some(FieldMatchType::Exact(m)) => &m.value[..],
                Some(FieldMatchType::Ternary(m)) => &m.value,
                Some(FieldMatchType::Optional(m)) => &m.value,
                Some(FieldMatchType::Lpm(m)) => &m.value,
                Some(FieldMatchType::Range(m)) => &m.low,
                Some(FieldMatchType::Other(_)) | None => &[],
            };
            (width(field), BigUint::from_bytes_be(bytes))
        });
        fields.fold(BigUint::ZERO, |all, (width, value)| (all << width) | value)
    }
}

/// A value, in the kind of match that the field has.
fn field_match(field: &info::MatchField, value: BigUint) -> FieldMatchType {
    use info::match_field::MatchType;
    let bytes = value.to_bytes_be();
    match match_type(field) {
        MatchType::Ternary => FieldMatchType::Ternary(Ternary {
            value: bytes,
            mask: ones(width(field)).to_bytes_be(),
        }),
        MatchType::Optional => FieldMatchType::Optional(Optional { value: bytes }),
        _ => FieldMatchType::Exact(Exact { value: bytes }),
    }
}

pub fn add(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [set, value] = args else {
        return Err(Error::Usage);
    };
    let mut set = ValueSet::read(session, set)?;
    let value = BigUint::from_bytes_be(&parse(value, set.width())?);
    // As in BMv2, adding a value again succeeds.
    if set.members.iter().any(|member| set.value(member) == value) {
        return Ok(Answer::default());
    }
    set.members.push(set.member(&value));
    set.write(session)
}

pub fn remove(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [set, value] = args else {
        return Err(Error::Usage);
    };
    let mut set = ValueSet::read(session, set)?;
    let value = BigUint::from_bytes_be(&parse(value, set.width())?);
    let members = std::mem::take(&mut set.members).into_iter();
    set.members = members
        .filter(|member| set.value(member) != value)
        .collect();
    set.write(session)
}

pub fn clear(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [set] = args else {
        return Err(Error::Usage);
    };
    let mut set = ValueSet::read(session, set)?;
    set.members.clear();
    set.write(session)
}

pub fn get(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [set] = args else {
        return Err(Error::Usage);
    };
    let set = ValueSet::read(session, set)?;
    let values = set
        .members
        .iter()
        .map(|member| hex(&set.value(member).to_bytes_be(), set.width()));
    let values: Vec<String> = values.collect();
    let data = values.iter().map(|value| format!("0x{value}"));
    Ok(Answer::new(
        values.join("\n"),
        json!({"values": data.collect::<Vec<_>>()}),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_join_fields_without_gaps() {
        let field = |id, bitwidth| info::MatchField {
            id,
            bitwidth,
            ..Default::default()
        };
        let set = ValueSet {
            id: 1,
            fields: vec![field(1, 9), field(2, 16), field(3, 3)],
            members: vec![],
        };
        let value = BigUint::from((511u32 << 19) | (0x1234 << 3) | 5);
        let member = set.member(&value);
        let Some(FieldMatchType::Exact(first)) = &member.r#match[0].field_match_type else {
            panic!("{member:?}")
        };
        assert_eq!(first.value, [1, 255]);
        assert_eq!(set.value(&member), value);
    }
}
