// SPDX-License-Identifier: Apache-2.0
//! Validity of assigned headers.

use super::Flow;
use super::layout::Place;
use super::state::Validity;
use crate::ast::{CompositeKind, Expr, ExprKind};

impl<'a> Flow<'_, 'a> {
    /// Copies the validity of the headers in `value` to those in `target`.
    pub(super) fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        let places = self.places(target);
        if self.is_one_of(target) {
            // The target is unknown, so the possible ones keep their state.
            let mut after = self.copy();
            std::mem::swap(&mut self.state, &mut after);
            places.iter().for_each(|p| self.take(p, value));
            let assigned = std::mem::replace(&mut self.state, after);
            let slots = places
                .iter()
                .flat_map(|p| p.header..p.header + p.layout.headers);
            for slot in slots.filter(|slot| assigned.validity(*slot) == Validity::Yes) {
                self.state.set_validity(slot, Validity::Yes);
            }
            return;
        }
        places.iter().for_each(|p| self.take(p, value));
        self.end_siblings(target);
    }

    /// Sets the validity of the headers in `header`.
    pub(super) fn set_header(&mut self, header: &'a Expr, validity: Validity) {
        if self.is_one_of(header) && validity != Validity::Yes {
            return;
        }
        for p in self.places(header) {
            self.state.set_all(&p, validity);
        }
        self.end_siblings(header);
    }

    /// Makes the other members of a union invalid.
    fn end_siblings(&mut self, member: &'a Expr) {
        let ExprKind::Member(base, name) = &member.kind else {
            return;
        };
        let union =
            self.typed.composite_kind(&self.typed.type_of(base.id)) == Some(CompositeKind::Union);
        if !union || self.is_one_of(base) {
            return;
        }
        for (field, sibling) in self.places(base).iter().flat_map(Place::fields) {
            if field != name.name {
                self.state.set_all(&sibling, Validity::No);
            }
        }
    }

    /// Copies the validity of the headers in `value` to those in the place.
    pub(super) fn take(&mut self, place: &Place, value: &'a Expr) {
        if place.layout.headers == 0 || !self.step(place.layout.headers) {
            return;
        }
        let is_header = place.kind() == Some(CompositeKind::Header);
        match &value.kind {
            ExprKind::Cast(_, inner) => self.take(place, inner),
            ExprKind::InvalidHeader | ExprKind::Dots => self.state.set_all(place, Validity::No),
            ExprKind::Call { .. } => self.state.set_all(place, Validity::Yes),
            ExprKind::List { .. } | ExprKind::Record { .. } if is_header => {
                self.state.set_all(place, Validity::Yes)
            }
            ExprKind::List { items, .. } => {
                self.state.set_all(place, Validity::No);
                for (part, item) in place.items().zip(items) {
                    self.take(&part, item);
                }
            }
            ExprKind::Record { fields, .. } => {
                self.state.set_all(place, Validity::No);
                for (name, item) in fields {
                    if let Some(part) = place.field(&name.name) {
                        self.take(&part, item);
                    }
                }
            }
            ExprKind::Ternary(_, a, b) => {
                let before = self.copy();
                self.take(place, a);
                let one = std::mem::replace(&mut self.state, before);
                self.take(place, b);
                self.state.join(&one);
            }
            _ => {
                let from = self.places(value);
                for i in 0..place.layout.headers {
                    let valid = self.combined(from.iter().map(|p| p.header + i));
                    self.state.set_validity(place.header + i, valid);
                }
            }
        }
    }
}
