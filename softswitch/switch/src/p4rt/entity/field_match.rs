// SPDX-License-Identifier: Apache-2.0
//! Match fields of table entries and value sets (specification, section "Match Format").

use std::fmt::Display;

use softswitch_pipeline::{MatchField, MatchKind, Value};

use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Field;
use crate::p4rt::value;
use crate::proto::p4::v1::{FieldMatch, field_match};
use field_match::FieldMatchType;

/// Decodes the matches of one key: one per field, in the order of the fields. Omitted fields match anything.
pub fn decode(
    owner: impl Display + Copy,
    fields: &[Field],
    matches: &[FieldMatch],
) -> P4Result<Vec<MatchField>> {
    for (i, m) in matches.iter().enumerate() {
        if fields.iter().all(|f| f.id != m.field_id) {
            return Err(P4Error::invalid(format!(
                "{owner} does not have a match field with id {}: use {}",
                m.field_id,
                list(fields)
            )));
        }
        if matches[..i].iter().any(|n| n.field_id == m.field_id) {
            return Err(P4Error::invalid(format!(
                "{owner}: match field {} is given twice",
                m.field_id
            )));
        }
    }
    let decoded = fields.iter().map(|field| {
        let given = matches.iter().find(|m| m.field_id == field.id);
        let decoded = match given {
            Some(given) => decode_field(owner, field, given)?,
            None => any(field).ok_or_else(|| {
                P4Error::invalid(format!(
                    "{owner}: exact match field {} ({}) is missing",
                    field.id, field.name
                ))
            })?,
        };
        Ok(to_target(field, decoded))
    });
    decoded.collect()
}

/// Returns the match in the program's form.
fn to_target(field: &Field, decoded: MatchField) -> MatchField {
    match (decoded, field.target) {
        (MatchField::Optional(value), MatchKind::Ternary) => MatchField::Ternary {
            mask: value
                .as_ref()
                .map_or(0u32.into(), |_| Value::ones(field.codec.width)),
            value: value.unwrap_or(0u32.into()),
        },
        (decoded, _) => decoded,
    }
}

