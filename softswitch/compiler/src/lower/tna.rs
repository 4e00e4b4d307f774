// SPDX-License-Identifier: Apache-2.0
//! The package Switch of the Tofino Native Architecture, for Tofino 1 (TNA) and Tofino 2 (T2NA).

use std::collections::HashMap;

use num_traits::ToPrimitive;

use super::tna_parsers::{GRESSES, PortParser};
use super::tna_pipelines::{BLOCKS, GressBlocks, Pipeline, qualified};
use super::value::Val;
use super::{Lower, Place};
use crate::ast::{Annotation, CompositeKind, Decl, DeclKind, NodeId};
use crate::ir::{Ex, PortMetadata};
use crate::types::Type;

/// Type parameters of a pipeline: the headers and metadata of ingress, and those of egress.
const PIPELINE_TYPES: usize = 4;

/// A type of intrinsic metadata, and the target's name for its instance.
type Intrinsic = (&'static str, &'static str);

const INTRINSIC: [Intrinsic; 8] = [
    ("ingress_intrinsic_metadata_t", "ig_intr_md"),
    (
        "ingress_intrinsic_metadata_from_parser_t",
        "ig_intr_md_from_prsr",
    ),
    (
        "ingress_intrinsic_metadata_for_deparser_t",
        "ig_intr_md_for_dprsr",
    ),
    (MARKER, "ig_intr_md_for_tm"),
    ("egress_intrinsic_metadata_t", "eg_intr_md"),
    (
        "egress_intrinsic_metadata_from_parser_t",
        "eg_intr_md_from_prsr",
    ),
    (
        "egress_intrinsic_metadata_for_deparser_t",
        "eg_intr_md_for_dprsr",
    ),
    (
        "egress_intrinsic_metadata_for_output_port_t",
        "eg_intr_md_for_oport",
    ),
];

/// The type whose declaration tells TNA and T2NA from other architectures with a package Switch.
pub(super) const MARKER: &str = "ingress_intrinsic_metadata_for_tm_t";

/// Metadata of the ghost thread, which only T2NA declares.
pub(super) const GHOST: Intrinsic = ("ghost_intrinsic_metadata_t", "gh_intr_md");

/// Maximum number of bits of port metadata that the control plane sets. Tofino 2 has 192 bits in front of each packet, of
/// which the last 64 are reserved.
const MAX_PORT_METADATA_BITS: u32 = 128;

/// State of the lowering of TNA's externs.
#[derive(Default)]
pub(super) struct State {
    /// Intrinsic metadata by the declaration of its type.
    metadata: HashMap<NodeId, Val>,
    /// Storage of headers and of metadata, by its type.
    storage: [Vec<(Type, Val)>; 2],
    /// Variables of parser counters, by the object.
    pub counters: HashMap<usize, Ex>,
    /// Variables that tell whether the program set a selector of the deparser, by its header and field.
    pub selections: HashMap<(String, String), Ex>,
    /// [`crate::ir::RegisterAction::has_special_units`] of the register action being lowered.
    pub has_special_units: bool,
}

/// Storage of one gress.
#[derive(Clone)]
struct Gress {
    headers: Val,
    metadata: Val,
}

impl<'a> Lower<'a> {
    /// Lowers the blocks of `main` for the types of its pipelines' headers and metadata: of ingress and of egress.
    pub(super) fn tofino_switch(&mut self, main: &'a Decl, types: &[Type]) {
        for intrinsic in INTRINSIC {
            self.intrinsic_metadata(intrinsic);
        }
        let first = self.gresses(&types[..PIPELINE_TYPES], "");
        self.other_instances(main);
        let Some(pipelines) = self.tofino_pipelines(main) else {
            return;
        };
        let mut blocks = Vec::new();
        for (number, pipeline) in pipelines.iter().enumerate() {
            let types = types[PIPELINE_TYPES * pipeline.position..].get(..PIPELINE_TYPES);
            let [ingress, egress] = match (number, types) {
                (0, _) | (_, None) => first.clone(),
                (_, Some(types)) => self.gresses(types, &pipeline.prefix),
            };
            let prefix = &pipeline.prefix;
            let storage = [ingress, egress];
            for (gress, (gress_blocks, storage)) in
                pipeline.gresses.iter().zip(&storage).enumerate()
            {
                self.tofino_gress(GRESSES * number + gress, prefix, gress_blocks, storage);
                blocks.extend(gress_blocks.all());
            }
        }
        for Pipeline { prefix, ghost, .. } in &pipelines {
            if let Some(ghost) = *ghost {
                self.ghost(prefix, ghost);
                blocks.push(ghost);
            }
        }
        self.pipeline = 0;
        self.check_direct_calls("counters, meters, registers or filters");
        self.unread_meters();
        self.unattached_meters();
        self.collect_visible(&blocks);
    }

