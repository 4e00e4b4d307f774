//! Annotations and documentation.

use num_traits::ToPrimitive;

use super::Emitter;
use super::text::Message;
use crate::ast::{Annotation, AnnotationBody, Expr, ExprKind};

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
                        l.message("expressions", value(e));
                    }
                    s.message("expression_list", l);
                }
                AnnotationBody::KeyValue(pairs) => {
                    let mut l = Message::default();
                    for (k, v) in pairs {
                        let mut pair = Message::default();
                        pair.string("key", &k.name);
                        pair.message("value", value(v));
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
        let brief = crate::lower::string_annotation(annos, "brief");
        let description = crate::lower::string_annotation(annos, "description");
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

fn value(e: &Expr) -> Message {
    let mut m = Message::default();
    match &e.kind {
        ExprKind::Str(s) => m.string("string_value", s),
        ExprKind::Int { value, .. } => {
            m.raw("int64_value", &value.to_i64().unwrap_or(0).to_string())
        }
        ExprKind::Bool(b) => m.raw("bool_value", if *b { "true" } else { "false" }),
        ExprKind::Unary(crate::ast::UnOp::Neg, x) => {
            if let ExprKind::Int { value, .. } = &x.kind {
                m.raw("int64_value", &(-value).to_string());
            }
        }
        _ => {}
    }
    m
}

fn unstructured(a: &Annotation) -> Option<String> {
    match &a.body {
        AnnotationBody::None => Some(format!("@{}", a.name.name)),
        AnnotationBody::Tokens { raw, .. } if raw.is_empty() => Some(format!("@{}()", a.name.name)),
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
