// SPDX-License-Identifier: Apache-2.0
//! The program as a whole: `main` and the blocks of the architecture.

use std::collections::BTreeMap;

use num_traits::ToPrimitive;

use super::value::Val;
use super::{Lower, Place};
use crate::annotation::string_annotation;
use crate::ast::{AnnotationBody, Arg, CompositeKind, Decl, DeclKind, Field, Param};
use crate::ir::{Ex, HeaderInstance, HeaderType, STANDARD_METADATA, Target};
use crate::types::Type;

/// Parameters of V1Switch, in order.
const BLOCKS: [&str; 6] = ["p", "vr", "ig", "eg", "ck", "dep"];

impl<'a> Lower<'a> {
    pub(super) fn program(&mut self) {
        self.ir.errors = self.t.errors.iter().map(|n| n.to_string()).collect();
        let program = self.t.program;
        let Some(main) = program
            .decls
            .iter()
            .rfind(|d| &*d.name.name == "main" && matches!(d.kind, DeclKind::Instance { .. }))
        else {
            self.diags.error_global(
                "the program has no 'main'",
                Some("end it with V1Switch(MyParser(), MyVerifyChecksum(), ...) main;".into()),
            );
            return;
        };
        // The storage that all blocks share gets its plain names before anything else does.
        self.names.insert(crate::ir::SCALARS.into());
        self.names.insert(STANDARD_METADATA.into());
        let Type::Named(package, targs) = self.t.type_of(main.id) else {
            return;
        };
        let package_name = self.t.defs.get_decl(package).map_or("", |d| &d.name.name);
        if package_name != "V1Switch" || targs.len() != 2 {
            self.diags.error_hint(
                main.span,
                format!("unsupported package {package_name} of 'main'"),
                "this compiler supports the v1model architecture: V1Switch(...) main;",
            );
            return;
        }
        self.ir.package = Some(main);
        self.enum_values();
        self.reserve_header_names(&targs[0]);
        let meta = self.allocate(&targs[1], "userMetadata");
        let headers = self.allocate_headers(&targs[0]);
        let standard = self.standard_metadata();
        self.annotated_field_lists(&targs[1], &meta);
        for d in &program.decls {
            if matches!(d.kind, DeclKind::Instance { .. }) && d.id != main.id {
                self.instantiate_local(d);
            }
        }
        let DeclKind::Instance { args, .. } = &main.kind else {
            return;
        };
        let Some(info) = self.t.calls.get(&main.id) else {
            return;
        };
        let mut blocks = Vec::new();
        for (i, name) in BLOCKS.iter().enumerate() {
            let e = info
                .args
                .get(i)
                .copied()
                .flatten()
                .and_then(|k: usize| args.get(k))
                .map(|a: &Arg| &a.expr);
            match e.map(|e| self.eval(e)) {
                Some(Val::Block(b)) => blocks.push(b),
                _ => {
                    self.error(main.span, format!("block '{name}' of V1Switch is missing"));
                    return;
                }
            }
        }
        self.ir.blocks = blocks.iter().map(|b| self.blocks[*b].decl).collect();
        if !(self.kind_of(&targs[0]) == Some(CompositeKind::Struct)
            && self.holds_headers(&targs[0]))
        {
            let at = match &self.blocks[blocks[0]].decl.kind {
                DeclKind::Parser(p) => p.params.get(1).map(|p| p.ty.span),
                _ => None,
            };
            self.unsupported(
                at.unwrap_or(main.span),
                "the headers must be a struct of headers, header unions and stacks",
            );
        }
        self.run_blocks(&blocks, &headers, &meta, &standard);
    }

    /// Returns true if the type consists only of headers.
    fn holds_headers(&self, ty: &Type) -> bool {
        match ty {
            Type::Stack(..) => true,
            _ => match self.kind_of(ty) {
                Some(CompositeKind::Struct) => {
                    let fields = self.fields_of(ty).unwrap_or_default();
                    fields.iter().all(|(_, t)| self.holds_headers(t))
                }
                kind => kind.is_some(),
            },
        }
    }

