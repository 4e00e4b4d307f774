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
    let a = annos.iter().find(|a| &*a.name.name == which)?;
    match &a.body {
        AnnotationBody::Tokens { raw, .. } if raw.len() == 1 && raw[0].is_string => {
            Some(raw[0].text.clone())
        }
        _ => None,
    }
}

/// Returns the argument of `@match(...)`, which a field of a value set's type may have.
pub(crate) fn match_annotation(annos: &[Annotation]) -> Option<String> {
    let a = annos.iter().find(|a| &*a.name.name == "match")?;
    match &a.body {
        AnnotationBody::Tokens { exprs, .. } => match exprs.first().map(|e| &e.kind) {
            Some(ExprKind::Name { name, .. }) => Some(name.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the number in `@name(number)`.
pub(crate) fn int_annotation(annos: &[Annotation], name: &str) -> Option<(BigInt, Span)> {
    let a = annos.iter().find(|a| &*a.name.name == name)?;
    match &a.body {
        AnnotationBody::Tokens { exprs, .. } => match exprs.first().map(|e| &e.kind) {
            Some(ExprKind::Int { value, .. }) => Some((value.clone(), a.span)),
            _ => None,
        },
        _ => None,
    }
}
