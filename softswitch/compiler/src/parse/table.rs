// SPDX-License-Identifier: Apache-2.0
//! Tables.

use super::{Failed, PResult, Parser};
use crate::ast::{
    ActionRef, Annotation, Decl, DeclKind, DefaultAction, Entries, Entry, Expr, ExprKind,
    KeyElement, Property, TableDecl,
};

impl Parser<'_> {
    pub(super) fn table(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, false);
        let mut t = TableDecl {
            keys: None,
            actions: None,
            default_action: None,
            entries: None,
            properties: Vec::new(),
        };
        self.expect("{")?;
        if self.at("}") {
            self.unexpected("a property of the table");
        }
        while !self.at("}") && !self.at_eof() {
            let at = self.pos;
            if let Err(Failed) = self.table_property(&mut t) {
                if self.silent > 0 {
                    return Err(Failed);
                }
                self.resync(at);
            }
        }
        self.expect("}")?;
        let id = self.id();
        Ok(Decl {
            id,
            name,
            span: start.to(self.last_span()),
            annos,
            kind: DeclKind::Table(t),
        })
    }

    fn table_property(&mut self, t: &mut TableDecl) -> PResult<()> {
        let annos = self.annotations()?;
        let is_const = self.eat_word("const");
        if (is_const || !annos.is_empty()) && (self.at_word("key") || self.at_word("actions")) {
            return Err(self.unexpected("another property"));
        }
        let name = self.ident()?;
        let twice = |set: bool, p: &Self| {
            if set {
                p.fail(
                    name.span,
                    format!("duplicate table property '{}'", name.name),
                );
            }
        };
        self.expect("=")?;
        match &*name.name {
            "key" => {
                twice(t.keys.is_some(), self);
                t.keys = Some(self.braced_list(|p| p.key_element())?);
            }
            "actions" => {
                twice(t.actions.is_some(), self);
                t.actions = Some(self.braced_list(|p| p.action_ref())?);
            }
            "default_action" => {
                twice(t.default_action.is_some(), self);
                let expr = self.expr()?;
                self.expect(";")?;
                t.default_action = Some(DefaultAction { expr, is_const });
            }
            "entries" => {
                twice(t.entries.is_some(), self);
                let list = self.braced_list(|p| p.entry())?;
                t.entries = Some(Entries {
                    is_const,
                    list,
                    span: name.span,
                });
            }
            _ => {
                let value = self.expr()?;
                self.expect(";")?;
                t.properties.push(Property { name, value, annos });
            }
        }
        Ok(())
    }

    fn braced_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> PResult<T>) -> PResult<Vec<T>> {
        self.expect("{")?;
        let mut list = Vec::new();
        while !self.at("}") && !self.at_eof() {
            let at = self.pos;
            match item(self) {
                Ok(x) => list.push(x),
                Err(Failed) if self.silent > 0 => return Err(Failed),
                Err(Failed) => self.resync(at),
            }
        }
        self.expect("}")?;
        Ok(list)
    }

    fn key_element(&mut self) -> PResult<KeyElement> {
        let expr = self.expr()?;
        self.expect(":")?;
        let match_kind = self.ident()?;
        let annos = self.annotations()?;
        self.expect(";")?;
        Ok(KeyElement {
            expr,
            match_kind,
            annos,
        })
    }

    fn action_ref(&mut self) -> PResult<ActionRef> {
        let annos = self.annotations()?;
        let expr = self.action_call()?;
        self.expect(";")?;
        Ok(ActionRef { expr, annos })
    }

    /// An action's name, perhaps with arguments.
    fn action_call(&mut self) -> PResult<Expr> {
        let name = self.primary()?;
        if !matches!(name.kind, ExprKind::Name { .. }) {
            return Err(self.fail(name.span, "syntax error: expected the name of an action"));
        }
        if !self.at("(") {
            return Ok(name);
        }
        self.call_of(name, Vec::new())
    }

    fn entry(&mut self) -> PResult<Entry> {
        let start = self.span();
        let is_const = self.eat_word("const");
        let mut priority = None;
        if self.at_word("priority") && self.peek_at(1, "=") {
            self.bump();
            self.bump();
            priority = Some(self.primary()?);
            self.expect(":")?;
        }
        let keyset = self.keyset()?;
        self.expect(":")?;
        let action = self.action_call()?;
        let annos = self.annotations()?;
        self.expect(";")?;
        Ok(Entry {
            is_const,
            priority,
            keyset,
            action,
            annos,
            span: start.to(self.last_span()),
        })
    }
}