    fn enum_values(&mut self) {
        for d in &self.t.program.decls {
            let DeclKind::Enum {
                underlying: Some(u),
                members,
            } = &d.kind
            else {
                continue;
            };
            let ty = self.type_of(u.id);
            for m in members {
                let Some(e) = &m.value else { continue };
                let v = self.eval(e);
                if let Val::Scalar(Ex::Const(v, s)) = self.convert(v, &ty) {
                    let unsigned = crate::check::wrap(&v, &Type::Bit(s.width()));
                    self.ir.enum_values.insert(m.id, unsigned);
                }
            }
        }
    }

    fn run_blocks(&mut self, blocks: &[usize], headers: &Val, meta: &Val, standard: &Val) {
        let all = [headers.clone(), meta.clone(), standard.clone()];
        let with_packet: Vec<Val> = std::iter::once(Val::Unit)
            .chain(all.iter().cloned())
            .collect();
        self.bind_top(blocks[0], &with_packet);
        self.ir.start_state = self.parser_states(blocks[0], "", Target::Accept);
        self.ir.verify = self.control(blocks[1], &all[..2], Place::Checksum);
        self.ir.ingress = self.control(blocks[2], &all, Place::Control);
        self.in_egress = true;
        self.ir.egress = self.control(blocks[3], &all, Place::Control);
        self.in_egress = false;
        self.ir.update = self.control(blocks[4], &all[..2], Place::Checksum);
        self.ir.deparser = self.control(blocks[5], &with_packet[..2], Place::Deparser);
        self.unattached_meters();
        self.collect_visible(blocks);
    }

    /// A direct meter that is read meters what matches its table's entries, and has one for each of them.
    fn unattached_meters(&self) {
        for (i, o) in self.ir.objects.iter().enumerate() {
            let attached = self.ir.tables.iter().any(|t| t.meter == Some(i));
            if o.extern_name == "direct_meter" && o.meter_target.is_some() && !attached {
                self.diags.unsupported_hint(
                    o.span,
                    format!("direct meter '{}' does not belong to a table", o.name),
                    "name it in a table's property: meters = ...",
                );
            }
        }
    }

    /// Gives the parameters of a top-level block the shared storage.
    fn bind_top(&mut self, block: usize, values: &[Val]) {
        let d = self.blocks[block].decl;
        let frame = self.blocks[block].frame.clone();
        for (p, v) in params(d).iter().zip(values) {
            frame.set(p.id, v.clone());
        }
    }

    fn control(&mut self, block: usize, values: &[Val], place: Place) -> Vec<crate::ir::St> {
        self.bind_top(block, values);
        let d = self.blocks[block].decl;
        let DeclKind::Control(c) = &d.kind else {
            return Vec::new();
        };
        let frame = self.blocks[block].frame.clone();
        self.place = place;
        let stmts = self.in_frame(frame, |s| {
            s.collect(|s| {
                s.start_locals(&c.locals);
                s.body_with_return(&c.body, None);
            })
        });
        self.place = Place::Control;
        stmts
    }

    /// Headers are named as in the struct, without the parameter's name.
    fn allocate_headers(&mut self, ty: &Type) -> Val {
        for (n, _) in self.fields_of(ty).unwrap_or_default() {
            self.names.remove(&*n);
        }
        self.allocate(ty, "")
    }

    /// Keeps the names of headers from being taken by metadata.
    fn reserve_header_names(&mut self, ty: &Type) {
        for (n, _) in self.fields_of(ty).unwrap_or_default() {
            self.names.insert(n.to_string());
        }
    }

