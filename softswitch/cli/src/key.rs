// SPDX-License-Identifier: Apache-2.0
//! Match keys: BMv2's notation, P4Runtime's messages, and lines and JSON for a reader.

use num_bigint::BigUint;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::field_match::{self as fm, FieldMatchType as Match};
use crate::proto::p4::v1::{FieldMatch, TableEntry};
use crate::schema::{Schema, name};
use crate::value::{self, hex, ones};
use info::match_field::{Match as Kind, MatchType};

/// Returns how a field is matched.
pub fn match_type(field: &info::MatchField) -> MatchType {
    match field.r#match {
        Some(Kind::MatchType(kind)) => MatchType::try_from(kind).unwrap_or(MatchType::Unspecified),
        _ => MatchType::Unspecified,
    }
}

/// Returns the name of a kind of match, as in commands and JSON.
pub fn match_name(kind: MatchType) -> &'static str {
    match kind {
        MatchType::Exact => "exact",
        MatchType::Lpm => "lpm",
        MatchType::Ternary => "ternary",
        MatchType::Range => "range",
        MatchType::Optional => "optional",
        MatchType::Unspecified => "unknown",
    }
}

/// Returns whether entries of a table have priorities.
pub fn has_priority(table: &info::Table) -> bool {
    let with_priority = [MatchType::Ternary, MatchType::Range, MatchType::Optional];
    let mut kinds = table.match_fields.iter().map(match_type);
    kinds.any(|kind| with_priority.contains(&kind))
}

/// Converts a priority between BMv2 (the lowest number wins) and P4Runtime (the highest number wins), in both
/// directions, as `simple_switch_grpc` does.
pub fn invert_priority(priority: i32) -> i32 {
    i32::MAX - priority
}

/// Reads the priority of a command.
///
/// # Errors
/// If it is not a number of P4Runtime's range.
pub fn parse_priority(text: &str) -> Result<i32> {
    let priority: i32 = value::number(text, "priority")?;
    match (0..i32::MAX).contains(&priority) {
        true => Ok(invert_priority(priority)),
        false => Err(Error::new(format!(
            "invalid priority {priority}: use 0 (the most important) to 2147483646"
        ))),
    }
}

/// Reads the fields of a table's key.
///
/// # Errors
/// If their number is wrong, or one does not have the form of its field.
pub fn parse(schema: &Schema, table: &info::Table, fields: &[&str]) -> Result<Vec<FieldMatch>> {
    let expected = table.match_fields.len();
    if fields.len() != expected {
        let names: Vec<&str> = table.match_fields.iter().map(|f| f.name.as_str()).collect();
        return Err(Error::new(format!(
            "{} match fields: table {} needs {expected} ({})",
            fields.len(),
            name(&table.preamble),
            names.join(", ")
        )));
    }
    let fields = table.match_fields.iter().zip(fields).map(|(field, text)| {
        let parsed = parse_field(schema, field, text);
        let parsed = parsed.map_err(|e| Error::new(format!("match field {}: {e}", field.name)))?;
        Ok(parsed.map(|field_match_type| FieldMatch {
            field_id: field.id,
            field_match_type: Some(field_match_type),
        }))
    });
    let fields: Result<Vec<_>> = fields.collect();
    Ok(fields?.into_iter().flatten().collect())
}

/// Reads one field; returns `None` if it matches everything (P4Runtime specification, section "Match Format").
fn parse_field(schema: &Schema, field: &info::MatchField, text: &str) -> Result<Option<Match>> {
    let one = |text: &str| match schema.is_string(field.type_name.as_ref()) {
        true => Ok(text.as_bytes().to_vec()),
        false => value::parse(text, width(field)),
    };
    match match_type(field) {
        MatchType::Exact => Ok(Some(Match::Exact(fm::Exact { value: one(text)? }))),
        MatchType::Optional => match text.split_once("&&&") {
            None => Ok(Some(Match::Optional(fm::Optional { value: one(text)? }))),
            Some((value, mask)) => optional(field, one(value)?, &one(mask)?),
        },
        MatchType::Lpm => {
            let (value, len) = pair(text, "/", "VALUE/LENGTH")?;
            lpm(field, &one(value)?, value::number(len, "prefix length")?)
        }
        MatchType::Ternary => {
            let (value, mask) = pair(text, "&&&", "VALUE&&&MASK")?;
            Ok(ternary(&one(value)?, one(mask)?))
        }
        MatchType::Range => {
            let (low, high) = pair(text, "->", "LOW->HIGH")?;
            range(field, one(low)?, one(high)?)
        }
        MatchType::Unspecified => Err(Error::new(
            "an unknown kind of match: P4Runtime cannot express it; use Thrift (simple_switch_CLI)",
        )),
    }
}

