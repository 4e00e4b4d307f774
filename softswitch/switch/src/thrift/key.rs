// SPDX-License-Identifier: Apache-2.0
//! Keys of table entries.

use softswitch_pipeline::{EntryKey, KeyInfo, MatchField, MatchKind, TableInfo, Value};
use softswitch_thrift::interface::{
    EntryOptions, MatchExact, MatchLpm, MatchParam, MatchRange, MatchTernary, TableError,
    match_kind,
};
use softswitch_thrift::wire::Binary;

/// The priority of an entry of a table without priorities, in answers.
const NO_PRIORITY: i32 = -1;

/// Decodes a key.
///
/// # Errors
/// `BAD_MATCH_KEY` if a field has another kind or number of bytes.
pub fn decode(
    table: &TableInfo,
    params: &[MatchParam],
    options: &EntryOptions,
) -> Result<EntryKey, TableError> {
    if params.len() != table.key.len() {
        return Err(TableError::BadMatchKey);
    }
    let fields = table.key.iter().zip(params);
    let fields = fields.map(|(info, param)| field(info, param).ok_or(TableError::BadMatchKey));
    let fields = fields.collect::<Result<_, _>>()?;
    let priority = match (table.needs_priority, options.priority.unwrap_or(0)) {
        (false, _) => 0,
        // BMv2 prefers the smaller number, and the pipeline the larger one.
        (true, given) if (0..i32::MAX).contains(&given) => i32::MAX - given,
        (true, _) => return Err(TableError::BadMatchKey),
    };
    Ok(EntryKey { fields, priority })
}

/// Returns bytes of the width's length, without the bits beyond the width.
fn bytes(given: &Binary, width: u32) -> Option<Vec<u8>> {
    let mut bytes = given.0.clone();
    if bytes.len() != width.div_ceil(8) as usize {
        return None;
    }
    if let (Some(first), rest @ 1..) = (bytes.first_mut(), width % 8) {
        *first &= (1 << rest) - 1;
    }
    Some(bytes)
}

fn value(bytes: &[u8]) -> Value {
    Value::from_be_bytes(bytes)
}

/// Returns the value's bits that are set in the mask.
fn masked(bytes: &[u8], mask: &[u8]) -> Value {
    let bytes = bytes.iter().zip(mask).map(|(b, m)| b & m);
    value(&bytes.collect::<Vec<_>>())
}

/// Returns the mask of a prefix in a field of this width.
fn prefix_mask(prefix_len: u32, width: u32) -> Vec<u8> {
    let len = width.div_ceil(8);
    let first = len * 8 - width;
    let byte = |i: u32| {
        let is_set = |bit: &u32| (first..first + prefix_len).contains(&(i * 8 + bit));
        (0..8)
            .filter(is_set)
            .fold(0, |byte, bit| byte | 0x80 >> bit)
    };
    (0..len).map(byte).collect()
}

