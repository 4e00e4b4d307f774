// SPDX-License-Identifier: Apache-2.0
//! Table entries in STF's syntax: name suffixes, and wildcards in numbers.

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, Info, MatchField, MatchKind, TableId, TableInfo,
    Value,
};

use crate::script::{Call, number};

type Result<T> = std::result::Result<T, String>;

/// Returns the table with this name, or the only one whose name ends with it.
pub fn table_by_name(info: &Info, name: &str) -> Result<TableId> {
    if let Some(id) = info.table(name) {
        return Ok(id);
    }
    let mut ends = (0..)
        .zip(&info.tables)
        .filter(|(_, t)| t.name.ends_with(name));
    match (ends.next(), ends.next()) {
        (Some((i, _)), None) => Ok(TableId(i)),
        (None, _) => Err(format!("unknown table {name}")),
        _ => Err(format!("ambiguous table {name}: several names end with it")),
    }
}

pub fn action_call(info: &Info, table: &TableInfo, call: &Call) -> Result<ActionCall> {
    let exact = table.actions.iter().find(|(n, _)| *n == call.name);
    let suffix = || table.actions.iter().find(|(n, _)| n.ends_with(&call.name));
    let (_, action) = exact
        .or_else(suffix)
        .ok_or_else(|| format!("unknown action {}", call.name))?;
    let arg = |(name, width): &(String, u32)| {
        let given = call.args.iter().find(|(n, _)| n == name);
        let (_, value) =
            given.ok_or_else(|| format!("action {}: missing parameter {name}", call.name))?;
        Ok(truncated(&value_of(value)?, *width))
    };
    let params = &info.actions[action.index()].params;
    Ok(ActionCall {
        action: *action,
        args: params.iter().map(arg).collect::<Result<_>>()?,
    })
}

/// Returns the low bits, because BMv2 truncates the values of its CLI.
fn truncated(v: &Value, width: u32) -> Value {
    if v.bits() <= width {
        return v.clone();
    }
    let ones = Value::ones(width);
    let len = v.as_bytes().len();
    let mask = ones.to_padded(len).unwrap_or_default();
    let bytes: Vec<u8> = v.as_bytes().iter().zip(mask).map(|(a, b)| a & b).collect();
    Value::from_be_bytes(&bytes)
}

pub fn entry(
    info: &Info,
    id: TableId,
    priority: Option<i32>,
    keys: &[(String, String)],
    action: &Call,
) -> Result<Entry> {
    let table = &info.tables[id.index()];
    let mut fields: Vec<Option<MatchField>> = vec![None; table.key.len()];
    for (name, value) in keys {
        let i = key_by_name(table, name)?;
        let k = &table.key[i];
        fields[i] = Some(match_field(k.kind, k.width, value)?);
    }
    let anything = |k: MatchKind, width: u32| match k {
        MatchKind::Exact => MatchField::Exact(Value::from(0u64)),
        MatchKind::Valid => MatchField::Valid(false),
        MatchKind::Lpm => MatchField::Lpm {
            value: Value::from(0u64),
            prefix_len: 0,
        },
        MatchKind::Ternary => MatchField::Ternary {
            value: Value::from(0u64),
            mask: Value::from(0u64),
        },
        MatchKind::Optional => MatchField::Optional(None),
        MatchKind::Range => MatchField::Range {
            low: Value::from(0u64),
            high: Value::ones(width),
        },
    };
    let fields = fields.into_iter().zip(&table.key);
    let fields = fields
        .map(|(f, k)| f.unwrap_or_else(|| anything(k.kind, k.width)))
        .collect();
    let priority = if table.needs_priority {
        priority.unwrap_or(0) + 1
    } else {
        0
    };
    let action = EntryAction::Direct(action_call(info, table, action)?);
    Ok(Entry {
        key: EntryKey { fields, priority },
        action,
        idle_timeout: 0,
    })
}

