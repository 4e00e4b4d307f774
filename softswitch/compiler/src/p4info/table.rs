// SPDX-License-Identifier: Apache-2.0
//! Tables, actions and value sets.

use super::ids::Kind;
use super::text::Message;
use super::{Emitter, bytes, hidden};
use crate::annotation::{int_annotation, match_annotation, name_annotation};
use crate::ast::{Annotation, DeclKind};
use crate::ir::VisibleAction;
use crate::types::Type;
use num_traits::ToPrimitive;

/// Ids of fields and parameters: given by the program, else counted from 1.
pub(super) fn field_ids(annos: &[&[Annotation]]) -> Vec<u32> {
    let given: Vec<Option<u32>> = annos
        .iter()
        .map(|a| int_annotation(a, "id").and_then(|(id, _)| id.to_u32()))
        .collect();
    let mut taken: Vec<u32> = given.iter().flatten().copied().collect();
    let mut next = 1;
    given
        .into_iter()
        .map(|g| {
            if let Some(id) = g {
                next += 1;
                return id;
            }
            while taken.contains(&next) {
                next += 1;
            }
            taken.push(next);
            next
        })
        .collect()
}

/// The match type of P4Info for a match kind; `None` for kinds of the architecture.
fn match_type(kind: &str) -> Option<&'static str> {
    match kind {
        "exact" => Some("EXACT"),
        "lpm" => Some("LPM"),
        "ternary" => Some("TERNARY"),
        "range" => Some("RANGE"),
        "optional" => Some("OPTIONAL"),
        _ => None,
    }
}

impl<'a> Emitter<'a> {
    pub(super) fn table(&mut self, index: usize) -> Option<Message> {
        let t = &self.ir.tables[index];
        if hidden(&t.decl.annos) {
            return None;
        }
        let DeclKind::Table(decl) = &t.decl.kind else {
            return None;
        };
        self.types.present = true;
        let mut m = Message::default();
        m.message(
            "preamble",
            self.usual_preamble(Kind::Table, &t.name, &t.decl.annos),
        );
        let key_annos: Vec<&[Annotation]> =
            decl.keys.iter().flatten().map(|k| &k.annos[..]).collect();
        let ids = field_ids(&key_annos);
        let mut keys = t.keys.iter();
        for (k, id) in decl.keys.iter().flatten().zip(ids) {
            if &*k.match_kind.name == "selector" {
                continue;
            }
            let Some(key) = keys.next() else { break };
            let mut f = Message::default();
            f.number("id", id);
            f.string("name", &key.name);
            self.annotations(&mut f, &k.annos, &[]);
            if let Some(w) = self.width_of(&key.ty).filter(|w| *w > 0) {
                f.number("bitwidth", w);
            }
            if self.is_plain_enum(&key.ty) {
                let hint = "give the enum an underlying type: enum bit<8> ...";
                let message = "the values of this enum do not have numbers for the control plane";
                self.diags.error_hint(k.expr.span, message, hint);
            }
            if let Some(kind) = match_type(&key.match_kind) {
                f.raw("match_type", kind);
            }
            self.documentation(&mut f, &k.annos);
            if match_type(&key.match_kind).is_none() {
                f.string("other_match_type", &key.match_kind);
            }
            self.note_type(&key.ty);
            self.type_name(&mut f, "type_name", &key.ty);
            self.structured_annotations(&mut f, &k.annos, &[]);
            m.message("match_fields", f);
        }
        for (i, a) in t.actions.iter().enumerate() {
            m.message("action_refs", self.action_ref(index, i, a.action));
        }
        if let Some(d) = &t.default {
            let action = &self.ir.actions[t.actions[d.action].action];
            let id = self.symbols.id(Kind::Action, &action.name);
            if d.is_const {
                m.number("const_default_action_id", id);
            }
            let mut call = Message::default();
            call.number("action_id", id);
            let params: Vec<_> = match &action.decl.kind {
                DeclKind::Action { params, .. } => params
                    .iter()
                    .filter(|p| p.dir == crate::ast::Direction::None)
                    .collect(),
                _ => Vec::new(),
            };
            for (i, v) in d.args.iter().enumerate() {
                let mut arg = Message::default();
                let given = params
                    .get(i)
                    .and_then(|p| int_annotation(&p.annos, "id"))
                    .and_then(|(id, _)| id.to_u32());
                arg.number("param_id", given.unwrap_or(i as u32 + 1));
                arg.bytes(
                    "value",
                    &bytes(v, action.params.get(i).map_or(8, |(_, s)| s.width())),
                );
                call.message("arguments", arg);
            }
            m.message("initial_default_action", call);
        }
        if let Some(o) = t.implementation {
            let listed = &self.ir.objects[self.ir.listed_profile(o)];
            m.number(
                "implementation_id",
                self.symbols.id(Kind::ActionProfile, &listed.name),
            );
        }
        if let Some(o) = t.counter {
            m.number(
                "direct_resource_ids",
                self.symbols
                    .id(Kind::DirectCounter, &self.ir.objects[o].name),
            );
        }
        if let Some(o) = t.meter {
            m.number(
                "direct_resource_ids",
                self.symbols.id(Kind::DirectMeter, &self.ir.objects[o].name),
            );
        }
        m.number("size", t.size);
        if t.support_timeout {
            m.raw("idle_timeout_behavior", "NOTIFY_CONTROL");
        }
        if t.const_entries {
            m.raw("is_const_table", "true");
        }
        if !t.entries.is_empty() {
            m.raw("has_initial_entries", "true");
        }
        Some(m)
    }

