// SPDX-License-Identifier: Apache-2.0
//! The syntax tree, as parsed.
//!
//! Every declaration, expression and type reference has a [`NodeId`] that is unique in the
//! program; later stages attach their results (types, resolved names) to these ids.

mod expr;
mod visit;

use std::rc::Rc;

use crate::diag::Span;

pub use expr::{Arg, BinOp, Expr, ExprKind, TypeRef, TypeRefKind, UnOp};
pub use visit::visit_exprs;

pub type NodeId = u32;
pub type Name = Rc<str>;

#[derive(Clone, Debug)]
pub struct Ident {
    pub name: Name,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub decls: Vec<Decl>,
    /// One more than the largest node id in use.
    pub node_count: u32,
}

/// `@name`, `@name(expressions)`, `@name[structured]`; `text` is the body as written.
#[derive(Clone, Debug)]
pub struct Annotation {
    pub name: Ident,
    pub span: Span,
    pub body: AnnotationBody,
}

#[derive(Clone, Debug)]
pub enum AnnotationBody {
    None,
    /// Unstructured `( ... )`: the tokens' spellings (strings unquoted), and the parsed
    /// expressions where the text is a list of expressions.
    Tokens {
        raw: Vec<RawToken>,
        exprs: Vec<Expr>,
    },
    /// `[ e, ... ]`
    List(Vec<Expr>),
    /// `[ k = e, ... ]`
    KeyValue(Vec<(Ident, Expr)>),
}

#[derive(Clone, Debug)]
pub struct RawToken {
    pub text: String,
    pub is_string: bool,
}

#[derive(Clone, Debug)]
pub struct Decl {
    pub id: NodeId,
    pub name: Ident,
    pub span: Span,
    pub annos: Vec<Annotation>,
    pub kind: DeclKind,
}

#[derive(Clone, Debug)]
pub enum DeclKind {
    Const {
        ty: TypeRef,
        init: Expr,
    },
    Var {
        ty: TypeRef,
        init: Option<Expr>,
    },
    Instance {
        ty: TypeRef,
        args: Vec<Arg>,
        /// `= { methods }`
        body: Option<Vec<Decl>>,
    },
    Extern {
        tparams: Vec<TypeParam>,
        methods: Vec<Method>,
    },
    /// A function, or an extern function if there is no body.
    Function {
        sig: Signature,
        body: Option<Block>,
    },
    Action {
        params: Vec<Param>,
        body: Block,
    },
    Parser(ParserDecl),
    Control(ControlDecl),
    Package {
        tparams: Vec<TypeParam>,
        params: Vec<Param>,
    },
    Composite {
        kind: CompositeKind,
        tparams: Vec<TypeParam>,
        fields: Vec<Field>,
    },
    Enum {
        underlying: Option<TypeRef>,
        members: Vec<EnumMember>,
    },
    Errors(Vec<Ident>),
    MatchKinds(Vec<Ident>),
    Typedef(TypeRef),
    NewType(TypeRef),
    Table(TableDecl),
    ValueSet {
        ty: TypeRef,
        size: Expr,
    },
}

impl DeclKind {
    /// Returns the run-time parameters of a control or a parser.
    pub fn params(&self) -> &[Param] {
        match self {
            Self::Control(c) => &c.params,
            Self::Parser(p) => &p.params,
            _ => &[],
        }
    }

