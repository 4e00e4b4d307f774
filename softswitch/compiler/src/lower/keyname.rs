// SPDX-License-Identifier: Apache-2.0
//! Names of keys for the control plane.

use super::Lower;
use crate::annotation::name_annotation;
use crate::ast::{DeclKind, Expr, ExprKind, KeyElement};

impl<'a> Lower<'a> {
    /// The name of a key for the control plane: as annotated, else as written.
    pub(super) fn key_name(&self, k: &KeyElement) -> String {
        name_annotation(&k.annos).unwrap_or_else(|| self.expr_text(&k.expr))
    }

    pub(super) fn expr_text(&self, e: &Expr) -> String {
        match &e.kind {
            ExprKind::Name { name, .. } => name.to_string(),
            ExprKind::Member(b, n) => {
                let field = self.field_name(b, &n.name);
                match field.strip_prefix('.') {
                    Some(absolute) => absolute.to_string(),
                    None => format!("{}.{field}", self.expr_text(b)),
                }
            }
            ExprKind::Index(b, i) => format!("{}[{}]", self.expr_text(b), self.expr_text(i)),
            ExprKind::Slice(b, hi, lo) => {
                format!(
                    "{}[{}:{}]",
                    self.expr_text(b),
                    self.expr_text(hi),
                    self.expr_text(lo)
                )
            }
            // In the base in which it is written, without its width.
            ExprKind::Int { value, .. } => {
                let written = self.sources.snippet(e.span).to_ascii_lowercase();
                if written.contains("0x") {
                    format!("{value:#x}")
                } else {
                    value.to_string()
                }
            }
            ExprKind::Call { callee, .. } => match &callee.kind {
                ExprKind::Member(b, n) if &*n.name == "isValid" => {
                    format!("{}.$valid$", self.expr_text(b))
                }
                _ => self.sources.snippet(e.span),
            },
            ExprKind::Binary(crate::ast::BinOp::BitAnd, a, b) => {
                format!("{} & {}", self.expr_text(a), self.expr_text(b))
            }
            _ => self.sources.snippet(e.span),
        }
    }

    /// A field's name for the control plane.
    pub(super) fn field_name(&self, base: &Expr, name: &str) -> String {
        let annotated = match self.t.type_of(base.id) {
            crate::types::Type::Named(id, _) => match self.t.defs.get_decl(id).map(|d| &d.kind) {
                Some(DeclKind::Composite { fields, .. }) => fields
                    .iter()
                    .find(|f| &*f.name.name == name)
                    .and_then(|f| name_annotation(&f.annos)),
                _ => None,
            },
            _ => None,
        };
        annotated.unwrap_or_else(|| name.to_string())
    }
}
