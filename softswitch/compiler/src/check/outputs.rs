//! Warnings of out parameters that may have no value when their action or function ends.

use super::Checker;
use crate::ast::{Block, CompositeKind, Direction, Expr, ExprKind, NodeId, Param, Stmt, StmtKind};
use crate::diag::Warning;
use crate::types::Type;

impl Checker<'_> {
    /// Of a parameter of which a part is set nothing is said: the rest may be meant to have no value. Headers always have
    /// one: they are not valid.
    pub(super) fn outputs(&self, params: &[Param], body: &Block) {
        for p in params.iter().filter(|p| p.dir == Direction::Out) {
            let ty = self.resolve(&self.type_of(p.id));
            let is_header = matches!(ty, Type::Stack(..))
                || matches!(
                    self.composite_kind(&ty),
                    Some(CompositeKind::Header | CompositeKind::Union)
                );
            let mut returns = false;
            if !is_header && (!self.sets(&body.stmts, p.id, &mut returns) || returns) {
                let message = format!(
                    "out parameter '{}' may have no value at the end",
                    p.name.name
                );
                self.diags
                    .warn(Warning::UninitializedOut, p.name.span, message);
            }
        }
    }

    /// Whether the statements set the variable on every way through them, or end all; and in `returns`, whether there is
    /// one that returns before.
    fn sets(&self, stmts: &[Stmt], id: NodeId, returns: &mut bool) -> bool {
        stmts.iter().any(|s| match &s.kind {
            StmtKind::Assign { lhs, rhs, .. } => self.is_of(lhs, id) || self.called_with(rhs, id),
            StmtKind::Call(e) => self.called_with(e, id),
            StmtKind::Return(value) => {
                *returns |= !value.as_ref().is_some_and(|e| self.called_with(e, id));
                true
            }
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue => true,
            StmtKind::Block(b) => self.sets(&b.stmts, id, returns),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let mut set = |s: &Stmt| self.sets(std::slice::from_ref(s), id, returns);
                // Both are walked, for what returns in them.
                self.called_with(cond, id) || set(then) & otherwise.as_deref().is_some_and(&mut set)
            }
            StmtKind::Switch { cases, .. } => {
                let mut all = cases.iter().any(|c| c.label.is_none());
                for body in cases.iter().filter_map(|c| c.body.as_ref()) {
                    all &= self.sets(&body.stmts, id, returns);
                }
                all
            }
            // Of a loop it is taken that it has a round.
            StmtKind::For { body, .. } | StmtKind::ForIn { body, .. } => {
                self.sets(std::slice::from_ref(body), id, returns)
            }
            _ => false,
        })
    }

    /// Whether this is the variable or a part of it.
    fn is_of(&self, e: &Expr, id: NodeId) -> bool {
        match &e.kind {
            ExprKind::Name { .. } => self.names.get(&e.id) == Some(&id),
            ExprKind::Member(b, _)
            | ExprKind::Index(b, _)
            | ExprKind::Slice(b, ..)
            | ExprKind::PlusSlice(b, ..) => self.is_of(b, id),
            _ => false,
        }
    }

    /// Whether a call gets the variable, be it as an argument or to do something to it, such as `setValid`.
    fn called_with(&self, e: &Expr, id: NodeId) -> bool {
        let mut found = false;
        e.visit(&mut |x| {
            if let ExprKind::Call { callee, args, .. } = &x.kind {
                found |= args.iter().any(|a| self.is_of(&a.expr, id)) || self.is_of(callee, id);
            }
        });
        found
    }
}
