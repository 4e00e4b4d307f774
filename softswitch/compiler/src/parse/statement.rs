// SPDX-License-Identifier: Apache-2.0
//! Statements.

use super::{Failed, PResult, Parser};
use crate::ast::{Arg, BinOp, Block, Decl, DeclKind, Expr, ExprKind, Stmt, StmtKind, SwitchCase};
use crate::token::Tok;

const COMPOUND: &[(&str, BinOp)] = &[
    ("+=", BinOp::Add),
    ("-=", BinOp::Sub),
    ("|+|=", BinOp::SatAdd),
    ("|-|=", BinOp::SatSub),
    ("*=", BinOp::Mul),
    ("/=", BinOp::Div),
    ("%=", BinOp::Mod),
    ("&=", BinOp::BitAnd),
    ("|=", BinOp::BitOr),
    ("^=", BinOp::BitXor),
    ("<<=", BinOp::Shl),
];

impl Parser<'_> {
    /// A block; annotations before it say nothing to this target.
    pub(super) fn block(&mut self) -> PResult<Block> {
        self.annotations()?;
        self.scoped(|p| {
            p.expect("{")?;
            let stmts = p.statements()?;
            p.expect("}")?;
            Ok(Block { stmts })
        })
    }

    /// Statements up to a `}` or `transition`.
    pub(super) fn statements(&mut self) -> PResult<Vec<Stmt>> {
        let mut stmts = Vec::new();
        while !self.at("}") && !self.at_eof() && !self.at_word("transition") {
            let start = self.pos;
            match self.nested(|p| p.statement_or_declaration()) {
                Ok(s) => stmts.push(s),
                Err(Failed) if self.silent > 0 => return Err(Failed),
                Err(Failed) => self.resync(start),
            }
        }
        Ok(stmts)
    }

    /// Parses the body of a condition or a loop, which cannot be a declaration.
    fn statement(&mut self) -> PResult<Stmt> {
        if self.at_word("const") || self.at_declaration() {
            return Err(self.unexpected("a statement"));
        }
        self.nested(|p| p.statement_or_declaration())
    }

    fn statement_or_declaration(&mut self) -> PResult<Stmt> {
        let start = self.span();
        let annotated = self.at("@");
        let annos = self.annotations()?;
        let may_be_annotated = self.at("{")
            || ["for", "const"].iter().any(|w| self.at_word(w))
            || self.at_declaration();
        if annotated && !may_be_annotated {
            return Err(self.unexpected("a block or a declaration"));
        }
        let kind = match self.tok().clone() {
            Tok::P(";") => {
                self.bump();
                StmtKind::Empty
            }
            Tok::P("{") => StmtKind::Block(self.block()?),
            Tok::Ident(w) => match &*w {
                "if" => self.if_statement()?,
                "switch" => self.switch_statement()?,
                "for" => self.scoped(|p| p.for_statement())?,
                "return" => {
                    self.bump();
                    let value = if self.at(";") {
                        None
                    } else {
                        Some(self.expr()?)
                    };
                    self.expect(";")?;
                    StmtKind::Return(value)
                }
                "exit" => self.simple(StmtKind::Exit)?,
                "break" => self.simple(StmtKind::Break)?,
                "continue" => self.simple(StmtKind::Continue)?,
                "const" => StmtKind::Decl(Box::new(self.constant(annos)?)),
                _ if self.at_declaration() => StmtKind::Decl(Box::new(self.local_variable(annos)?)),
                _ => self.assignment_or_call(true)?,
            },
            _ if self.at_declaration() => StmtKind::Decl(Box::new(self.local_variable(annos)?)),
            _ => self.assignment_or_call(true)?,
        };
        Ok(Stmt {
            span: start.to(self.last_span()),
            kind,
        })
    }

    fn simple(&mut self, kind: StmtKind) -> PResult<StmtKind> {
        self.bump();
        self.expect(";")?;
        Ok(kind)
    }

    /// Returns true if a variable or instance declaration starts here (and not an expression that
    /// begins with a type, such as `T.apply()` or `error.X`).
    fn at_declaration(&mut self) -> bool {
        if !self.at_type() {
            return false;
        }
        match self.tok() {
            Tok::Ident(n)
                if matches!(&**n, "bool" | "bit" | "int" | "varbit" | "string" | "tuple") =>
            {
                return true;
            }
            _ => {}
        }
        let pos = self.pos;
        let next_id = self.next_id;
        let found = self
            .speculate(|p| {
                p.type_ref()?;
                if p.at("(") {
                    // An instantiation: `Type(args) name`.
                    p.args()?;
                }
                if matches!(p.tok(), Tok::Ident(_)) {
                    Ok(())
                } else {
                    Err(Failed)
                }
            })
            .is_some();
        self.pos = pos;
        self.next_id = next_id;
        found
    }

    /// `type name [= e];` or `type(args) name;`
    pub(super) fn local_variable(&mut self, annos: Vec<crate::ast::Annotation>) -> PResult<Decl> {
        let start = self.span();
        let ty = self.type_ref()?;
        if self.at("(") {
            return self.instantiation_rest(annos, start, ty);
        }
        let (name, ty) = self.declarator(ty)?;
        let init = if self.eat("=") {
            Some(self.expr()?)
        } else {
            None
        };
        self.expect(";")?;
        self.declare(&name.name, false);
        let id = self.id();
        let span = start.to(self.last_span());
        Ok(Decl {
            id,
            name,
            span,
            annos,
            kind: DeclKind::Var { ty, init },
        })
    }

    fn if_statement(&mut self) -> PResult<StmtKind> {
        self.bump();
        self.expect("(")?;
        let cond = self.expr()?;
        self.expect(")")?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.eat_word("else") {
            Some(Box::new(self.statement()?))
        } else {
            None
        };
        Ok(StmtKind::If {
            cond,
            then,
            otherwise,
        })
    }

    fn switch_statement(&mut self) -> PResult<StmtKind> {
        self.bump();
        self.expect("(")?;
        let subject = self.expr()?;
        self.expect(")")?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.at("}") {
            let start = self.span();
            let label = if self.eat_word("default") {
                None
            } else {
                Some(self.expr()?)
            };
            self.expect(":")?;
            let body = if self.at("{") || self.at("@") {
                Some(self.block()?)
            } else {
                None
            };
            cases.push(SwitchCase {
                label,
                span: start,
                body,
            });
        }
        self.expect("}")?;
        Ok(StmtKind::Switch { subject, cases })
    }

    fn for_statement(&mut self) -> PResult<StmtKind> {
        self.bump();
        self.expect("(")?;
        if let Some(var) = self.for_in_head() {
            let over = self.keyset_item()?;
            self.expect(")")?;
            self.declare(&var.name.name.clone(), false);
            let body = Box::new(self.statement()?);
            return Ok(StmtKind::ForIn {
                var: Box::new(var),
                over,
                body,
            });
        }
        let init = self.list(";", |p| p.for_clause())?;
        let cond = self.expr()?;
        self.expect(";")?;
        let update = self.list(")", |p| p.for_clause())?;
        let body = Box::new(self.statement()?);
        Ok(StmtKind::For {
            init,
            cond,
            update,
            body,
        })
    }

    /// `T x in`
    fn for_in_head(&mut self) -> Option<Decl> {
        let start = self.span();
        self.speculate(|p| {
            let annos = p.annotations()?;
            let ty = p.type_ref()?;
            let name = p.ident()?;
            if !p.eat_word("in") {
                return Err(Failed);
            }
            let id = p.id();
            let span = start.to(name.span);
            let kind = DeclKind::Var { ty, init: None };
            Ok(Decl {
                id,
                name,
                span,
                annos,
                kind,
            })
        })
    }

    fn for_clause(&mut self) -> PResult<Stmt> {
        let start = self.span();
        let annos = self.annotations()?;
        if self.at_declaration() {
            let ty = self.type_ref()?;
            let (name, ty) = self.declarator(ty)?;
            let init = if self.eat("=") {
                Some(self.expr()?)
            } else {
                None
            };
            self.declare(&name.name, false);
            let id = self.id();
            let span = start.to(self.last_span());
            let decl = Decl {
                id,
                name,
                span,
                annos,
                kind: DeclKind::Var { ty, init },
            };
            return Ok(Stmt {
                span,
                kind: StmtKind::Decl(Box::new(decl)),
            });
        }
        let kind = self.assignment_or_call(false)?;
        Ok(Stmt {
            span: start.to(self.last_span()),
            kind,
        })
    }

    fn assignment_or_call(&mut self, semicolon: bool) -> PResult<StmtKind> {
        let lhs = self.lvalue_or_call()?;
        let kind = if self.eat("=") {
            let rhs = self.expr()?;
            StmtKind::Assign { lhs, op: None, rhs }
        } else if self.at_shift_right(">=") {
            self.bump();
            self.bump();
            let rhs = self.expr()?;
            StmtKind::Assign {
                lhs,
                op: Some(BinOp::Shr),
                rhs,
            }
        } else if let Some((_, op)) = COMPOUND.iter().find(|(text, _)| self.at(text)) {
            self.bump();
            let rhs = self.expr()?;
            StmtKind::Assign {
                lhs,
                op: Some(*op),
                rhs,
            }
        } else if matches!(lhs.kind, ExprKind::Call { .. }) {
            StmtKind::Call(lhs)
        } else if let (Some(name), Tok::Ident(_)) = (type_like(&lhs), self.tok()) {
            return Err(self.no_type(lhs.span, name));
        } else {
            return Err(self.unexpected("'=' or '('"));
        };
        if semicolon {
            self.expect(";")?;
        }
        Ok(kind)
    }

    fn lvalue_or_call(&mut self) -> PResult<Expr> {
        // A full postfix expression; the checker says what may be assigned to.
        if self.at("(") || matches!(self.tok(), Tok::Ident(_) | Tok::P(".")) {
            return self.postfix_expr();
        }
        Err(self.unexpected("a statement"))
    }

    /// Constructor or call arguments followed by `name ;`, or `name = { body } ;`.
    pub(super) fn instantiation_rest(
        &mut self,
        annos: Vec<crate::ast::Annotation>,
        start: crate::diag::Span,
        ty: crate::ast::TypeRef,
    ) -> PResult<Decl> {
        let args: Vec<Arg> = self.args()?;
        let (name, ty) = self.declarator(ty)?;
        let mut body = None;
        if self.eat("=") {
            self.expect("{")?;
            let body = body.insert(Vec::new());
            self.scoped(|p| {
                while !p.at("}") && !p.at_eof() {
                    let annos = p.annotations()?;
                    body.push(p.function_or_instance(annos)?);
                }
                Ok(())
            })?;
            self.expect("}")?;
        }
        self.expect(";")?;
        self.declare(&name.name, false);
        let id = self.id();
        Ok(Decl {
            id,
            name,
            span: start.to(self.last_span()),
            annos,
            kind: DeclKind::Instance { ty, args, body },
        })
    }
}

/// The name that a variable's declaration would begin with if it were a type's: that of `T` or `T[n]`.
fn type_like(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Name { name, .. } => Some(name),
        ExprKind::Index(stack, _) => type_like(stack),
        _ => None,
    }
}
