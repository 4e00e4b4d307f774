// SPDX-License-Identifier: Apache-2.0
//! Parser value sets.

use softswitch_pipeline::{MatchField, Value, ValueSetId, ValueSetInfo};
use softswitch_thrift::interface::{ValueSetError, ValueSets};
use softswitch_thrift::wire::Binary;

use super::Services;

type Result<T> = std::result::Result<T, ValueSetError>;

/// Members of a value set.
type Members = Vec<Vec<MatchField>>;

/// Splits a value into the fields of a member, which follow each other without gaps. The value may have any number of
/// leading zeros, because BMv2's own client sends one byte too many.
fn decode(info: &ValueSetInfo, value: &Binary) -> Result<Vec<MatchField>> {
    let value = Value::from_be_bytes(&value.0);
    let bytes = value.to_padded(info.width.div_ceil(8) as usize);
    let bytes = bytes.filter(|_| value.bits() <= info.width);
    let bytes = bytes.ok_or(ValueSetError::Error)?;
    let mut at = bytes.len() * 8 - info.width as usize;
    let fields = info.fields.iter().map(|&width| {
        let mut field = vec![0; width.div_ceil(8) as usize];
        let first = field.len() * 8 - width as usize;
        for bit in 0..width as usize {
            let from = at + bit;
            let set = bytes[from / 8] >> (7 - from % 8) & 1;
            field[(first + bit) / 8] |= set << (7 - (first + bit) % 8);
        }
        at += width as usize;
        MatchField::Exact(Value::from_be_bytes(&field))
    });
    Ok(fields.collect())
}

/// Joins the values of a member's fields.
fn encode(info: &ValueSetInfo, member: &[MatchField]) -> Binary {
    let mut bytes = vec![0; info.width.div_ceil(8) as usize];
    let mut at = bytes.len() * 8 - info.width as usize;
    for (&width, field) in info.fields.iter().zip(member) {
        let zero = Value::from(0u32);
        let value = match field {
            MatchField::Exact(value)
            | MatchField::Lpm { value, .. }
            | MatchField::Ternary { value, .. }
            | MatchField::Range { low: value, .. }
            | MatchField::Optional(Some(value)) => value,
            MatchField::Optional(None) | MatchField::Valid(_) => &zero,
        };
        let field = value
            .to_padded(width.div_ceil(8) as usize)
            .unwrap_or_default();
        let first = (field.len() * 8).saturating_sub(width as usize);
        for bit in first..field.len() * 8 {
            let set = field[bit / 8] >> (7 - bit % 8) & 1;
            let to = at + bit - first;
            bytes[to / 8] |= set << (7 - to % 8);
        }
        at += width as usize;
    }
    Binary(bytes)
}

impl Services {
    /// Runs a function on the members of a value set, and stores them if they have changed.
    fn on_value_set<R>(
        &self,
        name: &str,
        f: impl FnOnce(&ValueSetInfo, &mut Members) -> Result<R>,
    ) -> Result<R> {
        let unknown = ValueSetError::InvalidParseVsetName;
        self.with_state(unknown, |cx, program| {
            let id: ValueSetId = program.info().value_set(name).ok_or(unknown)?;
            let before = cx.pipeline.value_set(id);
            let before = before.map_err(|_| ValueSetError::Error)?;
            let mut members = before.clone();
            let result = f(&program.info().value_sets[id.index()], &mut members)?;
            if members != before {
                let set = cx.pipeline.set_value_set(id, members);
                set.map_err(|_| ValueSetError::Error)?;
            }
            Ok(result)
        })
    }
}

impl ValueSets for Services {
    fn bm_parse_vset_add(&self, _: i32, set: String, value: Binary) -> Result<()> {
        self.on_value_set(&set, |info, members| {
            let member = decode(info, &value)?;
            if !members.contains(&member) {
                members.push(member);
            }
            Ok(())
        })
    }

    fn bm_parse_vset_remove(&self, _: i32, set: String, value: Binary) -> Result<()> {
        self.on_value_set(&set, |info, members| {
            let member = decode(info, &value)?;
            members.retain(|other| *other != member);
            Ok(())
        })
    }

    fn bm_parse_vset_get(&self, _: i32, set: String) -> Result<Vec<Binary>> {
        self.on_value_set(&set, |info, members| {
            Ok(members.iter().map(|member| encode(info, member)).collect())
        })
    }

    fn bm_parse_vset_clear(&self, _: i32, set: String) -> Result<()> {
        self.on_value_set(&set, |_, members| {
            members.clear();
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_without_gaps() {
        let info = ValueSetInfo {
            name: "s".into(),
            width: 13,
            fields: vec![4, 9],
        };
        let value = Binary(vec![0b1_0101, 0b1000_0011]);
        let member = decode(&info, &value).unwrap();
        let exact = |n: u32| MatchField::Exact(Value::from(n));
        assert_eq!(member, [exact(0b1010), exact(0b1_1000_0011)]);
        assert_eq!(encode(&info, &member), value);
        let longer = Binary([&[0, 0][..], &value.0].concat());
        assert_eq!(decode(&info, &longer).unwrap(), member);
        let wide = Binary(vec![0x20, 0]);
        assert_eq!(decode(&info, &wide), Err(ValueSetError::Error));
    }
}
