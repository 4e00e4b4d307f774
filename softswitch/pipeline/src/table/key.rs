//! Lookup keys: match fields packed into 64-bit words, and entries' match criteria in the same shape.

use crate::entry::{EntryKey, MatchField};
use crate::error::StateError;
use crate::info::{KeyInfo, MatchKind};
use crate::phv::mask64;
use crate::value::Value;

/// Where one field of the key is.
#[derive(Debug, Clone)]
pub(crate) struct KeyField {
    info: KeyInfo,
    /// First word; a field of more than 64 bits has its most significant word first.
    word: usize,
    words: usize,
    /// Position of a field of up to 64 bits in its word.
    shift: u32,
    /// First limb of the lower bound among an entry's range limbs.
    range: usize,
}

/// How a table's key is built and what its entries may say.
#[derive(Debug, Clone)]
pub(crate) struct KeyShape {
    table: String,
    fields: Vec<KeyField>,
    /// Words of the key.
    pub(crate) words: usize,
    /// Limbs of an entry's ranges: lower and upper bound of each range field.
    pub(crate) range_limbs: usize,
    pub(crate) needs_priority: bool,
    /// Priority is the prefix length.
    pub(crate) by_prefix: bool,
}

/// An entry's match criteria: `key & masks == values`, and every range field within its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Criteria {
    pub(crate) values: Vec<u64>,
    pub(crate) masks: Vec<u64>,
    pub(crate) ranges: Vec<u64>,
    /// The larger wins.
    pub(crate) priority: i32,
}

impl KeyField {
    fn limbs(&self, v: &Value) -> Vec<u64> {
        let bytes = v.to_padded(self.words * 8).expect("the width was checked");
        bytes
            .chunks(8)
            .map(|c| u64::from_be_bytes(c.try_into().expect("eight bytes")))
            .collect()
    }

    /// Puts limbs of this field into words of the key.
    fn place(&self, limbs: &[u64], into: &mut [u64]) {
        for (i, limb) in limbs.iter().enumerate() {
            into[self.word + i] |= limb << self.shift;
        }
    }

    fn pick(&self, from: &[u64]) -> Vec<u64> {
        if self.words > 1 {
            return from[self.word..self.word + self.words].to_vec();
        }
        vec![from[self.word] >> self.shift & mask64(self.info.width)]
    }

    fn value(&self, limbs: &[u64]) -> Value {
        let bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_be_bytes()).collect();
        Value::from_be_bytes(&bytes)
    }

    /// Limbs with the `len` most significant bits of the field set.
    fn prefix(&self, len: u32) -> Vec<u64> {
        let width = self.info.width;
        let ones = |low: u32| {
            // Bits low.. of the field are set.
            (0..self.words as u32).rev().map(move |i| {
                let (first, last) = (i * 64, ((i + 1) * 64).min(width.max(i * 64)));
                let from = low.clamp(first, last);
                mask64(last - first) & !mask64_below(from - first)
            })
        };
        ones(width - len.min(width)).collect()
    }
}