    /// Returns the storage of both gresses of a pipeline. Only bytes pass from one gress to another, so all can share what
    /// has the same type.
    fn gresses(&mut self, types: &[Type], prefix: &str) -> [Gress; 2] {
        let name = |name| qualified(prefix, name);
        let names = [
            (prefix.to_owned(), name("userMetadata")),
            (name("egress"), name("egressMetadata")),
        ];
        let mut gress = |types: &[Type], (headers, metadata): &(String, String)| Gress {
            headers: self.shared_storage(0, &types[0], |s, ty| s.gress_headers(ty, headers)),
            metadata: self.shared_storage(1, &types[1], |s, ty| s.allocate(ty, metadata)),
        };
        let (ingress, egress) = types.split_at(2);
        [gress(ingress, &names[0]), gress(egress, &names[1])]
    }

    /// Returns the storage of a type: for headers (0) or metadata (1).
    fn shared_storage(
        &mut self,
        kind: usize,
        ty: &Type,
        allocate: impl FnOnce(&mut Self, &Type) -> Val,
    ) -> Val {
        let known = self.tofino.storage[kind].iter().find(|(t, _)| t == ty);
        if let Some((_, value)) = known {
            return value.clone();
        }
        let value = allocate(self, ty);
        self.tofino.storage[kind].push((ty.clone(), value.clone()));
        value
    }

    /// Allocates the headers of a gress, whose type may be any.
    fn gress_headers(&mut self, ty: &Type, prefix: &str) -> Val {
        let name = match self.kind_of(ty) {
            Some(CompositeKind::Struct) => prefix,
            _ if prefix.is_empty() => "header",
            _ => prefix,
        };
        self.allocate(ty, name)
    }

    /// Creates the instance of a type of intrinsic metadata, if the architecture has it.
    fn intrinsic_metadata(&mut self, (type_name, name): Intrinsic) {
        let Some(d) = self.declared(type_name) else {
            return;
        };
        let ty = Type::Named(d.id, Vec::new());
        let value = match self.kind_of(&ty) {
            Some(CompositeKind::Header) => self.allocate(&ty, name),
            _ => {
                self.names.insert(name.to_owned());
                self.metadata_struct(type_name, name)
            }
        };
        self.tofino.metadata.insert(d.id, value);
    }

    fn tofino_gress(&mut self, number: usize, prefix: &str, blocks: &GressBlocks, gress: &Gress) {
        let names = BLOCKS[number % GRESSES].map(|name| qualified(prefix, name));
        self.pipeline = number;
        let Gress { headers, metadata } = gress;
        let with_packet = [Val::Unit, headers.clone(), metadata.clone()];
        let [parser_name, control_name, deparser_name] = names;
        self.gress_parsers(&parser_name, &blocks.parsers, &with_packet);
        let values = self.block_values(blocks.control, &with_packet[1..]);
        let block = self.block(&control_name, blocks.control, &values, Place::Control);
        self.ir.pipelines.push(block);
        let values = self.block_values(blocks.deparser, &with_packet);
        let block = self.block(&deparser_name, blocks.deparser, &values, Place::Deparser);
        self.ir.deparsers.push(block);
    }

    /// Lowers the control of a pipeline's ghost thread. These controls follow those of all gresses.
    fn ghost(&mut self, prefix: &str, control: usize) {
        let name = qualified(prefix, "ghost");
        self.pipeline = self.ir.pipelines.len();
        let values = self.block_values(control, &[]);
        let block = self.block(&name, control, &values, Place::Control);
        self.ir.pipelines.push(block);
    }