fn key_by_name(table: &TableInfo, name: &str) -> Result<usize> {
    // `a$0.b` stands for `a[0].b`.
    let name = match name.split_once('$') {
        Some((head, tail)) if tail.starts_with(|c: char| c.is_ascii_digit()) => {
            let end = tail
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(tail.len());
            format!("{head}[{}]{}", &tail[..end], &tail[end..])
        }
        _ => name.to_owned(),
    };
    let find = |test: &dyn Fn(&str) -> bool| table.key.iter().position(|k| test(&k.name));
    find(&|k| k == name)
        .or_else(|| find(&|k| k == format!("{name}.$valid$") || k == format!("{name}$")))
        .or_else(|| find(&|k| k.ends_with(&format!(".{name}"))))
        .or_else(|| find(&|k| name.ends_with("valid") && k.ends_with("$valid$")))
        .ok_or_else(|| format!("unknown key {name} of table {}", table.name))
}

/// Splits a number's prefix: bits per digit, and the digits.
fn digits(text: &str) -> Option<(u32, &str)> {
    let rest = text.get(2..)?;
    match &text[..2] {
        "0x" | "0X" => Some((4, rest)),
        "0b" | "0B" => Some((1, rest)),
        "0o" | "0O" => Some((3, rest)),
        _ => None,
    }
}

fn value_of(text: &str) -> Result<Value> {
    match digits(text) {
        Some((4, hex)) => {
            let padded = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
            let byte = |i| u8::from_str_radix(&padded[i..i + 2], 16).map_err(|e| e.to_string());
            let bytes: Result<Vec<u8>> = (0..padded.len()).step_by(2).map(byte).collect();
            Ok(Value::from_be_bytes(&bytes?))
        }
        _ => number(text).map(Value::from),
    }
}

fn match_field(kind: MatchKind, width: u32, text: &str) -> Result<MatchField> {
    let cut = |t: &str| value_of(t).map(|v| truncated(&v, width));
    Ok(match kind {
        MatchKind::Exact => MatchField::Exact(cut(text)?),
        MatchKind::Valid => MatchField::Valid(cut(text)?.to_u64() == Some(1)),
        MatchKind::Ternary | MatchKind::Optional => {
            let (value, mask) = match text.split_once("&&&") {
                Some((v, m)) => (value_of(v)?, value_of(m)?),
                None => wildcards(text, width)?,
            };
            let mask = truncated(&mask, width);
            let value = and(&truncated(&value, width), &mask);
            MatchField::Ternary { value, mask }
        }
        MatchKind::Lpm => {
            let (value, prefix_len) = match text.split_once('/') {
                Some((v, len)) => (value_of(v)?, number(len)? as u32),
                None => {
                    let stars = text.matches('*').count() as u32;
                    let bits = digits(text).map_or(0, |d| d.0);
                    (
                        value_of(&text.replace('*', "0"))?,
                        width - (stars * bits).min(width),
                    )
                }
            };
            let mut mask = Value::ones(width)
                .to_padded(width.div_ceil(8) as usize)
                .unwrap_or_default();
            for bit in prefix_len.min(width)..width {
                let from_end = width - 1 - bit;
                let at = mask.len() - 1 - from_end as usize / 8;
                mask[at] &= !(1 << (from_end % 8));
            }
            let value = and(&truncated(&value, width), &Value::from_be_bytes(&mask));
            MatchField::Lpm {
                value,
                prefix_len: prefix_len.min(width),
            }
        }
        MatchKind::Range => {
            let (low, high) = text
                .split_once("->")
                .or_else(|| text.split_once(".."))
                .unwrap_or((text, text));
            MatchField::Range {
                low: cut(low)?,
                high: cut(high)?,
            }
        }
    })
}

/// Parses a number in which `*` matches any digit.
fn wildcards(text: &str, width: u32) -> Result<(Value, Value)> {
    let Some((bits, digits)) = digits(text) else {
        return Ok((value_of(text)?, Value::ones(width)));
    };
    let prefix = &text[..2];
    let full = match bits {
        4 => "f",
        3 => "7",
        _ => "1",
    };
    let mask: String = digits
        .chars()
        .map(|c| if c == '*' { "0" } else { full })
        .collect();
    Ok((
        value_of(&text.replace('*', "0"))?,
        value_of(&format!("{prefix}{mask}"))?,
    ))
}

fn and(a: &Value, b: &Value) -> Value {
    let len = a.as_bytes().len().max(b.as_bytes().len());
    let pad = |v: &Value| v.to_padded(len).unwrap_or_default();
    let bytes: Vec<u8> = pad(a).iter().zip(pad(b)).map(|(x, y)| x & y).collect();
    Value::from_be_bytes(&bytes)
}
