// SPDX-License-Identifier: Apache-2.0
//! Lowers the checked syntax tree to the flat program of [`crate::ir`].
//!
//! This stage evaluates the compile-time part of the program (instantiation, constants, generics) and
//! inlines all calls. An instance of a control or parser is lowered where it is applied, with its
//! parameters as aliases of the caller's storage.

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
mod property;
mod psa;
mod psa_externs;
mod reach;
mod stmt;
mod storage;
mod switch;
mod table;
mod tna;
mod tna_actions;
mod tna_checksum;
mod tna_deparser;
mod tna_externs;
mod tna_extremes;
mod tna_functions;
mod tna_hashes;
mod tna_parser;
mod tna_parsers;
mod tna_pipelines;
mod tna_queues;
mod tna_registers;
mod tna_sweeps;
mod v1model;
mod value;
mod visible;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::Options;
use crate::ast::{Block, Decl, NodeId};
use crate::diag::{Diagnostics, SourceMap, Span};
use crate::ir::{Ex, Label, Lowered, Scalar, St, StKind};
use crate::types::{Type, Typed};

pub(crate) use fold::ones;

use frame::{Frame, FrameRef};
use value::Val;

/// Lowers a program.
pub fn lower<'a>(
    typed: &'a Typed<'a>,
    diags: &'a Diagnostics,
    sources: &'a SourceMap,
    options: &Options,
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
        foreign_externs: options.emit_externs,
        place: Place::Control,
        depth: 0,
        size: 0,
        table_action: None,
        direct_calls: Vec::new(),
        pipeline: v1model::INGRESS,
        first_state: 0,
        implementations: HashMap::new(),
        tofino: tna::State::default(),
    };
    l.program(options.architecture.as_deref());
    l.ir
}

/// The kind of code being lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Parser,
    Control,
    Action,
    Checksum,
    Deparser,
}

/// The target of `return`, and the storage for its value.
struct Return<'a> {
    label: Label,
    value: Option<Val>,
    body: &'a Block,
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

/// The abstract methods that an instance of an extern implements.
#[derive(Clone)]
pub(crate) struct Implementation<'a> {
    pub methods: &'a [Decl],
    /// The environment of the instance.
    pub frame: FrameRef,
}

pub(crate) struct Lower<'a> {
    t: &'a Typed<'a>,
    diags: &'a Diagnostics,
    sources: &'a SourceMap,
    ir: Lowered<'a>,
    frame: FrameRef,
    /// The current list of statements.
    out: Vec<St>,
    /// Source position of the current statement.
    span: Span,
    /// Names of variables and headers in use.
    names: HashSet<String>,
    header_types: HashMap<String, usize>,
    union_types: HashMap<String, usize>,
    next_label: Label,
    returns: Vec<Return<'a>>,
    /// Labels of the enclosing loops: `(break, continue)`.
    loops: Vec<(Label, Label)>,
    blocks: Vec<BlockInstance<'a>>,
    /// Tables and actions by the instance of the control and the declaration.
    table_ids: HashMap<(usize, NodeId), usize>,
    action_ids: HashMap<(String, NodeId, String), usize>,
    used_actions: Vec<UsedAction>,
    /// Blocks applied by the name of their type, with the enclosing block.
    type_applied: Vec<(Option<usize>, usize)>,
    /// Copies that the enclosing calls make when they return.
    pending: Vec<Vec<bind::CopyOut>>,
    /// Set in a table's action in which `exit` must set a flag; see [`bind`].
    exit_goal: Option<(Ex, Label)>,
    exit_flag: Option<Ex>,
    /// Actions that set the flag for `exit`.
    flagged_actions: HashSet<usize>,
    /// Calls of actions into which the current statement is inlined.
    inlined_actions: usize,
    foreign_externs: bool,
    place: Place,
    depth: usize,
    size: usize,
    /// Index of the table's action that is being lowered.
    table_action: Option<usize>,
    /// Calls of direct counters, meters and registers in PSA and TNA.
    direct_calls: Vec<psa_externs::DirectCall>,
    /// Index of the pipeline that is being lowered.
    pipeline: usize,
    /// The first state of the parser that is being lowered.
    first_state: usize,
    /// Implementations of abstract methods, by the object.
    implementations: HashMap<usize, Implementation<'a>>,
    tofino: tna::State,
}

/// An action in use.
#[derive(Clone)]
pub(crate) struct UsedAction {
    block: Option<usize>,
    id: NodeId,
    name: String,
    /// True if a table lists it; false if only statements call it.
    in_table: bool,
}

/// Maximum depth of inlining, which only recursive programs exceed.
pub(crate) const MAX_INLINE_DEPTH: usize = 120;

/// Maximum number of resulting statements and inlined calls, against exponential growth.
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

    /// Counts a statement or call; returns false, with one error, if there are too many.
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

    /// Lowers with `f` into a separate list of statements.
    fn collect(&mut self, f: impl FnOnce(&mut Self)) -> Vec<St> {
        let outer = std::mem::take(&mut self.out);
        f(self);
        std::mem::replace(&mut self.out, outer)
    }

    fn label(&mut self) -> Label {
        self.next_label += 1;
        self.next_label
    }

    /// Returns the type with the current instance's type arguments.
    fn subst(&self, ty: &Type) -> Type {
        let mut t = ty.substitute(&|v| self.frame.find_type(v));
        // A type argument may itself be a type parameter.
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

    /// Creates a scalar variable.
    fn temp(&mut self, ty: Scalar) -> Ex {
        self.scalar_variable("tmp", ty)
    }

    /// Returns the current value of `e`, which later writes do not affect.
    fn snapshot(&mut self, e: Ex) -> Ex {
        if e.is_const() || matches!(e, Ex::Param(..)) {
            return e;
        }
        self.stored(e)
    }

    /// Returns the current value of `e`, in a variable.
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
