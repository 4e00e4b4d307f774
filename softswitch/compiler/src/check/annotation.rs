// SPDX-License-Identifier: Apache-2.0
//! Checks annotations that the language or v1model defines.

use super::Checker;
use crate::ast::{Annotation, AnnotationBody, BinOp, Expr, ExprKind, RawToken};
use crate::types::Type;

/// Annotations without arguments.
const WITHOUT_ARGUMENTS: [&str; 12] = [
    "atomic",
    "defaultonly",
    "disable_optimization",
    "hidden",
    "likely",
    "noSideEffects",
    "nounroll",
    "optional",
    "pure",
    "tableonly",
    "unlikely",
    "unroll",
];

impl<'a> Checker<'a> {
    /// Checks the annotations of one declaration, parameter, field or part of a table.
    pub(super) fn annotations(&mut self, annos: &'a [Annotation]) {
        for (i, a) in annos.iter().enumerate() {
            let again = annos[..i]
                .iter()
                .any(|b| b.name.name == a.name.name && (is_structured(a) || is_structured(b)));
            if again {
                self.error(
                    a.span,
                    format!(
                        "duplicate annotation @{}: an annotation with [ ] must be unique",
                        a.name.name
                    ),
                );
            }
            self.annotation(a);
        }
    }

    fn annotation(&mut self, a: &'a Annotation) {
        match &a.body {
            AnnotationBody::List(list) => list.iter().for_each(|e| self.structured_value(e)),
            AnnotationBody::KeyValue(pairs) => {
                for (i, (key, e)) in pairs.iter().enumerate() {
                    if pairs[..i].iter().any(|(k, _)| k.name == key.name) {
                        self.error(key.span, format!("duplicate key '{}'", key.name));
                    }
                    self.structured_value(e);
                }
            }
            AnnotationBody::Tokens { raw, exprs } => self.unstructured(a, raw, exprs),
            AnnotationBody::None => match &*a.name.name {
                "name" | "deprecated" => self.wants_string(a),
                "pkginfo" => self.diags.error_hint(
                    a.span,
                    "annotation @pkginfo is empty",
                    "write @pkginfo(name=\"...\", version=\"...\")",
                ),
                _ => {}
            },
        }
    }

    fn structured_value(&mut self, e: &'a Expr) {
        let ty = self.expr(e, None);
        match self.resolve(&ty) {
            Type::Unknown => {}
            Type::Int | Type::Bit(_) | Type::SInt(_) | Type::Bool | Type::Str => {
                if !is_string(e) && self.const_value(e).is_none() {
                    self.error(
                        e.span,
                        "the value of an annotation must be known at compile time",
                    );
                }
            }
            other => self.error(
                e.span,
                format!(
                    "the value of an annotation must be a number, a string or a bool, not {}",
                    self.show(&other)
                ),
            ),
        }
    }

    fn unstructured(&mut self, a: &'a Annotation, raw: &[RawToken], exprs: &'a [Expr]) {
        let name = &*a.name.name;
        match name {
            "name" | "deprecated" if !may_be_string(exprs) => self.wants_string(a),
            "match" => {
                let kind = match exprs {
                    [
                        Expr {
                            kind: ExprKind::Name { name, .. },
                            ..
                        },
                    ] => Some(name),
                    _ => None,
                };
                if !exprs.is_empty() && !kind.is_some_and(|k| self.match_kinds.contains(k)) {
                    self.error(a.span, "the value of @match must be a match kind");
                }
            }
            "p4runtime_translation" if !is_translation(raw) => self.diags.error_hint(
                a.span,
                "invalid arguments of @p4runtime_translation",
                "write (\"uri\", bit<W>), (\"uri\", string) or (\"uri\", W), where W is a number",
            ),
            _ if WITHOUT_ARGUMENTS.contains(&name) && !raw.is_empty() => {
                self.error(a.span, format!("annotation @{name} takes no arguments"));
            }
            _ => {}
        }
    }

    fn wants_string(&self, a: &Annotation) {
        self.diags.error_hint(
            a.span,
            format!("annotation @{} needs a string", a.name.name),
            format!("write @{}(\"...\")", a.name.name),
        );
    }
}

fn is_structured(a: &Annotation) -> bool {
    matches!(
        a.body,
        AnnotationBody::List(_) | AnnotationBody::KeyValue(_)
    )
}

/// Returns true for a string or the name of one; the list is empty if the text could not be parsed.
fn may_be_string(exprs: &[Expr]) -> bool {
    match exprs {
        [] => true,
        [e] => is_string(e) || matches!(e.kind, ExprKind::Name { .. }),
        _ => false,
    }
}

/// Returns true for a string, or several joined ones.
fn is_string(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Str(_) => true,
        ExprKind::Binary(BinOp::Concat, l, r) => is_string(l) && is_string(r),
        _ => false,
    }
}

/// `"uri", bit<W>`, `"uri", string` or `"uri", W` (P4Runtime specification, section 8.4.6).
fn is_translation(raw: &[RawToken]) -> bool {
    let texts: Vec<&str> = raw.iter().map(|t| &*t.text).collect();
    let number = |t: &str| t.starts_with(|c: char| c.is_ascii_digit());
    raw.first().is_some_and(|t| t.is_string)
        && match texts[1..] {
            [",", "string"] => true,
            [",", "bit", "<", w, ">"] => number(w),
            [",", w] => number(w),
            _ => false,
        }
}