fn list(fields: &[Field]) -> String {
    let names = fields.iter().map(|f| format!("{} ({})", f.id, f.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the match of an omitted field.
fn any(field: &Field) -> Option<MatchField> {
    let zero = || Value::from(0u32);
    match field.kind {
        MatchKind::Exact | MatchKind::Valid => None,
        MatchKind::Lpm => Some(MatchField::Lpm {
            value: zero(),
            prefix_len: 0,
        }),
        MatchKind::Ternary => Some(MatchField::Ternary {
            value: zero(),
            mask: zero(),
        }),
        MatchKind::Range => Some(MatchField::Range {
            low: zero(),
            high: Value::ones(field.codec.width),
        }),
        MatchKind::Optional => Some(MatchField::Optional(None)),
    }
}

fn decode_field(owner: impl Display, field: &Field, given: &FieldMatch) -> P4Result<MatchField> {
    let what = || format!("{owner}, match field {}", field.name);
    let codec = &field.codec;
    let width = codec.width;
    // A translated field is matched exactly or not at all, because masks, lengths and bounds have the
    // controller's width.
    let translated = codec.translated_width();
    let outer = translated.unwrap_or(width);
    let bits = |bytes: &[u8]| codec.decode(bytes, what);
    let invalid = |reason: String| Err(P4Error::invalid(format!("{}: {reason}", what())));
    let omit = |how: &str| invalid(format!("{how} matches anything: omit the field"));
    let must_be_exact = || {
        Err(P4Error::unimplemented(format!(
            "{}: its type is translated, so it supports exact match only",
            what()
        )))
    };
    let Some(given) = &given.field_match_type else {
        return invalid("missing value".into());
    };
    match (field.kind, given) {
        (MatchKind::Exact, FieldMatchType::Exact(m)) => Ok(MatchField::Exact(bits(&m.value)?)),
        (MatchKind::Valid, FieldMatchType::Exact(m)) => {
            Ok(MatchField::Valid(bits(&m.value)?.to_u64() == Some(1)))
        }
        (MatchKind::Lpm, FieldMatchType::Lpm(m)) => {
            let prefix_len = match u32::try_from(m.prefix_len) {
                Ok(0) => return omit("prefix length 0"),
                Ok(len) if translated.is_some() && len < outer => return must_be_exact(),
                Ok(len) if len <= outer => len.min(width),
                _ => {
                    return invalid(format!(
                        "prefix length {} is not between 1 and {outer}",
                        m.prefix_len
                    ));
                }
            };
            let value = bits(&m.value)?;
            if !value::within_mask(&value, &value::prefix_mask(prefix_len, width)) {
                return invalid(format!(
                    "value {value} has bits set beyond its prefix of {prefix_len} bits"
                ));
            }
            Ok(MatchField::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, FieldMatchType::Ternary(m)) => {
            let value = bits(&m.value)?;
            let mask = value::decode(&m.mask, outer, what)?;
            if mask.bits() == 0 {
                return omit("a mask of 0");
            }
            if !value::within_mask(&value, &mask) {
                return invalid(format!(
                    "value {value} has bits set outside its mask {mask}"
                ));
            }
            let mask = match translated {
                None => mask,
                Some(_) if mask == Value::ones(outer) => Value::ones(width),
                Some(_) => return must_be_exact(),
            };
            Ok(MatchField::Ternary { value, mask })
        }
        (MatchKind::Range, FieldMatchType::Range(m)) => {
            let low = value::decode(&m.low, outer, what)?;
            let high = value::decode(&m.high, outer, what)?;
            if !value::at_most(&low, &high) {
                return invalid(format!("low {low} is above high {high}"));
            }
            if low.bits() == 0 && high == Value::ones(outer) {
                return omit("the full range");
            }
            if translated.is_some() && low != high {
                return must_be_exact();
            }
            let (low, high) = (bits(&m.low)?, bits(&m.high)?);
            Ok(MatchField::Range { low, high })
        }
        (MatchKind::Optional, FieldMatchType::Optional(m)) => {
            Ok(MatchField::Optional(Some(bits(&m.value)?)))
        }
        (kind, _) => invalid(format!("wrong match kind: use {kind:?}")),
    }
}

/// Encodes the matches of a key; omits those that match anything.
pub fn encode(fields: &[Field], key: &[MatchField]) -> Vec<FieldMatch> {
    let encoded = fields.iter().zip(key).filter_map(|(field, key)| {
        Some(FieldMatch {
            field_id: field.id,
            field_match_type: Some(encode_field(field, key)?),
        })
    });
    encoded.collect()
}

fn encode_field(field: &Field, key: &MatchField) -> Option<FieldMatchType> {
    let codec = &field.codec;
    let encode = |value| codec.encode(value);
    let exact = |value| FieldMatchType::Exact(field_match::Exact { value });
    Some(match key {
        MatchField::Exact(v) => exact(encode(v)),
        MatchField::Valid(v) => exact(encode(&Value::from(u32::from(*v)))),
        MatchField::Lpm { prefix_len: 0, .. } | MatchField::Optional(None) => return None,
        MatchField::Lpm { value, prefix_len } => FieldMatchType::Lpm(field_match::Lpm {
            value: encode(value),
            prefix_len: i32::try_from(codec.translated_width().unwrap_or(*prefix_len)).ok()?,
        }),
        MatchField::Ternary { mask, .. } if mask.bits() == 0 => return None,
        MatchField::Ternary { value, .. } if field.kind == MatchKind::Optional => {
            FieldMatchType::Optional(field_match::Optional {
                value: encode(value),
            })
        }
        MatchField::Ternary { value, mask } => FieldMatchType::Ternary(field_match::Ternary {
            value: encode(value),
            mask: match codec.translated_width() {
                Some(width) => value::encode(&Value::ones(width)),
                None => value::encode(mask),
            },
        }),
        MatchField::Range { low, high } if low.bits() == 0 && *high == Value::ones(codec.width) => {
            return None;
        }
        MatchField::Range { low, high } => FieldMatchType::Range(field_match::Range {
            low: encode(low),
            high: encode(high),
        }),
        MatchField::Optional(Some(v)) => {
            FieldMatchType::Optional(field_match::Optional { value: encode(v) })
        }
    })
}
