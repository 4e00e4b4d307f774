// SPDX-License-Identifier: Apache-2.0
//! Loads truth values and comparisons.

use super::value::Value;
use super::{Result, Scope};
use crate::load::cursor::Cursor;
use crate::load::range::Tier;
use crate::program::expr::{Cond, HeaderRef, Node, Num, Order};

impl Scope<'_> {
    /// Loads a truth value.
    pub(crate) fn cond(&self, c: &Cursor) -> Result<Cond> {
        let (_, value, kind) = self.unwrap(c)?;
        match kind {
            "bool" => Ok(Cond::Const(value.bool()?)),
            "expression" => self.truth(&value),
            _ => Ok(non_zero(self.value(c, None)?)),
        }
    }

    pub(super) fn truth(&self, e: &Cursor) -> Result<Cond> {
        let op = e.get("op").str()?;
        let (left, right) = (e.get("left"), e.get("right"));
        let two = || Ok(Box::new([self.cond(&left)?, self.cond(&right)?]));
        match op {
            "and" => two().map(Cond::And),
            "or" => two().map(Cond::Or),
            "not" => Ok(Cond::Not(Box::new(self.cond(&right)?))),
            "d2b" => Ok(non_zero(self.value(&right, None)?)),
            "valid" => Ok(self.is_valid(self.header(&right)?)),
            "valid_union" => Ok(Cond::ValidUnion(Box::new(self.union(&right)?))),
            "?" => {
                let c = self.cond(&e.get("cond"))?;
                Ok(Cond::Select(Box::new([
                    c,
                    self.cond(&left)?,
                    self.cond(&right)?,
                ])))
            }
            "==" => self.equal(&left, &right),
            "!=" => Ok(Cond::Not(Box::new(self.equal(&left, &right)?))),
            "<" => self.compare(Order::Lt, &left, &right),
            "<=" => self.compare(Order::Le, &left, &right),
            ">" => self.compare(Order::Lt, &right, &left),
            ">=" => self.compare(Order::Le, &right, &left),
            "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" | "~" | "<<" | ">>" | "b2d"
            | "two_comp_mod" | "usat_cast" | "sat_cast" | "access_field" | "last_stack_index"
            | "size_stack" => Ok(non_zero(self.operation(e, None)?)),
            other => Err(e.get("op").error(format!("unknown operation {other}"))),
        }
    }

    /// Loads a test of a header's validity; an index beyond the stack is invalid.
    pub(super) fn is_valid(&self, header: HeaderRef) -> Cond {
        match header {
            HeaderRef::Static(h) => Cond::Valid(self.names.layout.headers[h as usize].valid),
            h => Cond::ValidDyn(Box::new(h)),
        }
    }

    fn equal(&self, left: &Cursor, right: &Cursor) -> Result<Cond> {
        if self.is_bool(left)? {
            return Ok(Cond::Same(Box::new([self.cond(left)?, self.cond(right)?])));
        }
        if let (Ok(a), Ok(b)) = (self.header(left), self.header(right)) {
            return Ok(Cond::SameHeader(Box::new([a, b])));
        }
        if let (Ok(a), Ok(b)) = (self.union(left), self.union(right)) {
            return Ok(Cond::SameUnion(Box::new([a, b])));
        }
        self.compare(Order::Eq, left, right)
    }

    /// Returns true if an operand is a truth value rather than a number.
    fn is_bool(&self, c: &Cursor) -> Result<bool> {
        let (_, value, kind) = self.unwrap(c)?;
        Ok(kind == "bool"
            || matches!(
                value.get("op").json.as_str(),
                Some(
                    "and"
                        | "or"
                        | "not"
                        | "d2b"
                        | "valid"
                        | "valid_union"
                        | "=="
                        | "!="
                        | "<"
                        | "<="
                        | ">"
                        | ">="
                )
            ))
    }

    fn compare(&self, order: Order, left: &Cursor, right: &Cursor) -> Result<Cond> {
        let (a, b) = (self.value(left, None)?, self.value(right, None)?);
        let signed = a.range.negative || b.range.negative;
        let tier = if signed {
            a.range.signed_tier().max(b.range.signed_tier())
        } else {
            a.range.tier().max(b.range.tier())
        };
        Ok(match tier {
            Tier::B64 => {
                let (a, b) = (a.into64(), b.into64());
                if order == Order::Eq {
                    equal64(a, b)
                } else {
                    Cond::Cmp64(order, signed, Box::new([a, b]))
                }
            }
            Tier::B128 => Cond::Cmp128(order, signed, Box::new([a.into128(), b.into128()])),
            Tier::Big => Cond::CmpBig(order, Box::new([a.into_big(), b.into_big()])),
        })
    }
}

fn non_zero(v: Value) -> Cond {
    match v.num {
        Num::N64(Node::Word(w), _) => Cond::WordNonZero(w),
        num => Cond::NonZero(Box::new(num)),
    }
}

fn equal64(a: Node<u64>, b: Node<u64>) -> Cond {
    match (a, b) {
        (Node::Word(w), Node::Const(v)) | (Node::Const(v), Node::Word(w)) => Cond::WordEq(w, v),
        (a, b) => Cond::Eq64(Box::new([a, b])),
    }
}