    fn action_ref(&self, table: usize, position: usize, action: usize) -> Message {
        let t = &self.ir.tables[table];
        let DeclKind::Table(decl) = &t.decl.kind else {
            return Message::default();
        };
        let mut m = Message::default();
        m.number(
            "id",
            self.symbols.id(Kind::Action, &self.ir.actions[action].name),
        );
        let Some(written) = decl.actions.iter().flatten().nth(position) else {
            // `NoAction` that the compiler added for a table without a default action.
            m.string("annotations", "@defaultonly");
            m.raw("scope", "DEFAULT_ONLY");
            return m;
        };
        self.annotations(&mut m, &written.annos, &[]);
        let has = |name: &str| crate::annotation::find(&written.annos, name).is_some();
        if has("tableonly") {
            m.raw("scope", "TABLE_ONLY");
        } else if has("defaultonly") {
            m.raw("scope", "DEFAULT_ONLY");
        }
        self.structured_annotations(&mut m, &written.annos, &[]);
        m
    }

    pub(super) fn action(&mut self, a: &VisibleAction<'a>) -> Message {
        let mut m = Message::default();
        m.message(
            "preamble",
            self.usual_preamble(Kind::Action, &a.name, &a.decl.annos),
        );
        let DeclKind::Action { params, .. } = &a.decl.kind else {
            return m;
        };
        if !a.in_table {
            return m;
        }
        // Arguments with a direction are bound in the program.
        let params: Vec<_> = params
            .iter()
            .filter(|p| p.dir == crate::ast::Direction::None)
            .collect();
        let annos: Vec<&[Annotation]> = params.iter().map(|p| &p.annos[..]).collect();
        for (p, id) in params.iter().zip(field_ids(&annos)) {
            self.types.present = true;
            let mut f = Message::default();
            f.number("id", id);
            f.string(
                "name",
                &name_annotation(&p.annos).unwrap_or_else(|| p.name.name.to_string()),
            );
            self.annotations(&mut f, &p.annos, &[]);
            let ty = self.t.type_of(p.ty.id);
            if let Some(w) = self.width_of(&ty).filter(|w| *w > 0) {
                f.number("bitwidth", w);
            }
            self.documentation(&mut f, &p.annos);
            self.note_type(&ty);
            self.type_name(&mut f, "type_name", &ty);
            self.structured_annotations(&mut f, &p.annos, &[]);
            m.message("params", f);
        }
        m
    }

    pub(super) fn value_set(&mut self, index: usize) -> Message {
        let v = &self.ir.value_sets[index];
        let mut m = Message::default();
        m.message(
            "preamble",
            self.usual_preamble(Kind::ValueSet, &v.name, &v.decl.annos),
        );
        let fields = match &v.ty {
            Type::Named(id, _) => self.t.defs.get_decl(*id).map(|d| &d.kind),
            _ => None,
        };
        match fields {
            Some(DeclKind::Composite { fields, .. }) => {
                let annos: Vec<&[Annotation]> = fields.iter().map(|f| &f.annos[..]).collect();
                for ((f, id), (_, ty)) in fields.iter().zip(field_ids(&annos)).zip(&v.fields) {
                    let mut x = Message::default();
                    x.number("id", id);
                    x.string(
                        "name",
                        &name_annotation(&f.annos).unwrap_or_else(|| f.name.name.to_string()),
                    );
                    self.annotations(&mut x, &f.annos, &["match"]);
                    x.number("bitwidth", ty.width());
                    let kind = match_annotation(&f.annos).unwrap_or_else(|| "exact".into());
                    match match_type(&kind) {
                        Some(k) => x.raw("match_type", k),
                        None => x.string("other_match_type", &kind),
                    }
                    self.documentation(&mut x, &f.annos);
                    m.message("match", x);
                }
            }
            Some(DeclKind::Enum { members, .. }) => {
                for (i, member) in members.iter().enumerate() {
                    let mut x = Message::default();
                    x.number("id", i as u32 + 1);
                    x.string("name", &member.name.name);
                    x.number("bitwidth", v.fields.first().map_or(0, |(_, t)| t.width()));
                    x.raw("match_type", "EXACT");
                    m.message("match", x);
                }
            }
            _ => {
                for (i, (_, ty)) in v.fields.iter().enumerate() {
                    let mut x = Message::default();
                    x.number("id", i as u32 + 1);
                    x.number("bitwidth", ty.width());
                    x.raw("match_type", "EXACT");
                    m.message("match", x);
                }
            }
        }
        m.raw("size", &v.size.to_string());
        m
    }
}
