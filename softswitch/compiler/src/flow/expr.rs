// SPDX-License-Identifier: Apache-2.0
//! Analyses expressions: reads, and the places that they denote.

use num_traits::ToPrimitive;

use super::Flow;
use super::layout::{Place, Shape};
use super::state::Validity;
use crate::ast::{CompositeKind, Expr, ExprKind};
use crate::diag::Warning;
use crate::types::Const;
use crate::types::Type;

impl<'a> Flow<'_, 'a> {
    /// Returns all places that the expression may denote: several if an index is unknown, none if it is not a variable.
    pub(super) fn places(&mut self, e: &'a Expr) -> Vec<Place> {
        match &e.kind {
            ExprKind::Name { .. } => {
                let id = self.typed.names.get(&e.id);
                let place = id.and_then(|id| self.places.get(id).cloned().flatten());
                place.into_iter().collect()
            }
            ExprKind::Member(base, name) => {
                let bases = self.places(base);
                self.step(bases.len());
                bases
                    .iter()
                    .flat_map(|p| match &*name.name {
                        "next" | "last" if is_stack(p) => p.items().collect(),
                        name => Vec::from_iter(p.field(name)),
                    })
                    .collect()
            }
            ExprKind::Index(base, index) => {
                let bases = self.places(base);
                self.step(bases.len());
                let index = self.index(index);
                bases
                    .iter()
                    .flat_map(|p| match index {
                        Some(i) => Vec::from_iter(p.item(i)),
                        None => p.items().collect(),
                    })
                    .collect()
            }
            ExprKind::Slice(base, ..) | ExprKind::PlusSlice(base, ..) => self.places(base),
            _ => Vec::new(),
        }
    }

    fn index(&self, index: &Expr) -> Option<usize> {
        match self.typed.constants.get(&index.id) {
            Some(Const::Int(v, _)) => v.to_usize(),
            _ => None,
        }
    }

    /// Returns true if the expression denotes one of several elements of a stack.
    pub(super) fn is_one_of(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Index(_, index) => self.index(index).is_none(),
            ExprKind::Member(base, name) => {
                matches!(self.typed.type_of(base.id), Type::Stack(..))
                    && matches!(&*name.name, "next" | "last")
            }
            _ => false,
        }
    }

    /// Analyses a read of the expression.
    pub(super) fn read(&mut self, e: &'a Expr) {
        if !self.step(1) {
            return;
        }
        match &e.kind {
            ExprKind::Name { .. } | ExprKind::Member(..) | ExprKind::Index(..) => {
                self.walk_path(e);
                self.need_value(e);
            }
            ExprKind::Slice(a, b, c)
            | ExprKind::PlusSlice(a, b, c)
            | ExprKind::Ternary(a, b, c) => {
                self.read(a);
                self.read(b);
                self.read(c);
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) => self.read(a),
            ExprKind::Binary(_, a, b) | ExprKind::Mask(a, b) | ExprKind::Range(a, b) => {
                self.read(a);
                self.read(b);
            }
            ExprKind::Call { callee, args, .. } => self.call(e, callee, args),
            ExprKind::List { items, .. } => items.iter().for_each(|i| self.read(i)),
            ExprKind::Record { fields, .. } => fields.iter().for_each(|(_, v)| self.read(v)),
            _ => {}
        }
    }

    /// Analyses the path to a part of a variable: headers on it must be valid, and expressions on it, such as an index, are
    /// read.
    pub(super) fn walk_path(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Name { .. } => {}
            ExprKind::Member(base, _) => {
                self.walk_path(base);
                let base_type = self.typed.type_of(base.id);
                if self.typed.composite_kind(&base_type) == Some(CompositeKind::Header) {
                    self.need_valid(base);
                }
            }
            ExprKind::Index(base, index) => {
                self.walk_path(base);
                self.read(index);
            }
            _ => self.read(e),
        }
    }

    /// Analyses a write to the expression.
    pub(super) fn walk_target(&mut self, e: &'a Expr) {
        match &e.kind {
            // The other bits do not change.
            ExprKind::Slice(base, ..) | ExprKind::PlusSlice(base, ..) => self.read(base),
            _ => self.walk_path(e),
        }
    }

    fn need_valid(&mut self, header: &'a Expr) {
        let places = self.places(header);
        let what = match self.combined(places.iter().map(|p| p.header)) {
            Validity::Yes => return,
            Validity::No => "is not valid",
            Validity::Maybe => "may not be valid",
        };
        let message = format!("header '{}' {what} here", self.text(header.span));
        let hint = "check isValid(), or make it valid before";
        self.warn(Warning::InvalidHeader, header.span, message, hint);
    }

    /// Checks validity; of several possible headers, one valid header is enough.
    pub(super) fn combined(&self, slots: impl Iterator<Item = usize>) -> Validity {
        let mut found = None;
        for slot in slots {
            match (self.state.validity(slot), found) {
                (Validity::Yes, _) => return Validity::Yes,
                (Validity::No, None) => found = Some(Validity::No),
                (Validity::No, _) => {}
                (Validity::Maybe, _) => found = Some(Validity::Maybe),
            }
        }
        found.unwrap_or(Validity::Yes)
    }

    fn need_value(&mut self, e: &'a Expr) {
        if matches!(&e.kind, ExprKind::Member(..)) && self.is_one_of(e) {
            return;
        }
        let places = self.places(e);
        self.step(places.iter().map(|p| p.layout.values).sum());
        let unset: Vec<&Place> = places
            .iter()
            .filter(|p| self.state.has_unset(p) && self.lacks(p))
            .collect();
        let Some(first) = unset.first() else { return };
        let text = self.text(e.span);
        let message = if matches!(first.layout.shape, Shape::Value) {
            format!("'{text}' may be uninitialized")
        } else if let Some((field, _)) =
            first.fields().iter().find(|(_, p)| self.state.has_unset(p))
        {
            format!("'{text}.{field}' may be uninitialized")
        } else {
            format!("'{text}' may not be completely initialized")
        };
        self.warn(
            Warning::UninitializedUse,
            e.span,
            message,
            "assign a value on every path to this point",
        );
    }

    /// Checks a union, of which one valid member is enough.
    fn lacks(&self, p: &Place) -> bool {
        match p.kind() {
            Some(CompositeKind::Union) => p.items().all(|member| self.state.has_unset(&member)),
            _ if is_stack(p) => p
                .items()
                .any(|element| self.state.has_unset(&element) && self.lacks(&element)),
            _ => true,
        }
    }
}

fn is_stack(p: &Place) -> bool {
    matches!(p.layout.shape, Shape::Stack(..))
}
