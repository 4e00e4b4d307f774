// SPDX-License-Identifier: Apache-2.0
//! Match criteria of entries: checking, packing, and conversion back for the control plane.

use smallvec::{SmallVec, smallvec};

use super::key::{KeyField, KeyShape, Limbs};
use crate::entry::{EntryKey, MatchField};
use crate::error::StateError;
use crate::info::MatchKind;
use crate::value::Value;

/// The words of a key; most keys need no allocation.
pub(crate) type Words = SmallVec<[u64; 4]>;

/// An entry's match criteria: `key & masks == values`, and every range field within its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Criteria {
    pub(crate) values: Words,
    pub(crate) masks: Words,
    pub(crate) ranges: Words,
    /// Larger priorities win.
    pub(crate) priority: i32,
}

impl KeyShape {
    /// Checks and packs a key of the control plane.
    pub(crate) fn encode(&self, key: &EntryKey) -> Result<Criteria, StateError> {
        self.check_count(key.fields.len())?;
        let mut c = Criteria {
            values: smallvec![0; self.words],
            masks: smallvec![0; self.words],
            ranges: smallvec![0; self.range_limbs],
            priority: key.priority,
        };
        let mut prefix_len = 0;
        for (f, m) in self.fields.iter().zip(&key.fields) {
            self.encode_field(f, m, &mut c)?;
            if let MatchField::Lpm {
                prefix_len: len, ..
            } = m
            {
                prefix_len = *len;
            }
        }
        if self.needs_priority != (key.priority > 0) || key.priority < 0 {
            let reason = if self.needs_priority {
                "the table needs a priority of at least 1"
            } else {
                "the table does not use priorities: the priority must be 0"
            };
            return Err(StateError::BadKey {
                table: self.table.clone(),
                field: "priority".to_owned(),
                reason: reason.to_owned(),
            });
        }
        if self.by_prefix {
            c.priority = prefix_len as i32;
        }
        Ok(c)
    }

    fn encode_field(
        &self,
        f: &KeyField,
        m: &MatchField,
        c: &mut Criteria,
    ) -> Result<(), StateError> {
        let (zero, flag, mask);
        let (value, mask) = match (f.info.kind, m) {
            (MatchKind::Exact | MatchKind::Valid, MatchField::Exact(v)) => (v, &f.full),
            (MatchKind::Valid, MatchField::Valid(v)) => {
                flag = Value::from(u64::from(*v));
                (&flag, &f.full)
            }
            (MatchKind::Lpm, MatchField::Lpm { value, prefix_len }) => {
                let width = f.info.width;
                if *prefix_len > width {
                    return Err(self.bad(
                        f,
                        format!("prefix length {prefix_len} exceeds the width of {width} bits"),
                    ));
                }
                mask = f.prefix(*prefix_len);
                (value, &mask)
            }
            (MatchKind::Ternary, MatchField::Ternary { value, mask: given }) => {
                self.check_width(f, given)?;
                mask = f.limbs(given);
                (value, &mask)
            }
            // BMv2 JSON does not have optional keys: the compiler writes them as ternary.
            (MatchKind::Ternary | MatchKind::Optional, MatchField::Optional(v)) => match v {
                Some(v) => (v, &f.full),
                None => {
                    (zero, mask) = (Value::from(0u64), f.prefix(0));
                    (&zero, &mask)
                }
            },
            (MatchKind::Range, MatchField::Range { low, high }) => {
                self.check_width(f, low)?;
                self.check_width(f, high)?;
                let (low, high) = (f.limbs(low), f.limbs(high));
                if low > high {
                    return Err(self.bad(f, "the range's low end is above its high end".to_owned()));
                }
                c.ranges[f.range..f.range + f.words].copy_from_slice(&low);
                c.ranges[f.range + f.words..f.range + 2 * f.words].copy_from_slice(&high);
                // The leading bits that all values of the range share are matched exactly.
                let mask = common_bits(&low, &high);
                let shared: Limbs = low.iter().zip(&mask).map(|(v, m)| v & m).collect();
                let mask: Limbs = mask.iter().zip(&f.full).map(|(m, f)| m & f).collect();
                f.place(&shared, &mut c.values);
                f.place(&mask, &mut c.masks);
                return Ok(());
            }
            (kind, given) => {
                let given = match given {
                    MatchField::Exact(_) => "exact",
                    MatchField::Lpm { .. } => "lpm",
                    MatchField::Ternary { .. } => "ternary",
                    MatchField::Range { .. } => "range",
                    MatchField::Optional(_) => "optional",
                    MatchField::Valid(_) => "valid",
                };
                return Err(self.bad(
                    f,
                    format!("a {given} match was given, but the table declares {kind:?}"),
                ));
            }
        };
        self.check_width(f, value)?;
        let limbs = f.limbs(value);
        if limbs.iter().zip(mask).any(|(v, m)| v & !m != 0) {
            return Err(self.bad(
                f,
                format!("value {value} has bits outside its mask or prefix"),
            ));
        }
        f.place(&limbs, &mut c.values);
        f.place(mask, &mut c.masks);
        Ok(())
    }