fn pair<'a>(text: &'a str, separator: &str, form: &str) -> Result<(&'a str, &'a str)> {
    let pair = text.split_once(separator);
    pair.ok_or_else(|| Error::new(format!("invalid value {text:?}: use {form}")))
}

/// Returns the width of a field in bits; 0 for strings.
pub fn width(field: &info::MatchField) -> u32 {
    u32::try_from(field.bitwidth).unwrap_or(0)
}

/// An optional field with a mask, as in BMv2, where optional fields are ternary.
fn optional(field: &info::MatchField, value: Vec<u8>, mask: &[u8]) -> Result<Option<Match>> {
    let mask = BigUint::from_bytes_be(mask);
    if mask == BigUint::ZERO {
        return Ok(None);
    }
    if mask != ones(width(field)) {
        return Err(Error::new(
            "a mask of an optional field must have all bits or none: use VALUE, or 0&&&0",
        ));
    }
    Ok(Some(Match::Optional(fm::Optional { value })))
}

fn lpm(field: &info::MatchField, value: &[u8], prefix_len: u32) -> Result<Option<Match>> {
    let width = width(field);
    if prefix_len > width {
        return Err(Error::new(format!(
            "prefix length {prefix_len} is too large: the field has {width} bits"
        )));
    }
    if prefix_len == 0 {
        return Ok(None);
    }
    let mask = ones(width) - ones(width - prefix_len);
    let value = (BigUint::from_bytes_be(value) & mask).to_bytes_be();
    Ok(Some(Match::Lpm(fm::Lpm {
        value,
        prefix_len: prefix_len.cast_signed(),
    })))
}

fn ternary(value: &[u8], mask: Vec<u8>) -> Option<Match> {
    let bits = BigUint::from_bytes_be(&mask);
    if bits == BigUint::ZERO {
        return None;
    }
    let value = (BigUint::from_bytes_be(value) & bits).to_bytes_be();
    Some(Match::Ternary(fm::Ternary { value, mask }))
}

fn range(field: &info::MatchField, low: Vec<u8>, high: Vec<u8>) -> Result<Option<Match>> {
    let (first, last) = (BigUint::from_bytes_be(&low), BigUint::from_bytes_be(&high));
    if first > last {
        return Err(Error::new(format!(
            "range {first}->{last} is empty: begin with the lower value"
        )));
    }
    let is_all = first == BigUint::ZERO && last == ones(width(field));
    Ok((!is_all).then_some(Match::Range(fm::Range { low, high })))
}

/// Returns the key of an entry alone: the same for all messages that name the entry.
pub fn of(entry: &TableEntry) -> TableEntry {
    let mut fields = entry.r#match.clone();
    fields.sort_by_key(|field| field.field_id);
    for value in fields.iter_mut().flat_map(values) {
        // Strings of translated types do not begin with 0 bytes.
        if value.first() == Some(&0) {
            *value = value::canonical(value);
        }
    }
    TableEntry {
        table_id: entry.table_id,
        r#match: fields,
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..Default::default()
    }
}

fn values(field: &mut FieldMatch) -> Vec<&mut Vec<u8>> {
    match &mut field.field_match_type {
        Some(Match::Exact(m)) => vec![&mut m.value],
        Some(Match::Optional(m)) => vec![&mut m.value],
        Some(Match::Lpm(m)) => vec![&mut m.value],
        Some(Match::Ternary(m)) => vec![&mut m.value, &mut m.mask],
        Some(Match::Range(m)) => vec![&mut m.low, &mut m.high],
        Some(Match::Other(_)) | None => vec![],
    }
}

/// A field of a key for a reader.
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// The kind of match.
    pub kind: MatchType,
    /// Value in BMv2's notation.
    pub text: String,
    /// The same as JSON.
    pub data: Value,
}

/// Returns the fields of an entry's key, in the table's order.
pub fn describe(schema: &Schema, table: &info::Table, entry: &TableEntry) -> Vec<Field> {
    let fields = table.match_fields.iter().map(|field| {
        let found = entry.r#match.iter().find(|m| m.field_id == field.id);
        let found = found.and_then(|m| m.field_match_type.as_ref());
        describe_field(schema, field, found)
    });
    fields.collect()
}

