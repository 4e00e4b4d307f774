// SPDX-License-Identifier: Apache-2.0
//! Lowers assignments and copies of values.

use std::collections::HashSet;

use super::value::Val;
use super::{Lower, fold};
use crate::ir::{Ex, HeaderRef, Scalar, StKind};

impl<'a> Lower<'a> {
    /// Lowers `target = value`, in several operations if the target does not have a single one.
    pub(super) fn assign(&mut self, target: &Val, value: Val) {
        // `{a, b} = {b, a}`: the right side is read before the left side is written.
        let composite = matches!(
            value,
            Val::Struct(_) | Val::Tuple(_) | Val::HeaderLit { .. }
        );
        let value = if composite && *target != value && reads(&value, &places(target)) {
            self.materialise(value)
        } else {
            value
        };
        self.assign_parts(target, value);
    }

    fn assign_parts(&mut self, target: &Val, value: Val) {
        match (target, value) {
            (Val::Ignore, _) => {}
            (Val::Scalar(lhs), v) => {
                let rhs = match v {
                    Val::Int(n) => fold::constant(&n, lhs.ty()),
                    v => self.scalar_from(v),
                };
                self.assign_scalar(lhs, rhs);
            }
            // The target copies named headers only; the last header of a stack is valid.
            (Val::Header(l), Val::Header(r))
                if matches!(r.at, HeaderRef::Last(_) | HeaderRef::UnionLast { .. }) =>
            {
                self.write_header(l, &r.fields);
            }
            (Val::Header(l), Val::Header(r)) if l.at != r.at => {
                let (to, from) = (l.at.clone().by_index(), r.at.by_index());
                self.emit(StKind::AssignHeader(to, from));
            }
            (Val::Header(l), Val::HeaderLit { valid, fields }) => match valid.as_bool() {
                Some(true) => self.write_header(l, &fields),
                Some(false) => self.emit(StKind::SetValid(l.at.clone(), false)),
                None => {
                    let yes = self.collect(|s| s.write_header(l, &fields));
                    let at = l.at.clone();
                    let no = self.collect(|s| s.emit(StKind::SetValid(at, false)));
                    self.emit(StKind::If(valid, yes, no));
                }
            },
            (Val::Header(l), Val::Struct(fields)) => self.write_header(l, &fields),
            (Val::Struct(l), v) => {
                for (i, (name, place)) in l.iter().enumerate() {
                    let part = match &v {
                        Val::Tuple(items) => items.get(i).cloned(),
                        v => v.member(name),
                    };
                    if let Some(part) = part {
                        self.assign_parts(place, part);
                    }
                }
            }
            (Val::Tuple(l), Val::Tuple(r)) => {
                for (place, part) in l.iter().zip(r) {
                    self.assign_parts(place, part);
                }
            }
            (Val::Tuple(l), Val::Struct(r)) => {
                for (place, (_, part)) in l.iter().zip(r) {
                    self.assign_parts(place, part);
                }
            }
            (Val::Stack(l), Val::Stack(r)) if l.name != r.name => {
                self.emit(StKind::AssignStack(l.name.clone(), r.name));
            }
            (Val::Stack(l), Val::Tuple(items)) => {
                for i in 0..l.size {
                    let place = self.stack_element(l, &Ex::bit(i, 32));
                    match items.get(i as usize) {
                        Some(v) => self.assign_parts(&place, v.clone()),
                        None => self.invalidate(&place),
                    }
                }
            }
            (Val::Union(l), Val::Union(r)) => match (&l.name, &r.name) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => self.emit(StKind::AssignUnion(a.clone(), b.clone())),
                _ => {
                    for ((_, place), (_, part)) in l.members.iter().zip(r.members) {
                        self.assign_parts(place, part);
                    }
                }
            },
            (Val::UnionStack(l), Val::UnionStack(r)) => {
                for i in 0..l.size {
                    let at = |s: &super::value::UnionStack| {
                        let union = format!("{}[{i}]", s.name);
                        self.union_element(s, Some(union.clone()), &|_, m| {
                            HeaderRef::Static(format!("{union}.{m}"))
                        })
                    };
                    let (place, part) = (at(l), at(&r));
                    self.assign_parts(&place, part);
                }
            }
            _ => {}
        }
    }

    fn write_header(&mut self, h: &super::value::Header, fields: &[(crate::ast::Name, Val)]) {
        self.emit(StKind::SetValid(h.at.clone(), true));
        for ((_, place), (_, v)) in h.fields.iter().zip(fields) {
            self.assign_parts(place, v.clone());
        }
    }

    fn assign_scalar(&mut self, lhs: &Ex, rhs: Ex) {
        self.note_selection(lhs);
        match lhs {
            Ex::Slice { base, hi, lo } => {
                // A write to some bits is a read-modify-write of the whole.
                let w = base.ty().width();
                let whole = Scalar::Bit(w);
                let bits = super::fold::ones(hi - lo + 1) << *lo;
                let keep = Ex::Const(super::fold::ones(w) ^ &bits, whole);
                let kept = fold::binary(
                    crate::ast::BinOp::BitAnd,
                    fold::cast((**base).clone(), whole),
                    keep,
                );
                let wide = fold::cast(fold::cast(rhs, Scalar::Bit(hi - lo + 1)), whole);
                let moved = fold::binary(crate::ast::BinOp::Shl, wide, Ex::bit(*lo, 32));
                let moved = fold::binary(crate::ast::BinOp::BitAnd, moved, Ex::Const(bits, whole));
                let value = fold::binary(crate::ast::BinOp::BitOr, kept, moved);
                self.emit(StKind::Assign(
                    (**base).clone(),
                    fold::cast(value, base.ty()),
                ));
            }
            Ex::Field { .. } | Ex::FieldOf { .. } => {
                let rhs = match (lhs.ty(), rhs.ty()) {
                    (Scalar::Varbit(_), _) | (_, Scalar::Varbit(_)) => rhs,
                    (to, _) => fold::cast(rhs, to),
                };
                if *lhs != rhs {
                    self.emit(StKind::Assign(lhs.clone(), rhs));
                }
            }
            _ => self.unsupported(self.span, "this cannot be written on this target"),
        }
    }

    /// Returns a copy of the value that later writes do not affect.
    pub(super) fn materialise(&mut self, v: Val) -> Val {
        if v.is_const() {
            return v;
        }
        match v {
            Val::Scalar(e) => Val::Scalar(self.snapshot(e)),
            Val::Struct(f) => Val::Struct(
                f.into_iter()
                    .map(|(n, v)| (n, self.materialise(v)))
                    .collect(),
            ),
            Val::Tuple(items) => {
                Val::Tuple(items.into_iter().map(|v| self.materialise(v)).collect())
            }
            Val::HeaderLit { valid, fields } => Val::HeaderLit {
                valid: self.snapshot(valid),
                fields: fields
                    .into_iter()
                    .map(|(n, v)| (n, self.materialise(v)))
                    .collect(),
            },
            Val::Header(h) => {
                let valid = self.snapshot(Ex::Valid(h.at));
                Val::HeaderLit {
                    valid,
                    fields: h
                        .fields
                        .into_iter()
                        .map(|(n, v)| (n, self.materialise(v)))
                        .collect(),
                }
            }
            Val::Stack(s) => {
                let copy = self.allocate(
                    &crate::types::Type::Stack(Box::new(s.elem.clone()), s.size),
                    "tmp",
                );
                self.assign_parts(&copy, Val::Stack(s));
                copy
            }
            v => v,
        }
    }

    /// Makes all headers in the value invalid.
    pub(super) fn invalidate(&mut self, v: &Val) {
        match v {
            Val::Header(h) => self.emit(StKind::SetValid(h.at.clone(), false)),
            Val::Struct(f) => f.iter().for_each(|(_, v)| self.invalidate(v)),
            Val::Tuple(items) => items.iter().for_each(|v| self.invalidate(v)),
            Val::Union(u) => u.members.iter().for_each(|(_, v)| self.invalidate(v)),
            Val::Stack(s) => {
                for i in 0..s.size {
                    let h = self.stack_element(s, &Ex::bit(i, 32));
                    self.invalidate(&h);
                }
            }
            _ => {}
        }
    }
}

