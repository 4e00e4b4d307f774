// SPDX-License-Identifier: Apache-2.0
//! The type check, which turns expressions into conditions without names.
//!
//! Implicit conversions go from `int` to `bit<W>` (modulo 2^W), from exact keys to `bit<W>`, and from both to other keys:
//! a number equals a key that matches this number only.

use num_bigint::BigInt;

use super::syntax::{Expression, ExpressionKind};
use super::{Comparison, Condition, Fault, Input, Kind, Number, Part, Type, Variable};

/// Checks a clause, which must be a condition.
///
/// # Errors
/// The first operand of a wrong type, or an unknown name.
pub fn check(
    expression: &Expression,
    variables: &[Variable<'_>],
    has_priority: bool,
) -> Result<Condition, Fault> {
    let checker = Checker {
        variables,
        has_priority,
    };
    checker.condition(expression)
}

struct Checker<'a> {
    variables: &'a [Variable<'a>],
    has_priority: bool,
}

/// A checked expression.
enum Typed {
    Condition(Condition),
    /// `int` (`None`) or `bit<W>`.
    Number(Number, Option<u32>),
    /// A key that is not exact.
    Key(usize, Kind, u32),
}

impl Typed {
    fn name(&self) -> String {
        match self {
            Self::Condition(_) => Type::Bool.name(),
            Self::Number(_, None) => Type::Int.name(),
            Self::Number(_, Some(width)) => Type::Bits(*width).name(),
            Self::Key(_, kind, width) => Type::Key(*kind, *width).name(),
        }
    }
}

impl Type {
    fn name(self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Int => "int".into(),
            Self::Bits(width) => format!("bit<{width}>"),
            Self::Key(kind, width) => {
                let kind = match kind {
                    Kind::Exact => "exact",
                    Kind::Ternary => "ternary",
                    Kind::Optional => "optional",
                    Kind::Lpm => "lpm",
                    Kind::Range => "range",
                };
                format!("{kind} match of {width} bits")
            }
        }
    }
}

impl Kind {
    /// Returns the parts of a key with their names.
    fn parts(self) -> &'static [(&'static str, Part)] {
        match self {
            Self::Exact => &[("value", Part::Value)],
            Self::Ternary | Self::Optional => &[("value", Part::Value), ("mask", Part::Mask)],
            Self::Lpm => &[
                ("value", Part::Value),
                ("prefix_length", Part::PrefixLength),
            ],
            Self::Range => &[("low", Part::Low), ("high", Part::High)],
        }
    }
}

