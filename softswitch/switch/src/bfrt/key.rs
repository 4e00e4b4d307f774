// SPDX-License-Identifier: Apache-2.0
//! Keys of entries.

use softswitch_pipeline::{MatchField, Value};

use super::data::{number, padded};
use super::schema::{KeyField, Table, Type};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::value::prefix_mask;
use crate::proto::bfrt::key_field::{Exact, Lpm, MatchType, Optional, Range, Ternary};
use crate::proto::bfrt::{KeyField as Message, TableKey};

/// A key: the matches on the table's fields in their order, `None` for absent ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Key(pub Vec<Option<MatchField>>);

impl Key {
    /// Decodes a key.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a field is unknown, has another match type or a value that does not fit.
    pub fn decode(table: &Table, key: &TableKey) -> P4Result<Self> {
        let mut matches = vec![None; table.key.len()];
        for message in &key.fields {
            let at = table.key.iter().position(|f| f.id == message.field_id);
            let at = at.ok_or_else(|| {
                let (name, id) = (&table.name, message.field_id);
                P4Error::invalid(format!("table {name}: unknown key field id {id}"))
            })?;
            if matches[at].is_some() {
                return Err(invalid(table, &table.key[at], "is given twice"));
            }
            matches[at] = Some(decode(table, &table.key[at], message)?);
        }
        Ok(Self(matches))
    }

    /// Encodes a key.
    pub fn encode(&self, table: &Table) -> TableKey {
        let fields = table.key.iter().zip(&self.0);
        let fields = fields.filter_map(|(field, m)| Some(encode(field, m.as_ref()?)));
        TableKey {
            fields: fields.collect(),
        }
    }

    /// Creates the key of a table whose fields are all exact.
    pub fn exact(values: impl IntoIterator<Item = u64>) -> Self {
        let values = values.into_iter();
        Self(
            values
                .map(|v| Some(MatchField::Exact(Value::from(v))))
                .collect(),
        )
    }

    /// Returns the number in the field with this position.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the field is absent.
    pub fn number(&self, table: &Table, at: usize) -> P4Result<u64> {
        match self.0.get(at) {
            Some(Some(MatchField::Exact(value))) => value.to_u64(),
            _ => None,
        }
        .ok_or_else(|| {
            let field = table.key.get(at).map_or("", |field| &field.name);
            P4Error::invalid(format!("table {}: missing key field {field}", table.name))
        })
    }

    /// Returns the number of 32 bits in the field with this position.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the field is absent or too large.
    pub fn u32(&self, table: &Table, at: usize) -> P4Result<u32> {
        let number = self.number(table, at)?;
        u32::try_from(number)
            .map_err(|_| P4Error::invalid(format!("table {}: the key is too large", table.name)))
    }

    /// Returns the string in the field with this position.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the field is absent.
    pub fn text(&self, table: &Table, at: usize) -> P4Result<String> {
        match self.0.get(at) {
            Some(Some(MatchField::Exact(value))) => {
                Ok(String::from_utf8_lossy(value.as_bytes()).into_owned())
            }
            _ => Err(P4Error::invalid(format!(
                "table {}: missing key",
                table.name
            ))),
        }
    }
}

fn invalid(table: &Table, field: &KeyField, reason: &str) -> P4Error {
    P4Error::invalid(format!(
        "table {}: key field {} {reason}",
        table.name, field.name
    ))
}

/// Returns a value without the bits outside a mask.
pub fn masked(value: &Value, mask: &Value) -> Value {
    let len = value.as_bytes().len().max(mask.as_bytes().len());
    let bytes = |v: &Value| v.to_padded(len).unwrap_or_default();
    let both = bytes(value).into_iter().zip(bytes(mask));
    Value::from_be_bytes(&both.map(|(v, m)| v & m).collect::<Vec<_>>())
}

fn decode(table: &Table, field: &KeyField, message: &Message) -> P4Result<MatchField> {
    let width = match field.ty {
        Type::Bits(width) => width,
        _ => u32::MAX,
    };
    let value = |bytes: &[u8]| {
        number(bytes, width, || {
            format!("table {}, key field {}", table.name, field.name)
        })
    };
    let given = message.match_type.as_ref();
    Ok(match (field.match_type.as_str(), given) {
        ("Exact" | "ATCAM", Some(MatchType::Exact(m))) => MatchField::Exact(value(&m.value)?),
        ("Ternary", Some(MatchType::Ternary(m))) => {
            let mask = value(&m.mask)?;
            let value = masked(&value(&m.value)?, &mask);
            MatchField::Ternary { value, mask }
        }
        ("LPM", Some(MatchType::Lpm(m))) => {
            let prefix_len = u32::try_from(m.prefix_len).ok().filter(|l| *l <= width);
            let prefix_len =
                prefix_len.ok_or_else(|| invalid(table, field, "has an invalid prefix length"))?;
            let value = masked(&value(&m.value)?, &prefix_mask(prefix_len, width));
            MatchField::Lpm { value, prefix_len }
        }
        ("Range", Some(MatchType::Range(m))) => {
            let (low, high) = (value(&m.low)?, value(&m.high)?);
            if padded(&low, width) > padded(&high, width) {
                return Err(invalid(
                    table,
                    field,
                    "has a range whose low is above its high",
                ));
            }
            MatchField::Range { low, high }
        }
        ("Optional", Some(MatchType::Optional(m))) => MatchField::Optional(match m.is_valid {
            true => Some(value(&m.value)?),
            false => None,
        }),
        (wanted, _) => return Err(invalid(table, field, &format!("must be of type {wanted}"))),
    })
}

fn encode(field: &KeyField, m: &MatchField) -> Message {
    let bytes = |value: &Value| match field.ty {
        Type::Bits(width) => padded(value, width),
        _ => value.as_bytes().to_vec(),
    };
    let match_type = match m {
        MatchField::Exact(value) => MatchType::Exact(Exact {
            value: bytes(value),
        }),
        MatchField::Valid(is_valid) => MatchType::Exact(Exact {
            value: vec![u8::from(*is_valid)],
        }),
        MatchField::Ternary { value, mask } => MatchType::Ternary(Ternary {
            value: bytes(value),
            mask: bytes(mask),
        }),
        MatchField::Lpm { value, prefix_len } => MatchType::Lpm(Lpm {
            value: bytes(value),
            prefix_len: prefix_len.cast_signed(),
        }),
        MatchField::Range { low, high } => MatchType::Range(Range {
            low: bytes(low),
            high: bytes(high),
        }),
        MatchField::Optional(value) => MatchType::Optional(Optional {
            value: bytes(value.as_ref().unwrap_or(&Value::from(0u32))),
            is_valid: value.is_some(),
        }),
    };
    Message {
        field_id: field.id,
        match_type: Some(match_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_values_may_differ_in_length() {
        let value = |n: u64| Value::from(n);
        assert_eq!(masked(&value(0x12_3456), &value(0xff)), value(0x56));
        assert_eq!(masked(&value(0x56), &value(0xff_ff00)), value(0));
    }
}
