//! From the checked syntax tree to the flat program of [`crate::ir`].
//!
//! The compile-time part of the program (instantiation, constants, generics) is evaluated here and
//! all calls are inlined: an instance of a control or parser is lowered where it is applied, with
//! its parameters standing for the caller's storage.

mod action;
mod assign;
mod bind;
mod call;
mod entries;
mod expr;
mod extern_function;
mod externs;
mod fold;
mod frame;
mod keyname;
mod keyset;
mod loops;
mod name;
mod object;
mod operator;
mod packet;
mod parser;
mod program;
mod stmt;
mod storage;
mod switch;
mod table;
mod value;
mod visible;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{Decl, NodeId};
use crate::diag::{Diagnostics, SourceMap, Span};
use crate::ir::{Ex, Label, Lowered, Scalar, St, StKind};
use crate::types::{Type, Typed};

pub(crate) use expr::ones;
pub(crate) use object::{match_annotation, name_annotation, string_annotation};

use frame::{Frame, FrameRef};
use value::Val;

/// `foreign_externs`: take externs that v1model does not have for operations of the target.
pub fn lower<'a>(
    typed: &'a Typed<'a>,
    diags: &'a Diagnostics,
    sources: &'a SourceMap,
    foreign_externs: bool,
) -> Lowered<'a> {
    let mut l = Lower {
        t: typed,
        diags,
        sources,
        ir: Lowered::default(),
        frame: Rc::new(Frame::default()),
        out: Vec::new(),
        span: Span::default(),
        names: HashSet::new(),
        header_types: HashMap::new(),
        union_types: HashMap::new(),
        next_label: 0,
        returns: Vec::new(),
        loops: Vec::new(),
        blocks: Vec::new(),
        table_ids: HashMap::new(),
        action_ids: HashMap::new(),
        used_actions: Vec::new(),
        type_applied: Vec::new(),
        pending: Vec::new(),
        exit_goal: None,
        exit_flag: None,
        flagged_actions: HashSet::new(),
        inlined_actions: 0,
        foreign_externs,
        place: Place::Control,
        depth: 0,
        size: 0,
        in_egress: false,
    };
    l.program();
    l.ir
}

/// What kind of code is being lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Parser,
    Control,
    Action,
    Checksum,
    Deparser,
}

/// Where `return` goes and where it leaves its value.
struct Return {
    label: Label,
    value: Option<Val>,
}

/// An instance of a control or parser.
pub(crate) struct BlockInstance<'a> {
    pub decl: &'a Decl,
    pub frame: FrameRef,
    pub name: String,
    /// Storage of the parameters, if several calls share the instance.
    pub bound: Option<Vec<Val>>,
    pub applied: bool,
}

pub(crate) struct Lower<'a> {
    t: &'a Typed<'a>,
    diags: &'a Diagnostics,
    sources: &'a SourceMap,
    ir: Lowered<'a>,
    frame: FrameRef,
    /// Where statements are put.
    out: Vec<St>,
    /// Source of the statement at hand.
    span: Span,
    /// Names of variables and headers in use.
    names: HashSet<String>,
    header_types: HashMap<String, usize>,
    union_types: HashMap<String, usize>,
    next_label: Label,
    returns: Vec<Return>,
    /// Labels of the loops around: `(break, continue)`.
    loops: Vec<(Label, Label)>,
    blocks: Vec<BlockInstance<'a>>,
    /// Tables and actions by the instance of the control and the declaration.
    table_ids: HashMap<(usize, NodeId), usize>,
    action_ids: HashMap<(String, NodeId, String), usize>,
    used_actions: Vec<UsedAction>,
    /// Blocks applied by the name of their type, with the block around.
    type_applied: Vec<(Option<usize>, usize)>,
    /// Copies that the calls around the statement at hand make when they return.
    pending: Vec<Vec<bind::CopyOut>>,
    /// Set in a table's action if `exit` must leave it by a flag; see [`bind`].
    exit_goal: Option<(Ex, Label)>,
    exit_flag: Option<Ex>,
    /// Actions that tell by the flag that they ended with `exit`.
    flagged_actions: HashSet<usize>,
    /// Calls of actions that the statement at hand is inlined in.
    inlined_actions: usize,
    foreign_externs: bool,
    place: Place,
    depth: usize,
    size: usize,
    /// The egress pipeline is being lowered.
    in_egress: bool,
}

/// An action in use.
#[derive(Clone)]
pub(crate) struct UsedAction {
    block: Option<usize>,
    id: NodeId,
    name: String,
    /// Listed by a table, as against called by statements.
    in_table: bool,
}

/// Programs that inline deeper than this recurse.
pub(crate) const MAX_INLINE_DEPTH: usize = 120;

/// A bound on the statements of the result and the calls on the way, against programs whose inlining explodes.
const MAX_SIZE: usize = 200_000;

impl<'a> Lower<'a> {
    fn error(&self, span: Span, message: impl Into<String>) {
        self.diags.error(span, message);
    }

    fn unsupported(&self, span: Span, message: impl Into<String>) {
        self.diags.unsupported(span, message);
    }

    fn emit(&mut self, kind: StKind) {
        if self.grow() {
            self.out.push(St {
                kind,
                span: self.span,
            });
        }
    }

    /// Counts a statement or call; false, with an error the first time, if there are too many.
    fn grow(&mut self) -> bool {
        self.size += 1;
        if self.size == MAX_SIZE + 1 {
            self.diags.error(
                self.span,
                "the program is too large after inlining all calls",
            );
        }
        self.size <= MAX_SIZE
    }

    /// Lowers with `f` into a statement list of its own.
    fn collect(&mut self, f: impl FnOnce(&mut Self)) -> Vec<St> {
        let outer = std::mem::take(&mut self.out);
        f(self);
        std::mem::replace(&mut self.out, outer)
    }

    fn label(&mut self) -> Label {
        self.next_label += 1;
        self.next_label
    }

    /// The type with the type parameters of the current instance filled in.
    fn subst(&self, ty: &Type) -> Type {
        let mut t = ty.substitute(&|v| self.frame.find_type(v));
        // A parameter may stand for another parameter.
        for _ in 0..8 {
            if !mentions_var(&t) {
                break;
            }
            t = t.substitute(&|v| self.frame.find_type(v));
        }
        t
    }

    fn type_of(&self, id: NodeId) -> Type {
        self.subst(&self.t.type_of(id))
    }

    /// A fresh scalar variable.
    fn temp(&mut self, ty: Scalar) -> Ex {
        self.scalar_variable("tmp", ty)
    }

    /// The value of `e` now, safe from later writes.
    fn snapshot(&mut self, e: Ex) -> Ex {
        if e.is_const() || matches!(e, Ex::Param(..)) {
            return e;
        }
        self.stored(e)
    }

    /// The value of `e` now, in a variable.
    fn stored(&mut self, e: Ex) -> Ex {
        let tmp = self.temp(e.ty());
        self.emit(StKind::Assign(tmp.clone(), e));
        tmp
    }

    /// Runs `f` in another frame.
    fn in_frame<T>(&mut self, frame: FrameRef, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.frame, frame);
        let r = f(self);
        self.frame = outer;
        r
    }
}

fn mentions_var(t: &Type) -> bool {
    match t {
        Type::Var(_) => true,
        Type::Named(_, a) | Type::Tuple(a) => a.iter().any(mentions_var),
        Type::Stack(t, _) | Type::List(t) | Type::Set(t) | Type::Meta(t) => mentions_var(t),
        Type::Record(f) => f.iter().any(|(_, t)| mentions_var(t)),
        _ => false,
    }
}