    /// Returns true if the declaration's name is a type.
    pub fn is_type(&self) -> bool {
        matches!(
            self,
            Self::Typedef(_)
                | Self::NewType(_)
                | Self::Enum { .. }
                | Self::Composite { .. }
                | Self::Extern { .. }
                | Self::Package { .. }
                | Self::Parser(_)
                | Self::Control(_)
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompositeKind {
    Struct,
    Header,
    Union,
}

#[derive(Clone, Debug)]
pub struct TypeParam {
    pub id: NodeId,
    pub name: Ident,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub id: NodeId,
    pub name: Ident,
    pub ty: TypeRef,
    pub annos: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub struct EnumMember {
    pub id: NodeId,
    pub name: Ident,
    pub value: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct Signature {
    pub tparams: Vec<TypeParam>,
    pub ret: TypeRef,
    pub params: Vec<Param>,
}

/// A method of an extern; constructors have the extern's own name.
#[derive(Clone, Debug)]
pub struct Method {
    pub id: NodeId,
    pub name: Ident,
    pub sig: Signature,
    pub is_abstract: bool,
    /// True if instances need not implement the abstract method.
    pub is_optional: bool,
    pub is_constructor: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    None,
    In,
    Out,
    InOut,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub id: NodeId,
    pub name: Ident,
    pub span: Span,
    pub dir: Direction,
    pub ty: TypeRef,
    pub default: Option<Expr>,
    pub annos: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub struct ParserDecl {
    pub tparams: Vec<TypeParam>,
    pub params: Vec<Param>,
    pub ctor_params: Vec<Param>,
    pub locals: Vec<Decl>,
    pub states: Vec<State>,
    /// A parser *type*: no body.
    pub is_type: bool,
}

#[derive(Clone, Debug)]
pub struct State {
    pub id: NodeId,
    pub name: Ident,
    pub annos: Vec<Annotation>,
    pub body: Vec<Stmt>,
    pub transition: Transition,
}

#[derive(Clone, Debug)]
pub enum Transition {
    /// No transition statement: the same as `reject`.
    Missing,
    Direct(Ident),
    Select {
        keys: Vec<Expr>,
        cases: Vec<SelectCase>,
        span: Span,
    },
}

#[derive(Clone, Debug)]
pub struct SelectCase {
    pub keyset: Expr,
    pub target: Ident,
}

#[derive(Clone, Debug)]
pub struct ControlDecl {
    pub tparams: Vec<TypeParam>,
    pub params: Vec<Param>,
    pub ctor_params: Vec<Param>,
    pub locals: Vec<Decl>,
    pub body: Block,
    pub is_type: bool,
}

#[derive(Clone, Debug)]
pub struct TableDecl {
    pub keys: Option<Vec<KeyElement>>,
    pub actions: Option<Vec<ActionRef>>,
    pub default_action: Option<DefaultAction>,
    pub entries: Option<Entries>,
    /// All other properties.
    pub properties: Vec<Property>,
}

#[derive(Clone, Debug)]
pub struct KeyElement {
    pub expr: Expr,
    pub match_kind: Ident,
    pub annos: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub struct ActionRef {
    /// A name or a call.
    pub expr: Expr,
    pub annos: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub struct DefaultAction {
    pub expr: Expr,
    pub is_const: bool,
}

#[derive(Clone, Debug)]
pub struct Entries {
    pub is_const: bool,
    pub list: Vec<Entry>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub is_const: bool,
    pub priority: Option<Expr>,
    pub keyset: Expr,
    pub action: Expr,
    pub annos: Vec<Annotation>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Property {
    pub name: Ident,
    pub value: Expr,
    pub annos: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub stmts: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub span: Span,
    pub kind: StmtKind,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    Empty,
    Block(Block),
    Decl(Box<Decl>),
    /// `op` is the operator of a compound assignment.
    Assign {
        lhs: Expr,
        op: Option<BinOp>,
        rhs: Expr,
    },
    Call(Expr),
    If {
        cond: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    Return(Option<Expr>),
    Exit,
    Switch {
        subject: Expr,
        cases: Vec<SwitchCase>,
    },
    For {
        init: Vec<Stmt>,
        cond: Expr,
        update: Vec<Stmt>,
        body: Box<Stmt>,
    },
    ForIn {
        var: Box<Decl>,
        over: Expr,
        body: Box<Stmt>,
    },
    Break,
    Continue,
}

#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// `None` for `default`.
    pub label: Option<Expr>,
    pub span: Span,
    /// `None`: falls through to the next case's block.
    pub body: Option<Block>,
}
