//! The externs of core.p4 and v1model.

use num_traits::ToPrimitive;

use super::value::Val;
use super::{Lower, Place};
use crate::ast::{Arg as AstArg, Decl, Expr, ExprKind, NodeId};
use crate::ir::{Arg, Calculation, Checksum, Digest, Ex, FieldList, HeaderRef, STANDARD_METADATA, Scalar, StKind};
use crate::types::{CallInfo, Def, Type};

impl<'a> Lower<'a> {
    fn arg(&self, info: &CallInfo, args: &'a [AstArg], i: usize) -> Option<&'a Expr> {
        info.args.get(i).copied().flatten().and_then(|k| args.get(k)).map(|a| &a.expr)
    }

    /// Value of an `in` argument of a primitive.
    fn input(&mut self, info: &CallInfo, args: &'a [AstArg], i: usize) -> Ex {
        match self.arg(info, args, i) {
            Some(e) => self.scalar(e),
            None => Ex::bit(0, 32),
        }
    }

    /// Calls `f` with a field for an output, and copies it to the argument if that is another.
    fn output(&mut self, e: Option<&'a Expr>, ty: Option<Scalar>, f: impl FnOnce(&mut Self, Ex)) {
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
            self.error(self.span, "only values of a single field can be stored here");
        }
    }

