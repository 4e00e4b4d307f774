// SPDX-License-Identifier: Apache-2.0
//! The program as a whole: `main` and the blocks of the architecture.

use super::value::Val;
use super::{Lower, Place};
use crate::ast::{CompositeKind, Decl, DeclKind};
use crate::ir::{
    Architecture, Block, Ex, HeaderInstance, HeaderType, ObjectKind, SCALARS, STANDARD_METADATA,
    Scalar, St,
};
use crate::types::Type;

impl<'a> Lower<'a> {
    /// Lowers the program, which must be for the architecture `wanted`, if any.
    pub(super) fn program(&mut self, wanted: Option<&str>) {
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
        self.names.insert(SCALARS.into());
        self.names.insert(STANDARD_METADATA.into());
        let Type::Named(_, targs) = self.t.type_of(main.id) else {
            return;
        };
        let package_name = self.package_name(main);
        let Some(architecture) = self.architecture(main, package_name, wanted) else {
            return;
        };
        self.ir.architecture = architecture;
        self.ir.package = Some(main);
        self.enum_values();
        match (architecture, targs.as_slice()) {
            (Architecture::V1Model, [headers, meta]) => self.v1_switch(main, headers, meta),
            (Architecture::Psa, [ih, im, eh, em, others @ ..]) => {
                self.psa_switch(main, [ih, im, eh, em], others);
            }
            (Architecture::Tna | Architecture::T2na, types @ [_, _, _, _, ..]) => {
                self.tofino_switch(main, types);
            }
            _ => self.error(main.span, "this is not the architecture's package"),
        }
    }

    /// Returns the architecture of a package; `None`, after an error, if it is unknown or not the one `wanted`.
    fn architecture(
        &self,
        main: &Decl,
        package: &str,
        wanted: Option<&str>,
    ) -> Option<Architecture> {
        let architecture = match package {
            "V1Switch" => Architecture::V1Model,
            "PSA_Switch" => Architecture::Psa,
            "Switch" if self.declared(super::tna::GHOST.0).is_some() => Architecture::T2na,
            "Switch" | "MultiParserSwitch" if self.declared(super::tna::MARKER).is_some() => {
                Architecture::Tna
            }
            _ => {
                self.diags.error_hint(
                    main.span,
                    format!("unsupported package {package} of 'main'"),
                    "this compiler supports v1model, V1Switch(...) main; PSA, PSA_Switch(...) main; \
                     and TNA and T2NA, Switch(Pipeline(...)) main;",
                );
                return None;
            }
        };
        let name = architecture.name();
        if let Some(wanted) = wanted.filter(|w| *w != name) {
            self.diags.error_hint(
                main.span,
                format!("the program is for {name}, not for {wanted}"),
                format!("use --arch {name}, or no such option"),
            );
            return None;
        }
        Some(architecture)
    }

    /// Creates the instances outside the package.
    pub(super) fn other_instances(&mut self, main: &Decl) {
        for d in &self.t.program.decls {
            if matches!(d.kind, DeclKind::Instance { .. }) && d.id != main.id {
                self.instantiate_local(d);
            }
        }
    }

    /// Returns the blocks that the package gets as the parameters with these names; `None`, after an error, if one is
    /// missing.
    pub(super) fn package_blocks<const N: usize>(
        &mut self,
        main: &'a Decl,
        names: &[&str; N],
    ) -> Option<[usize; N]> {
        let values = self.package_arguments(main)?;
        let mut blocks = [0; N];
        for (i, name) in names.iter().enumerate() {
            match values.get(i) {
                Some(Val::Block(b)) => blocks[i] = *b,
                _ => {
                    self.missing_block(main, name);
                    return None;
                }
            }
        }
        Some(blocks)
    }

    /// Returns the arguments of `main`.
    pub(super) fn package_arguments(&mut self, main: &'a Decl) -> Option<Vec<Val>> {
        let DeclKind::Instance { args, .. } = &main.kind else {
            return None;
        };
        let info = self.t.calls.get(&main.id)?;
        Some(self.argument_values(info, args))
    }

    pub(super) fn missing_block(&self, main: &Decl, name: &str) {
        let package = self.package_name(main);
        self.error(main.span, format!("block '{name}' of {package} is missing"));
    }

