// SPDX-License-Identifier: Apache-2.0
//! Types, as P4Info describes them.

use super::text::Message;
use super::{Emitter, bytes};
use crate::annotation::name_annotation;
use crate::ast::{Annotation, AnnotationBody, CompositeKind, Decl, DeclKind};
use crate::types::Type;

fn wrap(name: &'static str, inner: Message) -> Message {
    let mut m = Message::default();
    m.message(name, inner);
    m
}

fn number(name: &'static str, n: u32) -> Message {
    let mut m = Message::default();
    m.number(name, n);
    m
}

fn named(field: &'static str, name: &str) -> Message {
    let mut inner = Message::default();
    inner.string("name", name);
    wrap(field, inner)
}

impl<'a> Emitter<'a> {
    /// A declared type's or object's name for the control plane.
    pub(super) fn declared_name(&self, d: &Decl) -> String {
        let name = name_annotation(&d.annos).unwrap_or_else(|| d.name.name.to_string());
        name.strip_prefix('.').map(str::to_string).unwrap_or(name)
    }

    /// Writes the name of a type declared with `type`, if `ty` is one.
    pub(super) fn type_name(&self, m: &mut Message, field: &'static str, ty: &Type) {
        let Type::Named(id, _) = ty else { return };
        let Some(d) = self.t.defs.get_decl(*id) else {
            return;
        };
        let is_named = matches!(
            &d.kind,
            DeclKind::NewType(_)
                | DeclKind::Enum {
                    underlying: None,
                    ..
                }
        );
        if is_named {
            let mut inner = Message::default();
            inner.string("name", &d.name.name);
            m.message(field, inner);
        }
    }

    /// Makes sure that `type_info` describes the type.
    pub(super) fn note_type(&mut self, ty: &Type) {
        self.type_spec(ty);
    }

    pub(super) fn type_spec(&mut self, ty: &Type) -> Message {
        match ty {
            Type::Bit(w) => wrap("bitstring", wrap("bit", number("bitwidth", *w))),
            Type::SInt(w) => wrap("bitstring", wrap("int", number("bitwidth", *w))),
            Type::Varbit(w) => wrap("bitstring", wrap("varbit", number("max_bitwidth", *w))),
            Type::Bool => wrap("bool", Message::default()),
            Type::Error => {
                if self.types.error.is_none() {
                    let mut m = Message::default();
                    for e in &self.ir.errors {
                        m.string("members", e);
                    }
                    self.types.error = Some(m);
                }
                wrap("error", Message::default())
            }
            Type::Tuple(items) => {
                let mut m = Message::default();
                for t in items {
                    let spec = self.type_spec(t);
                    m.message("members", spec);
                }
                wrap("tuple", m)
            }
            Type::Stack(elem, n) => {
                self.type_spec(elem);
                let union = self.composite(elem) == Some(CompositeKind::Union);
                let name = match &**elem {
                    Type::Named(id, _) => self
                        .t
                        .defs
                        .get_decl(*id)
                        .map(|d| self.declared_name(d))
                        .unwrap_or_default(),
                    _ => String::new(),
                };
                let mut m = named(if union { "header_union" } else { "header" }, &name);
                m.number("size", *n);
                wrap(
                    if union {
                        "header_union_stack"
                    } else {
                        "header_stack"
                    },
                    m,
                )
            }
            Type::Named(id, args) => match self.t.defs.get_decl(*id) {
                Some(d) => self.declared_type(d, args),
                None => Message::default(),
            },
            _ => Message::default(),
        }
    }

