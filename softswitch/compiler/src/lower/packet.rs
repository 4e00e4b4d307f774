// SPDX-License-Identifier: Apache-2.0
//! The packet: extraction, lookahead and emission.

use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::{Arg as AstArg, BinOp, Expr, ExprKind};
use crate::ir::{Ex, HeaderRef, StKind};
use crate::types::{CallInfo, Type};

impl<'a> Lower<'a> {
    pub(super) fn emit_value(&mut self, v: &Val, x: &'a Expr) {
        match v {
            Val::Header(h) => match &h.at {
                HeaderRef::Static(name) => self.emit(StKind::Emit(name.clone())),
                _ => self.error(x.span, "the header to emit must be known at compile time"),
            },
            Val::Struct(f) => f.iter().for_each(|(_, v)| self.emit_value(v, x)),
            Val::Tuple(items) => items.iter().for_each(|v| self.emit_value(v, x)),
            Val::Union(u) => u.members.iter().for_each(|(_, v)| self.emit_value(v, x)),
            Val::Stack(s) => {
                for i in 0..s.size {
                    let h = self.stack_element(s, &Ex::bit(i, 32));
                    self.emit_value(&h, x);
                }
            }
            Val::UnionStack(s) => {
                for i in 0..s.size {
                    let union = format!("{}[{i}]", s.name);
                    let u = self.union_element(s, Some(union.clone()), &|_, m| {
                        HeaderRef::Static(format!("{union}.{m}"))
                    });
                    self.emit_value(&u, x);
                }
            }
            Val::HeaderLit { .. } => {
                let ty = self.type_of(x.id);
                let h = self.allocate(&ty, "emitted");
                self.assign(&h, v.clone());
                self.emit_value(&h, x);
            }
            Val::Unit => {}
            _ => self.error(x.span, "only headers can be emitted"),
        }
    }

    pub(super) fn packet_in(
        &mut self,
        e: &'a Expr,
        method: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Val {
        self.only_in(&[Place::Parser], e.span, method);
        match method {
            "extract" => {
                let var_bits = (info.args.len() > 1).then(|| self.input(info, args, 1));
                let Some(x) = self.arg(info, args, 0) else {
                    return Val::Unit;
                };
                let v = if matches!(x.kind, ExprKind::DontCare) {
                    let ty = info
                        .targs
                        .first()
                        .map_or(Type::Unknown, |(_, t)| self.subst(t));
                    self.allocate(&ty, "skipped")
                } else {
                    self.eval(x)
                };
                match v {
                    Val::Header(h) => self.extract(h.at, var_bits, x),
                    _ => self.error(x.span, "only headers can be extracted"),
                }
                Val::Unit
            }
            "advance" => {
                let bits = self.input(info, args, 0);
                self.emit(StKind::Advance(bits));
                Val::Unit
            }
            "lookahead" => {
                let ty = self.type_of(e.id);
                let mut offset = 0;
                self.lookahead(&ty, &mut offset, e)
            }
            _ => {
                self.unsupported(
                    e.span,
                    format!("packet_in.{method} is not supported by this target"),
                );
                Val::Scalar(Ex::bit(0, 32))
            }
        }
    }

    fn extract(&mut self, header: HeaderRef, var_bits: Option<Ex>, x: &'a Expr) {
        match header {
            HeaderRef::Elem { stack, index } => self.extract_element(&stack, *index, var_bits),
            HeaderRef::Last(_) => self.error(x.span, "'last' cannot be extracted; use .next"),
            header => self.emit(StKind::Extract { header, var_bits }),
        }
    }

    /// The target extracts named elements only: asks for each one whether it is meant.
    fn extract_element(&mut self, stack: &str, index: Ex, var_bits: Option<Ex>) {
        let index = self.stored(index);
        let prefix = format!("{stack}[");
        let mut elements: Vec<String> = Vec::new();
        for h in &self.ir.storage.headers {
            if h.name.starts_with(&prefix) {
                elements.push(h.name.clone());
            }
        }
        let beyond = self.collect(|s| {
            let error = s.t.errors.iter().position(|e| &**e == "StackOutOfBounds");
            let error = Ex::bit(error.unwrap_or(0), 32);
            s.emit(StKind::Verify(Ex::bool(false), error));
        });
        let chain = elements
            .into_iter()
            .enumerate()
            .rev()
            .fold(beyond, |rest, (i, header)| {
                let number = fold::constant(&i.into(), index.ty());
                let meant = fold::binary(BinOp::Eq, index.clone(), number);
                let header = HeaderRef::Static(header);
                let var_bits = var_bits.clone();
                self.collect(|s| {
                    let found = s.collect(|s| s.emit(StKind::Extract { header, var_bits }));
                    s.emit(StKind::If(meant, found, rest));
                })
            });
        self.out.extend(chain);
    }

    pub(super) fn lookahead(&mut self, ty: &Type, offset: &mut u32, e: &'a Expr) -> Val {
        if let Some(scalar) = self.scalar_of(ty) {
            let width = scalar.width();
            let tmp = self.temp(scalar);
            self.emit(StKind::Assign(
                tmp.clone(),
                Ex::Lookahead {
                    offset: *offset,
                    width,
                    ty: scalar,
                },
            ));
            *offset += width;
            return Val::Scalar(tmp);
        }
        if let Type::Tuple(items) = ty {
            let hint = "declare a struct, which names the parts";
            let message = "lookahead of a tuple is not supported on this target";
            self.diags.unsupported_hint(e.span, message, hint);
            return Val::Tuple(items.iter().map(|t| self.lookahead(t, offset, e)).collect());
        }
        if let Type::Stack(elem, n) = ty {
            return Val::Tuple((0..*n).map(|_| self.lookahead(elem, offset, e)).collect());
        }
        let Some(fields) = self.fields_of(ty) else {
            self.error(e.span, "lookahead of this type is not possible");
            return Val::Unit;
        };
        let fields = fields
            .into_iter()
            .map(|(n, t)| (n, self.lookahead(&t, offset, e)))
            .collect();
        match self.kind_of(ty) {
            Some(crate::ast::CompositeKind::Header) => Val::HeaderLit {
                valid: Ex::bool(true),
                fields,
            },
            _ => Val::Struct(fields),
        }
    }
}
