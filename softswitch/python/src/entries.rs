// SPDX-License-Identifier: Apache-2.0
//! Table entries with the program's names.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use softswitch_pipeline::{
    ActionCall, ActionId, EntryAction, EntryKey, EntryState, Info, KeyInfo, MatchField, MatchKind,
    TableInfo, Value,
};

use crate::convert::{number, value};
use crate::error;

/// Returns the object, or an error that lists the known names.
pub fn known<I>(id: Option<I>, kind: &str, name: &str, names: &[&str]) -> PyResult<I> {
    id.ok_or_else(|| {
        let list = match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        error(format!("unknown {kind} {name}: use one of: {list}"))
    })
}

/// Builds a key for a table; omitted fields match anything, if their match kind allows it.
pub fn key(
    table: &TableInfo,
    matches: Option<&Bound<'_, PyDict>>,
    priority: i32,
) -> PyResult<EntryKey> {
    let names: Vec<&str> = table.key.iter().map(|k| k.name.as_str()).collect();
    for name in matches.iter().flat_map(|m| m.keys()) {
        let name: String = name.extract()?;
        let found = names.iter().find(|n| **n == name);
        known(
            found,
            &format!("key of table {}", table.name),
            &name,
            &names,
        )?;
    }
    let field = |k: &KeyInfo| {
        let given = matches.map(|m| m.get_item(&k.name)).transpose()?.flatten();
        match given {
            Some(given) => field(k, &given).map_err(|e| {
                let why = e.value(given.py());
                error(format!("table {}, {}: {why}", table.name, k.name))
            }),
            None => anything(k).ok_or_else(|| {
                let name = &k.name;
                error(format!("table {}: missing exact key {name}", table.name))
            }),
        }
    };
    Ok(EntryKey {
        fields: table.key.iter().map(field).collect::<PyResult<_>>()?,
        priority,
    })
}

fn anything(k: &KeyInfo) -> Option<MatchField> {
    let zero = || Value::from(0u64);
    Some(match k.kind {
        MatchKind::Exact | MatchKind::Valid => return None,
        MatchKind::Lpm => MatchField::Lpm {
            value: zero(),
            prefix_len: 0,
        },
        MatchKind::Ternary => MatchField::Ternary {
            value: zero(),
            mask: zero(),
        },
        MatchKind::Range => MatchField::Range {
            low: zero(),
            high: Value::ones(k.width),
        },
        MatchKind::Optional => MatchField::Optional(None),
    })
}

/// Returns the two values of a tuple, or of a string with a separator.
fn two<'py>(
    v: &Bound<'py, PyAny>,
    separator: &str,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    if let Ok(tuple) = v.cast::<PyTuple>() {
        return Ok(Some(tuple.extract()?));
    }
    let text = v.extract::<String>().unwrap_or_default();
    Ok(match text.split_once(separator) {
        Some((a, b)) => Some((
            a.trim().into_pyobject(v.py())?.into_any(),
            b.trim().into_pyobject(v.py())?.into_any(),
        )),
        None => None,
    })
}

fn field(k: &KeyInfo, v: &Bound<'_, PyAny>) -> PyResult<MatchField> {
    Ok(match k.kind {
        MatchKind::Exact => MatchField::Exact(value(v)?),
        MatchKind::Valid => MatchField::Valid(v.is_truthy()?),
        MatchKind::Lpm => match two(v, "/")? {
            Some((a, len)) => MatchField::Lpm {
                value: value(&a)?,
                prefix_len: value(&len)?
                    .to_u64()
                    .and_then(|n| n.try_into().ok())
                    .ok_or_else(|| error("the prefix length is too large"))?,
            },
            None => MatchField::Lpm {
                value: value(v)?,
                prefix_len: k.width,
            },
        },
        MatchKind::Ternary => match two(v, "&&&")? {
            Some((a, mask)) => MatchField::Ternary {
                value: value(&a)?,
                mask: value(&mask)?,
            },
            None => MatchField::Ternary {
                value: value(v)?,
                mask: Value::ones(k.width),
            },
        },
        MatchKind::Range => match two(v, "..")? {
            Some((low, high)) => MatchField::Range {
                low: value(&low)?,
                high: value(&high)?,
            },
            None => MatchField::Range {
                low: value(v)?,
                high: value(v)?,
            },
        },
        MatchKind::Optional if v.is_none() => MatchField::Optional(None),
        MatchKind::Optional => MatchField::Optional(Some(value(v)?)),
    })
}

