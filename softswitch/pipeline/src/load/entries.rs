// SPDX-License-Identifier: Apache-2.0
//! Loads the table entries that the program defines.

use std::collections::HashSet;

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::control::Loader;
use super::cursor::Cursor;
use crate::entry::{ActionCall, Entry, EntryAction, EntryKey, MatchField};
use crate::error::LoadError;
use crate::info::{ActionId, KeyInfo, MatchKind, TableInfo};
use crate::program::key::KeyShape;
use crate::value::Value;

type Result<T> = std::result::Result<T, LoadError>;

impl Loader<'_> {
    /// Loads the program's own entries. In the JSON the smaller priority wins; in the pipeline the larger one wins.
    pub(super) fn entries(
        &self,
        entries: &[Cursor],
        info: &TableInfo,
        shape: &KeyShape,
    ) -> Result<Vec<Entry>> {
        let priority = |e: &Cursor| -> Result<i32> {
            let p = e.get("priority");
            if p.is_null() {
                Ok(1)
            } else {
                Ok(p.u32()?.min(1 << 24) as i32)
            }
        };
        let mut lowest = 0;
        for e in entries {
            lowest = lowest.max(priority(e)?);
        }
        let mut list = Vec::new();
        let mut known = HashSet::new();
        for e in entries {
            let fields = e.get("match_key").items()?;
            if fields.len() != info.key.len() {
                return Err(e
                    .get("match_key")
                    .error(format!("the key has {} fields", info.key.len())));
            }
            let pairs = fields.iter().zip(&info.key);
            let fields = pairs
                .map(|(m, k)| match_field(m, k))
                .collect::<Result<_>>()?;
            let priority = if info.needs_priority {
                lowest - priority(e)? + 1
            } else {
                0
            };
            let action = self.action(&e.get("action_entry").get("action_id"))?;
            let data = e.get("action_entry").get("action_data");
            let args = self.args(&data)?;
            self.call(action, &args, &data)?;
            let key = EntryKey { fields, priority };
            let criteria = shape
                .encode(&key)
                .map_err(|error| e.error(error.to_string()))?;
            if !known.insert(criteria) {
                return Err(e.error("duplicate entry: another one has the same key"));
            }
            list.push(Entry {
                key,
                action: EntryAction::Direct(ActionCall {
                    action: ActionId(action),
                    args,
                }),
                idle_timeout: 0,
            });
        }
        Ok(list)
    }
}

/// Loads one field of an entry's key; bits outside its mask are cleared.
fn match_field(m: &Cursor, k: &KeyInfo) -> Result<MatchField> {
    let hex = |name: &str| Ok::<_, LoadError>(Value::from_be_bytes(&m.get(name).hex_bytes()?));
    let masked = |mask: &Value| {
        let (v, m) = (m.get("key").hex()?, BigUint::from_bytes_be(mask.as_bytes()));
        Ok::<_, LoadError>(Value::from_be_bytes(&(v.magnitude() & m).to_bytes_be()))
    };
    Ok(match k.kind {
        MatchKind::Exact => MatchField::Exact(hex("key")?),
        MatchKind::Valid => MatchField::Valid(m.get("key").bool()?),
        MatchKind::Lpm => {
            let prefix_len = m.get("prefix_length").u32()?.min(k.width);
            let ones = BigUint::from_bytes_be(Value::ones(k.width).as_bytes());
            let low = BigUint::from_bytes_be(Value::ones(k.width - prefix_len).as_bytes());
            let mask = Value::from_be_bytes(&(ones - low).to_bytes_be());
            MatchField::Lpm {
                value: masked(&mask)?,
                prefix_len,
            }
        }
        MatchKind::Ternary => {
            let mask = hex("mask")?;
            MatchField::Ternary {
                value: masked(&mask)?,
                mask,
            }
        }
        MatchKind::Range => MatchField::Range {
            low: hex("start")?,
            high: hex("end")?,
        },
        MatchKind::Optional => {
            let mask = m.get("mask");
            let any = !mask.is_null() && mask.hex()?.to_u64() == Some(0);
            MatchField::Optional(if any { None } else { Some(hex("key")?) })
        }
    })
}
