// SPDX-License-Identifier: Apache-2.0
//! The input of a hash: lists of slices of fields, which are concatenated in their order. Two slices of the same order are
//! symmetric: exchanging them does not change the hash.

use std::collections::BTreeMap;

use softswitch_pipeline::{HashSlice, MatchField, Value};

use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::bfrt::schema::{DataField, Table};
use crate::p4rt::error::{P4Error, P4Result};

/// Maximum number of slices of the same order.
const MAX_SYMMETRIC: usize = 2;

/// Returns a field of a slice.
fn inner<'a>(field: &'a DataField, name: &str) -> Option<&'a DataField> {
    field.container.iter().find(|inner| inner.name == name)
}

/// Returns the width of a field, the default of the length of its slices.
fn width(field: &DataField) -> u32 {
    let length = inner(field, "length").and_then(|length| length.default);
    length
        .and_then(|width| u32::try_from(width).ok())
        .unwrap_or(0)
}

/// Returns the fields of an input with their widths, and the number of bits behind each.
fn layout(table: &Table) -> Vec<(&DataField, u32, u32)> {
    let mut behind: u32 = table.data.iter().map(width).sum();
    let place = |field| {
        let width = width(field);
        behind -= width;
        (field, width, behind)
    };
    table.data.iter().map(place).collect()
}

/// Returns the parts of the input in order. Fields without slices, and slices of order 0, do not take part.
///
/// # Errors
/// INVALID_ARGUMENT for slices that overlap or begin beyond their field, and for more than two of the same order.
pub fn parts(table: &Table, data: &Data) -> P4Result<Vec<Vec<HashSlice>>> {
    let mut parts: BTreeMap<u64, Vec<HashSlice>> = BTreeMap::new();
    for (field, width, behind) in layout(table) {
        let Some(FieldValue::Containers(slices)) = data.values.get(&field.id) else {
            continue;
        };
        let fault = |reason: &str| {
            let (table, field) = (&table.name, &field.name);
            P4Error::invalid(format!("table {table}, data field {field}: {reason}"))
        };
        let mut taken = 0u128;
        for slice in slices {
            let number = |name| {
                let id = inner(field, name)?.id;
                match slice.get(&id)? {
                    FieldValue::Number(value) => value.to_u64(),
                    _ => None,
                }
            };
            let order = number("order").ok_or_else(|| fault("missing order"))?;
            let start = number("start_bit").unwrap_or(0);
            if start >= width.into() {
                return Err(fault(&format!("start_bit {start} must be below {width}")));
            }
            let rest = u64::from(width) - start;
            let length = number("length").unwrap_or(rest).min(rest);
            let bits = |count: u64| 1u128.checked_shl(count as u32).unwrap_or(0).wrapping_sub(1);
            let own = bits(length) << start.min(127);
            if taken & own != 0 {
                return Err(fault("slices must not overlap"));
            }
            taken |= own;
            if order == 0 {
                continue;
            }
            let part = parts.entry(order).or_default();
            if part.len() == MAX_SYMMETRIC {
                return Err(fault(&format!("at most two slices can have order {order}")));
            }
            part.push(HashSlice {
                behind: behind + start as u32,
                bits: length as u32,
            });
        }
    }
    Ok(parts.into_values().collect())
}

/// Returns the input of the program: each field once.
pub fn all(table: &Table) -> Data {
    let mut data = Data::default();
    for (field, order) in table.data.iter().zip(1u64..) {
        let values = [
            ("start_bit", 0),
            ("length", width(field).into()),
            ("order", order),
        ];
        let slice = values
            .into_iter()
            .filter_map(|(name, value)| Some((inner(field, name)?.id, FieldValue::from(value))));
        let slices = FieldValue::Containers(vec![slice.collect()]);
        data.values.insert(field.id, slices);
    }
    data
}

