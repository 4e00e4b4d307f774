// SPDX-License-Identifier: Apache-2.0
//! Follows the statements of a register action, and collects what its ALU has to compute.

use std::collections::{HashMap, HashSet};

use super::super::fields::{Field, field};
use super::conditions::Comparisons;
use super::operands::{Operands, extreme};
use super::when::When;
use crate::ast::UnOp;
use crate::diag::Span;
use crate::ir::{Arg, Ex, Object, RegisterAction, Scalar, St, StKind};

/// The computations of a register action. The values of variables replace them.
pub(super) struct Trace {
    pub operands: Operands,
    /// Number of the action's outputs.
    pub outputs: usize,
    pub comparisons: Comparisons,
    pub assignments: Vec<Assignment>,
}

/// A value that a word or an output gets under a condition.
pub(super) struct Assignment {
    pub target: Target,
    pub value: Ex,
    /// The word whose new value an output gets.
    pub changed_word: Option<usize>,
    /// True if the program reads the target on the right side.
    pub reads_target: bool,
    pub when: When,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Word(usize),
    Output(usize),
}

/// Follows the statements of an action; `None` if they contain what the rules cannot follow.
pub(super) fn trace(register: &Object, action: &RegisterAction, body: &[St]) -> Option<Trace> {
    if action.has_special_units {
        return None;
    }
    let names = register.cells.iter().map(|cells| cells.name.as_str());
    let arrays: HashSet<&str> = names.clone().collect();
    let mut tracer = Tracer {
        arrays,
        outputs: &action.outputs,
        values: HashMap::new(),
        trace: Trace {
            operands: Operands::default(),
            outputs: action.outputs.len(),
            comparisons: Comparisons::default(),
            assignments: Vec::new(),
        },
    };
    let short = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    tracer.trace.operands.names = names.map(short).collect();
    tracer.block(body, When::ALWAYS)?;
    Some(tracer.trace)
}

struct Tracer<'p> {
    /// The arrays of the register.
    arrays: HashSet<&'p str>,
    outputs: &'p [Ex],
    /// The values of variables, words and outputs that statements have changed.
    values: HashMap<Field, Ex>,
    trace: Trace,
}