    fn standard_metadata(&mut self) -> Val {
        let decl = self
            .t
            .program
            .decls
            .iter()
            .find(|d| &*d.name.name == "standard_metadata_t");
        let Some(d) = decl else { return Val::Unit };
        let ty = Type::Named(d.id, Vec::new());
        let mut fields = Vec::new();
        self.flat_fields(&ty, "", &mut fields);
        let values = self
            .fields_of(&ty)
            .unwrap_or_default()
            .into_iter()
            .zip(&fields)
            .map(|((n, _), (field, ty))| {
                (
                    n,
                    Val::Scalar(Ex::Field {
                        header: STANDARD_METADATA.into(),
                        field: field.clone(),
                        ty: *ty,
                    }),
                )
            })
            .collect();
        if let DeclKind::Composite {
            fields: declared, ..
        } = &d.kind
        {
            let alias = |f: &Field| {
                Some((
                    string_annotation(&f.annos, "alias")?,
                    f.name.name.to_string(),
                ))
            };
            self.ir.aliases = declared.iter().filter_map(alias).collect();
        }
        let storage = &mut self.ir.storage;
        storage.header_types.push(HeaderType {
            name: STANDARD_METADATA.into(),
            fields,
        });
        let header_type = storage.header_types.len() - 1;
        storage.headers.push(HeaderInstance {
            name: STANDARD_METADATA.into(),
            header_type,
        });
        Val::Struct(values)
    }

    /// Fields of the user metadata that are annotated `@field_list(n, ...)`.
    fn annotated_field_lists(&mut self, ty: &Type, meta: &Val) {
        let mut lists: BTreeMap<u32, Vec<Ex>> = BTreeMap::new();
        self.collect_field_lists(ty, meta, &[], &mut lists);
        for (n, elements) in lists {
            self.field_list(&format!("field_list{n}"), elements);
        }
    }

    fn collect_field_lists(
        &mut self,
        ty: &Type,
        v: &Val,
        inherited: &[u32],
        lists: &mut BTreeMap<u32, Vec<Ex>>,
    ) {
        let Type::Named(id, _) = ty else { return };
        let Some(DeclKind::Composite { fields, .. }) = self.t.defs.get_decl(*id).map(|d| &d.kind)
        else {
            return;
        };
        let types = self.fields_of(ty).unwrap_or_default();
        for (f, (_, t)) in fields.iter().zip(types) {
            let mut numbers = inherited.to_vec();
            numbers.extend(self.field_list_numbers(f));
            match v.member(&f.name.name) {
                Some(Val::Scalar(e)) => numbers
                    .iter()
                    .for_each(|n| lists.entry(*n).or_default().push(e.clone())),
                Some(inner) => self.collect_field_lists(&t, &inner, &numbers, lists),
                None => {}
            }
        }
    }

    fn field_list_numbers(&mut self, f: &'a Field) -> Vec<u32> {
        let mut out = Vec::new();
        for a in f.annos.iter().filter(|a| &*a.name.name == "field_list") {
            let exprs = match &a.body {
                AnnotationBody::Tokens { exprs, .. } => exprs,
                AnnotationBody::List(exprs) => exprs,
                _ => continue,
            };
            for e in exprs {
                // Annotations are not type-checked: constants are looked up by name.
                let n = match &e.kind {
                    crate::ast::ExprKind::Int { value, .. } => value.to_u32(),
                    crate::ast::ExprKind::Name { name, .. } => self.named_constant(name),
                    crate::ast::ExprKind::Member(base, member) => match &base.kind {
                        crate::ast::ExprKind::Name { name, .. } => {
                            self.enum_constant(name, &member.name)
                        }
                        _ => None,
                    },
                    _ => None,
                };
                match n {
                    Some(n) => out.push(n),
                    None => self.error(
                        e.span,
                        "the number of a field list must be known at compile time",
                    ),
                }
            }
        }
        out
    }

    fn enum_constant(&self, name: &str, member: &str) -> Option<u32> {
        let d = self
            .t
            .program
            .decls
            .iter()
            .find(|d| &*d.name.name == name)?;
        let DeclKind::Enum { members, .. } = &d.kind else {
            return None;
        };
        let m = members.iter().find(|m| &*m.name.name == member)?;
        self.ir.enum_values.get(&m.id)?.to_u32()
    }

    fn named_constant(&mut self, name: &str) -> Option<u32> {
        let d = self
            .t
            .program
            .decls
            .iter()
            .find(|d| &*d.name.name == name)?;
        let DeclKind::Const { init, .. } = &d.kind else {
            return None;
        };
        self.number(init)?.to_u32()
    }
}

fn params(d: &Decl) -> &[Param] {
    match &d.kind {
        DeclKind::Control(c) => &c.params,
        DeclKind::Parser(p) => &p.params,
        _ => &[],
    }
}