    fn composite(&self, ty: &Type) -> Option<CompositeKind> {
        let Type::Named(id, _) = ty else { return None };
        match &self.t.defs.get_decl(*id)?.kind {
            DeclKind::Composite { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// Writes a field of a header; the fields of a struct in it have names of their own.
    fn header_members(&self, m: &mut Message, name: &str, ty: &Type) {
        if let Type::Named(id, args) = ty
            && let Some(DeclKind::Composite {
                fields, tparams, ..
            }) = self.t.defs.get_decl(*id).map(|d| &d.kind)
        {
            for f in fields {
                let ty = self.t.type_of(f.ty.id).substitute(&|v| {
                    let position = tparams.iter().position(|p| p.id == v)?;
                    args.get(position).cloned()
                });
                self.header_members(m, &format!("{name}.{}", f.name.name), &ty);
            }
            return;
        }
        let mut x = Message::default();
        x.string("name", name);
        x.message("type_spec", self.bitstring(ty));
        m.message("members", x);
    }

    fn declared_type(&mut self, d: &'a Decl, args: &[Type]) -> Message {
        let suffix = match name_annotation(&d.annos) {
            Some(_) => String::new(),
            None => Type::arguments_suffix(args, &self.t.defs),
        };
        let name = self.declared_name(d) + &suffix;
        match &d.kind {
            DeclKind::Composite {
                kind,
                fields,
                tparams,
            } => {
                let argument = |v| {
                    let position = tparams.iter().position(|p| p.id == v)?;
                    args.get(position).cloned()
                };
                let (map, field) = match kind {
                    CompositeKind::Struct => (&self.types.structs, "struct"),
                    CompositeKind::Header => (&self.types.headers, "header"),
                    CompositeKind::Union => (&self.types.header_unions, "header_union"),
                };
                if !map.contains_key(&name) {
                    let mut m = Message::default();
                    for f in fields {
                        let ty = self.t.type_of(f.ty.id).substitute(&argument);
                        let member =
                            name_annotation(&f.annos).unwrap_or_else(|| f.name.name.to_string());
                        if *kind == CompositeKind::Header {
                            self.header_members(&mut m, &member, &ty);
                            continue;
                        }
                        let mut x = Message::default();
                        x.string("name", &member);
                        match kind {
                            CompositeKind::Struct => {
                                let spec = self.type_spec(&ty);
                                x.message("type_spec", spec);
                            }
                            _ => {
                                self.type_spec(&ty);
                                let header = match &ty {
                                    Type::Named(id, _) => {
                                        self.t.defs.get_decl(*id).map(|d| self.declared_name(d))
                                    }
                                    _ => None,
                                };
                                let mut h = Message::default();
                                h.string("name", &header.unwrap_or_default());
                                x.message("header", h);
                            }
                        }
                        m.message("members", x);
                    }
                    let map = match kind {
                        CompositeKind::Struct => &mut self.types.structs,
                        CompositeKind::Header => &mut self.types.headers,
                        CompositeKind::Union => &mut self.types.header_unions,
                    };
                    map.insert(name.clone(), m);
                }
                named(field, &name)
            }
            DeclKind::Enum {
                underlying: None,
                members,
            } => {
                let mut m = Message::default();
                for member in members {
                    m.message("members", {
                        let mut x = Message::default();
                        x.string("name", &member.name.name);
                        x
                    });
                }
                self.types.enums.entry(name.clone()).or_insert(m);
                named("enum", &name)
            }
            DeclKind::Enum {
                underlying: Some(u),
                members,
            } => {
                let width = self.width_of(&self.t.type_of(u.id)).unwrap_or(0);
                let mut m = Message::default();
                m.message("underlying_type", number("bitwidth", width));
                for member in members {
                    let mut x = Message::default();
                    x.string("name", &member.name.name);
                    if let Some(v) = self.ir.enum_values.get(&member.id) {
                        x.bytes("value", &bytes(v, width));
                    }
                    m.message("members", x);
                }
                self.types
                    .serializable_enums
                    .entry(name.clone())
                    .or_insert(m);
                named("serializable_enum", &name)
            }
            DeclKind::NewType(t) => {
                let base = self.stripped(&self.t.type_of(t.id));
                let spec = self.type_spec(&base);
                let mut m = Message::default();
                match translation(&d.annos) {
                    Some(translated) => m.message("translated_type", translated),
                    None => m.message("original_type", spec),
                }
                self.annotations(&mut m, &d.annos, &["p4runtime_translation"]);
                self.structured_annotations(&mut m, &d.annos, &[]);
                self.types.new_types.entry(name.clone()).or_insert(m);
                named("new_type", &name)
            }
            _ => Message::default(),
        }
    }

    /// The bits of a header's field.
    fn bitstring(&self, ty: &Type) -> Message {
        match ty {
            Type::SInt(w) => wrap("int", number("bitwidth", *w)),
            Type::Varbit(w) => wrap("varbit", number("max_bitwidth", *w)),
            ty => wrap("bit", number("bitwidth", self.width_of(ty).unwrap_or(0))),
        }
    }

    pub(super) fn type_info(&mut self) -> Message {
        let types = std::mem::take(&mut self.types);
        let mut m = Message::default();
        let map = |name: &'static str,
                   entries: std::collections::BTreeMap<String, Message>,
                   m: &mut Message| {
            for (k, v) in entries {
                let mut e = Message::default();
                e.string("key", &k);
                e.message("value", v);
                m.message(name, e);
            }
        };
        map("structs", types.structs, &mut m);
        map("headers", types.headers, &mut m);
        map("header_unions", types.header_unions, &mut m);
        map("enums", types.enums, &mut m);
        if let Some(e) = types.error {
            m.message("error", e);
        }
        map("serializable_enums", types.serializable_enums, &mut m);
        map("new_types", types.new_types, &mut m);
        m
    }
}

/// The type that the control plane uses instead.
enum Translation {
    Bits(u32),
    String,
}

/// `@p4runtime_translation("uri", width)`, or `bit<W>` or `string` in place of the width.
fn parse_translation(annos: &[Annotation]) -> Option<(String, Translation)> {
    let a = annos
        .iter()
        .find(|a| &*a.name.name == "p4runtime_translation")?;
    let AnnotationBody::Tokens { raw, .. } = &a.body else {
        return None;
    };
    let uri = raw.first()?.text.clone();
    let rest: Vec<&str> = raw.iter().skip(2).map(|t| t.text.as_str()).collect();
    let width = match rest.first() {
        Some(&"string") => return Some((uri, Translation::String)),
        Some(&"bit") => rest.get(2)?,
        Some(n) => n,
        None => return None,
    };
    let digits = width.rsplit_once('w').map_or(*width, |(_, n)| n);
    Some((uri, Translation::Bits(digits.parse().ok()?)))
}

/// Bits that the control plane sees of a translated type; 0 for strings.
pub(super) fn translated_width(annos: &[Annotation]) -> Option<u32> {
    Some(match parse_translation(annos)?.1 {
        Translation::Bits(w) => w,
        Translation::String => 0,
    })
}

fn translation(annos: &[Annotation]) -> Option<Message> {
    let (uri, to) = parse_translation(annos)?;
    let mut m = Message::default();
    if !uri.is_empty() {
        m.string("uri", &uri);
    }
    match to {
        Translation::Bits(w) => m.number("sdn_bitwidth", w),
        Translation::String => m.message("sdn_string", Message::default()),
    }
    Some(m)
}