    /// Returns the names of an enumeration's members.
    pub(super) fn member_names(&self, name: &str) -> Vec<String> {
        match self.declared(name).map(|d| &d.kind) {
            Some(DeclKind::Enum { members, .. }) => {
                members.iter().map(|m| m.name.name.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Creates an instance of a struct of the architecture, called `name`, in which packets carry metadata.
    pub(super) fn metadata_struct(&mut self, type_name: &str, name: &str) -> Val {
        let Some(d) = self.declared(type_name) else {
            return Val::Unit;
        };
        let ty = Type::Named(d.id, Vec::new());
        let mut fields = Vec::new();
        self.flat_fields(&ty, "", &mut fields);
        let members = self.fields_of(&ty).unwrap_or_default();
        let place = |(field, ty): &(String, Scalar)| {
            Val::Scalar(Ex::Field {
                header: name.into(),
                field: field.clone(),
                ty: *ty,
            })
        };
        let values = members.into_iter().zip(fields.iter().map(place));
        let value = Val::Struct(values.map(|((n, _), v)| (n, v)).collect());
        let storage = &mut self.ir.storage;
        let type_name = match name {
            STANDARD_METADATA => name,
            _ => type_name,
        };
        storage.header_types.push(HeaderType {
            name: type_name.into(),
            is_metadata: true,
            fields,
        });
        let header_type = storage.header_types.len() - 1;
        storage.headers.push(HeaderInstance {
            name: name.into(),
            header_type,
        });
        value
    }

    /// Returns the first declaration of the program with this name.
    pub(super) fn declared(&self, name: &str) -> Option<&'a Decl> {
        let mut decls = self.t.program.decls.iter();
        decls.find(|d| &*d.name.name == name)
    }

    fn package_name(&self, main: &Decl) -> &'a str {
        let Type::Named(package, _) = self.t.type_of(main.id) else {
            return "";
        };
        self.t.defs.get_decl(package).map_or("", |d| &d.name.name)
    }

    /// Returns true if the type consists only of headers.
    pub(super) fn holds_headers(&self, ty: &Type) -> bool {
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

    /// A direct meter that is read meters what matches its table's entries, and has one for each of them.
    pub(super) fn unattached_meters(&self) {
        for (i, o) in self.ir.objects.iter().enumerate() {
            let attached = self.ir.tables.iter().any(|t| t.meter == Some(i));
            if o.kind == ObjectKind::DirectMeter && o.meter_target.is_some() && !attached {
                self.diags.unsupported_hint(
                    o.span,
                    format!("direct meter '{}' does not belong to a table", o.name),
                    "name it in a table's property: meters = ...",
                );
            }
        }
    }

    /// Gives the parameters of a top-level block the shared storage.
    pub(super) fn bind_top(&mut self, block: usize, values: &[Val]) {
        let d = self.blocks[block].decl;
        let frame = self.blocks[block].frame.clone();
        for (p, v) in d.kind.params().iter().zip(values) {
            frame.set(p.id, v.clone());
        }
    }

    pub(super) fn control(&mut self, block: usize, values: &[Val], place: Place) -> Vec<St> {
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

    /// Lowers a pipeline or a deparser that the target calls `name`.
    pub(super) fn block(
        &mut self,
        name: &str,
        block: usize,
        values: &[Val],
        place: Place,
    ) -> Block {
        Block {
            name: name.to_owned(),
            body: self.control(block, values, place),
            span: self.blocks[block].decl.name.span,
        }
    }

    /// Headers are named as in the struct, without the parameter's name.
    pub(super) fn allocate_headers(&mut self, ty: &Type) -> Val {
        for (n, _) in self.fields_of(ty).unwrap_or_default() {
            self.names.remove(&*n);
        }
        let name = match self.kind_of(ty) {
            Some(CompositeKind::Struct) => "",
            _ => "header",
        };
        self.allocate(ty, name)
    }

    /// Keeps the names of headers from being taken by metadata.
    pub(super) fn reserve_header_names(&mut self, ty: &Type) {
        for (n, _) in self.fields_of(ty).unwrap_or_default() {
            self.names.insert(n.to_string());
        }
    }
}