impl Checker<'_> {
    fn condition(&self, expression: &Expression) -> Result<Condition, Fault> {
        match self.typed(expression)? {
            Typed::Condition(condition) => Ok(condition),
            other => Err(Fault::new(
                expression.begin,
                format!(
                    "expected a condition, not {}: compare it with a value",
                    other.name()
                ),
            )),
        }
    }

    fn conditions(&self, expressions: &[Expression]) -> Result<Vec<Condition>, Fault> {
        expressions.iter().map(|e| self.condition(e)).collect()
    }

    fn typed(&self, expression: &Expression) -> Result<Typed, Fault> {
        use ExpressionKind as E;
        let boxed = |e: &Expression| self.condition(e).map(Box::new);
        let condition = match &expression.kind {
            E::Number(number) => return Ok(Typed::Number(Number::Constant(number.clone()), None)),
            E::Name(name) => return self.variable(name, expression.begin),
            E::Metadata(name) => return self.metadata(name, expression.begin),
            E::Part(of, name) => return self.part(of, name),
            E::Negate(operand) => return self.negate(operand),
            E::Bool(value) => Condition::Constant(*value),
            E::Not(operand) => Condition::Not(boxed(operand)?),
            E::And(operands) => Condition::All(self.conditions(operands)?),
            E::Or(operands) => Condition::Any(self.conditions(operands)?),
            E::Implies(left, right) => Condition::Implies(boxed(left)?, boxed(right)?),
            E::Compare(operator, left, right) => self.compare(*operator, left, right)?,
        };
        Ok(Typed::Condition(condition))
    }

    fn find(&self, name: &str, at: usize) -> Result<(usize, Type), Fault> {
        let index = self.variables.iter().position(|v| v.name == name);
        let index = index.ok_or_else(|| {
            let known: Vec<_> = self.variables.iter().map(|v| v.name).collect();
            let known = if known.is_empty() {
                "there are none".to_owned()
            } else {
                format!("use {}", known.join(", "))
            };
            let kind = if self.has_priority {
                "key"
            } else {
                "parameter"
            };
            Fault::new(at, format!("unknown {kind} `{name}`: {known}"))
        })?;
        let found = self.variables[index].r#type;
        let found = found.ok_or_else(|| {
            let reason = "its type is translated to strings, and restrictions compare numbers";
            Fault::new(at, format!("`{name}` cannot be used: {reason}"))
        })?;
        Ok((index, found))
    }

    fn variable(&self, name: &str, at: usize) -> Result<Typed, Fault> {
        let (index, found) = self.find(name, at)?;
        let value = Number::Input(Input::Variable(index, Part::Value));
        Ok(match found {
            Type::Key(Kind::Exact, width) | Type::Bits(width) => Typed::Number(value, Some(width)),
            Type::Key(kind, width) => Typed::Key(index, kind, width),
            Type::Bool | Type::Int => Typed::Number(value, None),
        })
    }

    fn metadata(&self, name: &str, at: usize) -> Result<Typed, Fault> {
        if name != "priority" {
            return Err(Fault::new(
                at,
                format!("unknown `::{name}`: use `::priority`"),
            ));
        }
        if !self.has_priority {
            return Err(Fault::new(
                at,
                "an action does not have a priority: use @entry_restriction of a table",
            ));
        }
        Ok(Typed::Number(Number::Input(Input::Priority), None))
    }

    fn part(&self, of: &Expression, name: &str) -> Result<Typed, Fault> {
        let ExpressionKind::Name(key) = &of.kind else {
            return Err(Fault::new(of.begin, "only keys have parts"));
        };
        let (index, found) = self.find(key, of.begin)?;
        let Type::Key(kind, width) = found else {
            return Err(Fault::new(
                of.begin,
                format!("`{key}` is a parameter, which has no parts: omit `::{name}`"),
            ));
        };
        let parts = kind.parts();
        let Some((_, part)) = parts.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = parts.iter().map(|(known, _)| *known).collect();
            return Err(Fault::new(
                of.begin,
                format!(
                    "`{key}` is {}, which has no part `{name}`: use {}",
                    found.name(),
                    known.join(" or ")
                ),
            ));
        };
        let number = Number::Input(Input::Variable(index, *part));
        let width = (*part != Part::PrefixLength).then_some(width);
        Ok(Typed::Number(number, width))
    }

    fn negate(&self, operand: &Expression) -> Result<Typed, Fault> {
        match self.typed(operand)? {
            Typed::Number(number, width) => {
                let negated = Number::Negate(Box::new(number));
                Ok(Typed::Number(wrapped(negated, width), width))
            }
            other => Err(Fault::new(
                operand.begin,
                format!("expected a number after `-`, not {}", other.name()),
            )),
        }
    }

    fn compare(
        &self,
        operator: Comparison,
        left: &Expression,
        right: &Expression,
    ) -> Result<Condition, Fault> {
        let (a, b) = (self.typed(left)?, self.typed(right)?);
        let mismatch = || {
            Fault::new(
                left.begin,
                format!("cannot compare {} with {}", a.name(), b.name()),
            )
        };
        let is_equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
        let same = match (&a, &b) {
            (Typed::Number(x, wx), Typed::Number(y, wy)) => {
                let width = match (wx, wy) {
                    (Some(wx), Some(wy)) if wx != wy => return Err(mismatch()),
                    _ => wx.or(*wy),
                };
                let (x, y) = (cast(x, *wx, width), cast(y, *wy, width));
                return Ok(Condition::Compare(operator, x, y));
            }
            _ if !is_equality => return Err(mismatch()),
            (Typed::Condition(x), Typed::Condition(y)) => {
                Condition::Equal(Box::new(x.clone()), Box::new(y.clone()))
            }
            (Typed::Key(i, kind, width), Typed::Key(j, other, w)) => {
                if (kind, width) != (other, w) {
                    return Err(mismatch());
                }
                let parts = kind.parts().iter();
                let parts = parts.map(|(_, p)| equal(of(*i, *p), of(*j, *p)));
                Condition::All(parts.collect())
            }
            (Typed::Key(i, kind, width), Typed::Number(n, w))
            | (Typed::Number(n, w), Typed::Key(i, kind, width)) => {
                if w.is_some_and(|w| w != *width) {
                    return Err(mismatch());
                }
                matches_only(*i, *kind, *width, &cast(n, *w, Some(*width)))
            }
            _ => return Err(mismatch()),
        };
        Ok(match operator {
            Comparison::NotEqual => Condition::Not(Box::new(same)),
            _ => same,
        })
    }
}

fn of(index: usize, part: Part) -> Number {
    Number::Input(Input::Variable(index, part))
}

fn equal(left: Number, right: Number) -> Condition {
    Condition::Compare(Comparison::Equal, left, right)
}

/// Returns the condition that a key matches this number and no other.
fn matches_only(index: usize, kind: Kind, width: u32, number: &Number) -> Condition {
    let part = |part| of(index, part);
    let ones = (BigInt::from(1) << width) - 1;
    let whole = match kind {
        Kind::Exact => None,
        Kind::Ternary | Kind::Optional => Some(equal(part(Part::Mask), Number::Constant(ones))),
        Kind::Lpm => {
            let length = Number::Constant(width.into());
            Some(equal(part(Part::PrefixLength), length))
        }
        Kind::Range => Some(equal(part(Part::High), number.clone())),
    };
    let value = match kind {
        Kind::Range => part(Part::Low),
        _ => part(Part::Value),
    };
    let conditions = [equal(value, number.clone())].into_iter().chain(whole);
    Condition::All(conditions.collect())
}

/// Converts a number from `int` or `bit<from>` to `bit<to>`.
fn cast(number: &Number, from: Option<u32>, to: Option<u32>) -> Number {
    match from {
        Some(_) => number.clone(),
        None => wrapped(number.clone(), to),
    }
}

fn wrapped(number: Number, width: Option<u32>) -> Number {
    match (number, width) {
        (number, None) => number,
        (Number::Constant(n), Some(width)) => Number::Constant(super::evaluate::wrap(n, width)),
        (number, Some(width)) => Number::Wrap(Box::new(number), width),
    }
}