/// Returns the names of all storage in a value; elements of a stack count as the whole stack.
pub(super) fn places(v: &Val) -> HashSet<String> {
    let mut set = HashSet::new();
    match v {
        Val::Struct(f) => f.iter().for_each(|(_, v)| set.extend(places(v))),
        Val::Tuple(items) => items.iter().for_each(|v| set.extend(places(v))),
        Val::Union(u) => u.members.iter().for_each(|(_, v)| set.extend(places(v))),
        Val::Stack(s) => {
            set.insert(s.name.clone());
        }
        Val::UnionStack(s) => {
            set.insert(s.name.clone());
        }
        v => v.leaves(&mut |e| expr_places(e, &mut set)),
    }
    set
}

fn header_place(h: &HeaderRef) -> (String, bool) {
    match h {
        HeaderRef::Static(n) => match n.split_once('[') {
            Some((stack, _)) => (stack.to_string(), true),
            None => (n.clone(), false),
        },
        HeaderRef::Elem { stack, .. }
        | HeaderRef::Next(stack)
        | HeaderRef::Last(stack)
        | HeaderRef::UnionNext { stack, .. }
        | HeaderRef::UnionLast { stack, .. }
        | HeaderRef::UnionElem { stack, .. } => (stack.clone(), true),
    }
}

/// Adds all storage that an expression reads.
pub(super) fn expr_places(e: &Ex, set: &mut HashSet<String>) {
    e.visit(&mut |x| {
        let (at, field) = match x {
            Ex::Field { header, field, .. } => (HeaderRef::Static(header.clone()), field.as_str()),
            Ex::FieldOf { header, field, .. } => (header.clone(), field.as_str()),
            Ex::Valid(h) => (h.clone(), "$valid$"),
            Ex::LastIndex(s) => (HeaderRef::Next(s.clone()), ""),
            _ => return,
        };
        let (name, whole) = header_place(&at);
        set.insert(if whole {
            name
        } else {
            format!("{name}.{field}")
        });
    });
}

fn reads(v: &Val, written: &HashSet<String>) -> bool {
    !places(v).is_disjoint(written)
}
