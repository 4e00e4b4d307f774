// SPDX-License-Identifier: Apache-2.0
//! Extern instances, controller headers and digests.

use num_traits::ToPrimitive;

use super::ids::Kind;
use super::text::Message;
use super::{Emitter, hidden};
use crate::annotation::{int_annotation, name_annotation, string_annotation};
use crate::ast::{Annotation, CompositeKind, Decl, DeclKind, Field};
use crate::ir::{Architecture, Object, ObjectArg, ObjectKind};
use crate::types::Type;

fn unit(o: &Object, i: usize) -> &'static str {
    match o.args.get(i) {
        Some(ObjectArg::Enum(n)) if n.eq_ignore_ascii_case("packets") => "PACKETS",
        Some(ObjectArg::Enum(n)) if n.eq_ignore_ascii_case("bytes") => "BYTES",
        _ => "BOTH",
    }
}

fn size(o: &Object, i: usize) -> u64 {
    match o.args.get(i) {
        Some(ObjectArg::Int(n)) => n.to_u64().unwrap_or(0),
        _ => 0,
    }
}

/// A field of a packet header for the controller.
struct Leaf {
    name: String,
    annos: Vec<Annotation>,
    ty: Type,
}

impl<'a> Emitter<'a> {
    /// All extern instances that P4Info lists, with their kind.
    pub(super) fn all_objects(&self) -> Vec<(usize, Kind)> {
        let ir = self.ir;
        let mut out = Vec::new();
        for o in &ir.visible_objects {
            if self.is_part_of_selector(*o) {
                continue;
            }
            let kind = match ir.objects[*o].kind {
                ObjectKind::Counter => Kind::Counter,
                ObjectKind::Meter => Kind::Meter,
                ObjectKind::Register => Kind::Register,
                ObjectKind::ActionProfile | ObjectKind::ActionSelector => Kind::ActionProfile,
                ObjectKind::DirectCounter => Kind::DirectCounter,
                ObjectKind::DirectMeter => Kind::DirectMeter,
                _ => continue,
            };
            out.push((*o, kind));
        }
        // Those written into a table's properties.
        for t in &ir.visible_tables {
            let t = &ir.tables[*t];
            let more = [
                (t.implementation, Kind::ActionProfile),
                (t.counter, Kind::DirectCounter),
                (t.meter, Kind::DirectMeter),
            ];
            for (o, kind) in more {
                if let Some(o) = o
                    && !out.iter().any(|(x, _)| *x == o)
                {
                    out.push((o, kind));
                }
            }
        }
        out
    }

    pub(super) fn objects(&mut self, m: &mut Message) {
        let all = self.all_objects();
        let ir = self.ir;
        let of = |kind: Kind| all.iter().filter(move |(_, k)| *k == kind).map(|(o, _)| *o);
        for o in of(Kind::ActionProfile) {
            m.message("action_profiles", self.action_profile(o));
        }
        for o in of(Kind::Counter) {
            let object = &ir.objects[o];
            let mut c = self.metered(Kind::Counter, object, unit(object, 1));
            c.number("size", size(object, 0));
            // Outside v1model, counters have their width first.
            let index = usize::from(ir.architecture != Architecture::V1Model);
            self.index_type(&mut c, object.targs.get(index));
            m.message("counters", c);
        }
        // Direct resources come in the order of their tables.
        for t in self.listed_tables() {
            if let Some(o) = t.counter {
                let object = &ir.objects[o];
                let mut c = self.metered(Kind::DirectCounter, object, unit(object, 0));
                c.number("direct_table_id", self.symbols.id(Kind::Table, &t.name));
                m.message("direct_counters", c);
            }
        }
        for o in of(Kind::Meter) {
            let object = &ir.objects[o];
            let mut c = self.metered(Kind::Meter, object, unit(object, 1));
            c.number("size", size(object, 0));
            self.index_type(&mut c, object.targs.first());
            m.message("meters", c);
        }
        for t in self.listed_tables() {
            if let Some(o) = t.meter {
                let object = &ir.objects[o];
                let mut c = self.metered(Kind::DirectMeter, object, unit(object, 0));
                c.number("direct_table_id", self.symbols.id(Kind::Table, &t.name));
                m.message("direct_meters", c);
            }
        }
    }

