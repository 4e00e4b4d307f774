// SPDX-License-Identifier: Apache-2.0
//! Instances: of externs, controls and parsers.

use std::rc::Rc;

use super::frame::Frame;
use super::value::Val;
use super::{BlockInstance, Implementation, Lower, MAX_INLINE_DEPTH};
use crate::annotation::{match_annotation, name_annotation};
use crate::ast::{Annotation, Arg, Decl, DeclKind, Expr, NodeId, Param};
use crate::diag::{Span, Warning};
use crate::ir::{Ex, Object, ObjectArg, ValueSet};
use crate::types::{CallInfo, Type};

impl<'a> Lower<'a> {
    /// The name of something declared in the current frame, as the control plane sees it.
    pub(super) fn control_name(&self, name: &str, annos: &[Annotation]) -> String {
        let local = name_annotation(annos).unwrap_or_else(|| name.to_string());
        self.prefixed(&local)
    }

    fn prefixed(&self, local: &str) -> String {
        match local.strip_prefix('.') {
            Some(absolute) => absolute.to_string(),
            None if self.frame.prefix.is_empty() => local.to_string(),
            None => format!("{}.{local}", self.frame.prefix),
        }
    }

    /// A constructor call inside an expression.
    pub(super) fn construct(&mut self, e: &'a Expr, info: &'a CallInfo, args: &'a [Arg]) -> Val {
        let ty = self.type_of(e.id);
        let Type::Named(id, targs) = &ty else {
            return Val::Unit;
        };
        let Some(d) = self.t.defs.get_decl(*id) else {
            return Val::Unit;
        };
        match &d.kind {
            DeclKind::Extern { .. } => {
                self.new_object(d, targs.clone(), info, args, String::new(), &[], e.span)
            }
            DeclKind::Control(_) | DeclKind::Parser(_) => {
                // The blocks of the package; their names are those of their types.
                let name = self.control_name(&d.name.name, &[]);
                let values = self.constructor_args(d, info, args);
                Val::Block(self.new_block(d, targs, values, name))
            }
            _ => Val::Package {
                args: self.argument_values(info, args),
                decl: None,
            },
        }
    }

    /// An instance for `Type.apply(...)`.
    pub(super) fn anonymous_block(
        &mut self,
        e: &'a Expr,
        decl: NodeId,
        info: &'a CallInfo,
    ) -> Option<usize> {
        // One instance for each place in the program and each instance around it.
        if let Some(Val::Block(b)) = self.frame.find(e.id) {
            return Some(b);
        }
        let d = self.t.defs.get_decl(decl)?;
        let name = self.control_name(&d.name.name, &d.annos);
        let targs: Vec<Type> = info.targs.iter().map(|(_, t)| self.subst(t)).collect();
        let b = self.new_block(d, &targs, Vec::new(), name);
        self.frame.set(e.id, Val::Block(b));
        Some(b)
    }

