// SPDX-License-Identifier: Apache-2.0
//! The externs of the Portable Switch Architecture.

use super::Lower;
use super::value::Val;
use crate::ast::{Arg as AstArg, BinOp, Expr, UnOp};
use crate::diag::Span;
use crate::ir::{Arg, Ex, ObjectArg, ObjectKind, Scalar, Table};
use crate::types::CallInfo;

/// The port to which packets are sent for recirculation.
const PORT_RECIRCULATE: u32 = 0xffff_fffa;

/// A call of a direct counter or meter.
pub(super) struct DirectCall {
    object: usize,
    /// Index of the table's action; `None` outside one.
    action: Option<usize>,
    span: Span,
}

impl<'a> Lower<'a> {
    /// Lowers the call of a method of PSA; `None` if the method belongs to another architecture.
    pub(super) fn psa_method(
        &mut self,
        e: &'a Expr,
        object: usize,
        method: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Option<Val> {
        let (kind, name) = (
            self.ir.objects[object].kind,
            self.ir.objects[object].name.clone(),
        );
        let this = Arg::Named("extern", name.clone());
        Some(match (kind, method) {
            (ObjectKind::Counter, "count") => {
                let index = self.input(info, args, 0);
                self.primitive("_Counter_count", vec![this, Arg::Ex(index)]);
                Val::Unit
            }
            // Direct counters count by themselves whenever their table hits.
            (ObjectKind::DirectCounter, "count") => {
                self.note_direct_call(e, object);
                Val::Unit
            }
            (ObjectKind::Meter, "execute") => {
                let index = self.input(info, args, 0);
                let before = (info.args.len() > 1).then(|| self.input(info, args, 1));
                let color = self.result(e);
                let mut parameters = vec![this, Arg::Ex(index), Arg::Ex(color.clone())];
                parameters.extend(before.map(Arg::Ex));
                self.primitive("_Meter_execute", parameters);
                Val::Scalar(color)
            }
            (ObjectKind::DirectMeter, "execute") => {
                self.note_direct_call(e, object);
                if !info.args.is_empty() {
                    self.colour_blind(e);
                }
                Val::Scalar(self.direct_color(e, object))
            }
            (ObjectKind::Register, "read") => {
                let index = self.input(info, args, 0);
                let value = self.result(e);
                let parameters = vec![
                    Arg::Ex(value.clone()),
                    Arg::Named("register_array", name),
                    Arg::Ex(index),
                ];
                self.primitive("register_read", parameters);
                Val::Scalar(value)
            }
            (ObjectKind::Register, "write") => {
                let index = self.input(info, args, 0);
                let value = self.input(info, args, 1);
                let array = Arg::Named("register_array", name);
                let parameters = vec![array, Arg::Ex(index), Arg::Ex(value)];
                self.primitive("register_write", parameters);
                Val::Unit
            }
            (ObjectKind::Random, "read") => {
                let bounds = self.bounds(e, object);
                let value = self.result(e);
                let parameters = std::iter::once(value.clone()).chain(bounds);
                let parameters = parameters.map(Arg::Ex).collect();
                self.primitive("modify_field_rng_uniform", parameters);
                Val::Scalar(value)
            }
            (ObjectKind::Hash, "get_hash") => self.get_hash(e, this, info, args),
            (ObjectKind::InternetChecksum, _) => self.checksum_method(e, this, method, info, args),
            (ObjectKind::Digest, "pack") => {
                self.pack(e, info, args, object);
                Val::Unit
            }
            _ => return None,
        })
    }

    pub(super) fn note_direct_call(&mut self, e: &'a Expr, object: usize) {
        self.direct_calls.push(DirectCall {
            object,
            action: self.table_action,
            span: e.span,
        });
    }

    /// Refuses calls of direct counters, meters and the like outside the actions of their tables (PSA 1.2, section 7.8).
    /// `property` is the table's property for them.
    pub(super) fn check_direct_calls(&self, property: &str) {
        for call in &self.direct_calls {
            let uses = |t: &Table| t.actions.iter().any(|a| Some(a.action) == call.action);
            let owns = |t: &Table| t.has_direct(call.object);
            let tables = || self.ir.tables.iter().filter(|t| uses(t));
            if tables().next().is_none() || !tables().all(owns) {
                let name = &self.ir.objects[call.object].name;
                self.diags.error_hint(
                    call.span,
                    format!("'{name}' can be called only in actions of its table"),
                    format!("name it in the property {property} of every table with the action"),
                );
            }
        }
    }

    /// Returns a variable for the result of a call.
    pub(super) fn result(&mut self, e: &'a Expr) -> Ex {
        let ty = self.type_of(e.id);
        let scalar = self.scalar_of(&ty).unwrap_or(Scalar::Bit(32));
        self.temp(scalar)
    }

    pub(super) fn colour_blind(&self, e: &'a Expr) {
        self.diags.unsupported_hint(
            e.span,
            "this target's direct meters ignore the colour of the packet",
            "call execute without a colour, or use a Meter with an index",
        );
    }

    /// The field for a direct meter's colour, which the target sets whenever its table hits.
    pub(super) fn direct_color(&mut self, e: &'a Expr, object: usize) -> Ex {
        if let Some(known) = self.ir.objects[object].meter_target.clone() {
            return known;
        }
        let field = self.result(e);
        self.ir.objects[object].meter_target = Some(field.clone());
        field
    }

    fn bounds(&mut self, e: &'a Expr, object: usize) -> [Ex; 2] {
        let ty = self.type_of(e.id);
        let width = self.scalar_of(&ty).map_or(32, |s| s.width());
        [0, 1].map(|i| match self.ir.objects[object].args.get(i) {
            Some(ObjectArg::Int(n)) => Ex::Const(n.clone(), Scalar::Bit(width)),
            _ => Ex::bit(0, width),
        })
    }

    pub(super) fn get_hash(
        &mut self,
        e: &'a Expr,
        this: Arg,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Val {
        let result = self.result(e);
        if info.args.len() == 1 {
            let data = self.fields(info, args, 0);
            let parameters = vec![this, Arg::Ex(result.clone()), data];
            self.primitive("_Hash_get_hash", parameters);
        } else {
            let base = self.input(info, args, 0);
            let data = self.fields(info, args, 1);
            let max = self.input(info, args, 2);
            let result = Arg::Ex(result.clone());
            let parameters = vec![this, result, Arg::Ex(base), data, Arg::Ex(max)];
            self.primitive("_Hash_get_hash_mod", parameters);
        }
        Val::Scalar(result)
    }

    /// The fields that a hash or a checksum covers.
    pub(super) fn fields(&mut self, info: &'a CallInfo, args: &'a [AstArg], i: usize) -> Arg {
        let data = self.arg(info, args, i).map_or(Val::Unit, |x| self.eval(x));
        let inputs = self.calculation_inputs(&data);
        Arg::FieldList(inputs.into_iter().map(|e| self.in_field(e)).collect())
    }

    fn checksum_method(
        &mut self,
        e: &'a Expr,
        this: Arg,
        method: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Val {
        let op = format!("_InternetChecksum_{method}");
        match method {
            "get" | "get_state" => {
                let value = self.result(e);
                self.primitive(op, vec![this, Arg::Ex(value.clone())]);
                return Val::Scalar(value);
            }
            "clear" => self.primitive(op, vec![this]),
            "set_state" => {
                let state = self.input(info, args, 0);
                self.primitive(op, vec![this, Arg::Ex(state)]);
            }
            _ => {
                let data = self.fields(info, args, 0);
                self.primitive(op, vec![this, data]);
            }
        }
        Val::Unit
    }

    /// Lowers the functions that tell for which purpose a deparser runs; `None` for others.
    pub(super) fn psa_purpose(
        &mut self,
        function: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Option<Val> {
        let metadata = self.arg(info, args, 0).map(|x| self.eval(x));
        let field = |name: &str| match metadata.as_ref().and_then(|m| m.member(name)) {
            Some(Val::Scalar(e)) => e,
            _ => Ex::bool(false),
        };
        let not = |e: Ex| Ex::Unary(UnOp::Not, Box::new(e), Scalar::Bool);
        let both = |a: Ex, b: Ex| Ex::Binary(BinOp::And, Box::new(a), Box::new(b), Scalar::Bool);
        Some(Val::Scalar(match function {
            "psa_clone_i2e" | "psa_clone_e2e" => field("clone"),
            "psa_resubmit" => both(not(field("drop")), field("resubmit")),
            "psa_normal" => both(not(field("drop")), not(field("resubmit"))),
            "psa_recirculate" => {
                let deparser = self.arg(info, args, 1).map(|x| self.eval(x));
                let port = match deparser.and_then(|d| d.member("egress_port")) {
                    Some(Val::Scalar(e)) => e,
                    _ => Ex::bit(0, 32),
                };
                let recirculates = Ex::Binary(
                    BinOp::Eq,
                    Box::new(port),
                    Box::new(Ex::bit(PORT_RECIRCULATE, 32)),
                    Scalar::Bool,
                );
                both(not(field("drop")), recirculates)
            }
            _ => return None,
        }))
    }
}