    /// Returns the values of a block's parameters: `first`, then intrinsic metadata, of which a block may omit some.
    pub(super) fn block_values(&mut self, block: usize, first: &[Val]) -> Vec<Val> {
        let decl = self.blocks[block].decl;
        let others = decl.kind.params().iter().skip(first.len());
        let types: Vec<Type> = others.map(|p| self.t.type_of(p.ty.id)).collect();
        let mut values = first.to_vec();
        for ty in types {
            values.push(self.intrinsic_value(&ty));
        }
        values
    }

    fn intrinsic_value(&mut self, ty: &Type) -> Val {
        let Type::Named(id, _) = ty else {
            return Val::Unit;
        };
        let is_ghost = self.declared(GHOST.0).is_some_and(|d| d.id == *id);
        if is_ghost && !self.tofino.metadata.contains_key(id) {
            self.intrinsic_metadata(GHOST);
        }
        let value = self.tofino.metadata.get(id);
        value.cloned().unwrap_or(Val::Unit)
    }

    /// Returns a field of the current gress's metadata for the deparser.
    pub(super) fn deparser_field(&self, field: &str) -> Option<Ex> {
        let type_name = match self.pipeline % 2 {
            0 => "ingress_intrinsic_metadata_for_deparser_t",
            _ => "egress_intrinsic_metadata_for_deparser_t",
        };
        let id = self.declared(type_name)?.id;
        match self.tofino.metadata.get(&id)?.member(field)? {
            Val::Scalar(e) => Some(e),
            _ => None,
        }
    }

    /// Returns the number of bits of port metadata in front of each packet.
    pub(super) fn port_metadata_bits(&mut self) -> u32 {
        let size = match self.declared("PORT_METADATA_SIZE").map(|d| &d.kind) {
            Some(DeclKind::Const { init, .. }) => self.number(init),
            _ => None,
        };
        size.and_then(|n| n.to_u32()).unwrap_or(64)
    }

    /// Adds the port metadata of an ingress parser to the program.
    pub(super) fn describe_port_metadata(&mut self, parser: &PortParser) {
        let block = &self.blocks[parser.block];
        let intrinsic = self.declared(INTRINSIC[0].0).map(|d| d.id);
        let mut params = block.decl.kind.params().iter();
        let param = params.find(|p| match self.t.type_of(p.ty.id) {
            Type::Named(id, _) => Some(id) == intrinsic,
            _ => false,
        });
        let metadata = PortMetadata {
            parser: parser.name.clone(),
            intrinsic: param.map_or(INTRINSIC[0].1.to_owned(), |p| p.name.name.to_string()),
            bits: self.port_metadata_bits().min(MAX_PORT_METADATA_BITS),
            ty: None,
            fields: Vec::new(),
        };
        self.ir.port_metadata.push(metadata);
    }

    /// Returns the number of bits that fill up a header's last byte if its layout is left to the compiler, which
    /// `@flexible` allows.
    pub(super) fn flexible_padding(&self, ty: &Type) -> u32 {
        let is_header = self.kind_of(ty) == Some(CompositeKind::Header);
        if !is_header || !self.ir.architecture.is_tofino() || !self.is_flexible(ty) {
            return 0;
        }
        let mut fields = Vec::new();
        self.flat_fields(ty, "", &mut fields);
        let bits: u32 = fields.iter().map(|(_, t)| t.width()).sum();
        bits.next_multiple_of(8) - bits
    }

    /// Returns true if a header or struct, or something inside, is annotated with `@flexible`.
    fn is_flexible(&self, ty: &Type) -> bool {
        let Type::Named(id, _) = ty else { return false };
        let Some(d) = self.t.defs.get_decl(*id) else {
            return false;
        };
        let DeclKind::Composite { fields, .. } = &d.kind else {
            return false;
        };
        let has = |annos: &[Annotation]| crate::annotation::find(annos, "flexible").is_some();
        has(&d.annos)
            || fields
                .iter()
                .any(|f| has(&f.annos) || self.is_flexible(&self.t.type_of(f.ty.id)))
    }
}