    fn constructor_args(&mut self, d: &'a Decl, info: &CallInfo, args: &'a [Arg]) -> Vec<Val> {
        let params: &'a [Param] = match &d.kind {
            DeclKind::Control(c) => &c.ctor_params,
            DeclKind::Parser(p) => &p.ctor_params,
            _ => &[],
        };
        self.values_for(params, info, args)
    }

    /// The values of a package's arguments.
    pub(super) fn argument_values(&mut self, info: &CallInfo, args: &'a [Arg]) -> Vec<Val> {
        let values = info.args.iter().map(|k| match k.and_then(|k| args.get(k)) {
            Some(arg) => self.eval(&arg.expr),
            None => Val::Unit,
        });
        values.collect()
    }

    fn values_for(&mut self, params: &'a [Param], info: &CallInfo, args: &'a [Arg]) -> Vec<Val> {
        params
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let e = match info.args.get(i).copied().flatten() {
                    Some(k) => args.get(k).map(|a| &a.expr),
                    None => p.default.as_ref(),
                };
                let Some(e) = e else { return Val::Unit };
                let v = self.eval(e);
                let ty = self.t.type_of(p.ty.id).substitute(&|v| {
                    info.targs
                        .iter()
                        .find(|(q, _)| *q == v)
                        .map(|(_, t)| t.clone())
                });
                let ty = self.subst(&ty);
                self.convert(v, &ty)
            })
            .collect()
    }

    /// A declaration `Type(args) name;`.
    pub(super) fn instantiate_local(&mut self, d: &'a Decl) {
        let DeclKind::Instance { args, body, .. } = &d.kind else {
            return;
        };
        let ty = self.type_of(d.id);
        let Type::Named(id, targs) = &ty else { return };
        let (Some(type_decl), Some(info)) = (self.t.defs.get_decl(*id), self.t.calls.get(&d.id))
        else {
            return;
        };
        let name = self.control_name(&d.name.name, &d.annos);
        let v = match &type_decl.kind {
            DeclKind::Extern { .. } => {
                self.new_object(type_decl, targs.clone(), info, args, name, &d.annos, d.span)
            }
            DeclKind::Control(_) | DeclKind::Parser(_) => {
                let values = self.constructor_args(type_decl, info, args);
                Val::Block(self.new_block(type_decl, targs, values, name))
            }
            _ => Val::Package {
                args: self.package_values(d, type_decl, info, args),
                decl: Some(d.id),
            },
        };
        if let (Val::Object(object), Some(methods)) = (&v, body) {
            let frame = self.frame.clone();
            let implementation = Implementation { methods, frame };
            self.implementations.insert(*object, implementation);
        }
        self.frame.set(d.id, v);
    }

    #[allow(clippy::too_many_arguments)]
    fn new_object(
        &mut self,
        d: &'a Decl,
        targs: Vec<Type>,
        info: &CallInfo,
        args: &'a [Arg],
        name: String,
        annos: &'a [Annotation],
        span: Span,
    ) -> Val {
        let DeclKind::Extern { methods, .. } = &d.kind else {
            return Val::Unit;
        };
        let ctor = methods
            .iter()
            .filter(|m| m.is_constructor)
            .find(|m| m.sig.params.len() == info.args.len());
        let mut list = Vec::new();
        let mut initial = None;
        if let Some(m) = ctor {
            let values = self.values_for(&m.sig.params, info, args);
            for (p, v) in m.sig.params.iter().zip(values) {
                if &*p.name.name == "initial_value" {
                    initial = Some(v.clone());
                }
                list.push(self.object_arg(p, v));
            }
        }
        let kind = self.ir.architecture.object_kind(&d.name.name);
        let cells = self.register_cells(kind, &name, &targs, initial, span);
        self.ir.has_type_info |= !name.is_empty();
        for t in &targs {
            if let (Type::Named(id, _), Some(s)) = (t, self.scalar_of(t)) {
                self.ir.named_widths.insert(*id, s.width());
            }
        }
        self.ir.objects.push(Object {
            kind,
            extern_name: d.name.name.to_string(),
            name,
            args: list,
            params: ctor.map_or_else(Vec::new, |m| {
                m.sig
                    .params
                    .iter()
                    .map(|p| p.name.name.to_string())
                    .collect()
            }),
            targs,
            annos,
            span,
            meter_target: None,
            cells,
        });
        Val::Object(self.ir.objects.len() - 1)
    }

    fn object_arg(&mut self, p: &Param, v: Val) -> ObjectArg {
        let n = match v {
            Val::Int(n) | Val::Scalar(Ex::Const(n, _)) => n,
            Val::Object(o) => return ObjectArg::Object(o),
            Val::Struct(_) | Val::Tuple(_) => {
                let parts = self.leaves(&v).into_iter();
                let numbers = parts.filter_map(|e| match e {
                    Ex::Const(n, _) => Some(n),
                    _ => None,
                });
                return ObjectArg::List(numbers.collect());
            }
            _ => return ObjectArg::Other,
        };
        match self.enum_member(&self.t.type_of(p.ty.id), &n) {
            Some(member) => ObjectArg::Enum(member),
            None => ObjectArg::Int(n),
        }
    }

    /// Name of the member of an enum without underlying type that the number stands for.
    pub(super) fn enum_member(&self, ty: &Type, n: &num_bigint::BigInt) -> Option<String> {
        use num_traits::ToPrimitive;
        let Type::Named(id, _) = ty else { return None };
        let DeclKind::Enum {
            underlying: None,
            members,
        } = &self.t.defs.get_decl(*id)?.kind
        else {
            return None;
        };
        Some(members.get(n.to_usize()?)?.name.name.to_string())
    }

    /// Instantiates a control or parser, with all that is declared inside.
    pub(super) fn new_block(
        &mut self,
        d: &'a Decl,
        targs: &[Type],
        args: Vec<Val>,
        name: String,
    ) -> usize {
        let mut root = self.frame.clone();
        while let Some(p) = &root.parent {
            root = p.clone();
        }
        let index = self.blocks.len();
        let frame = Rc::new(Frame {
            prefix: name.clone(),
            block: Some(index),
            ..Frame::child(&root)
        });
        self.blocks.push(BlockInstance {
            decl: d,
            frame: frame.clone(),
            name,
            bound: None,
            applied: false,
        });
        if self.depth > MAX_INLINE_DEPTH {
            self.error(d.name.span, format!("'{}' contains itself", d.name.name));
            return index;
        }
        self.depth += 1;
        let (tparams, ctor_params, locals) = match &d.kind {
            DeclKind::Control(c) => (&c.tparams, &c.ctor_params, &c.locals),
            DeclKind::Parser(p) => (&p.tparams, &p.ctor_params, &p.locals),
            _ => return index,
        };
        for (p, t) in tparams.iter().zip(targs) {
            frame.types.borrow_mut().insert(p.id, t.clone());
        }
        for (p, v) in ctor_params.iter().zip(args) {
            frame.set(p.id, v);
        }
        self.in_frame(frame, |s| {
            for l in locals {
                s.local_object(l);
            }
        });
        self.depth -= 1;
        index
    }

    fn local_object(&mut self, l: &'a Decl) {
        match &l.kind {
            DeclKind::Const { ty, init } => {
                let v = self.eval(init);
                let ty = self.type_of(ty.id);
                let v = self.convert(v, &ty);
                self.frame.set(l.id, v);
            }
            DeclKind::Var { ty, .. } => {
                let ty = self.type_of(ty.id);
                let name = self.local_name(l);
                let place = self.allocate(&ty, &name);
                self.frame.set(l.id, place);
            }
            DeclKind::Instance { .. } => self.instantiate_local(l),
            DeclKind::ValueSet { ty, size } => {
                let ty = self.type_of(ty.id);
                let mut fields = Vec::new();
                match self.scalar_of(&ty) {
                    Some(s) => fields.push((String::new(), s)),
                    None => match &ty {
                        Type::Tuple(items) => {
                            fields.extend(
                                items
                                    .iter()
                                    .filter_map(|t| self.scalar_of(t))
                                    .map(|s| (String::new(), s)),
                            );
                        }
                        _ => self.flat_fields(&ty, "", &mut fields),
                    },
                }
                self.matches_exactly(&ty);
                let size = self.number(size).unwrap_or_default();
                let name = self.control_name(&l.name.name, &l.annos);
                self.ir.value_sets.push(ValueSet {
                    name,
                    size,
                    ty,
                    fields,
                    decl: l,
                });
                self.frame
                    .set(l.id, Val::ValueSet(self.ir.value_sets.len() - 1));
            }
            _ => {}
        }
    }

    /// Warns of fields of a value set's type that want more than the target has.
    fn matches_exactly(&self, ty: &Type) {
        let Type::Named(id, _) = ty else { return };
        let Some(DeclKind::Composite { fields, .. }) = self.t.defs.get_decl(*id).map(|d| &d.kind)
        else {
            return;
        };
        for f in fields {
            if match_annotation(&f.annos).is_some_and(|kind| kind != "exact") {
                self.diags.warn_hint(
                    Warning::Unsupported,
                    f.name.span,
                    format!(
                        "the target supports only exact match for '{}', as for every field of a value set",
                        f.name.name
                    ),
                    "remove the annotation",
                );
            }
        }
    }
}
