// SPDX-License-Identifier: Apache-2.0
//! Checks the entries of tables.

use super::Checker;
use crate::ast::TableDecl;

impl<'a> Checker<'a> {
    /// Checks priorities: only keys that several entries may match have them, and if an entry has one, the first must.
    pub(super) fn priorities(&self, t: &TableDecl, entries: &crate::ast::Entries) {
        let needed = t
            .keys
            .iter()
            .flatten()
            .any(|k| matches!(&*k.match_kind.name, "ternary" | "range" | "optional"));
        let why = if entries.is_const {
            "const entries cannot have priorities: the first match wins"
        } else {
            "entries of this table do not need a priority: at most one of them matches"
        };
        for e in entries.list.iter().filter(|_| entries.is_const || !needed) {
            if let Some(p) = &e.priority {
                self.error(p.span, why);
            }
        }
        let some = entries.list.iter().any(|e| e.priority.is_some());
        if let Some(first) = entries
            .list
            .first()
            .filter(|e| needed && some && e.priority.is_none())
        {
            self.diags.error_hint(
                first.span,
                "the first entry needs a priority, because others have one",
                "write priority=N: ...; later entries can continue from it",
            );
        }
    }
}
