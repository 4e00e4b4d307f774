// SPDX-License-Identifier: Apache-2.0
//! Emits P4Info, the program's description for the control plane (P4Runtime specification, section "P4Info message"),
//! in the text format of protocol buffers.

mod annotation;
mod entries;
mod format;
mod ids;
mod object;
mod table;
mod text;
mod typespec;

use std::collections::{BTreeMap, HashSet};

use num_bigint::BigInt;

use crate::annotation::int_annotation;
use crate::ast::{Annotation, AnnotationBody, DeclKind, ExprKind};
use crate::diag::{Diagnostics, Warning};
use crate::ir::{Lowered, ObjectKind, Table};
use crate::types::{Type, Typed};

pub use format::Format;
pub use ids::jenkins_one_at_a_time;
use ids::{Kind, Symbols};
use text::Message;

/// Emits the P4Info of a lowered program, and the entries of its tables, as text.
pub fn emit<'a>(
    typed: &'a Typed<'a>,
    ir: &'a Lowered<'a>,
    diags: &'a Diagnostics,
) -> (String, String) {
    let mut e = Emitter {
        t: typed,
        ir,
        diags,
        symbols: Symbols::of(ir.pipe().as_deref()),
        types: TypeInfo::default(),
    };
    let info = e.program();
    let file = |path: &str, message: &str, m: Message| {
        format!(
            "# proto-file: {path}\n# proto-message: {message}\n\n{}",
            m.text()
        )
    };
    (
        file("p4/config/v1/p4info.proto", "p4.config.v1.P4Info", info),
        file("p4/v1/p4runtime.proto", "p4.v1.WriteRequest", e.entries()),
    )
}

/// Declared types that an object uses: the maps of `type_info`, by name.
#[derive(Default)]
struct TypeInfo {
    structs: BTreeMap<String, Message>,
    headers: BTreeMap<String, Message>,
    header_unions: BTreeMap<String, Message>,
    enums: BTreeMap<String, Message>,
    error: Option<Message>,
    serializable_enums: BTreeMap<String, Message>,
    new_types: BTreeMap<String, Message>,
    /// True if there is an object that may use types.
    present: bool,
}

pub(crate) struct Emitter<'a> {
    t: &'a Typed<'a>,
    ir: &'a Lowered<'a>,
    diags: &'a Diagnostics,
    symbols: Symbols,
    types: TypeInfo,
}

impl<'a> Emitter<'a> {
    fn program(&mut self) -> Message {
        self.collect_symbols();
        let ir = self.ir;
        let mut m = Message::default();
        m.message("pkg_info", self.package_info());
        for t in &ir.visible_tables {
            if let Some(t) = self.table(*t) {
                m.message("tables", t);
            }
        }
        for a in &ir.visible_actions {
            if !hidden(&a.decl.annos) {
                m.message("actions", self.action(a));
            }
        }
        self.objects(&mut m);
        for d in &self.t.program.decls {
            if let Some(header) = self.controller_header(d) {
                m.message("controller_packet_metadata", header);
            }
        }
        for v in &ir.visible_value_sets {
            m.message("value_sets", self.value_set(*v));
        }
        for o in &ir.visible_objects {
            if ir.objects[*o].kind == ObjectKind::Register {
                m.message("registers", self.register(*o));
            }
        }
        self.digests(&mut m);
        self.unlisted_types();
        if self.types.present || ir.has_type_info {
            m.message("type_info", self.type_info());
        }
        m
    }

