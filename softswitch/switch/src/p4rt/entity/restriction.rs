// SPDX-License-Identifier: Apache-2.0
//! Checks writes against `@entry_restriction` and `@action_restriction`.

use num_bigint::{BigInt, BigUint};
use softswitch_pipeline::{EntryKey, MatchField, Value};

use crate::p4rt::constraint::{Environment, Input, Part, Restriction};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::{Action, Field, Table};

/// Checks an entry's key and priority.
///
/// # Errors
/// INVALID_ARGUMENT, with the clause and the values that violate it.
pub fn check_entry(table: &Table, key: &EntryKey) -> P4Result<()> {
    let violated = |input| match input {
        Input::Priority => format!("::priority = {}", key.priority),
        Input::Variable(index, part) => {
            let field = &table.fields[index];
            describe(&field.name, part, part_of(field, &key.fields[index], part))
        }
    };
    check(&table.restrictions, &EntryNumbers { table, key }, violated).map_err(|e| {
        P4Error::invalid(format!(
            "table {}: the entry violates @entry_restriction {e}",
            table.name
        ))
    })
}

/// Checks an action's arguments.
///
/// # Errors
/// INVALID_ARGUMENT, with the clause and the values that violate it.
pub fn check_call(action: &Action, args: &[Value]) -> P4Result<()> {
    let violated = |input| match input {
        Input::Priority => String::new(),
        Input::Variable(index, part) => {
            describe(&action.params[index].name, part, number(&args[index]))
        }
    };
    check(&action.restrictions, &Arguments(args), violated).map_err(|e| {
        P4Error::invalid(format!(
            "action {}: the parameters violate @action_restriction {e}",
            action.name
        ))
    })
}

fn check(
    restrictions: &[Restriction],
    environment: &impl Environment,
    describe: impl Fn(Input) -> String,
) -> Result<(), String> {
    let violation = restrictions.iter().find_map(|r| r.violation(environment));
    let Some(violation) = violation else {
        return Ok(());
    };
    let values: Vec<_> = violation.inputs.into_iter().map(describe).collect();
    let values = match values.is_empty() {
        true => String::new(),
        false => format!(" with {}", values.join(", ")),
    };
    Err(format!(
        "`{}`{values}: write values that satisfy it",
        violation.clause
    ))
}

fn describe(name: &str, part: Part, number: BigInt) -> String {
    match part {
        Part::Value => format!("{name} = {number:#x}"),
        Part::Mask => format!("{name}::mask = {number:#x}"),
        Part::PrefixLength => format!("{name}::prefix_length = {number}"),
        Part::Low => format!("{name}::low = {number:#x}"),
        Part::High => format!("{name}::high = {number:#x}"),
    }
}

struct EntryNumbers<'a> {
    table: &'a Table,
    key: &'a EntryKey,
}

impl Environment for EntryNumbers<'_> {
    fn number(&self, input: Input) -> BigInt {
        match input {
            Input::Priority => self.key.priority.into(),
            Input::Variable(index, part) => {
                part_of(&self.table.fields[index], &self.key.fields[index], part)
            }
        }
    }
}

struct Arguments<'a>(&'a [Value]);

impl Environment for Arguments<'_> {
    fn number(&self, input: Input) -> BigInt {
        match input {
            // The check of the restriction refuses priorities of actions.
            Input::Priority => BigInt::ZERO,
            Input::Variable(index, _) => number(&self.0[index]),
        }
    }
}

fn number(value: &Value) -> BigInt {
    BigUint::from_bytes_be(value.as_bytes()).into()
}

/// Returns a part of a match, in the width that the controller uses.
fn part_of(field: &Field, key: &MatchField, part: Part) -> BigInt {
    let (width, outer) = (field.codec.width, field.codec.controller_width());
    let ones = || number(&Value::ones(outer));
    let is_all_ones = |value: &Value| *value == Value::ones(width);
    match (key, part) {
        (MatchField::Exact(value), _) => number(value),
        (MatchField::Valid(is_valid), _) => u32::from(*is_valid).into(),
        (MatchField::Lpm { prefix_len, .. }, Part::PrefixLength) if *prefix_len == width => {
            outer.into()
        }
        (MatchField::Lpm { prefix_len, .. }, Part::PrefixLength) => (*prefix_len).into(),
        (MatchField::Lpm { value, .. }, _) => number(value),
        (MatchField::Ternary { mask, .. }, Part::Mask) if is_all_ones(mask) => ones(),
        (MatchField::Ternary { mask, .. }, Part::Mask) => number(mask),
        (MatchField::Ternary { value, .. }, _) => number(value),
        (MatchField::Range { low, high }, Part::High) if low.bits() == 0 && is_all_ones(high) => {
            ones()
        }
        (MatchField::Range { high, .. }, Part::High) => number(high),
        (MatchField::Range { low, .. }, _) => number(low),
        (MatchField::Optional(Some(_)), Part::Mask) => ones(),
        (MatchField::Optional(Some(value)), _) => number(value),
        (MatchField::Optional(None), _) => BigInt::ZERO,
    }
}