    fn index_type(&mut self, m: &mut Message, ty: Option<&Type>) {
        self.types.present = true;
        if let Some(ty) = ty {
            self.note_type(ty);
            self.type_name(m, "index_type_name", ty);
        }
    }

    /// A counter or meter up to its unit. The unit of a meter is `BYTES` or `PACKETS`.
    fn metered(&mut self, kind: Kind, o: &Object, unit: &'static str) -> Message {
        let mut m = Message::default();
        m.message("preamble", self.usual_preamble(kind, &o.name, o.annos));
        let mut spec = Message::default();
        spec.raw("unit", unit);
        m.message("spec", spec);
        m
    }

    fn action_profile(&mut self, index: usize) -> Message {
        const SKIP: [&str; 3] = [
            "max_group_size",
            "selector_size_semantics",
            "max_member_weight",
        ];
        let o = &self.ir.objects[index];
        let selector = o.kind == ObjectKind::ActionSelector;
        let mut m = Message::default();
        let listed = self.ir.listed_profile(index);
        let name = &self.ir.objects[listed].name;
        let alias = self.symbols.alias(name);
        let annos = self.profile_annotations(listed);
        m.message(
            "preamble",
            self.preamble(Kind::ActionProfile, name, name, &alias, annos, &SKIP),
        );
        let mut tables: Vec<&str> = self
            .ir
            .visible_tables
            .iter()
            .map(|t| &self.ir.tables[*t])
            .filter(|t| t.implementation == Some(index))
            .map(|t| t.name.as_str())
            .collect();
        tables.sort_unstable();
        for t in tables {
            m.number("table_ids", self.symbols.id(Kind::Table, t));
        }
        if selector {
            m.raw("with_selector", "true");
        }
        let n = self.members(o);
        if n != 0 {
            m.number("size", n);
        }
        if selector {
            let largest = o.number("max_group_size").cloned();
            let annotated = || int_annotation(annos, "max_group_size").map(|(n, _)| n);
            if let Some(n) = largest.or_else(annotated) {
                m.raw("max_group_size", &n.to_string());
            }
            let semantics = string_annotation(annos, "selector_size_semantics");
            match semantics.as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("sum_of_weights") => m.message("sum_of_weights", Message::default()),
                Some("sum_of_members") => {
                    let mut s = Message::default();
                    if let Some((n, _)) = int_annotation(annos, "max_member_weight") {
                        s.raw("max_member_weight", &n.to_string());
                    }
                    m.message("sum_of_members", s);
                }
                _ => {}
            }
        }
        m
    }

    /// Returns the number of members of an action profile or selector.
    fn members(&self, o: &Object) -> u64 {
        if let Some(ObjectArg::Object(profile)) = o.argument("action_profile") {
            return size(&self.ir.objects[*profile], 0);
        }
        let is_selector = o.kind == ObjectKind::ActionSelector;
        size(
            o,
            usize::from(is_selector && !self.ir.architecture.is_tofino()),
        )
    }

    /// Returns true for the action profile of a selector of TNA, which the control plane sees under the selector's name.
    fn is_part_of_selector(&self, object: usize) -> bool {
        let ir = self.ir;
        let is_own = |o: &Object| o.argument("action_profile") == Some(&ObjectArg::Object(object));
        let uses = |t: &crate::ir::Table| t.implementation == Some(object);
        ir.objects.iter().any(is_own) && !ir.tables.iter().any(uses)
    }

    /// Annotations of a profile: of its declaration, or of the property that constructs it.
    fn profile_annotations(&self, index: usize) -> &'a [Annotation] {
        let o = &self.ir.objects[index];
        if !o.annos.is_empty() {
            return o.annos;
        }
        for t in &self.ir.visible_tables {
            let t = &self.ir.tables[*t];
            if t.implementation == Some(index)
                && let DeclKind::Table(d) = &t.decl.kind
                && let Some(p) = d
                    .properties
                    .iter()
                    .find(|p| &*p.name.name == "implementation")
            {
                return &p.annos;
            }
        }
        &[]
    }

    /// Describes the types that only objects without a message in P4Info use: registers' parameters, direct registers, and
    /// the metadata of ports.
    pub(super) fn unlisted_types(&mut self) {
        let ir = self.ir;
        for o in &ir.visible_objects {
            let o = &ir.objects[*o];
            if matches!(
                o.kind,
                ObjectKind::DirectRegister | ObjectKind::RegisterParam
            ) && let Some(ty) = o.targs.first()
            {
                self.note_type(ty);
            }
        }
        for ty in ir.port_metadata.iter().filter_map(|m| m.ty.as_ref()) {
            self.note_type(ty);
        }
    }

    pub(super) fn register(&mut self, index: usize) -> Message {
        self.types.present = true;
        let o = &self.ir.objects[index];
        let mut m = Message::default();
        m.message(
            "preamble",
            self.usual_preamble(Kind::Register, &o.name, o.annos),
        );
        let spec = o
            .targs
            .first()
            .map_or_else(Message::default, |t| self.type_spec(t));
        m.message("type_spec", spec);
        let n = size(o, 0);
        if n != 0 {
            m.number("size", n);
        }
        self.index_type(&mut m, o.targs.get(1));
        m
    }

    pub(super) fn digests(&mut self, m: &mut Message) {
        let ir = self.ir;
        let mut seen: Vec<&str> = Vec::new();
        for d in &ir.digests {
            if seen.contains(&d.name.as_str()) {
                continue;
            }
            seen.push(&d.name);
            self.types.present = true;
            let mut x = Message::default();
            x.message("preamble", self.usual_preamble(Kind::Digest, &d.name, &[]));
            let spec = self.type_spec(&d.ty);
            x.message("type_spec", spec);
            m.message("digests", x);
        }
    }

    /// The fields of a header, those of structs inside included; each has the annotations around
    /// it, too, except those of the same name.
    fn leaves(&self, fields: &[Field], path: &str, around: &[Annotation], out: &mut Vec<Leaf>) {
        for f in fields {
            let name = format!("{path}{}", f.name.name);
            let mut annos = f.annos.clone();
            for a in around {
                if !annos.iter().any(|b| b.name.name == a.name.name) {
                    annos.push(a.clone());
                }
            }
            let ty = self.t.type_of(f.ty.id);
            if let Type::Named(id, _) = &ty
                && let Some(DeclKind::Composite { fields, .. }) =
                    self.t.defs.get_decl(*id).map(|d| &d.kind)
            {
                self.leaves(fields, &format!("{name}."), &annos, out);
            } else {
                out.push(Leaf { name, annos, ty });
            }
        }
    }

    pub(super) fn controller_header(&mut self, d: &'a Decl) -> Option<Message> {
        let DeclKind::Composite {
            kind: CompositeKind::Header,
            fields,
            ..
        } = &d.kind
        else {
            return None;
        };
        let name = string_annotation(&d.annos, "controller_header")?;
        if hidden(&d.annos) {
            return None;
        }
        let symbol = self.declared_name(d);
        let mut m = Message::default();
        m.message(
            "preamble",
            self.preamble(Kind::ControllerHeader, &symbol, &name, &name, &d.annos, &[]),
        );
        let mut leaves = Vec::new();
        self.leaves(fields, "", &[], &mut leaves);
        let nested = leaves.len() != fields.len() || leaves.iter().any(|l| l.name.contains('.'));
        let annos: Vec<&[Annotation]> = leaves.iter().map(|l| &l.annos[..]).collect();
        for (f, id) in leaves.iter().zip(super::table::field_ids(&annos)) {
            if hidden(&f.annos) {
                continue;
            }
            self.types.present = true;
            let mut x = Message::default();
            x.number("id", id);
            // The path of a field in a struct takes the place of a @name.
            let given = name_annotation(&f.annos).filter(|_| !nested);
            x.string("name", given.as_ref().unwrap_or(&f.name));
            self.annotations(&mut x, &f.annos, &[]);
            let ty = f.ty.clone();
            if let Some(w) = self.width_of(&ty).filter(|w| *w > 0) {
                x.number("bitwidth", w);
            }
            self.note_type(&ty);
            self.type_name(&mut x, "type_name", &ty);
            self.structured_annotations(&mut x, &f.annos, &[]);
            m.message("metadata", x);
        }
        Some(m)
    }
}
