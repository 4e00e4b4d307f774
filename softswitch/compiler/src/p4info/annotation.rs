// SPDX-License-Identifier: Apache-2.0
//! Annotations and documentation.

use num_traits::ToPrimitive;

use super::Emitter;
use super::text::Message;
use crate::annotation::string_annotation;
use crate::ast::{Annotation, AnnotationBody, BinOp, DeclKind, Expr, ExprKind, UnOp};
use crate::check::fold_binary;
use crate::types::{Const, Type};

/// Represented elsewhere in P4Info.
const ELSEWHERE: [&str; 4] = ["name", "id", "brief", "description"];

/// Annotations whose body the language defines: lists of expressions.
const PARSED: [&str; 17] = [
    "noWarn",
    "deprecated",
    "optional",
    "tableonly",
    "defaultonly",
    "hidden",
    "priority",
    "match",
    "length",
    "controller_header",
    "max_group_size",
    "selector_size_semantics",
    "max_member_weight",
    "pkginfo",
    "field_list",
    "alias",
    "metadata",
];

impl Emitter<'_> {
    /// An expression of a structured annotation, which must have a value at compile time.
    fn value(&self, e: &Expr) -> Message {
        let mut m = Message::default();
        match self.constant(e) {
            Some(Const::Str(s)) => m.string("string_value", &s),
            Some(Const::Bool(b)) => m.raw("bool_value", if b { "true" } else { "false" }),
            Some(Const::Int(v, _)) => match v.to_i64() {
                Some(v) => m.raw("int64_value", &v.to_string()),
                None => self.diags.error_hint(
                    e.span,
                    "an integer in a structured annotation must fit in 64 bits",
                    "write it as a string",
                ),
            },
            None => self.diags.error(
                e.span,
                "values of a structured annotation must be known at compile time",
            ),
        }
        m
    }

    /// Annotations are not type-checked: literals, constants by name, and operators on them.
    fn constant(&self, e: &Expr) -> Option<Const> {
        Some(match &e.kind {
            ExprKind::Str(s) => Const::Str(s.to_string()),
            ExprKind::Bool(b) => Const::Bool(*b),
            ExprKind::Int { value, .. } => Const::Int(value.clone(), Type::Int),
            ExprKind::Name { name, .. } => {
                let named = self.t.program.decls.iter().find(|d| d.name.name == *name)?;
                match &named.kind {
                    DeclKind::Const { init, .. } => self.constant(init)?,
                    _ => return None,
                }
            }
            ExprKind::Unary(op, x) => match (op, self.constant(x)?) {
                (UnOp::Not, Const::Bool(b)) => Const::Bool(!b),
                (UnOp::Neg, Const::Int(v, t)) => Const::Int(-v, t),
                (UnOp::Plus, v @ Const::Int(..)) => v,
                _ => return None,
            },
            ExprKind::Binary(op, l, r) => match (op, self.constant(l)?, self.constant(r)?) {
                (BinOp::And, Const::Bool(a), Const::Bool(b)) => Const::Bool(a && b),
                (BinOp::Or, Const::Bool(a), Const::Bool(b)) => Const::Bool(a || b),
                (BinOp::Concat, Const::Str(a), Const::Str(b)) => Const::Str(a + &b),
                (_, Const::Int(a, _), Const::Int(b, _)) => fold_binary(*op, &a, &b, &Type::Int)?,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Unstructured annotations, as text.
    pub(super) fn annotations(&self, m: &mut Message, annos: &[Annotation], skip: &[&str]) {
        for a in annos {
            let name = &*a.name.name;
            if ELSEWHERE.contains(&name) || skip.contains(&name) {
                continue;
            }
            if let Some(text) = unstructured(a) {
                m.string("annotations", &text);
            }
        }
    }

    pub(super) fn structured_annotations(
        &self,
        m: &mut Message,
        annos: &[Annotation],
        skip: &[&str],
    ) {
        for a in annos {
            if skip.contains(&&*a.name.name) {
                continue;
            }
            let mut s = Message::default();
            s.string("name", &a.name.name);
            match &a.body {
                AnnotationBody::List(list) => {
                    let mut l = Message::default();
                    for e in list {
                        l.message("expressions", self.value(e));
                    }
                    s.message("expression_list", l);
                }
                AnnotationBody::KeyValue(pairs) => {
                    let mut l = Message::default();
                    for (k, v) in pairs {
                        let mut pair = Message::default();
                        pair.string("key", &k.name);
                        pair.message("value", self.value(v));
                        l.message("kv_pairs", pair);
                    }
                    s.message("kv_pair_list", l);
                }
                _ => continue,
            }
            m.message("structured_annotations", s);
        }
    }

    /// `@brief` and `@description`.
    pub(super) fn documentation(&self, m: &mut Message, annos: &[Annotation]) {
        let brief = string_annotation(annos, "brief");
        let description = string_annotation(annos, "description");
        if brief.is_none() && description.is_none() {
            return;
        }
        let mut doc = Message::default();
        if let Some(b) = brief {
            doc.string("brief", &b);
        }
        if let Some(d) = description {
            doc.string("description", &d);
        }
        m.message("doc", doc);
    }
}

fn unstructured(a: &Annotation) -> Option<String> {
    match &a.body {
        AnnotationBody::None => Some(format!("@{}", a.name.name)),
        AnnotationBody::Tokens { raw, .. } if raw.is_empty() => Some(format!("@{}", a.name.name)),
        AnnotationBody::Tokens { raw, .. } => {
            let parsed = PARSED.contains(&&*a.name.name);
            let mut text = String::new();
            for t in raw {
                let comma = !t.is_string && t.text == ",";
                if !text.is_empty() && (!parsed || !comma) {
                    text.push(' ');
                }
                if t.is_string {
                    text.push_str(&format!("\"{}\"", t.text));
                } else {
                    text.push_str(&t.text);
                }
            }
            Some(format!("@{}({text})", a.name.name))
        }
        _ => None,
    }
}