fn describe_field(schema: &Schema, field: &info::MatchField, found: Option<&Match>) -> Field {
    let width = width(field);
    let is_string = schema.is_string(field.type_name.as_ref());
    let show = |value: &[u8]| match is_string {
        true => String::from_utf8_lossy(value).into_owned(),
        false => hex(value, width),
    };
    let number = |value: &[u8]| match is_string {
        true => show(value),
        false => format!("0x{}", show(value)),
    };
    let all = ones(width).to_bytes_be();
    let (text, mut data) = match (match_type(field), found) {
        (_, Some(Match::Exact(m))) => (show(&m.value), json!({"value": number(&m.value)})),
        (_, Some(Match::Optional(m))) => (show(&m.value), json!({"value": number(&m.value)})),
        (_, Some(Match::Lpm(m))) => (
            format!("{}/{}", show(&m.value), m.prefix_len),
            json!({"value": number(&m.value), "prefix_len": m.prefix_len}),
        ),
        (_, Some(Match::Ternary(m))) => (
            format!("{} &&& {}", show(&m.value), show(&m.mask)),
            json!({"value": number(&m.value), "mask": number(&m.mask)}),
        ),
        (_, Some(Match::Range(m))) => (
            format!("{} -> {}", show(&m.low), show(&m.high)),
            json!({"low": number(&m.low), "high": number(&m.high)}),
        ),
        (MatchType::Lpm, _) => (
            format!("{}/0", show(&[])),
            json!({"value": number(&[]), "prefix_len": 0}),
        ),
        (MatchType::Range, _) => (
            format!("{} -> {}", show(&[]), show(&all)),
            json!({"low": number(&[]), "high": number(&all)}),
        ),
        _ => (
            format!("{} &&& {}", show(&[]), show(&[])),
            json!({"value": number(&[]), "mask": number(&[])}),
        ),
    };
    data["field"] = json!(field.name);
    data["match"] = json!(match_name(match_type(field)));
    Field {
        name: field.name.clone(),
        kind: match_type(field),
        text,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: MatchType, bitwidth: i32) -> info::MatchField {
        info::MatchField {
            id: 1,
            name: "f".into(),
            bitwidth,
            r#match: Some(Kind::MatchType(kind as i32)),
            ..Default::default()
        }
    }

    fn parsed(kind: MatchType, text: &str) -> Result<Option<Match>> {
        parse_field(&Schema::default(), &field(kind, 32), text)
    }

    #[test]
    fn reads_and_shows_each_kind_of_match() {
        for (kind, text, shown) in [
            (MatchType::Exact, "10.0.0.1", "0a000001"),
            (MatchType::Lpm, "10.0.0.255/24", "0a000000/24"),
            (MatchType::Lpm, "10.0.0.255/0", "00000000/0"),
            (MatchType::Ternary, "0x11&&&0x01", "00000001 &&& 00000001"),
            (MatchType::Ternary, "5&&&0", "00000000 &&& 00000000"),
            (MatchType::Range, "1->0x10", "00000001 -> 00000010"),
            (MatchType::Range, "0->0xffffffff", "00000000 -> ffffffff"),
            (MatchType::Optional, "7", "00000007"),
            (MatchType::Optional, "7&&&0xffffffff", "00000007"),
            (MatchType::Optional, "7&&&0", "00000000 &&& 00000000"),
        ] {
            let found = parsed(kind, text).unwrap();
            let field = describe_field(&Schema::default(), &field(kind, 32), found.as_ref());
            assert_eq!(field.text, shown, "{text}");
        }
    }

    #[test]
    fn rejects_other_notations() {
        for (kind, text) in [
            (MatchType::Exact, "1/2"),
            (MatchType::Lpm, "10.0.0.1"),
            (MatchType::Lpm, "10.0.0.1/33"),
            (MatchType::Lpm, "10.0.0.1/x"),
            (MatchType::Ternary, "1"),
            (MatchType::Ternary, "1&&&x"),
            (MatchType::Range, "2->1"),
            (MatchType::Range, "1"),
            (MatchType::Optional, "7&&&1"),
            (MatchType::Unspecified, "1"),
        ] {
            assert!(parsed(kind, text).is_err(), "{text}");
        }
    }

    #[test]
    fn priorities_are_inverted() {
        assert_eq!(parse_priority("0"), Ok(i32::MAX));
        assert_eq!(invert_priority(parse_priority("10").unwrap()), 10);
        assert!(parse_priority("-1").is_err());
        assert!(parse_priority("2147483647").is_err());
        assert!(parse_priority("x").is_err());
    }
}