/// Builds a call of one of the allowed actions of a table or an action profile.
pub fn call(
    info: &Info,
    allowed: &[(String, ActionId)],
    name: &str,
    params: Option<&Bound<'_, PyDict>>,
) -> PyResult<ActionCall> {
    let names: Vec<&str> = allowed.iter().map(|(n, _)| n.as_str()).collect();
    let found = allowed.iter().find(|(n, _)| n == name).map(|&(_, id)| id);
    let action = known(found, "action", name, &names)?;
    let declared = &info.actions[action.index()].params;
    let names: Vec<&str> = declared.iter().map(|(n, _)| n.as_str()).collect();
    for given in params.iter().flat_map(|p| p.keys()) {
        let given: String = given.extract()?;
        let found = names.iter().find(|n| **n == given);
        known(
            found,
            &format!("parameter of action {name}"),
            &given,
            &names,
        )?;
    }
    let arg = |(param, _): &(String, u32)| {
        let given = params.map(|p| p.get_item(param)).transpose()?.flatten();
        let given =
            given.ok_or_else(|| error(format!("action {name}: missing parameter {param}")))?;
        value(&given)
    };
    Ok(ActionCall {
        action,
        args: declared.iter().map(arg).collect::<PyResult<_>>()?,
    })
}

/// Returns an entry as a dictionary with the arguments of `insert`.
pub fn describe<'py>(
    py: Python<'py>,
    info: &Info,
    table: &TableInfo,
    state: &EntryState,
) -> PyResult<Bound<'py, PyDict>> {
    let matches = PyDict::new(py);
    for (k, m) in table.key.iter().zip(&state.entry.key.fields) {
        match m {
            MatchField::Exact(v) | MatchField::Optional(Some(v)) => {
                matches.set_item(&k.name, number(v))?;
            }
            MatchField::Lpm { value, prefix_len } => {
                matches.set_item(&k.name, (number(value), prefix_len))?;
            }
            MatchField::Ternary { value, mask } => {
                matches.set_item(&k.name, (number(value), number(mask)))?;
            }
            MatchField::Range { low, high } => {
                matches.set_item(&k.name, (number(low), number(high)))?;
            }
            MatchField::Optional(None) => matches.set_item(&k.name, py.None())?,
            MatchField::Valid(valid) => matches.set_item(&k.name, valid)?,
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("match", matches)?;
    dict.set_item("priority", state.entry.key.priority)?;
    match &state.entry.action {
        EntryAction::Direct(call) => describe_call(&dict, info, call)?,
        EntryAction::Member(id) => dict.set_item("member", id)?,
        EntryAction::Group(id) => dict.set_item("group", id)?,
        EntryAction::OneShot(_) | EntryAction::RandomOneShot(_) => {
            dict.set_item("action", py.None())?
        }
    }
    if let Some(c) = state.counter {
        dict.set_item("counter", (c.packets, c.bytes))?;
    }
    Ok(dict)
}

/// Adds an action's name and arguments to a dictionary.
pub fn describe_call(dict: &Bound<'_, PyDict>, info: &Info, call: &ActionCall) -> PyResult<()> {
    let action = &info.actions[call.action.index()];
    let params = PyDict::new(dict.py());
    for ((name, _), v) in action.params.iter().zip(&call.args) {
        params.set_item(name, number(v))?;
    }
    dict.set_item("action", &action.name)?;
    dict.set_item("params", params)
}
