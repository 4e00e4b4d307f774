// SPDX-License-Identifier: Apache-2.0
//! Extern functions of core.p4 and v1model, and calls of those of other architectures.

use num_traits::ToPrimitive;

use super::value::Val;
use super::{Lower, Place};
use crate::ast::{Arg as AstArg, Decl, Expr, ExprKind};
use crate::diag::Warning;
use crate::ir::{
    Architecture, Arg, Checksum, Digest, Ex, FieldList, HeaderRef, Object, STANDARD_METADATA,
    StKind,
};
use crate::types::{CallInfo, Type};

/// The port that means "drop" on simple_switch.
const DROP_PORT: u32 = 511;

impl<'a> Lower<'a> {
    pub(super) fn extern_function(
        &mut self,
        e: &'a Expr,
        d: &'a Decl,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Val {
        if self.place != Place::Parser && &*d.name.name != "static_assert" {
            self.ir.has_type_info = true;
        }
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
            "mark_to_drop" => self.mark_to_drop(e, info, args),
            "random" => {
                let (lo, hi) = (self.input(info, args, 1), self.input(info, args, 2));
                let out = self.arg(info, args, 0);
                self.output(out, None, |s, field| {
                    s.primitive(
                        "modify_field_rng_uniform",
                        vec![Arg::Ex(field), Arg::Ex(lo), Arg::Ex(hi)],
                    );
                });
            }
            "hash" => {
                let algorithm = self.arg(info, args, 1);
                let algorithm = self.algorithm(algorithm);
                let base = self.input(info, args, 2);
                let data = self.data(info, args, 3);
                let max = self.input(info, args, 4);
                let calc = self.calculation(&algorithm, &data, false);
                let out = self.arg(info, args, 0);
                self.output(out, None, |s, field| {
                    s.primitive(
                        "modify_field_with_hash_based_offset",
                        vec![
                            Arg::Ex(field),
                            Arg::Ex(base),
                            Arg::Named("calculation", calc),
                            Arg::Ex(max),
                        ],
                    );
                });
            }
            "digest" => self.digest(e, info, args),
            "verify_checksum"
            | "update_checksum"
            | "verify_checksum_with_payload"
            | "update_checksum_with_payload" => {
                self.checksum(e, &d.name.name, info, args);
            }
            "clone" | "clone3" | "clone_preserving_field_list" => {
                self.clone_packet(e, &d.name.name, info, args)
            }
            "resubmit" | "recirculate" => {
                let list = self.ad_hoc_field_list(info, args, 0);
                self.again(e, &d.name.name, list);
            }
            "resubmit_preserving_field_list" | "recirculate_preserving_field_list" => {
                let list = self.field_list_argument(info, args, 0);
                self.again(e, &d.name.name, list);
            }
            "truncate" => {
                let n = self.input(info, args, 0);
                self.primitive("truncate", vec![Arg::Ex(n)]);
            }
            "assert" | "assume" => {
                let cond = self.input(info, args, 0);
                let op = if &*d.name.name == "assert" {
                    "assert"
                } else {
                    "assume"
                };
                self.primitive(op, vec![Arg::Ex(cond)]);
            }
            "log_msg" => {
                let text = match self.arg(info, args, 0).map(|x| self.eval(x)) {
                    // p4c copies the text into its JSON, whose escapes then count.
                    Some(Val::Str(s)) => serde_json::from_str(&format!("\"{s}\"")).unwrap_or(s),
                    _ => String::new(),
                };
                let data = self.arg(info, args, 1).map_or(Val::Unit, |x| self.eval(x));
                let values = self.leaves(&data);
                self.primitive("log_msg", vec![Arg::Str(text), Arg::Vector(values)]);
            }
            name if self.ir.architecture == Architecture::Psa
                && let Some(v) = self.psa_purpose(name, info, args) =>
            {
                return v;
            }
            name if self.ir.architecture.is_tofino()
                && let Some(v) = self.tofino_function(e, name, info, args) =>
            {
                return v;
            }
            other if self.foreign_externs => self.foreign(other.to_string(), None, info, args),
            other => {
                self.diags.unsupported_hint(
                    d.name.span,
                    format!("unknown extern function {other}"),
                    self.extern_hint(),
                );
            }
        }
        Val::Unit
    }

    /// Resubmits or recirculates the packet with the fields of this list.
    fn again(&mut self, e: &'a Expr, name: &str, list: u32) {
        let is_resubmit = name.starts_with("resubmit");
        self.only_in_egress(!is_resubmit, e.span, name);
        let op = if is_resubmit {
            "resubmit"
        } else {
            "recirculate"
        };
        self.primitive(op, vec![Arg::Ex(Ex::bit(list, 32))]);
    }

    /// The data that an extern works on, which the target wants as several fields.
    fn data(&mut self, info: &'a CallInfo, args: &'a [AstArg], i: usize) -> Val {
        let Some(e) = self.arg(info, args, i) else {
            return Val::Unit;
        };
        let data = self.eval(e);
        if matches!(data, Val::Scalar(_) | Val::Int(_)) {
            self.diags.unsupported_hint(
                e.span,
                "expected a list, a struct or a header",
                "enclose the value in braces",
            );
        }
        data
    }

    pub(super) fn digest(&mut self, e: &'a Expr, info: &'a CallInfo, args: &'a [AstArg]) {
        let receiver = self.input(info, args, 0);
        let data = self.arg(info, args, 1).map_or(Val::Unit, |x| self.eval(x));
        let ty = info
            .targs
            .last()
            .map_or(Type::Unknown, |(_, t)| self.subst(t));
        self.send_digest(e, receiver, &data, ty, None);
    }

    /// `Digest.pack` of PSA, for the instance with this name.
    pub(super) fn pack(
        &mut self,
        e: &'a Expr,
        info: &'a CallInfo,
        args: &'a [AstArg],
        object: usize,
    ) {
        let data = self.arg(info, args, 0).map_or(Val::Unit, |x| self.eval(x));
        let Object { name, targs, .. } = &self.ir.objects[object];
        let (name, ty) = (name.clone(), targs.first().cloned());
        let ty = ty.map_or(Type::Unknown, |t| self.subst(&t));
        self.send_digest(e, Ex::bit(0, 32), &data, ty, Some(name));
    }

    /// Sends a digest. Without a name, it is named after its type.
    fn send_digest(
        &mut self,
        e: &'a Expr,
        receiver: Ex,
        data: &Val,
        ty: Type,
        name: Option<String>,
    ) {
        if self.kind_of(&ty) == Some(crate::ast::CompositeKind::Header) {
            self.unsupported(
                e.span,
                "a digest cannot contain a header: use a struct or a list",
            );
        }
        // The target reads the fields when the pipeline is done: keep what they are now.
        let elements = self
            .leaves(data)
            .into_iter()
            .map(|x| {
                let tmp = self.scalar_variable("digest", x.ty());
                self.emit(StKind::Assign(tmp.clone(), x));
                tmp
            })
            .collect();
        let id = self.ir.digests.len() as u32 + 1;
        let name = name.unwrap_or_else(|| match &ty {
            Type::Named(..) => self.type_name(&ty),
            _ => {
                let unnamed = |d: &&Digest| !matches!(d.ty, Type::Named(..));
                format!("digest_{}", self.ir.digests.iter().filter(unnamed).count())
            }
        });
        self.ir.digests.push(Digest {
            id,
            name,
            elements,
            ty,
            span: e.span,
        });
        self.primitive(
            "generate_digest",
            vec![Arg::Ex(receiver), Arg::Ex(Ex::bit(id, 32))],
        );
    }

    pub(super) fn checksum(
        &mut self,
        e: &'a Expr,
        name: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) {
        self.only_in(&[Place::Checksum], e.span, name);
        let condition = self.input(info, args, 0);
        let data = self.data(info, args, 1);
        let target = self.input(info, args, 2);
        let algorithm = self.arg(info, args, 3);
        let algorithm = self.algorithm(algorithm);
        let inputs = self.leaves(&data);
        let is_computed = |v: &Ex| !matches!(v, Ex::Field { .. } | Ex::Const(..));
        if inputs.iter().any(is_computed) {
            let part = self
                .arg(info, args, 1)
                .and_then(|x| match (&x.kind, &data) {
                    (ExprKind::List { items, .. }, Val::Tuple(values)) => {
                        let computed = |v: &Val| self.leaves(v).iter().any(is_computed);
                        let i = values.iter().position(computed)?;
                        items.get(i)
                    }
                    _ => Some(x),
                });
            self.unsupported(
                part.map_or(e.span, |x| x.span),
                "the data of a checksum must be fields and constants on this target",
            );
        }
        if !matches!(target, Ex::Field { .. }) {
            self.unsupported(e.span, "the checksum must be a field on this target");
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

    pub(super) fn clone_packet(
        &mut self,
        e: &'a Expr,
        name: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) {
        let kind = self.input(info, args, 0);
        let session = self.input(info, args, 1);
        let op = match &kind {
            Ex::Const(v, _) => {
                let of_egress = v.to_u32() != Some(0);
                self.only_in_egress(of_egress, e.span, name);
                if of_egress {
                    "clone_egress_pkt_to_egress"
                } else {
                    "clone_ingress_pkt_to_egress"
                }
            }
            _ => {
                self.error(
                    e.span,
                    "the type of the clone must be known at compile time",
                );
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
    pub(super) fn field_list_argument(
        &mut self,
        info: &'a CallInfo,
        args: &'a [AstArg],
        i: usize,
    ) -> u32 {
        let index = match self.arg(info, args, i) {
            Some(x) => match self.number(x) {
                Some(n) => n,
                None => {
                    self.error(
                        x.span,
                        "the number of the field list must be known at compile time",
                    );
                    return 0;
                }
            },
            None => return 0,
        };
        let name = format!("field_list{index}");
        if let Some(l) = self.ir.field_lists.iter().find(|l| l.name == name) {
            return l.id;
        }
        self.diags.warn(
            Warning::Invalid,
            self.span,
            format!("no field of the user metadata is annotated with @field_list({index})"),
        );
        self.field_list(&name, Vec::new())
    }

    pub(super) fn ad_hoc_field_list(
        &mut self,
        info: &'a CallInfo,
        args: &'a [AstArg],
        i: usize,
    ) -> u32 {
        let data = self.arg(info, args, i).map_or(Val::Unit, |x| self.eval(x));
        let elements: Vec<Ex> = self
            .leaves(&data)
            .into_iter()
            .filter(|e| matches!(e, Ex::Field { .. }))
            .collect();
        let name = format!("fields_{}", self.ir.field_lists.len());
        self.field_list(&name, elements)
    }

    /// Id of a list of that name and content. Ids start at 1: the target takes 0 for "none".
    pub(super) fn field_list(&mut self, name: &str, elements: Vec<Ex>) -> u32 {
        if let Some(l) = self
            .ir
            .field_lists
            .iter()
            .find(|l| l.name == name && l.elements == elements)
        {
            return l.id;
        }
        let id = self.ir.field_lists.len() as u32 + 1;
        self.ir.field_lists.push(FieldList {
            id,
            name: name.into(),
            elements,
        });
        id
    }

    /// Drops the packet. A copy of the standard metadata is marked by its fields, so that it takes
    /// effect when the copy is copied back.
    fn mark_to_drop(&mut self, e: &'a Expr, info: &'a CallInfo, args: &'a [AstArg]) {
        let place = self.arg(info, args, 0).map(|x| self.eval(x));
        if place.is_none() {
            self.unsupported(e.span, "mark_to_drop() needs the standard metadata");
        }
        let member = |name: &str| place.as_ref().and_then(|p| p.member(name));
        let is_copy = matches!(
            member("egress_spec"),
            Some(Val::Scalar(Ex::Field { header, .. })) if header != STANDARD_METADATA
        );
        if !is_copy {
            let target = Arg::Header(HeaderRef::Static(STANDARD_METADATA.into()));
            self.primitive("mark_to_drop", vec![target]);
            return;
        }
        for (name, value) in [
            ("egress_spec", Ex::bit(DROP_PORT, 9)),
            ("mcast_grp", Ex::bit(0, 16)),
        ] {
            if let Some(field) = member(name) {
                self.assign(&field, Val::Scalar(value));
            }
        }
    }
}
