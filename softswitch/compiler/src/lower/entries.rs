// SPDX-License-Identifier: Apache-2.0
//! The entries that a program gives its tables.

use num_bigint::BigInt;

use super::Lower;
use super::value::Val;
use crate::annotation::int_annotation;
use crate::ast::{DeclKind, Direction, Expr, ExprKind, NodeId, TableDecl};
use crate::diag::Warning;
use crate::ir::{Entry, Ex};

impl<'a> Lower<'a> {
    /// Values that a default action or entry gives to the control plane's parameters.
    pub(super) fn action_args(&mut self, e: &'a Expr, action: NodeId) -> Vec<BigInt> {
        let Some(DeclKind::Action { params, .. }) = self.t.defs.get_decl(action).map(|d| &d.kind)
        else {
            return Vec::new();
        };
        let (args, info) = match &e.kind {
            ExprKind::Call { args, .. } => (&args[..], self.t.calls.get(&e.id)),
            _ => (&[][..], None),
        };
        let mut out = Vec::new();
        for (i, p) in params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.dir == Direction::None)
        {
            let given = info
                .and_then(|c| c.args.get(i).copied().flatten())
                .and_then(|k| args.get(k))
                .map(|a| &a.expr);
            let Some(x) = given.or(p.default.as_ref()) else {
                continue;
            };
            let ty = self.type_of(p.ty.id);
            let v = self.eval(x);
            let v = match self.convert(v, &ty) {
                Val::Scalar(Ex::Const(v, s)) => {
                    crate::check::wrap(&v, &crate::types::Type::Bit(s.width()))
                }
                _ => {
                    self.error(x.span, "the argument must be known at compile time");
                    BigInt::default()
                }
            };
            out.push(v);
        }
        out
    }

    pub(super) fn entries(&mut self, t: &'a TableDecl, index: usize) {
        let Some(entries) = &t.entries else { return };
        let keys: Vec<(crate::ir::Scalar, String)> = self.ir.tables[index]
            .keys
            .iter()
            .map(|k| (k.target.ty(), k.match_kind.clone()))
            .collect();
        // Keys of the selector come with the others in the source.
        let kinds: Vec<&str> = t
            .keys
            .iter()
            .flatten()
            .map(|k| &*k.match_kind.name)
            .collect();
        for e in &entries.list {
            let items = Self::keyset_items(&e.keyset, kinds.len());
            let mut matches = Vec::new();
            let plain = items
                .iter()
                .zip(&kinds)
                .filter(|(_, k)| **k != "selector")
                .map(|(i, _)| *i);
            for (item, (ty, kind)) in plain.zip(&keys) {
                matches.push(self.key_match(item, *ty, kind));
            }
            // Where no priority decides, the first of the same keys counts, and the target takes no other.
            let ranked = keys.iter().any(|(_, k)| !matches!(&**k, "exact" | "lpm"));
            if !ranked
                && self.ir.tables[index]
                    .entries
                    .iter()
                    .any(|o| o.matches == matches)
            {
                self.diags.warn(
                    Warning::Duplicate,
                    e.keyset.span,
                    "an entry before this has the same keys: this one never matches",
                );
                continue;
            }
            let Some(id) = self.action_id(&e.action) else {
                continue;
            };
            let Some(action) = self.ir.tables[index]
                .actions
                .iter()
                .position(|a| a.decl == id)
            else {
                continue;
            };
            let args = self.action_args(&e.action, id);
            let priority = match &e.priority {
                Some(p) => self.number(p),
                None => None,
            };
            let annotated_priority = int_annotation(&e.annos, "priority").map(|(n, _)| n);
            self.ir.tables[index].entries.push(Entry {
                matches,
                annotated_priority,
                action,
                args,
                is_const: entries.is_const || e.is_const,
                priority,
                span: e.span,
            });
        }
    }

    /// Fills in the priorities of entries that are not const, as the language defines them.
    pub(super) fn priorities(&mut self, t: &'a TableDecl, index: usize) {
        let wanted = |n: &str| {
            t.properties
                .iter()
                .find(|p| &*p.name.name == n)
                .map(|p| &p.value)
        };
        let largest = match wanted("largest_priority_wins") {
            Some(e) => self.scalar(e).as_bool() != Some(false),
            None => true,
        };
        let delta = match wanted("priority_delta") {
            Some(e) => self.number(e).unwrap_or_else(|| 1.into()),
            None => BigInt::from(1),
        };
        let table = &mut self.ir.tables[index];
        if table.const_entries || table.entries.is_empty() {
            return;
        }
        let n = BigInt::from(table.entries.len());
        let mut next = if largest {
            (n - 1) * &delta + 1
        } else {
            BigInt::from(1)
        };
        let mut overflow = false;
        for e in &mut table.entries {
            let p = e.priority.clone().unwrap_or_else(|| next.clone());
            next = if largest { &p - &delta } else { &p + &delta };
            overflow |= p.sign() == num_bigint::Sign::Minus;
            e.priority = Some(p);
        }
        table.entries.sort_by(|a, b| {
            let order = a.priority.cmp(&b.priority);
            if largest { order.reverse() } else { order }
        });
        if overflow {
            let name = table.decl.name.span;
            self.diags.error_hint(
                name,
                "the priorities of this table's entries become negative",
                "raise the first one, or lower priority_delta",
            );
        }
    }
}
