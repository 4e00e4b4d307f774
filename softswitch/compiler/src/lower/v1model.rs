// SPDX-License-Identifier: Apache-2.0
//! The package V1Switch of v1model.

use std::collections::BTreeMap;

use num_traits::ToPrimitive;

use super::value::Val;
use super::{Lower, Place};
use crate::annotation::string_annotation;
use crate::ast::{AnnotationBody, CompositeKind, Decl, DeclKind, Field};
use crate::ir::{Ex, Parser, STANDARD_METADATA, Target};
use crate::types::Type;

/// Parameters of V1Switch, in order.
const BLOCKS: [&str; 6] = ["p", "vr", "ig", "eg", "ck", "dep"];

/// Indices of the pipelines.
pub(super) const INGRESS: usize = 0;
pub(super) const EGRESS: usize = 1;

impl<'a> Lower<'a> {
    /// Lowers the blocks of `main` for these types of headers and metadata.
    pub(super) fn v1_switch(&mut self, main: &'a Decl, headers: &Type, meta: &Type) {
        self.reserve_header_names(headers);
        let meta_value = self.allocate(meta, "userMetadata");
        let header_value = self.allocate_headers(headers);
        let standard = self.standard_metadata();
        self.annotated_field_lists(meta, &meta_value);
        self.other_instances(main);
        let Some(blocks) = self.package_blocks(main, &BLOCKS) else {
            return;
        };
        if !(self.kind_of(headers) == Some(CompositeKind::Struct) && self.holds_headers(headers)) {
            let at = match &self.blocks[blocks[0]].decl.kind {
                DeclKind::Parser(p) => p.params.get(1).map(|p| p.ty.span),
                _ => None,
            };
            self.unsupported(
                at.unwrap_or(main.span),
                "the headers must be a struct of headers, header unions and stacks",
            );
        }
        self.run_blocks(blocks, &header_value, &meta_value, &standard);
    }

    fn run_blocks(
        &mut self,
        blocks: [usize; BLOCKS.len()],
        headers: &Val,
        meta: &Val,
        standard: &Val,
    ) {
        let [parser, verify, ingress, egress, update, deparser] = blocks;
        let all = [headers.clone(), meta.clone(), standard.clone()];
        let with_packet: Vec<Val> = std::iter::once(Val::Unit)
            .chain(all.iter().cloned())
            .collect();
        self.bind_top(parser, &with_packet);
        self.ir.parsers = vec![Parser {
            name: "parser".to_owned(),
            start_state: self.parser_states(parser, "", Target::Accept),
        }];
        self.ir.verify = self.control(verify, &all[..2], Place::Checksum);
        let ingress = self.block("ingress", ingress, &all, Place::Control);
        self.pipeline = EGRESS;
        let egress = self.block("egress", egress, &all, Place::Control);
        self.pipeline = INGRESS;
        self.ir.pipelines = vec![ingress, egress];
        self.ir.update = self.control(update, &all[..2], Place::Checksum);
        let deparser = self.block("deparser", deparser, &with_packet[..2], Place::Deparser);
        self.ir.deparsers = vec![deparser];
        self.unattached_meters();
        self.collect_visible(&blocks);
    }

    fn standard_metadata(&mut self) -> Val {
        let value = self.metadata_struct("standard_metadata_t", STANDARD_METADATA);
        if let Some(d) = self.declared("standard_metadata_t")
            && let DeclKind::Composite { fields, .. } = &d.kind
        {
            let alias = |f: &Field| {
                Some((
                    string_annotation(&f.annos, "alias")?,
                    f.name.name.to_string(),
                ))
            };
            self.ir.aliases = fields.iter().filter_map(alias).collect();
        }
        value
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
        let DeclKind::Enum { members, .. } = &self.declared(name)?.kind else {
            return None;
        };
        let m = members.iter().find(|m| &*m.name.name == member)?;
        self.ir.enum_values.get(&m.id)?.to_u32()
    }

    fn named_constant(&mut self, name: &str) -> Option<u32> {
        let DeclKind::Const { init, .. } = &self.declared(name)?.kind else {
            return None;
        };
        self.number(init)?.to_u32()
    }
}