/// Returns the number in the name of a constant, such as `constant0_8_8w5`.
fn constant(name: &str) -> Option<u64> {
    let literal = name.strip_prefix("constant")?.splitn(3, '_').nth(2)?;
    let digits = literal
        .split_once(['w', 's'])
        .map_or(literal, |(_, digits)| digits);
    let digits = digits.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Returns the input for a key of the table of results, behind zeros that fill the first byte. Absent fields are 0.
pub fn bytes(input: &Table, results: &Table, key: &Key) -> Vec<u8> {
    let mut bits = Vec::new();
    for (field, width, _) in layout(input) {
        let at = results.key.iter().position(|f| f.name == field.name);
        let value = match at.and_then(|at| key.0.get(at)) {
            Some(Some(MatchField::Exact(value))) => value.clone(),
            _ => Value::from(constant(&field.name).unwrap_or(0)),
        };
        let length = width.div_ceil(8) as usize;
        let padded = value.to_padded(length).unwrap_or_else(|| vec![0; length]);
        let all = padded
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
        bits.extend(all.skip(length * 8 - width as usize));
    }
    let bytes = bits.rchunks(8).rev();
    bytes
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt::schema::Type;

    #[test]
    fn constants_are_numbers_in_names() {
        assert_eq!(constant("constant0_8_8w5"), Some(5));
        assert_eq!(constant("constant1_16_16w0x1_0"), Some(16));
        assert_eq!(constant("constant2_4_3"), Some(3));
        assert_eq!(constant("hdr.constant"), None);
    }

    /// Two fields, of 4 and 8 bits.
    fn table() -> Table {
        let parameter = |id, name: &str, default| DataField {
            id,
            name: name.into(),
            ty: Type::Bits(64),
            is_repeated: false,
            is_register: false,
            is_mandatory: false,
            is_read_only: false,
            default,
            container: vec![],
        };
        let field = |id, name: &str, width| DataField {
            ty: Type::Container,
            is_repeated: true,
            container: vec![
                parameter(10, "start_bit", Some(0)),
                parameter(11, "length", Some(width)),
                parameter(12, "order", None),
            ],
            ..parameter(id, name, None)
        };
        Table {
            name: "h.configure".into(),
            id: 1,
            kind: "DynHashConfigure".into(),
            size: 1,
            key: vec![],
            data: vec![field(1, "a", 4), field(2, "b", 8)],
            actions: vec![],
            attributes: vec![],
            operations: vec![],
            depends_on: vec![],
        }
    }

    /// Slices: field, start, length and order.
    fn data(slices: &[(u32, u64, u64, u64)]) -> Data {
        let mut data = Data::default();
        for &(field, start, length, order) in slices {
            let numbers = [(10, start), (11, length), (12, order)];
            let slice = numbers.map(|(id, number)| (id, FieldValue::from(number)));
            let list = data.values.entry(field);
            let list = list.or_insert(FieldValue::Containers(vec![]));
            if let FieldValue::Containers(list) = list {
                list.push(slice.into());
            }
        }
        data
    }

    #[test]
    fn slices_are_in_order_and_at_most_to_the_end_of_their_field() {
        let parts = parts(&table(), &data(&[(2, 4, 9, 1), (1, 0, 4, 3), (2, 0, 4, 3)])).unwrap();
        let slice = |behind, bits| HashSlice { behind, bits };
        assert_eq!(parts, [vec![slice(4, 4)], vec![slice(8, 4), slice(0, 4)]]);
        let program = super::parts(&table(), &all(&table())).unwrap();
        assert_eq!(program, [vec![slice(8, 4)], vec![slice(0, 8)]]);
        let none = super::parts(&table(), &data(&[(1, 0, 4, 0)])).unwrap();
        assert_eq!(none, Vec::<Vec<HashSlice>>::new());
    }

    #[test]
    fn invalid_slices_are_refused() {
        for (slices, reason) in [
            (&[(2, 0, 5, 1), (2, 4, 1, 2)][..], "overlap"),
            (&[(1, 4, 1, 1)], "start_bit 4 must be below 4"),
            (&[(2, 0, 1, 1), (2, 1, 1, 1), (2, 2, 1, 1)], "at most two"),
        ] {
            let error = parts(&table(), &data(slices)).unwrap_err();
            assert!(error.message.contains(reason), "{error}");
        }
    }
}
