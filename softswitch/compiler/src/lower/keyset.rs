// SPDX-License-Identifier: Apache-2.0
//! Key sets of select expressions and table entries.

use num_bigint::BigInt;
use num_traits::Zero;

use super::value::Val;
use super::{Lower, fold};
use crate::ast::{Expr, ExprKind};
use crate::check::wrap;
use crate::diag::Warning;
use crate::ir::{Ex, KeyMatch, KeySet, Scalar};
use crate::types::Type;

impl<'a> Lower<'a> {
    /// One component of a key set, for a key of type `ty`.
    pub(super) fn keyset(&mut self, e: &'a Expr, ty: Scalar) -> KeySet {
        let value = |v: BigInt| wrap(&v, &Type::Bit(ty.width()));
        match &e.kind {
            ExprKind::Default | ExprKind::DontCare => KeySet::Any,
            ExprKind::Mask(a, b) => match (self.number(a), self.number(b)) {
                (Some(v), Some(m)) => {
                    let mask = value(m);
                    KeySet::Mask(value(v) & &mask, mask)
                }
                _ => self.not_constant(e),
            },
            ExprKind::Range(a, b) => match (self.number(a), self.number(b)) {
                (Some(lo), Some(hi)) => {
                    if lo > hi {
                        self.diags.warn(
                            Warning::Invalid,
                            e.span,
                            format!("the range {lo}..{hi} is empty"),
                        );
                    }
                    KeySet::Range(value(lo), value(hi))
                }
                _ => self.not_constant(e),
            },
            _ => match self.eval(e) {
                Val::ValueSet(i) => KeySet::Set(self.ir.value_sets[i].name.clone()),
                Val::Int(v) => KeySet::Value(value(v)),
                v => match self.scalar_from(v) {
                    Ex::Const(v, _) => KeySet::Value(value(v)),
                    _ => self.not_constant(e),
                },
            },
        }
    }

    fn not_constant(&mut self, e: &Expr) -> KeySet {
        self.diags.error_hint(
            e.span,
            "the set must be known at compile time",
            "compare in an if statement instead",
        );
        KeySet::Any
    }

    /// A component of a table entry, as the match kind needs it.
    pub(super) fn key_match(&mut self, e: &'a Expr, ty: Scalar, kind: &str) -> KeyMatch {
        let w = ty.width();
        let all = super::fold::ones(w);
        let set = self.keyset(e, ty);
        match (kind, set) {
            ("exact", KeySet::Value(v)) => KeyMatch::Exact(v),
            ("exact", KeySet::Mask(v, m)) if m == all => KeyMatch::Exact(v),
            ("exact", _) => {
                self.error(e.span, "an exact key needs a single value");
                KeyMatch::Exact(BigInt::zero())
            }
            ("lpm", KeySet::Value(v)) => KeyMatch::Lpm(v, w),
            ("lpm", KeySet::Any) => KeyMatch::Lpm(BigInt::zero(), 0),
            ("lpm", KeySet::Mask(v, m)) => match prefix_length(&m, w) {
                Some(len) => KeyMatch::Lpm(v, len),
                None => {
                    self.error(e.span, "the mask of an lpm key must be a prefix");
                    KeyMatch::Lpm(v, w)
                }
            },
            ("range", KeySet::Any) => KeyMatch::Range(BigInt::zero(), all),
            ("range", KeySet::Value(v)) => KeyMatch::Range(v.clone(), v),
            ("range", KeySet::Range(a, b)) => {
                if a > b {
                    self.error(e.span, "the range is empty");
                }
                KeyMatch::Range(a, b)
            }
            ("range", KeySet::Mask(v, m)) if m == all => KeyMatch::Range(v.clone(), v),
            (_, KeySet::Any) => KeyMatch::Ternary(BigInt::zero(), BigInt::zero()),
            ("ternary" | "optional", KeySet::Value(v)) => KeyMatch::Ternary(v, all),
            ("ternary" | "optional", KeySet::Mask(v, m)) => {
                if kind == "optional" && m != all {
                    self.error(e.span, "an optional key needs a single value or _");
                }
                KeyMatch::Ternary(v, m)
            }
            _ => {
                self.error(
                    e.span,
                    format!("this set is not valid for a key of match kind {kind}"),
                );
                KeyMatch::Exact(BigInt::zero())
            }
        }
    }

    /// Components of a key set of `n` keys; a single `default` or `_` stands for all of them.
    pub(super) fn keyset_items(e: &'a Expr, n: usize) -> Vec<&'a Expr> {
        match &e.kind {
            ExprKind::List { items, .. } if n != 1 || items.len() == 1 => items.iter().collect(),
            ExprKind::Default | ExprKind::DontCare => vec![e; n],
            _ => vec![e],
        }
    }

    /// Makes an expression one that a table or a select can look at: a field.
    pub(super) fn as_key(&mut self, e: Ex) -> Ex {
        match e {
            Ex::Field { .. } => e,
            Ex::Valid(crate::ir::HeaderRef::Static(header)) => Ex::Field {
                header,
                field: "$valid$".into(),
                ty: Scalar::Bool,
            },
            e => {
                let ty = e.ty();
                let e = fold::cast(e, ty);
                self.snapshot_always(e)
            }
        }
    }

    fn snapshot_always(&mut self, e: Ex) -> Ex {
        let tmp = self.scalar_variable("key", e.ty());
        self.emit(crate::ir::StKind::Assign(tmp.clone(), e));
        tmp
    }
}

/// Length of the prefix that the mask selects, if it is one.
fn prefix_length(mask: &BigInt, width: u32) -> Option<u32> {
    let ones = mask.magnitude().count_ones() as u32;
    let expected = if ones == 0 {
        BigInt::zero()
    } else {
        ((BigInt::from(1) << ones) - 1) << (width - ones)
    };
    (*mask == expected).then_some(ones)
}
