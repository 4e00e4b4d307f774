// SPDX-License-Identifier: Apache-2.0
//! The externs of core.p4 and v1model.

use std::borrow::Cow;

use super::tna_externs::Call;
use super::v1model::EGRESS;
use super::value::Val;
use super::{Lower, Place};
use crate::ast::{Arg as AstArg, Expr, ExprKind, NodeId};
use crate::ir::{Architecture, Arg, Calculation, Ex, Scalar, StKind};
use crate::types::{CallInfo, Def};

impl<'a> Lower<'a> {
    pub(super) fn arg(&self, info: &CallInfo, args: &'a [AstArg], i: usize) -> Option<&'a Expr> {
        info.args
            .get(i)
            .copied()
            .flatten()
            .and_then(|k| args.get(k))
            .map(|a| &a.expr)
    }

    /// Value of an `in` argument of a primitive.
    pub(super) fn input(&mut self, info: &CallInfo, args: &'a [AstArg], i: usize) -> Ex {
        match self.arg(info, args, i) {
            Some(e) => self.scalar(e),
            None => Ex::bit(0, 32),
        }
    }

    /// Calls `f` with a field for an output, and copies it to the argument if that is another.
    pub(super) fn output(
        &mut self,
        e: Option<&'a Expr>,
        ty: Option<Scalar>,
        f: impl FnOnce(&mut Self, Ex),
    ) {
        let place = match e {
            Some(e) if !matches!(e.kind, ExprKind::DontCare) => self.eval(e),
            _ => Val::Ignore,
        };
        let (field, copy) = match &place {
            Val::Scalar(x @ Ex::Field { .. }) => (x.clone(), false),
            Val::Scalar(x) => (self.temp(x.ty()), true),
            _ => (self.temp(ty.unwrap_or(Scalar::Bit(32))), false),
        };
        f(self, field.clone());
        if copy {
            self.assign(&place, Val::Scalar(field));
        } else if matches!(place, Val::Struct(_) | Val::Header(_) | Val::Tuple(_)) {
            self.error(
                self.span,
                "only a value of a single field can be stored here",
            );
        }
    }

    /// All scalar fields of a value, in order.
    pub(super) fn leaves(&mut self, v: &Val) -> Vec<Ex> {
        let mut out = Vec::new();
        match v {
            Val::Struct(f) | Val::HeaderLit { fields: f, .. } => {
                for (_, v) in f {
                    out.extend(self.leaves(v));
                }
            }
            Val::Header(h) => {
                for (_, v) in &h.fields {
                    out.extend(self.leaves(v));
                }
            }
            Val::Tuple(items) => {
                for v in items {
                    out.extend(self.leaves(v));
                }
            }
            Val::Union(u) => {
                for (_, v) in &u.members {
                    out.extend(self.leaves(v));
                }
            }
            Val::Stack(s) => {
                for i in 0..s.size {
                    let e = self.stack_element(s, &Ex::bit(i, 32));
                    out.extend(self.leaves(&e));
                }
            }
            Val::Scalar(e) => out.push(e.clone()),
            Val::Int(_) => {
                let e = self.scalar_from(v.clone());
                out.push(e);
            }
            _ => {}
        }
        out
    }

    /// Inputs of a hash: metadata and constants; all else goes through variables. The target cannot hash parameters of
    /// actions, and omits fields of invalid headers, which P4 reads like all fields.
    pub(super) fn calculation_inputs(&mut self, v: &Val) -> Vec<Ex> {
        let leaves = self.leaves(v);
        leaves
            .into_iter()
            .map(|e| match e {
                Ex::Const(..)
                | Ex::Field {
                    ty: Scalar::Varbit(_),
                    ..
                } => e,
                Ex::Field { ref header, .. } if self.ir.storage.is_metadata(header) => e,
                e => self.stored(e),
            })
            .collect()
    }

    pub(super) fn algorithm(&mut self, e: Option<&'a Expr>) -> String {
        let Some(e) = e else { return "csum16".into() };
        let ty = self.type_of(e.id);
        match self.scalar(e) {
            Ex::Const(n, _) => self.enum_member(&ty, &n).unwrap_or_default(),
            _ => {
                self.error(e.span, "the algorithm must be known at compile time");
                String::new()
            }
        }
    }

    pub(super) fn primitive(&mut self, op: impl Into<Cow<'static, str>>, args: Vec<Arg>) {
        self.emit(StKind::Primitive {
            op: op.into(),
            args,
        });
    }

    /// A function or method that the target may know although this compiler does not: it becomes
    /// an operation of that name, which takes the arguments as they are.
    pub(super) fn foreign(
        &mut self,
        op: String,
        object: Option<String>,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) {
        let mut list: Vec<Arg> = object
            .into_iter()
            .map(|name| Arg::Named("extern", name))
            .collect();
        for i in 0..info.args.len() {
            let Some(x) = self.arg(info, args, i) else {
                continue;
            };
            match self.eval(x) {
                Val::Str(s) => list.push(Arg::Str(s)),
                Val::Header(h) => list.push(Arg::Header(h.at)),
                v => list.extend(self.leaves(&v).into_iter().map(Arg::Ex)),
            }
        }
        self.primitive(op, list);
    }

    pub(super) fn only_in(&self, allowed: &[Place], span: crate::diag::Span, what: &str) {
        if !allowed.contains(&self.place) {
            self.unsupported(span, format!("'{what}' cannot be used here on this target"));
        }
    }

    /// Refuses what belongs into the other of ingress and egress.
    pub(super) fn only_in_egress(&self, egress: bool, span: crate::diag::Span, what: &str) {
        if (self.pipeline == EGRESS) != egress {
            let wanted = if egress { "egress" } else { "ingress" };
            self.unsupported(span, format!("this '{what}' is allowed only in {wanted}"));
        }
    }

    pub(super) fn extern_method(
        &mut self,
        e: &'a Expr,
        callee: &'a Expr,
        method: NodeId,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Val {
        let Some(Def::Method(owner, m)) = self.t.defs.get(method) else {
            return Val::Unit;
        };
        let ExprKind::Member(base, _) = &callee.kind else {
            return Val::Unit;
        };
        let object = match self.eval(base) {
            Val::Object(o) => Some(o),
            _ => None,
        };
        let name = object
            .map(|o| self.ir.objects[o].name.clone())
            .unwrap_or_default();
        if self.ir.architecture == Architecture::Psa
            && let Some(object) = object
            && let Some(v) = self.psa_method(e, object, &m.name.name, info, args)
        {
            return v;
        }
        if self.ir.architecture.is_tofino()
            && let Some(object) = object
            && let Some(v) = self.tofino_method(&Call {
                e,
                object,
                m,
                info,
                args,
            })
        {
            return v;
        }
        match (&*owner.name.name, &*m.name.name) {
            ("packet_in", _) => return self.packet_in(e, &m.name.name, info, args),
            ("packet_out", _) => {
                self.only_in(&[Place::Deparser], e.span, "emit");
                if let Some(x) = self.arg(info, args, 0) {
                    let v = self.eval(x);
                    self.emit_value(&v, x);
                }
            }
            ("counter", "count") => {
                let index = self.input(info, args, 0);
                self.primitive(
                    "count",
                    vec![Arg::Named("counter_array", name), Arg::Ex(index)],
                );
            }
            // Direct counters count by themselves whenever their table hits.
            ("direct_counter", "count") => {}
            ("direct_meter", "read") => {
                let place = self.arg(info, args, 0).map(|x| self.eval(x));
                match (place, object) {
                    (Some(Val::Scalar(field @ Ex::Field { .. })), Some(o)) => {
                        let known = self.ir.objects[o].meter_target.clone();
                        if known.as_ref().is_some_and(|k| *k != field) {
                            self.emit(StKind::Assign(
                                field,
                                known.unwrap_or_else(|| Ex::bit(0, 32)),
                            ));
                        } else {
                            self.ir.objects[o].meter_target = Some(field);
                        }
                    }
                    _ => self.error(
                        e.span,
                        "the colour of a direct meter must be read into a field",
                    ),
                }
            }
            ("meter", "execute_meter") => {
                let index = self.input(info, args, 0);
                let out = self.arg(info, args, 1);
                self.output(out, None, |s, field| {
                    s.primitive(
                        "execute_meter",
                        vec![
                            Arg::Named("meter_array", name),
                            Arg::Ex(index),
                            Arg::Ex(field),
                        ],
                    );
                });
            }
            ("register", "read") => {
                let out = self.arg(info, args, 0);
                let index = self.input(info, args, 1);
                self.output(out, None, |s, field| {
                    s.primitive(
                        "register_read",
                        vec![
                            Arg::Ex(field),
                            Arg::Named("register_array", name),
                            Arg::Ex(index),
                        ],
                    );
                });
            }
            ("register", "write") => {
                let index = self.input(info, args, 0);
                let value = self.input(info, args, 1);
                self.primitive(
                    "register_write",
                    vec![
                        Arg::Named("register_array", name),
                        Arg::Ex(index),
                        Arg::Ex(value),
                    ],
                );
            }
            ("Checksum16", "get") => {
                let data = self.arg(info, args, 0).map_or(Val::Unit, |x| self.eval(x));
                let result = self.temp(Scalar::Bit(16));
                let calc = self.calculation("csum16", &data, false);
                let zero = Ex::bit(0, 16);
                self.primitive(
                    "modify_field_with_hash_based_offset",
                    vec![
                        Arg::Ex(result.clone()),
                        Arg::Ex(zero),
                        Arg::Named("calculation", calc),
                        Arg::Ex(Ex::bit(1u32 << 16, 32)),
                    ],
                );
                return Val::Scalar(result);
            }
            (owner, method) if self.foreign_externs => {
                self.foreign(format!("_{owner}_{method}"), Some(name), info, args);
            }
            (owner, method) if self.ir.architecture.is_tofino() => {
                // The definitions of TNA declare externs that the target lacks.
                let message = format!("this target does not support {owner}.{method}");
                let hint = self.tofino_hint(owner);
                self.diags.unsupported_hint(e.span, message, hint);
                let ty = self.type_of(e.id);
                return self.default_value(&ty);
            }
            (owner, method) => {
                self.diags.unsupported_hint(
                    m.name.span,
                    format!("unknown method {method} of extern {owner}"),
                    self.extern_hint(),
                );
            }
        }
        Val::Unit
    }

    /// Advice for the use of an unknown extern.
    pub(super) fn extern_hint(&self) -> String {
        let name = self.ir.architecture.name();
        format!("use the externs of {name}.p4, or pass this one to the target with --emit-externs")
    }

    /// Name of a new calculation over the value.
    pub(super) fn calculation(&mut self, algorithm: &str, data: &Val, payload: bool) -> String {
        let inputs = self.calculation_inputs(data);
        let n = self.ir.calculations.len();
        let name = if n == 0 {
            "calc".to_string()
        } else {
            format!("calc_{}", n - 1)
        };
        self.ir.calculations.push(Calculation {
            name: name.clone(),
            algorithm: algorithm.into(),
            inputs,
            payload,
        });
        name
    }
}
