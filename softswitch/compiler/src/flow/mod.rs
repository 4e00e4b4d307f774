// SPDX-License-Identifier: Apache-2.0
//! Data-flow analysis: warns of values that may be uninitialized, of fields of headers that may be invalid, and of out
//! parameters that may be uninitialized at the end.
//!
//! Each parser, control and function is analysed by itself, in order of execution. Its inputs, and the outputs of parsers
//! and externs that it calls, are assumed to be initialized and valid. Other controls, functions, actions and tables are
//! analysed again at each use; parsers and loops, until a fixed point is reached.
//!
//! After the program has tested a header's validity, the header counts as valid for the rest of the testing statement.

mod assign;
mod call;
mod expr;
mod layout;
mod parser;
mod state;
mod stmt;

use std::collections::{HashMap, HashSet};

use crate::ast::{Decl, DeclKind, Direction, Ident, NodeId, Param};
use crate::diag::{Diagnostics, SourceMap, Span, Warning};
use crate::types::{Callee, Def, Type, Typed};
use layout::{Layouts, Place};
use state::{State, Validity};

/// Maximum number of steps of all analyses, including copied slots. Only artificial programs need more; their analysis
/// stops without further warnings.
const MAX_STEPS: usize = 5_000_000;

/// Analyses a valid program, and reports warnings.
pub fn warn(typed: &Typed, diags: &Diagnostics, sources: &SourceMap) {
    let mut flow = Flow {
        typed,
        diags,
        sources,
        layouts: Layouts::new(typed),
        named: typed.names.values().copied().collect(),
        said: HashSet::new(),
        places: HashMap::new(),
        next: (0, 0),
        state: State::default(),
        returns: State::dead(),
        exits: State::dead(),
        loops: Vec::new(),
        silent: false,
        steps: MAX_STEPS,
        depth: 0,
    };
    let used = used(typed);
    for d in typed.program.decls.iter().filter(|d| used.contains(&d.id)) {
        flow.block(d);
    }
}

/// Returns the called functions, and the controls and parsers with instances.
fn used(typed: &Typed) -> HashSet<NodeId> {
    let of_type = |id| match typed.type_of(id) {
        Type::Named(id, _) => Some(id),
        _ => None,
    };
    let called = typed
        .calls
        .iter()
        .filter_map(|(e, call)| match call.callee {
            Callee::Function(id) | Callee::Apply(id) => Some(id),
            Callee::Constructor => of_type(*e),
            _ => None,
        });
    let instances = typed.defs.map.iter().filter_map(|(id, def)| match def {
        Def::Decl(d) if matches!(d.kind, DeclKind::Instance { .. }) => of_type(*id),
        _ => None,
    });
    called.chain(instances).collect()
}

/// The state of the analysis.
struct Flow<'t, 'a> {
    typed: &'t Typed<'a>,
    diags: &'t Diagnostics,
    sources: &'t SourceMap,
    layouts: Layouts<'t, 'a>,
    /// All used declarations.
    named: HashSet<NodeId>,
    /// Reported kinds and places, to report each once.
    said: HashSet<(Warning, u32, u32)>,
    /// Places of variables and parameters that have storage.
    places: HashMap<NodeId, Option<Place>>,
    /// The first free slots.
    next: (usize, usize),
    state: State,
    /// States at the return statements of the current action or function, and at the block's exit statements.
    returns: State,
    exits: State,
    loops: Vec<stmt::Loop>,
    /// True while the analysis must not report, because not all paths to a point are known.
    silent: bool,
    /// Number of remaining steps.
    steps: usize,
    /// Depth of calls.
    depth: usize,
}

impl<'a> Flow<'_, 'a> {
    /// Counts steps; returns false if there were too many.
    fn step(&mut self, count: usize) -> bool {
        self.steps = self.steps.saturating_sub(count);
        self.steps > 0
    }

    /// Copies the state, which counts as steps.
    fn copy(&mut self) -> State {
        self.step(self.state.size());
        self.state.clone()
    }

    fn warn(&mut self, kind: Warning, span: Span, message: String, hint: &str) {
        let news = !self.silent && self.steps > 0 && !self.state.dead;
        if news && self.said.insert((kind, span.file, span.lo)) {
            self.diags.warn_hint(kind, span, message, hint);
        }
    }

    /// Returns the expression's source text in one line.
    fn text(&self, span: Span) -> String {
        let text = self.sources.snippet(span);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the place of a variable or parameter.
    fn place(&mut self, id: NodeId, ty: &Type) -> Option<Place> {
        if let Some(known) = self.places.get(&id) {
            return known.clone();
        }
        let place = self.layouts.of(ty).map(|layout| {
            let (value, header) = self.next;
            self.next = (value + layout.values, header + layout.headers);
            Place {
                layout,
                value,
                header,
            }
        });
        self.places.insert(id, place.clone());
        place
    }

    fn param(&mut self, p: &Param) -> Option<Place> {
        let ty = self.typed.type_of(p.ty.id);
        self.place(p.id, &ty)
    }

    /// Returns the parameters in the state in which callers pass them.
    fn enter(&mut self, params: &[Param]) {
        for p in params {
            if let Some(place) = self.param(p).filter(|p| self.step(p.slots())) {
                let out = p.dir == Direction::Out;
                self.state.mark(&place, out);
                let valid = if out { Validity::No } else { Validity::Yes };
                self.state.set_all(&place, valid);
            }
        }
    }

    /// Warns of an out parameter that may have no value; headers have one: they are not valid.
    fn leave(&mut self, name: &Ident, p: &Param) {
        if p.dir != Direction::Out {
            return;
        }
        let Some(place) = self.param(p) else { return };
        let mut unset = false;
        place.outside_headers(&mut |slot| unset |= self.state.is_unset(slot));
        if unset {
            self.warn(
                Warning::UninitializedOut,
                p.name.span,
                format!(
                    "out parameter '{}' may be uninitialized when '{}' ends",
                    p.name.name, name.name
                ),
                "set all of it on every path to the end",
            );
        }
    }

    fn block(&mut self, d: &'a Decl) {
        self.places.clear();
        self.next = (0, 0);
        self.state = State::default();
        self.silent = false;
        let params = match &d.kind {
            DeclKind::Function { sig, .. } => &sig.params,
            DeclKind::Control(c) => &c.params,
            DeclKind::Parser(p) => &p.params,
            _ => return,
        };
        self.enter(params);
        match &d.kind {
            DeclKind::Function { body: Some(b), .. } => self.stmts(&b.stmts),
            DeclKind::Control(c) if !c.is_type => {
                self.locals(&c.locals);
                self.stmts(&c.body.stmts);
            }
            DeclKind::Parser(p) if !p.is_type => self.parser(p),
            _ => return,
        }
        for end in [&mut self.returns, &mut self.exits] {
            self.state.join(&std::mem::replace(end, State::dead()));
        }
        params.iter().for_each(|p| self.leave(&d.name, p));
    }

    /// Analyses the declarations of parsers and controls.
    fn locals(&mut self, locals: &'a [Decl]) {
        locals.iter().for_each(|d| self.declare(d));
    }
}
