// SPDX-License-Identifier: Apache-2.0
//! The evaluation of conditions.

use num_bigint::BigInt;

use super::{Comparison, Condition, Input, Number};

/// The numbers of an entry or an action.
pub trait Environment {
    /// Returns the number of an input.
    fn number(&self, input: Input) -> BigInt;
}

/// Returns true if a condition holds.
pub fn holds(condition: &Condition, environment: &impl Environment) -> bool {
    let is_true = |condition: &Condition| holds(condition, environment);
    match condition {
        Condition::Constant(value) => *value,
        Condition::Not(operand) => !is_true(operand),
        Condition::All(operands) => operands.iter().all(is_true),
        Condition::Any(operands) => operands.iter().any(is_true),
        Condition::Implies(left, right) => !is_true(left) || is_true(right),
        Condition::Equal(left, right) => is_true(left) == is_true(right),
        Condition::Compare(operator, left, right) => {
            let (left, right) = (number(left, environment), number(right, environment));
            match operator {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                Comparison::Less => left < right,
                Comparison::AtMost => left <= right,
                Comparison::Greater => left > right,
                Comparison::AtLeast => left >= right,
            }
        }
    }
}

fn number(expression: &Number, environment: &impl Environment) -> BigInt {
    match expression {
        Number::Constant(value) => value.clone(),
        Number::Input(input) => environment.number(*input),
        Number::Negate(operand) => -number(operand, environment),
        Number::Wrap(operand, width) => wrap(number(operand, environment), *width),
    }
}

/// Returns a number modulo 2^`width`, which is not negative.
pub fn wrap(number: BigInt, width: u32) -> BigInt {
    let size = BigInt::from(1) << width;
    ((number % &size) + &size) % size
}

/// Appends the inputs of a condition that are not in the list.
pub fn inputs(condition: &Condition, found: &mut Vec<Input>) {
    match condition {
        Condition::Constant(_) => {}
        Condition::Not(operand) => inputs(operand, found),
        Condition::All(operands) | Condition::Any(operands) => {
            operands.iter().for_each(|operand| inputs(operand, found));
        }
        Condition::Implies(left, right) | Condition::Equal(left, right) => {
            inputs(left, found);
            inputs(right, found);
        }
        Condition::Compare(_, left, right) => {
            number_inputs(left, found);
            number_inputs(right, found);
        }
    }
}

fn number_inputs(number: &Number, found: &mut Vec<Input>) {
    match number {
        Number::Constant(_) => {}
        Number::Input(input) if found.contains(input) => {}
        Number::Input(input) => found.push(*input),
        Number::Negate(operand) | Number::Wrap(operand, _) => number_inputs(operand, found),
    }
}