/// Ones in the bits below `n`.
fn mask64_below(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl KeyShape {
    pub(crate) fn new(table: &str, key: &[KeyInfo]) -> Self {
        let mut shape = Self {
            table: table.to_owned(),
            fields: Vec::new(),
            words: 0,
            range_limbs: 0,
            needs_priority: false,
            by_prefix: false,
        };
        let mut free = 0;
        for info in key {
            let words = info.width.div_ceil(64).max(1) as usize;
            let (word, shift) = if words == 1 && info.width <= free {
                free -= info.width;
                (shape.words - 1, free)
            } else {
                shape.words += words;
                free = if words == 1 { 64 - info.width } else { 0 };
                (shape.words - words, free)
            };
            let range = shape.range_limbs;
            if info.kind == MatchKind::Range {
                shape.range_limbs += 2 * words;
            }
            shape.fields.push(KeyField {
                info: info.clone(),
                word,
                words,
                shift,
                range,
            });
        }
        let has = |kind| key.iter().any(|k| k.kind == kind);
        shape.needs_priority =
            has(MatchKind::Ternary) || has(MatchKind::Range) || has(MatchKind::Optional);
        shape.by_prefix = !shape.needs_priority && has(MatchKind::Lpm);
        shape
    }

    /// Every bit of every field.
    pub(crate) fn full_mask(&self) -> Vec<u64> {
        let mut full = vec![0; self.words];
        for f in &self.fields {
            f.place(&f.prefix(f.info.width), &mut full);
        }
        full
    }

    /// Where field `i` goes in the key.
    pub(crate) fn slot(&self, i: usize) -> (usize, u32) {
        (self.fields[i].word, self.fields[i].shift)
    }

    fn bad(&self, f: &KeyField, reason: String) -> StateError {
        StateError::BadKey {
            table: self.table.clone(),
            field: f.info.name.clone(),
            reason,
        }
    }

    fn check_width(&self, f: &KeyField, v: &Value) -> Result<(), StateError> {
        if v.bits() <= f.info.width {
            return Ok(());
        }
        Err(StateError::TooWide {
            what: format!("table {}, match field {}", self.table, f.info.name),
            value: v.clone(),
            width: f.info.width,
        })
    }

    /// Checks and packs what the control plane says.
    pub(crate) fn encode(&self, key: &EntryKey) -> Result<Criteria, StateError> {
        if key.fields.len() != self.fields.len() {
            return Err(StateError::BadKey {
                table: self.table.clone(),
                field: "key".to_owned(),
                reason: format!(
                    "{} match fields given, {} declared",
                    key.fields.len(),
                    self.fields.len()
                ),
            });
        }
        let mut c = Criteria {
            values: vec![0; self.words],
            masks: vec![0; self.words],
            ranges: vec![0; self.range_limbs],
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
                "the table takes no priority: it must be 0"
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
        let width = f.info.width;
        let full = f.prefix(width);
        let (value, mask) = match (f.info.kind, m) {
            (MatchKind::Exact | MatchKind::Valid, MatchField::Exact(v)) => (v.clone(), full),
            (MatchKind::Valid, MatchField::Valid(v)) => (Value::from(u64::from(*v)), full),
            (MatchKind::Lpm, MatchField::Lpm { value, prefix_len }) => {
                if *prefix_len > width {
                    return Err(self.bad(
                        f,
                        format!("prefix length {prefix_len} exceeds {width} bits"),
                    ));
                }
                (value.clone(), f.prefix(*prefix_len))
            }
            (MatchKind::Ternary, MatchField::Ternary { value, mask }) => {
                self.check_width(f, mask)?;
                (value.clone(), f.limbs(mask))
            }
            // BMv2 JSON has no optional keys: the compiler writes them as ternary.
            (MatchKind::Ternary | MatchKind::Optional, MatchField::Optional(v)) => match v {
                Some(v) => (v.clone(), full),
                None => (Value::from(0u64), vec![0; f.words]),
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
                // The bits that all values of the range share are matched exactly.
                let mask = common_bits(&low, &high);
                let shared: Vec<u64> = low.iter().zip(&mask).map(|(v, m)| v & m).collect();
                let mask: Vec<u64> = mask.iter().zip(&full).map(|(m, f)| m & f).collect();
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
                    format!("a {given} match was given, the table declares {kind:?}"),
                ));
            }
        };
        self.check_width(f, &value)?;
        let limbs = f.limbs(&value);
        if limbs.iter().zip(&mask).any(|(v, m)| v & !m != 0) {
            return Err(self.bad(
                f,
                format!("value {value} has bits outside its mask or prefix"),
            ));
        }
        f.place(&limbs, &mut c.values);
        f.place(&mask, &mut c.masks);
        Ok(())
    }

    /// What the control plane said, in canonical form.
    pub(crate) fn decode(
        &self,
        values: &[u64],
        masks: &[u64],
        ranges: &[u64],
        priority: i32,
    ) -> EntryKey {
        let field = |f: &KeyField| {
            let value = f.value(&f.pick(values));
            let mask = f.pick(masks);
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
                MatchKind::Range => MatchField::Range {
                    low: f.value(&ranges[f.range..f.range + f.words]),
                    high: f.value(&ranges[f.range + f.words..f.range + 2 * f.words]),
                },
            }
        };
        let priority = if self.needs_priority { priority } else { 0 };
        EntryKey {
            fields: self.fields.iter().map(field).collect(),
            priority,
        }
    }

    /// The same for criteria at hand.
    pub(crate) fn describe(&self, c: &Criteria) -> EntryKey {
        self.decode(&c.values, &c.masks, &c.ranges, c.priority)
    }

    /// The fields of a packet's key.
    pub(crate) fn key_values(&self, key: &[u64]) -> Vec<Value> {
        self.fields.iter().map(|f| f.value(&f.pick(key))).collect()
    }

    /// Whether every range field of the key is within an entry's bounds.
    pub(crate) fn in_ranges(&self, key: &[u64], ranges: &[u64]) -> bool {
        self.fields
            .iter()
            .filter(|f| f.info.kind == MatchKind::Range)
            .all(|f| {
                let low = &ranges[f.range..f.range + f.words];
                let high = &ranges[f.range + f.words..f.range + 2 * f.words];
                if f.words == 1 {
                    let v = key[f.word] >> f.shift & mask64(f.info.width);
                    low[0] <= v && v <= high[0]
                } else {
                    let v = &key[f.word..f.word + f.words];
                    low <= v && v <= high
                }
            })
    }
}

/// A mask of the leading bits in which all numbers from `low` to `high` agree.
fn common_bits(low: &[u64], high: &[u64]) -> Vec<u64> {
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

    fn info(kind: MatchKind, width: u32) -> KeyInfo {
        KeyInfo {
            name: "f".to_owned(),
            kind,
            width,
        }
    }

    fn round_trip(kind: MatchKind, width: u32, m: MatchField) {
        // With a neighbour on each side, to see that fields do not disturb each other.
        let around = info(MatchKind::Exact, 7);
        let shape = KeyShape::new("t", &[around.clone(), info(kind, width), around]);
        let edge = MatchField::Exact(Value::from(0x55u64));
        let priority = i32::from(shape.needs_priority);
        let key = EntryKey {
            fields: vec![edge.clone(), m, edge],
            priority,
        };
        let c = shape.encode(&key).unwrap();
        assert_eq!(
            shape.decode(&c.values, &c.masks, &c.ranges, c.priority),
            key,
            "{kind:?} {width}"
        );
    }

    #[test]
    fn encoding_is_reversible() {
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
    fn prefixes_begin_at_the_most_significant_bit() {
        let shape = KeyShape::new("t", &[info(MatchKind::Lpm, 100)]);
        assert_eq!(shape.fields[0].prefix(100), [mask64(36), u64::MAX]);
        assert_eq!(shape.fields[0].prefix(1), [1 << 35, 0]);
        assert_eq!(shape.fields[0].prefix(37), [mask64(36), 1 << 63]);
        assert_eq!(shape.fields[0].prefix(0), [0, 0]);
    }

    #[test]
    fn refusals() {
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