    /// All scalar fields of a value, in order.
    fn leaves(&mut self, v: &Val) -> Vec<Ex> {
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
                let e = self.to_scalar(v.clone());
                out.push(e);
            }
            _ => {}
        }
        out
    }

    /// Inputs of a hash or checksum: fields and constants; all else goes through variables.
    fn calculation_inputs(&mut self, v: &Val) -> Vec<Ex> {
        let leaves = self.leaves(v);
        leaves
            .into_iter()
            .map(|e| match e {
                Ex::Field { .. } | Ex::Const(..) => e,
                e => self.snapshot(e),
            })
            .collect()
    }

    fn algorithm(&mut self, e: Option<&'a Expr>) -> String {
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

    fn primitive(&mut self, op: &'static str, args: Vec<Arg>) {
        self.emit(StKind::Primitive { op, args });
    }

    fn only_in(&self, allowed: &[Place], span: crate::diag::Span, what: &str) {
        if !allowed.contains(&self.place) {
            self.error(span, format!("'{what}' cannot be used here on this target"));
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
        let Some(Def::Method(owner, m)) = self.t.defs.get(method) else { return Val::Unit };
        let ExprKind::Member(base, _) = &callee.kind else { return Val::Unit };
        let object = match self.eval(base) {
            Val::Object(o) => Some(o),
            _ => None,
        };
        let name = object.map(|o| self.ir.objects[o].name.clone()).unwrap_or_default();
        if let Some(o) = object {
            self.ir.objects[o].used = true;
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
                self.primitive("count", vec![Arg::Named("counter_array", name), Arg::Ex(index)]);
            }
            // Direct counters count by themselves whenever their table hits.
            ("direct_counter", "count") => {}
            ("direct_meter", "read") => {
                let place = self.arg(info, args, 0).map(|x| self.eval(x));
                match (place, object) {
                    (Some(Val::Scalar(field @ Ex::Field { .. })), Some(o)) => {
                        let known = self.ir.objects[o].meter_target.clone();
                        if known.as_ref().is_some_and(|k| *k != field) {
                            self.emit(StKind::Assign(field, known.unwrap_or_else(|| Ex::bit(0, 32))));
                        } else {
                            self.ir.objects[o].meter_target = Some(field);
                        }
                    }
                    _ => self.error(e.span, "the colour of a direct meter must be read into a field"),
                }
            }
            ("meter", "execute_meter") => {
                let index = self.input(info, args, 0);
                let out = self.arg(info, args, 1);
                self.output(out, None, |s, field| {
                    s.primitive("execute_meter", vec![Arg::Named("meter_array", name), Arg::Ex(index), Arg::Ex(field)]);
                });
            }
            ("register", "read") => {
                let out = self.arg(info, args, 0);
                let index = self.input(info, args, 1);
                self.output(out, None, |s, field| {
                    s.primitive("register_read", vec![Arg::Ex(field), Arg::Named("register_array", name), Arg::Ex(index)]);
                });
            }
            ("register", "write") => {
                let index = self.input(info, args, 0);
                let value = self.input(info, args, 1);
                self.primitive("register_write", vec![Arg::Named("register_array", name), Arg::Ex(index), Arg::Ex(value)]);
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
            (owner, method) => {
                self.diags.error_hint(
                    e.span,
                    format!("method {method} of extern {owner} is not known to this target"),
                    "the externs of v1model.p4 can be used",
                );
            }
        }
        Val::Unit
    }

    fn emit_value(&mut self, v: &Val, x: &'a Expr) {
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
                    let u = self.union_element(s, Some(union.clone()), &|_, m| HeaderRef::Static(format!("{union}.{m}")));
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

    fn packet_in(&mut self, e: &'a Expr, method: &str, info: &'a CallInfo, args: &'a [AstArg]) -> Val {
        self.only_in(&[Place::Parser], e.span, method);
        match method {
            "extract" => {
                let var_bits = (info.args.len() > 1).then(|| self.input(info, args, 1));
                let Some(x) = self.arg(info, args, 0) else { return Val::Unit };
                let v = if matches!(x.kind, ExprKind::DontCare) {
                    let ty = info.targs.first().map_or(Type::Unknown, |(_, t)| self.subst(t));
                    self.allocate(&ty, "skipped")
                } else {
                    self.eval(x)
                };
                match v {
                    Val::Header(h) => {
                        if matches!(h.at, HeaderRef::Elem { .. } | HeaderRef::Last(_)) {
                            self.error(x.span, "the element of the stack must be known at compile time; use .next");
                        }
                        self.emit(StKind::Extract { header: h.at, var_bits });
                    }
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
                self.error(e.span, format!("packet_in.{method} is not supported by this target"));
                Val::Scalar(Ex::bit(0, 32))
            }
        }
    }

    fn lookahead(&mut self, ty: &Type, offset: &mut u32, e: &'a Expr) -> Val {
        if let Some(scalar) = self.scalar_of(ty) {
            let width = scalar.width();
            let tmp = self.temp(scalar);
            self.emit(StKind::Assign(tmp.clone(), Ex::Lookahead { offset: *offset, width, ty: scalar }));
            *offset += width;
            return Val::Scalar(tmp);
        }
        if let Type::Tuple(items) = ty {
            return Val::Tuple(items.iter().map(|t| self.lookahead(t, offset, e)).collect());
        }
        let Some(fields) = self.fields_of(ty) else {
            self.error(e.span, "this type cannot be looked ahead");
            return Val::Unit;
        };
        let fields = fields.into_iter().map(|(n, t)| (n, self.lookahead(&t, offset, e))).collect();
        match self.kind_of(ty) {
            Some(crate::ast::CompositeKind::Header) => Val::HeaderLit { valid: Ex::bool(true), fields },
            _ => Val::Struct(fields),
        }
    }

    /// Name of a new calculation over the value.
    fn calculation(&mut self, algorithm: &str, data: &Val, payload: bool) -> String {
        let inputs = self.calculation_inputs(data);
        let n = self.ir.calculations.len();
        let name = if n == 0 { "calc".to_string() } else { format!("calc_{}", n - 1) };
        self.ir.calculations.push(Calculation { name: name.clone(), algorithm: algorithm.into(), inputs, payload });
        name
    }

    pub(super) fn extern_function(&mut self, e: &'a Expr, d: &'a Decl, info: &'a CallInfo, args: &'a [AstArg]) -> Val {
        match &*d.name.name {
            "verify" => {
                self.only_in(&[Place::Parser], e.span, "verify");
                let cond = self.input(info, args, 0);
                let error = self.input(info, args, 1);
                self.emit(StKind::Verify(cond, error));
            }
            "static_assert" => {
                let ok = self.input(info, args, 0);
                if ok.as_bool() == Some(false) {
                    let text = match self.arg(info, args, 1).map(|x| self.eval(x)) {
                        Some(Val::Str(s)) => format!(": {s}"),
                        _ => String::new(),
                    };
                    self.error(e.span, format!("static_assert failed{text}"));
                }
                return Val::Scalar(Ex::bool(true));
            }
            "mark_to_drop" => {
                self.primitive("mark_to_drop", vec![Arg::Header(HeaderRef::Static(STANDARD_METADATA.into()))]);
            }
            "random" => {
                let (lo, hi) = (self.input(info, args, 1), self.input(info, args, 2));
                let out = self.arg(info, args, 0);
                self.output(out, None, |s, field| {
                    s.primitive("modify_field_rng_uniform", vec![Arg::Ex(field), Arg::Ex(lo), Arg::Ex(hi)]);
                });
            }
            "hash" => {
                let algorithm = self.arg(info, args, 1);
                let algorithm = self.algorithm(algorithm);
                let base = self.input(info, args, 2);
                let data = self.arg(info, args, 3).map_or(Val::Unit, |x| self.eval(x));
                let max = self.input(info, args, 4);
                let calc = self.calculation(&algorithm, &data, false);
                let out = self.arg(info, args, 0);
                self.output(out, None, |s, field| {
                    s.primitive(
                        "modify_field_with_hash_based_offset",
                        vec![Arg::Ex(field), Arg::Ex(base), Arg::Named("calculation", calc), Arg::Ex(max)],
                    );
                });
            }
            "digest" => self.digest(e, info, args),
            "verify_checksum" | "update_checksum" | "verify_checksum_with_payload" | "update_checksum_with_payload" => {
                self.checksum(e, &d.name.name, info, args);
            }
            "clone" | "clone3" | "clone_preserving_field_list" => self.clone_packet(e, &d.name.name, info, args),
            "resubmit" | "recirculate" => {
                let list = self.ad_hoc_field_list(info, args, 0);
                let op = if &*d.name.name == "resubmit" { "resubmit" } else { "recirculate" };
                self.primitive(op, vec![Arg::Ex(Ex::bit(list, 32))]);
            }
            "resubmit_preserving_field_list" | "recirculate_preserving_field_list" => {
                let list = self.field_list_argument(info, args, 0);
                let op = if d.name.name.starts_with("resubmit") { "resubmit" } else { "recirculate" };
                self.primitive(op, vec![Arg::Ex(Ex::bit(list, 32))]);
            }
            "truncate" => {
                let n = self.input(info, args, 0);
                self.primitive("truncate", vec![Arg::Ex(n)]);
            }
            "assert" | "assume" => {
                let cond = self.input(info, args, 0);
                let op = if &*d.name.name == "assert" { "assert" } else { "assume" };
                self.primitive(op, vec![Arg::Ex(cond)]);
            }
            "log_msg" => {
                let text = match self.arg(info, args, 0).map(|x| self.eval(x)) {
                    Some(Val::Str(s)) => s,
                    _ => String::new(),
                };
                let data = self.arg(info, args, 1).map_or(Val::Unit, |x| self.eval(x));
                let values = self.leaves(&data);
                self.primitive("log_msg", vec![Arg::Str(text), Arg::Vector(values)]);
            }
            other => {
                self.diags.error_hint(
                    e.span,
                    format!("extern function {other} is not known to this target"),
                    "the externs of v1model.p4 can be used",
                );
            }
        }
        Val::Unit
    }

    fn digest(&mut self, e: &'a Expr, info: &'a CallInfo, args: &'a [AstArg]) {
        let receiver = self.input(info, args, 0);
        let data = self.arg(info, args, 1).map_or(Val::Unit, |x| self.eval(x));
        let ty = info.targs.last().map_or(Type::Unknown, |(_, t)| self.subst(t));
        // The target reads the fields when the pipeline is done: keep what they are now.
        let elements = self
            .leaves(&data)
            .into_iter()
            .map(|x| {
                let tmp = self.scalar_variable("digest", x.ty());
                self.emit(StKind::Assign(tmp.clone(), x));
                tmp
            })
            .collect();
        let id = self.ir.digests.len() as u32 + 1;
        let name = match &ty {
            Type::Named(..) => self.type_name(&ty),
            _ => format!("digest_{}", id - 1),
        };
        self.ir.digests.push(Digest { id, name, elements, ty, span: e.span });
        self.primitive("generate_digest", vec![Arg::Ex(receiver), Arg::Ex(Ex::bit(id, 32))]);
    }

    fn checksum(&mut self, e: &'a Expr, name: &str, info: &'a CallInfo, args: &'a [AstArg]) {
        self.only_in(&[Place::Checksum], e.span, name);
        let condition = self.input(info, args, 0);
        let data = self.arg(info, args, 1).map_or(Val::Unit, |x| self.eval(x));
        let target = self.input(info, args, 2);
        let algorithm = self.arg(info, args, 3);
        let algorithm = self.algorithm(algorithm);
        let inputs = self.leaves(&data);
        if !inputs.iter().all(|i| matches!(i, Ex::Field { .. } | Ex::Const(..))) {
            self.error(e.span, "the data of a checksum must be fields and constants on this target");
        }
        if !matches!(target, Ex::Field { .. }) {
            self.error(e.span, "the checksum must be a field on this target");
        }
        self.emit(StKind::Checksum(Checksum {
            condition,
            inputs,
            payload: name.ends_with("_with_payload"),
            target,
            algorithm,
            update: name.starts_with("update"),
        }));
    }

    fn clone_packet(&mut self, e: &'a Expr, name: &str, info: &'a CallInfo, args: &'a [AstArg]) {
        let kind = self.input(info, args, 0);
        let session = self.input(info, args, 1);
        let op = match &kind {
            Ex::Const(v, _) if v.to_u32() == Some(0) => "clone_ingress_pkt_to_egress",
            Ex::Const(..) => "clone_egress_pkt_to_egress",
            _ => {
                self.error(e.span, "the type of the clone must be known at compile time");
                return;
            }
        };
        let list = match name {
            "clone" => self.field_list("empty", Vec::new()),
            "clone3" => self.ad_hoc_field_list(info, args, 2),
            _ => self.field_list_argument(info, args, 2),
        };
        self.primitive(op, vec![Arg::Ex(session), Arg::Ex(Ex::bit(list, 32))]);
    }

    /// The list of the fields annotated `@field_list(n)`.
    fn field_list_argument(&mut self, info: &'a CallInfo, args: &'a [AstArg], i: usize) -> u32 {
        let index = match self.arg(info, args, i) {
            Some(x) => match self.number(x) {
                Some(n) => n,
                None => {
                    self.error(x.span, "the number of the field list must be known at compile time");
                    return 0;
                }
            },
            None => return 0,
        };
        let name = format!("field_list{index}");
        if let Some(l) = self.ir.field_lists.iter().find(|l| l.name == name) {
            return l.id;
        }
        self.diags.warn(self.span, format!("no field of the user metadata is annotated with @field_list({index})"));
        self.field_list(&name, Vec::new())
    }

    fn ad_hoc_field_list(&mut self, info: &'a CallInfo, args: &'a [AstArg], i: usize) -> u32 {
        let data = self.arg(info, args, i).map_or(Val::Unit, |x| self.eval(x));
        let elements: Vec<Ex> = self.leaves(&data).into_iter().filter(|e| matches!(e, Ex::Field { .. })).collect();
        let name = format!("fields_{}", self.ir.field_lists.len());
        self.field_list(&name, elements)
    }

    /// Id of a list of that name and content. Ids start at 1: the target takes 0 for "none".
    pub(super) fn field_list(&mut self, name: &str, elements: Vec<Ex>) -> u32 {
        if let Some(l) = self.ir.field_lists.iter().find(|l| l.name == name && l.elements == elements) {
            return l.id;
        }
        let id = self.ir.field_lists.len() as u32 + 1;
        self.ir.field_lists.push(FieldList { id, name: name.into(), elements });
        id
    }
}