fn field(info: &KeyInfo, param: &MatchParam) -> Option<MatchField> {
    let bytes = |given: &Binary| bytes(given, info.width);
    Some(match (info.kind, param.kind) {
        (MatchKind::Exact, match_kind::EXACT) => {
            MatchField::Exact(value(&bytes(&param.exact.as_ref()?.key)?))
        }
        (MatchKind::Valid, match_kind::EXACT) => {
            MatchField::Valid(bytes(&param.exact.as_ref()?.key)? != [0])
        }
        (MatchKind::Valid, match_kind::VALID) => MatchField::Valid(param.valid.as_ref()?.key),
        (MatchKind::Lpm, match_kind::LPM) => {
            let lpm = param.lpm.as_ref()?;
            let prefix_len = u32::try_from(lpm.prefix_length).ok()?;
            if prefix_len > info.width {
                return None;
            }
            MatchField::Lpm {
                value: masked(&bytes(&lpm.key)?, &prefix_mask(prefix_len, info.width)),
                prefix_len,
            }
        }
        (MatchKind::Ternary, match_kind::TERNARY) => {
            let ternary = param.ternary.as_ref()?;
            let mask = bytes(&ternary.mask)?;
            MatchField::Ternary {
                value: masked(&bytes(&ternary.key)?, &mask),
                mask: value(&mask),
            }
        }
        // BMv2 does not know optional fields: p4c writes them as ternary ones, with a whole mask or none.
        (MatchKind::Optional, match_kind::TERNARY) => {
            let ternary = param.ternary.as_ref()?;
            let (key, mask) = (value(&bytes(&ternary.key)?), value(&bytes(&ternary.mask)?));
            if mask == Value::from(0u32) {
                MatchField::Optional(None)
            } else if mask == Value::ones(info.width) {
                MatchField::Optional(Some(key))
            } else {
                return None;
            }
        }
        (MatchKind::Range, match_kind::RANGE) => {
            let range = param.range.as_ref()?;
            let (low, high) = (bytes(&range.start)?, bytes(&range.end)?);
            if low > high {
                return None;
            }
            MatchField::Range {
                low: value(&low),
                high: value(&high),
            }
        }
        _ => return None,
    })
}

/// Encodes a key and its priority.
pub fn encode(table: &TableInfo, key: &EntryKey) -> (Vec<MatchParam>, EntryOptions) {
    let fields = table.key.iter().zip(&key.fields);
    let params = fields
        .map(|(info, field)| param(info.width, field))
        .collect();
    let priority = match table.needs_priority {
        true => i32::MAX - key.priority,
        false => NO_PRIORITY,
    };
    let options = EntryOptions {
        priority: Some(priority),
    };
    (params, options)
}

fn param(width: u32, field: &MatchField) -> MatchParam {
    // Values in a table fit its fields.
    let bytes = |value: &Value| {
        let padded = value.to_padded(width.div_ceil(8) as usize);
        Binary(padded.unwrap_or_else(|| value.as_bytes().to_vec()))
    };
    let exact = |key| MatchParam {
        kind: match_kind::EXACT,
        exact: Some(MatchExact { key }),
        ..Default::default()
    };
    let ternary = |key, mask| MatchParam {
        kind: match_kind::TERNARY,
        ternary: Some(MatchTernary { key, mask }),
        ..Default::default()
    };
    match field {
        MatchField::Exact(value) => exact(bytes(value)),
        MatchField::Valid(valid) => exact(Binary(vec![(*valid).into()])),
        MatchField::Lpm { value, prefix_len } => MatchParam {
            kind: match_kind::LPM,
            lpm: Some(MatchLpm {
                key: bytes(value),
                prefix_length: prefix_len.cast_signed(),
            }),
            ..Default::default()
        },
        MatchField::Ternary { value, mask } => ternary(bytes(value), bytes(mask)),
        MatchField::Optional(Some(value)) => ternary(bytes(value), bytes(&Value::ones(width))),
        MatchField::Optional(None) => {
            let zero = bytes(&Value::from(0u32));
            ternary(zero.clone(), zero)
        }
        MatchField::Range { low, high } => MatchParam {
            kind: match_kind::RANGE,
            range: Some(MatchRange {
                start: bytes(low),
                end: bytes(high),
            }),
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_mask_counts_from_the_most_significant_bit_of_the_field() {
        assert_eq!(prefix_mask(9, 16), [0xff, 0x80]);
        assert_eq!(prefix_mask(1, 9), [0x01, 0x00]);
        assert_eq!(prefix_mask(0, 9), [0, 0]);
        assert_eq!(prefix_mask(9, 9), [0x01, 0xff]);
    }

    #[test]
    fn bits_beyond_the_width_are_ignored() {
        assert_eq!(bytes(&Binary(vec![0xff, 0xff]), 9), Some(vec![0x01, 0xff]));
        assert_eq!(bytes(&Binary(vec![0xff]), 9), None);
        assert_eq!(bytes(&Binary(vec![0xff]), 8), Some(vec![0xff]));
    }
}