    /// Returns the tables that the control plane sees.
    fn listed_tables(&self) -> impl Iterator<Item = &'a Table<'a>> + use<'a> {
        let ir = self.ir;
        let tables = ir.visible_tables.iter().map(|t| &ir.tables[*t]);
        tables.filter(|t| !hidden(&t.decl.annos))
    }

    /// Assigns all ids; see [`ids`].
    fn collect_symbols(&mut self) {
        let ir = self.ir;
        let mut names = HashSet::new();
        for a in &ir.visible_actions {
            if !names.insert(&a.name) {
                let message = format!(
                    "another action already has the control-plane name '{}'",
                    a.name
                );
                let hint = "change the @name of one of them";
                self.diags.error_hint(a.decl.name.span, message, hint);
            }
            self.add_symbol(Kind::Action, &a.name, &a.decl.annos);
        }
        for t in &ir.visible_tables {
            let t = &ir.tables[*t];
            self.add_symbol(Kind::Table, &t.name, &t.decl.annos);
        }
        let mut names = HashSet::new();
        for (o, kind) in self.all_objects() {
            let o = &ir.objects[ir.listed_profile(o)];
            if !names.insert((kind, &o.name)) {
                let message = format!("another object already has the name '{}'", o.name);
                let hint =
                    "the control plane could not distinguish them: change the @name of this one";
                self.diags.error_hint(o.span, message, hint);
            }
            self.add_symbol(kind, &o.name, o.annos);
        }
        for v in &ir.visible_value_sets {
            let v = &ir.value_sets[*v];
            self.add_symbol(Kind::ValueSet, &v.name, &v.decl.annos);
        }
        for d in &ir.digests {
            self.add_symbol(Kind::Digest, &d.name, &[]);
        }
        for d in &self.t.program.decls {
            if crate::annotation::find(&d.annos, "controller_header").is_some()
                && matches!(d.kind, DeclKind::Composite { .. })
            {
                let name = self.declared_name(d);
                self.add_symbol(Kind::ControllerHeader, &name, &d.annos);
            }
        }
        self.symbols.assign();
    }

    fn add_symbol(&mut self, kind: Kind, name: &str, annos: &[Annotation]) {
        let id = match int_annotation(annos, "id") {
            Some((id, span)) => match u32::try_from(id) {
                Ok(id) if id >> 24 != 0 && id >> 24 != kind.prefix() => {
                    self.diags.error_hint(
                        span,
                        format!("@id({id}) has the wrong type prefix for '{name}'"),
                        format!("its first byte must be 0 or {:#04x}", kind.prefix()),
                    );
                    None
                }
                Ok(id) => Some((id, span)),
                Err(_) => {
                    self.diags.error(span, "@id must be a 32-bit number");
                    None
                }
            },
            None => None,
        };
        if let Err(span) = self.symbols.add(kind, name, id) {
            self.diags
                .error(span, "another object already has this @id");
        }
    }

    fn package_info(&self) -> Message {
        let mut m = Message::default();
        let mut arch = self.ir.architecture.name().to_string();
        let main = self.ir.package;
        let mut fields: BTreeMap<usize, (String, String)> = BTreeMap::new();
        const KNOWN: [&str; 6] = ["name", "version", "arch", "organization", "contact", "url"];
        let pairs = main
            .into_iter()
            .flat_map(|d| &d.annos)
            .filter(|a| &*a.name.name == "pkginfo");
        for a in pairs {
            let list: Vec<(String, String)> = match &a.body {
                AnnotationBody::KeyValue(kv) => kv
                    .iter()
                    .filter_map(|(k, v)| Some((k.name.to_string(), string_of(v)?)))
                    .collect(),
                AnnotationBody::Tokens { raw, .. } => raw
                    .split(|t| !t.is_string && t.text == ",")
                    .filter(|p| p.len() == 3)
                    .map(|p| (p[0].text.clone(), p[2].text.clone()))
                    .collect(),
                _ => Vec::new(),
            };
            for (k, v) in list {
                match KNOWN.iter().position(|n| *n == k) {
                    Some(2) => arch = v,
                    Some(i) => {
                        fields.insert(i, (k, v));
                    }
                    None => self.diags.warn(
                        Warning::Invalid,
                        a.span,
                        format!("unknown key '{k}' in @pkginfo"),
                    ),
                }
            }
        }
        for (i, name) in KNOWN.iter().enumerate() {
            if i == 2 {
                if let Some(d) = main {
                    self.documentation(&mut m, &d.annos);
                    self.annotations(&mut m, &d.annos, &["pkginfo", "platform_property"]);
                }
                m.string("arch", &arch);
            } else if let Some((_, v)) = fields.get(&i) {
                m.string(name, v);
            }
        }
        if let Some(d) = main {
            self.structured_annotations(&mut m, &d.annos, &["pkginfo", "platform_property"]);
            self.platform_properties(&mut m, &d.annos);
        }
        m
    }

    fn platform_properties(&self, m: &mut Message, annos: &[Annotation]) {
        const KNOWN: [&str; 3] = [
            "multicast_group_table_size",
            "multicast_group_table_total_replicas",
            "multicast_group_table_max_replicas_per_entry",
        ];
        for a in annos
            .iter()
            .filter(|a| &*a.name.name == "platform_property")
        {
            let mut p = Message::default();
            let pairs: Vec<(String, String)> = match &a.body {
                AnnotationBody::KeyValue(kv) => kv
                    .iter()
                    .filter_map(|(k, v)| match &v.kind {
                        ExprKind::Int { value, .. } => {
                            Some((k.name.to_string(), value.to_string()))
                        }
                        _ => None,
                    })
                    .collect(),
                AnnotationBody::Tokens { raw, .. } => raw
                    .split(|t| !t.is_string && t.text == ",")
                    .filter(|p| p.len() == 3)
                    .map(|p| (p[0].text.clone(), p[2].text.clone()))
                    .collect(),
                _ => Vec::new(),
            };
            for name in KNOWN {
                if let Some((_, v)) = pairs.iter().find(|(k, _)| k == name) {
                    p.raw(name, v);
                }
            }
            m.message("platform_properties", p);
        }
    }

    /// Emits the preamble of an object.
    fn preamble(
        &self,
        kind: Kind,
        symbol: &str,
        name: &str,
        alias: &str,
        annos: &[Annotation],
        skip: &[&str],
    ) -> Message {
        let mut m = Message::default();
        m.number("id", self.symbols.id(kind, symbol));
        m.string("name", name);
        m.string("alias", alias);
        self.annotations(&mut m, annos, skip);
        self.documentation(&mut m, annos);
        self.structured_annotations(&mut m, annos, skip);
        m
    }

    fn usual_preamble(&self, kind: Kind, name: &str, annos: &[Annotation]) -> Message {
        let alias = self.symbols.alias(name);
        self.preamble(kind, name, name, &alias, annos, &[])
    }

    /// Returns the type behind all `type` declarations.
    fn stripped(&self, ty: &Type) -> Type {
        if let Type::Named(id, _) = ty
            && let Some(DeclKind::NewType(t)) = self.t.defs.get_decl(*id).map(|d| &d.kind)
        {
            return self.stripped(&self.t.type_of(t.id));
        }
        ty.clone()
    }

    /// Returns true for an enum without an underlying type.
    fn is_plain_enum(&self, ty: &Type) -> bool {
        let Type::Named(id, _) = ty else { return false };
        let d = self.t.defs.get_decl(*id);
        d.is_some_and(|d| {
            matches!(
                d.kind,
                DeclKind::Enum {
                    underlying: None,
                    ..
                }
            )
        })
    }

    fn width_of(&self, ty: &Type) -> Option<u32> {
        match ty {
            Type::Bool => Some(1),
            Type::Bit(w) | Type::SInt(w) | Type::Varbit(w) => Some(*w),
            Type::Error => Some(32),
            Type::Named(id, _) => match &self.t.defs.get_decl(*id)?.kind {
                DeclKind::NewType(t) => {
                    match typespec::translated_width(&self.t.defs.get_decl(*id)?.annos) {
                        Some(w) => Some(w),
                        // Translations of inner types do not apply.
                        None => self.width_of(&self.stripped(&self.t.type_of(t.id))),
                    }
                }
                DeclKind::Enum {
                    underlying: Some(u),
                    ..
                } => self.width_of(&self.t.type_of(u.id)),
                _ => None,
            },
            _ => None,
        }
    }
}

pub(crate) fn hidden(annos: &[Annotation]) -> bool {
    crate::annotation::find(annos, "hidden").is_some()
}

fn string_of(e: &crate::ast::Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Str(s) => Some(s.to_string()),
        _ => None,
    }
}

/// Encodes a number in the bytes of its width.
pub(crate) fn bytes(v: &BigInt, width: u32) -> Vec<u8> {
    let n = width.div_ceil(8) as usize;
    let (_, raw) = v.to_bytes_be();
    let mut out = vec![0; n.saturating_sub(raw.len())];
    out.extend(&raw[raw.len().saturating_sub(n.max(1))..]);
    out
}
