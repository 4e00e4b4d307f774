// SPDX-License-Identifier: Apache-2.0
//! Checks targets of assignments.

use super::Checker;
use crate::ast::{DeclKind, Direction, Expr, ExprKind};
use crate::types::{Def, Type};

impl Checker<'_> {
    /// Checks that the (checked) expression names writable storage; the error says why not.
    pub(super) fn lvalue(&self, e: &Expr) -> Result<(), String> {
        match &e.kind {
            ExprKind::Name { name, .. } => {
                let Some(&id) = self.names.get(&e.id) else {
                    return Ok(());
                };
                match self.defs.get(id) {
                    Some(Def::Param(p)) => match p.dir {
                        Direction::Out | Direction::InOut => Ok(()),
                        Direction::In => Err(format!(
                            "'{name}' is an 'in' parameter and cannot be written"
                        )),
                        Direction::None => Err(format!(
                            "parameter '{name}' has no direction and cannot be written"
                        )),
                    },
                    Some(Def::Decl(d)) => match &d.kind {
                        DeclKind::Var { .. } => Ok(()),
                        DeclKind::Const { .. } => Err(format!("'{name}' is a constant")),
                        _ => Err(format!("'{name}' cannot be written")),
                    },
                    _ => Err(format!("'{name}' cannot be written")),
                }
            }
            ExprKind::Member(base, name) => {
                if matches!(self.type_of(base.id), Type::Meta(_)) {
                    return Err("a constant cannot be written".into());
                }
                if matches!(self.type_of(base.id), Type::Stack(..))
                    && matches!(&*name.name, "last" | "lastIndex" | "size")
                {
                    return Err(format!("'{}' of a stack cannot be written", name.name));
                }
                self.lvalue(base)
            }
            ExprKind::Index(base, _)
            | ExprKind::Slice(base, ..)
            | ExprKind::PlusSlice(base, ..) => self.lvalue(base),
            ExprKind::Cast(_, _) => Err("a cast cannot be written to".into()),
            _ => Err("this expression cannot be written to".into()),
        }
    }
}
