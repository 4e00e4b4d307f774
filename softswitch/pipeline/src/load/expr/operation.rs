// SPDX-License-Identifier: Apache-2.0
//! Loads operations on numbers.

use num_bigint::BigInt;

use super::value::{
    Binary, BinaryOf, Leaf, SelectOf, ShiftOf, Unary, UnaryOf, Value, constant, saturated,
};
use super::{Result, Scope, find};
use crate::load::cursor::Cursor;
use crate::load::range::{Range, Tier};
use crate::phv::{Field, Place};
use crate::program::expr::{Cond, DynField, HeaderRef, Node};

impl Scope<'_> {
    /// Loads a value of which only the low 64 bits are used.
    pub(crate) fn low64(&self, c: &Cursor) -> Result<Node<u64>> {
        Ok(self.value(c, Some(64))?.into64())
    }

    /// Loads an index or count: 64 bits, saturated if the value can be larger or negative.
    pub(crate) fn index(&self, c: &Cursor) -> Result<Node<u64>> {
        let v = self.value(c, None)?;
        Ok(saturated(v, 64).into64())
    }

    /// Loads a value of which only the low `need` bits are used.
    pub(crate) fn value(&self, c: &Cursor, need: Option<u32>) -> Result<Value> {
        let (c, value, kind) = self.unwrap(c)?;
        if kind == "expression" {
            return self.operation(&value, need);
        }
        let of_field = |f: Field| {
            let range = match f.place {
                Place::Varbit { max, .. } => Range::unsigned(max * 8),
                _ if f.signed => Range::signed(f.width.max(1) - 1),
                _ => Range::unsigned(f.width),
            };
            (range, Leaf::Field(f))
        };
        let of_dyn = |(d, f): (DynField, Field)| (of_field(f).0, Leaf::Dyn(d));
        let (range, leaf) = match kind {
            "field" if value.at(0).json.is_object() => match value.at(1).json.as_str() {
                Some("$valid$") => {
                    let valid = self.is_valid(self.computed_header(&value.at(0))?);
                    (Range::unsigned(1), Leaf::Bool(valid))
                }
                _ => of_dyn(self.computed_field(&value)?),
            },
            "field" => of_field(self.field(&value)?),
            "stack_field" => of_dyn(self.stack_field(&value)?),
            "union_stack_field" => of_dyn(self.union_stack_field(&value)?),
            "hexstr" => {
                let v = value.hex()?;
                (Range::of(&v), Leaf::Const(v))
            }
            "runtime_data" | "local" => {
                let i = value.usize()?;
                let p = self.params.get(i).ok_or_else(|| {
                    value.error(format!("the action has {} parameters", self.params.len()))
                })?;
                (Range::unsigned(p.width), Leaf::Arg(*p))
            }
            "register" => {
                let [array, index] = value.tuple()?;
                let (r, width) = find(self.registers, &array, "register")?;
                (
                    Range::unsigned(width),
                    Leaf::Register(r, self.index(&index)?),
                )
            }
            "bool" => (Range::unsigned(1), Leaf::Bool(Cond::Const(value.bool()?))),
            other => return Err(c.error(format!("a value of type {other} cannot be used here"))),
        };
        // If an unsigned leaf is wider than needed, its low bits suffice.
        let tier = match need {
            Some(need) => range.tier().min(Tier::with_bits(need)),
            None => range.tier(),
        };
        Ok(Value::of(tier, range, leaf))
    }

    pub(super) fn operation(&self, e: &Cursor, need: Option<u32>) -> Result<Value> {
        let op = e.get("op").str()?;
        let (left, right) = (e.get("left"), e.get("right"));
        let binary =
            |kind, range: fn(Range, Range) -> Range| self.binary(kind, &left, &right, need, range);
        match op {
            "+" => binary(Binary::Add, Range::add),
            "-" => binary(Binary::Sub, Range::sub),
            "*" => binary(Binary::Mul, Range::mul),
            "&" => binary(Binary::And, Range::and),
            "|" => binary(Binary::Or, Range::union),
            "^" => binary(Binary::Xor, Range::union),
            "/" => self.quotient(Binary::Div, &left, &right),
            "%" => self.quotient(Binary::Mod, &left, &right),
            "~" => {
                let x = self.value(&right, need)?;
                let range = Range::signed(x.range.bits);
                Ok(self.modular(range, need, |tier| {
                    Value::of(tier, range, UnaryOf(Unary::Not, x))
                }))
            }
            "<<" => self.shift_left(&left, &right, need),
            ">>" => {
                let x = self.value(&left, None)?;
                let by = self.value(&right, None)?;
                let range = x
                    .range
                    .shr(constant(&by).map_or(0, |c| c.min(1 << 20) as u32));
                let (tier, negative) = (x.range.tier(), x.range.negative);
                let by = saturated(by, 64).into64();
                Ok(Value::of(tier, range, ShiftOf(false, negative, x, by)))
            }
            "?" => {
                let cond = self.cond(&e.get("cond"))?;
                let (a, b) = (self.value(&left, need)?, self.value(&right, need)?);
                let range = a.range.union(b.range);
                Ok(self.modular(range, need, |tier| {
                    Value::of(tier, range, SelectOf(cond, a, b))
                }))
            }
            "b2d" => {
                let c = self.cond(&right)?;
                Ok(Value::of(Tier::B64, Range::unsigned(1), Leaf::Bool(c)))
            }
            "two_comp_mod" => {
                let width = self.width(&right)?;
                let x = self.value(&left, Some(width))?;
                let range = Range::signed(width.max(1) - 1);
                let tier = Tier::with_bits(width);
                Ok(Value::of(tier, range, UnaryOf(Unary::SignExtend(width), x)))
            }
            "usat_cast" | "sat_cast" => {
                let width = self.width(&right)?;
                let x = self.value(&left, None)?;
                Ok(if op == "usat_cast" {
                    saturated(x, width)
                } else {
                    let tier = x.range.signed_tier().max(Tier::with_bits(width));
                    let range = Range::signed(width.max(1) - 1);
                    Value::of(tier, range, UnaryOf(Unary::SatSigned(width), x))
                })
            }
            "access_field" => {
                let (d, f) = self.access_field(e)?;
                let range = if f.signed {
                    Range::signed(f.width.max(1) - 1)
                } else {
                    Range::unsigned(f.width)
                };
                let leaf = match d.header {
                    HeaderRef::Static(_) => Leaf::Field(f),
                    _ => Leaf::Dyn(d),
                };
                Ok(Value::of(range.tier(), range, leaf))
            }
            "last_stack_index" | "size_stack" => {
                let (_, name, _) = self.unwrap(&right)?;
                let next = match self.names.stacks.get(name.str()?) {
                    Some(&s) => self.names.layout.stacks[s as usize].next,
                    None => {
                        let s = find(&self.names.union_stacks, &name, "header stack")?;
                        self.names.layout.union_stacks[s as usize].next
                    }
                };
                let size = filled(next);
                if op == "size_stack" {
                    return Ok(size);
                }
                let one = Value::of(Tier::B64, Range::unsigned(1), Leaf::Const(1.into()));
                let range = Range::signed(8);
                Ok(Value::of(
                    Tier::B64,
                    range,
                    BinaryOf(Binary::Sub, size, one),
                ))
            }
            _ => {
                // A truth value as a number.
                let c = self.truth(e)?;
                Ok(Value::of(Tier::B64, Range::unsigned(1), Leaf::Bool(c)))
            }
        }
    }

    fn width(&self, c: &Cursor) -> Result<u32> {
        let v = self.value(c, None)?;
        match constant(&v) {
            Some(w @ 0..=65535) => Ok(w as u32),
            _ => Err(c.error("expected a constant width in bits")),
        }
    }

    /// Loads an operation whose low bits depend only on its operands' low bits.
    fn modular(&self, exact: Range, need: Option<u32>, build: impl FnOnce(Tier) -> Value) -> Value {
        let tier = exact.tier();
        let tier = need.map_or(tier, |n| tier.min(Tier::with_bits(n)));
        build(tier)
    }

    fn binary(
        &self,
        kind: Binary,
        left: &Cursor,
        right: &Cursor,
        need: Option<u32>,
        range: fn(Range, Range) -> Range,
    ) -> Result<Value> {
        if matches!(kind, Binary::And) {
            for (mask, masked) in [(right, left), (left, right)] {
                if let Some(value) = self.masked(masked, mask, need)? {
                    return Ok(value);
                }
            }
        }
        let need_of_and = match kind {
            // An operation under a constant mask needs only the bits of the mask.
            Binary::And => self
                .mask_bits(left)?
                .into_iter()
                .chain(self.mask_bits(right)?)
                .min(),
            _ => None,
        };
        let need = need.into_iter().chain(need_of_and).min();
        let operand = |c: &Cursor| {
            if c.is_null() {
                Ok(Value::of(
                    Tier::B64,
                    Range::unsigned(0),
                    Leaf::Const(BigInt::ZERO),
                ))
            } else {
                self.value(c, need)
            }
        };
        let (a, b) = (operand(left)?, operand(right)?);
        let exact = range(a.range, b.range);
        Ok(self.modular(exact, need, |tier| {
            Value::of(tier, exact, BinaryOf(kind, a, b))
        }))
    }

    /// Loads an operand under a mask of ones, without the mask if the operand does not have further bits, or they are
    /// unused. Compilers write many of these masks.
    fn masked(&self, c: &Cursor, mask: &Cursor, need: Option<u32>) -> Result<Option<Value>> {
        let Some(bits) = self.mask_bits(mask)? else {
            return Ok(None);
        };
        let (_, ones, _) = self.unwrap(mask)?;
        if ones.hex()? + 1 != BigInt::from(1) << bits {
            return Ok(None);
        }
        if need.is_some_and(|need| need <= bits) {
            return self.value(c, need).map(Some);
        }
        let value = self.value(c, Some(bits))?;
        if !value.range.negative && value.range.bits <= bits {
            return Ok(Some(value));
        }
        let mask = self.value(mask, None)?;
        let exact = value.range.and(mask.range);
        let need = need.unwrap_or(bits).min(bits);
        Ok(Some(self.modular(exact, Some(need), |tier| {
            Value::of(tier, exact, BinaryOf(Binary::And, value, mask))
        })))
    }

    /// Returns the number of bits of a non-negative constant.
    fn mask_bits(&self, c: &Cursor) -> Result<Option<u32>> {
        if c.is_null() {
            return Ok(None);
        }
        let (_, value, kind) = self.unwrap(c)?;
        if kind != "hexstr" {
            return Ok(None);
        }
        let range = Range::of(&value.hex()?);
        Ok((!range.negative).then_some(range.bits.max(1)))
    }

    fn quotient(&self, kind: Binary, left: &Cursor, right: &Cursor) -> Result<Value> {
        // BMv2 requires non-negative operands.
        let (a, b) = (self.value(left, None)?, self.value(right, None)?);
        let range = match kind {
            Binary::Div => a.range,
            _ => Range::unsigned(a.range.bits.min(b.range.bits)),
        };
        let tier = a.range.tier().max(b.range.tier());
        Ok(Value::of(tier, range, BinaryOf(kind, a, b)))
    }

    fn shift_left(&self, left: &Cursor, right: &Cursor, need: Option<u32>) -> Result<Value> {
        let x = self.value(left, need)?;
        let by = self.value(right, None)?;
        let range = match constant(&by) {
            Some(by) => x.range.shl(by.min(1 << 20) as u32),
            None => Range::unbounded(),
        };
        let by = saturated(by, 64).into64();
        Ok(self.modular(range, need, |tier| {
            Value::of(tier, range, ShiftOf(true, false, x, by))
        }))
    }
}

/// Loads the number of filled elements of a stack, which is the index of `next`.
pub(super) fn filled(next: u32) -> Value {
    Value::of(Tier::B64, Range::unsigned(8), Leaf::Byte(next))
}