impl Tracer<'_> {
    fn block(&mut self, block: &[St], when: When) -> Option<()> {
        block.iter().try_for_each(|st| self.statement(st, when))
    }

    fn statement(&mut self, st: &St, when: When) -> Option<()> {
        match &st.kind {
            StKind::Primitive { op, args } => self.primitive(op, args),
            StKind::Assign(to, from) => self.assign(to, from, when, st.span),
            StKind::If(cond, yes, no) => self.branch(cond, yes, no, when, st.span),
            StKind::Labelled(_, inner) => self.block(inner, when),
            _ => None,
        }
    }

    fn primitive(&mut self, op: &str, args: &[Arg]) -> Option<()> {
        match (op, args) {
            ("register_read" | "_DirectRegister_read", [Arg::Ex(to), Arg::Named(_, array), ..]) => {
                if self.arrays.contains(array.as_str()) {
                    self.trace.operands.words.push(to.clone());
                } else {
                    self.trace.operands.units.insert(field(to)?, None);
                }
            }
            ("register_write" | "_DirectRegister_write", _) => {}
            ("_MathUnit_execute", [_, Arg::Ex(input), Arg::Ex(result)]) => {
                let (result, input) = (field(result)?, self.value(input)?);
                self.trace.operands.units.insert(result, Some(input));
            }
            _ => return None,
        }
        Some(())
    }

    fn assign(&mut self, to: &Ex, from: &Ex, when: When, span: Span) -> Option<()> {
        let value = self.value(from)?;
        let place = field(to)?;
        if let Some(target) = self.target(to) {
            let reads_target = reads(from, to);
            if reads_target && matches!(target, Target::Output(_)) {
                // A write to some bits reads the others; some of these writes work.
                return None;
            }
            let is_changed = field(from).is_some_and(|f| self.values.contains_key(&f));
            let changed_word = self.trace.operands.word(from).filter(|_| is_changed);
            self.results(&value, when, span, &mut |value, when| Assignment {
                target,
                value: value.clone(),
                changed_word,
                reads_target,
                when,
                span,
            })?;
        }
        self.values.insert(place, value);
        Some(())
    }

    fn target(&self, to: &Ex) -> Option<Target> {
        let output = self.outputs.iter().position(|output| output == to);
        let word = self.trace.operands.word(to).map(Target::Word);
        word.or(output.map(Target::Output))
    }

    /// Adds an assignment for each value that an expression can have.
    fn results(
        &mut self,
        value: &Ex,
        when: When,
        span: Span,
        assignment: &mut dyn FnMut(&Ex, When) -> Assignment,
    ) -> Option<()> {
        if extreme(value).is_none() {
            if let Ex::Cond(cond, yes, no, _) = value {
                let cond = self.condition(cond, span)?;
                self.results(yes, when.and(cond), span, assignment)?;
                return self.results(no, when.and(cond.not()), span, assignment);
            }
            if let Some((cond, ty)) = truth(value) {
                let cond = self.condition(cond, span)?;
                let [one, zero] = [1, 0].map(|n| Ex::Const(n.into(), ty));
                self.results(&one, when.and(cond), span, assignment)?;
                return self.results(&zero, when.and(cond.not()), span, assignment);
            }
        }
        let assignment = assignment(value, when);
        self.trace.assignments.push(assignment);
        Some(())
    }

    fn condition(&mut self, cond: &Ex, span: Span) -> Option<When> {
        let Trace {
            operands,
            comparisons,
            ..
        } = &mut self.trace;
        comparisons.condition(operands, cond, span)
    }

    fn branch(&mut self, cond: &Ex, yes: &[St], no: &[St], when: When, span: Span) -> Option<()> {
        if yes.is_empty() && no.is_empty() {
            return Some(());
        }
        let cond = self.value(cond)?;
        let holds = self.condition(&cond, span)?;
        let before = self.values.clone();
        self.block(yes, when.and(holds))?;
        let after_yes = std::mem::replace(&mut self.values, before);
        self.block(no, when.and(holds.not()))?;
        let after_no = std::mem::take(&mut self.values);
        self.values = self.merge(&cond, after_yes, after_no)?;
        Some(())
    }

    /// Returns the values of variables after a branch, but not those of words and outputs.
    fn merge(
        &self,
        cond: &Ex,
        yes: HashMap<Field, Ex>,
        no: HashMap<Field, Ex>,
    ) -> Option<HashMap<Field, Ex>> {
        let words = &self.trace.operands.words;
        let results: HashSet<Field> = words.iter().chain(self.outputs).filter_map(field).collect();
        let mut merged = HashMap::new();
        for (place, a) in &yes {
            match no.get(place) {
                Some(b) if a == b => {
                    merged.insert(place.clone(), a.clone());
                }
                _ if results.contains(place) => {}
                Some(b) => {
                    let (a, b, ty) = (a.clone(), b.clone(), a.ty());
                    let value = Ex::Cond(Box::new(cond.clone()), Box::new(a), Box::new(b), ty);
                    merged.insert(place.clone(), value);
                }
                None => return None,
            }
        }
        let is_known = |place: &&Field| yes.contains_key(*place) || results.contains(*place);
        no.keys().all(|place| is_known(&place)).then_some(merged)
    }

    /// Returns the value of an expression; `None` if it depends on an output whose value is not known.
    fn value(&self, e: &Ex) -> Option<Ex> {
        let value = self.substitute(e);
        let is_read = |output| reads(&value, output);
        (!self.outputs.iter().any(is_read)).then_some(value)
    }

    /// Returns an expression in which values replace the variables that hold them.
    fn substitute(&self, e: &Ex) -> Ex {
        let inner = |e: &Ex| Box::new(self.substitute(e));
        match e {
            Ex::Field { .. } => {
                let known = field(e).and_then(|f| self.values.get(&f));
                known.unwrap_or(e).clone()
            }
            Ex::Slice { base, hi, lo } => Ex::Slice {
                base: inner(base),
                hi: *hi,
                lo: *lo,
            },
            Ex::Unary(op, a, ty) => Ex::Unary(*op, inner(a), *ty),
            Ex::Binary(op, a, b, ty) => Ex::Binary(*op, inner(a), inner(b), *ty),
            Ex::Cond(a, b, c, ty) => Ex::Cond(inner(a), inner(b), inner(c), *ty),
            Ex::Cast(a, ty) => Ex::Cast(inner(a), *ty),
            e => e.clone(),
        }
    }
}

/// Returns the condition that a value is, as a Boolean or a bit, and the type of the value.
fn truth(value: &Ex) -> Option<(&Ex, Scalar)> {
    match value {
        Ex::Cast(inner, ty) if inner.ty() == Scalar::Bool => Some((inner, *ty)),
        Ex::Binary(..) | Ex::Unary(UnOp::Not, ..) if value.ty() == Scalar::Bool => {
            Some((value, Scalar::Bool))
        }
        _ => None,
    }
}

fn reads(e: &Ex, place: &Ex) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= e == place);
    found
}