    /// Returns the key for the control plane, in canonical form.
    pub(crate) fn describe(&self, c: &Criteria) -> EntryKey {
        let field = |f: &KeyField| {
            let value = f.value(&f.pick(&c.values));
            let mask = f.pick(&c.masks);
            match f.info.kind {
                MatchKind::Exact => MatchField::Exact(value),
                MatchKind::Valid => MatchField::Valid(value.to_u64() == Some(1)),
                MatchKind::Lpm => {
                    let prefix_len = mask.iter().map(|m| m.count_ones()).sum();
                    MatchField::Lpm { value, prefix_len }
                }
                MatchKind::Ternary => MatchField::Ternary {
                    value,
                    mask: f.value(&mask),
                },
                MatchKind::Optional => {
                    MatchField::Optional(mask.iter().any(|&m| m != 0).then_some(value))
                }
                MatchKind::Range => {
                    let (low, high) = f.bounds(&c.ranges);
                    MatchField::Range {
                        low: f.value(low),
                        high: f.value(high),
                    }
                }
            }
        };
        EntryKey {
            fields: self.fields.iter().map(field).collect(),
            priority: if self.needs_priority { c.priority } else { 0 },
        }
    }
}

/// Returns the mask of the leading bits that all numbers from `low` to `high` share.
fn common_bits(low: &[u64], high: &[u64]) -> Limbs {
    let mut differs = false;
    low.iter()
        .zip(high)
        .map(|(l, h)| {
            if differs {
                return 0;
            }
            let first = (l ^ h).leading_zeros();
            differs = first < 64;
            if first == 64 {
                u64::MAX
            } else {
                !(u64::MAX >> first)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::KeyInfo;

    fn info(kind: MatchKind, width: u32) -> KeyInfo {
        KeyInfo {
            name: "f".to_owned(),
            kind,
            width,
        }
    }

    fn round_trip(kind: MatchKind, width: u32, m: MatchField) {
        // With a field on each side, to check that fields do not overlap.
        let around = info(MatchKind::Exact, 7);
        let shape = KeyShape::new("t", &[around.clone(), info(kind, width), around]);
        let edge = MatchField::Exact(Value::from(0x55u64));
        let priority = i32::from(shape.needs_priority);
        let key = EntryKey {
            fields: vec![edge.clone(), m, edge],
            priority,
        };
        let c = shape.encode(&key).unwrap();
        assert_eq!(shape.describe(&c), key, "{kind:?} {width}");
    }

    #[test]
    fn criteria_round_trip() {
        for width in [1, 8, 9, 32, 48, 57, 64, 65, 100, 128, 129, 200] {
            let ones = Value::ones(width);
            round_trip(MatchKind::Exact, width, MatchField::Exact(ones.clone()));
            round_trip(MatchKind::Optional, width, MatchField::Optional(None));
            round_trip(
                MatchKind::Optional,
                width,
                MatchField::Optional(Some(ones.clone())),
            );
            round_trip(
                MatchKind::Ternary,
                width,
                MatchField::Ternary {
                    value: Value::from(1u64),
                    mask: ones.clone(),
                },
            );
            round_trip(
                MatchKind::Range,
                width,
                MatchField::Range {
                    low: Value::from(0u64),
                    high: ones.clone(),
                },
            );
            for prefix_len in [0, 1, width / 2, width] {
                let value = Value::from(0u64);
                round_trip(MatchKind::Lpm, width, MatchField::Lpm { value, prefix_len });
            }
            round_trip(
                MatchKind::Lpm,
                width,
                MatchField::Lpm {
                    value: ones,
                    prefix_len: width,
                },
            );
        }
    }

    #[test]
    fn rejects_invalid_criteria() {
        let shape = KeyShape::new("t", &[info(MatchKind::Ternary, 8)]);
        let encode = |m, priority| {
            shape.encode(&EntryKey {
                fields: vec![m],
                priority,
            })
        };
        let ternary = |v: u64, m: u64| MatchField::Ternary {
            value: v.into(),
            mask: m.into(),
        };
        assert!(encode(ternary(1, 1), 1).is_ok());
        assert!(matches!(
            encode(ternary(2, 1), 1),
            Err(StateError::BadKey { .. })
        ));
        assert!(matches!(
            encode(ternary(1, 0x1ff), 1),
            Err(StateError::TooWide { .. })
        ));
        assert!(matches!(
            encode(ternary(1, 1), 0),
            Err(StateError::BadKey { .. })
        ));
        assert!(matches!(
            encode(MatchField::Exact(1u64.into()), 1),
            Err(StateError::BadKey { .. })
        ));
        assert!(
            shape
                .encode(&EntryKey {
                    fields: vec![],
                    priority: 1
                })
                .is_err()
        );
    }
}
