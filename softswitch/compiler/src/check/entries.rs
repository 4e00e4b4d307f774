//! The entries that a program gives its tables.

use super::Checker;
use crate::ast::TableDecl;

impl<'a> Checker<'a> {
    /// Priorities are for keys that several entries may match; if any entry has one, the first has.
    pub(super) fn priorities(&self, t: &TableDecl, entries: &crate::ast::Entries) {
        let needed = t
            .keys
            .iter()
            .flatten()
            .any(|k| matches!(&*k.match_kind.name, "ternary" | "range" | "optional"));
        let why = if entries.is_const {
            "const entries have no priorities: the first that matches counts"
        } else {
            "entries of this table need no priority: its keys match at most one"
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
                "the first entry has no priority, although others have",
                "give it one: priority=N: ...; later ones can go on from it",
            );
        }
    }
}
