// SPDX-License-Identifier: Apache-2.0
//! Names of objects that the interpreter knows by number: fields and values.

use super::Named;
use crate::entry::{EntryKey, MatchField};
use crate::info::KeyInfo;
use crate::phv::{Field, Place};
use crate::program::layout::{Header, Layout};
use crate::value::Value;

/// Formats a value: decimal if its type has fewer than 16 bits, else hexadecimal with all digits.
pub(crate) fn value(v: &Value, width: u32) -> String {
    match v.to_u64() {
        Some(v) if width < 16 => v.to_string(),
        _ => {
            let digits: String = v.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
            let digits = digits.trim_start_matches('0');
            format!("0x{digits:0>width$}", width = width.div_ceil(4) as usize)
        }
    }
}

/// Formats a field's current value.
pub(crate) fn field_value(f: &Field, mem: &[u8]) -> String {
    let width = match f.place {
        Place::Varbit { .. } => f.varbit_len(mem) as u32 * 8,
        _ => f.width,
    };
    if width == 0 {
        return "(empty)".to_owned();
    }
    value(&f.to_value(mem), width)
}

/// Returns `header.field`, or just `field` for the compiler's local variables.
pub(super) fn qualified(header: &Header, field: &str) -> String {
    if header.name == "scalars" {
        field.to_owned()
    } else {
        format!("{}.{field}", header.name)
    }
}

/// Returns the indices and names of a header's fields, without the compiler's padding.
pub(super) fn visible(header: &Header) -> impl Iterator<Item = (&Field, &str)> {
    let named = header
        .fields
        .iter()
        .zip(header.names.iter().map(String::as_str));
    named.filter(|(_, name)| !name.starts_with("_padding"))
}

/// Formats all fields of a header.
pub(super) fn contents(header: &Header, mem: &[u8]) -> Named {
    let each = visible(header).map(|(f, name)| (name.to_owned(), field_value(f, mem)));
    Named(each.collect())
}

/// Returns the name of the field at this position.
pub(crate) fn field_name(layout: &Layout, field: &Field) -> String {
    let found = layout.headers.iter().find_map(|h| {
        let own = |f: &Field| f.place == field.place;
        if h.field("$valid$").as_ref().is_some_and(own) {
            return Some(qualified(h, "isValid()"));
        }
        let i = h.fields.iter().position(own)?;
        Some(qualified(h, &h.names[i]))
    });
    found.unwrap_or_else(|| "?".to_owned())
}

/// Formats an entry's key in P4 syntax.
pub(super) fn matches(key: &[KeyInfo], entry: &EntryKey) -> Named {
    let each = key.iter().zip(&entry.fields).map(|(k, m)| {
        let v = |v: &Value| value(v, k.width);
        let text = match m {
            MatchField::Exact(e) | MatchField::Optional(Some(e)) => v(e),
            MatchField::Lpm { value, prefix_len } => format!("{}/{prefix_len}", v(value)),
            MatchField::Ternary { mask, .. } if mask.bits() == 0 => "*".to_owned(),
            MatchField::Ternary { value, mask } => format!("{} &&& {}", v(value), v(mask)),
            MatchField::Range { low, high } => format!("{}..{}", v(low), v(high)),
            MatchField::Optional(None) => "*".to_owned(),
            MatchField::Valid(valid) => u8::from(*valid).to_string(),
        };
        (k.name.clone(), text)
    });
    Named(each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_values_are_formatted_with_all_digits() {
        assert_eq!(value(&Value::from(64u64), 8), "64");
        assert_eq!(value(&Value::from(0u64), 16), "0x0000");
        assert_eq!(value(&Value::from(0x0a00_0001u64), 32), "0x0a000001");
        assert_eq!(value(&Value::from(0x1ffu64), 17), "0x001ff");
    }
}
