// SPDX-License-Identifier: Apache-2.0
//! Reads the arguments of annotations that both the target and P4Info use.

use num_bigint::BigInt;

use crate::ast::{Annotation, AnnotationBody, ExprKind};
use crate::diag::Span;

/// Returns the argument of `@name("...")`.
pub(crate) fn name_annotation(annos: &[Annotation]) -> Option<String> {
    string_annotation(annos, "name")
}

/// Returns the argument of `@which("...")`.
pub(crate) fn string_annotation(annos: &[Annotation], which: &str) -> Option<String> {
    match &find(annos, which)?.body {
        AnnotationBody::Tokens { raw, .. } if raw.len() == 1 && raw[0].is_string => {
            Some(raw[0].text.clone())
        }
        _ => None,
    }
}

/// Returns the arguments of `@which("...", "...")`.
pub(crate) fn two_strings(annotation: &Annotation) -> Option<[String; 2]> {
    let AnnotationBody::Tokens { raw, .. } = &annotation.body else {
        return None;
    };
    match &raw[..] {
        [a, _, b] if a.is_string && b.is_string => Some([a.text.clone(), b.text.clone()]),
        _ => None,
    }
}

/// Returns the argument of `@match(...)`, which a field of a value set's type may have.
pub(crate) fn match_annotation(annos: &[Annotation]) -> Option<String> {
    match first_expression(find(annos, "match")?)? {
        ExprKind::Name { name, .. } => Some(name.to_string()),
        _ => None,
    }
}

/// Returns the number in `@name(number)`.
pub(crate) fn int_annotation(annos: &[Annotation], name: &str) -> Option<(BigInt, Span)> {
    let annotation = find(annos, name)?;
    match first_expression(annotation)? {
        ExprKind::Int { value, .. } => Some((value.clone(), annotation.span)),
        _ => None,
    }
}

/// Returns the annotation with this name.
pub(crate) fn find<'a>(annos: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annos.iter().find(|a| &*a.name.name == name)
}

fn first_expression(annotation: &Annotation) -> Option<&ExprKind> {
    match &annotation.body {
        AnnotationBody::Tokens { exprs, .. } => exprs.first().map(|e| &e.kind),
        _ => None,
    }
}
