// SPDX-License-Identifier: Apache-2.0
//! Conditions of register actions: which comparisons they consist of, and what one comparison can compare.

use super::Fault;
use super::chip::Chip;
use super::operands::{Kind, Operands, is_zero};
use super::when::When;
use crate::ast::{BinOp, UnOp};
use crate::diag::Span;
use crate::ir::{Ex, Scalar};

/// A comparison, in a form that is the same for its negation: whether the sum of its terms is zero, or negative.
#[derive(Debug, PartialEq)]
struct Comparison {
    is_equality: bool,
    ty: Scalar,
    /// Operands, with true for those that are subtracted.
    terms: Vec<(Ex, bool)>,
}

/// The comparisons of an action.
#[derive(Default)]
pub(super) struct Comparisons {
    known: Vec<Comparison>,
    /// Where each of them is used first.
    spans: Vec<Span>,
    faults: Vec<(Span, Problem)>,
}

/// Why no unit has a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Slice,
    ResultSlice,
    Nested,
    Operation,
    Words,
    Packets,
    Constants,
}

impl Problem {
    fn message(self) -> (&'static str, &'static str) {
        match self {
            Self::Slice => (
                "a condition compares whole words of a register, not slices",
                "give the slice a word of its own: a struct of two fields, or a second register",
            ),
            Self::ResultSlice => (
                "a condition compares whole results, not slices of them",
                "use words of the width that the comparison needs",
            ),
            Self::Nested => (
                "each side of a comparison in a register action has at most one operation",
                "compute the rest before the action, and pass it in metadata",
            ),
            Self::Operation => (
                "a condition of a register action can only add, subtract, or mask with a constant",
                "compute the operation before the action, or compare what the register returns in a later stage",
            ),
            Self::Words => (
                "a comparison in a register action reads at most one word of the register",
                "store the difference of the words, or return one of them and compare it in a later stage",
            ),
            Self::Packets => (
                "a comparison in a register action reads at most one packet operand",
                "combine the operands before the action, and pass the result in metadata",
            ),
            Self::Constants => (
                "a comparison in a register action uses at most one constant",
                "combine the constants into one",
            ),
        }
    }
}

/// Reports comparisons that no unit has, and more comparisons than there are units.
pub(super) fn check(action: &str, comparisons: &Comparisons, chip: &Chip) -> Vec<Fault> {
    let Comparisons {
        known,
        spans,
        faults,
    } = comparisons;
    let faults = faults.iter().map(|(span, problem)| {
        let (message, hint) = problem.message();
        Fault {
            span: *span,
            message: message.to_owned(),
            hint,
        }
    });
    let excess = spans.get(chip.comparisons).map(|span| Fault {
        span: *span,
        message: format!(
            "register action '{action}' needs {} comparisons, and {} has {}",
            known.len(),
            chip.name,
            chip.comparisons
        ),
        hint: "compare before the action and pass the outcome as a number, or return the value and compare it in a later stage",
    });
    faults.chain(excess).collect()
}

impl Comparisons {
    /// Returns the terms of all comparisons.
    pub fn compared(&self) -> impl Iterator<Item = &Ex> {
        let terms = self.known.iter().flat_map(|c| &c.terms);
        terms.map(|(term, _)| term)
    }

    /// Returns the number of different comparisons.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Returns the place of the first comparison.
    pub fn first(&self) -> Option<Span> {
        self.spans.first().copied()
    }

    /// Adds the comparisons of a condition; `None` if the rules cannot follow it.
    pub fn condition(&mut self, operands: &Operands, e: &Ex, span: Span) -> Option<When> {
        match e {
            Ex::Const(..) => e.as_bool().map(|holds| match holds {
                true => When::ALWAYS,
                false => When::NEVER,
            }),
            Ex::Unary(UnOp::Not, inner, _) => self.condition(operands, inner, span).map(When::not),
            Ex::Binary(op @ (BinOp::And | BinOp::Or), a, b, _) => {
                let a = self.condition(operands, a, span)?;
                let b = self.condition(operands, b, span)?;
                Some(match op {
                    BinOp::And => a.and(b),
                    _ => a.or(b),
                })
            }
            Ex::Binary(op, a, b, _) => self.relation(operands, *op, a, b, span),
            Ex::Cond(cond, a, b, _) => {
                let cond = self.condition(operands, cond, span)?;
                let a = self.condition(operands, a, span)?;
                let b = self.condition(operands, b, span)?;
                Some(cond.and(a).or(cond.not().and(b)))
            }
            Ex::Cast(inner, _) => self.is_nonzero(operands, inner, span),
            e => self.is_nonzero(operands, e, span),
        }
    }

    fn is_nonzero(&mut self, operands: &Operands, e: &Ex, span: Span) -> Option<When> {
        let zero = Ex::Const(0.into(), e.ty());
        self.relation(operands, BinOp::Ne, e, &zero, span)
    }

    fn relation(
        &mut self,
        operands: &Operands,
        op: BinOp,
        a: &Ex,
        b: &Ex,
        span: Span,
    ) -> Option<When> {
        // The sum of the terms is below zero in `a < b` and, with all signs changed, in `b < a`.
        let (is_equality, is_reversed, is_negated) = match op {
            BinOp::Eq => (true, false, false),
            BinOp::Ne => (true, false, true),
            BinOp::Lt => (false, false, false),
            BinOp::Ge => (false, false, true),
            BinOp::Gt => (false, true, false),
            BinOp::Le => (false, true, true),
            _ => return None,
        };
        let is_logical = |e: &Ex| {
            e.ty() == Scalar::Bool && matches!(e, Ex::Binary(..) | Ex::Unary(..) | Ex::Cond(..))
        };
        if is_logical(a) || is_logical(b) {
            return None;
        }
        let mut terms = Vec::new();
        let mut sides = [(a, is_reversed), (b, !is_reversed)];
        sides.sort_by_key(|(_, is_negative)| *is_negative);
        for (side, is_negative) in sides {
            self.terms(operands, side, is_negative, span, &mut terms);
        }
        self.limits(operands, &terms, span);
        terms.sort_by_cached_key(|(term, _)| format!("{term:?}"));
        if is_equality && terms.first().is_some_and(|(_, is_negative)| *is_negative) {
            terms.iter_mut().for_each(|(_, sign)| *sign = !*sign);
        }
        let ty = a.ty();
        let when = self.outcome(
            Comparison {
                is_equality,
                ty,
                terms,
            },
            span,
        );
        Some(if is_negated { when.not() } else { when })
    }

    /// Returns the condition that a comparison is, and adds the comparison if it is new.
    fn outcome(&mut self, comparison: Comparison, span: Span) -> When {
        let known = self.known.iter().position(|c| *c == comparison);
        let number = known.unwrap_or_else(|| {
            self.known.push(comparison);
            self.spans.push(span);
            self.known.len() - 1
        });
        When::comparison(number)
    }

    /// Adds the terms of a side of a comparison.
    fn terms(
        &mut self,
        operands: &Operands,
        side: &Ex,
        is_negative: bool,
        span: Span,
        terms: &mut Vec<(Ex, bool)>,
    ) {
        match side {
            Ex::Binary(op @ (BinOp::Add | BinOp::Sub), a, b, _) => {
                for (part, is_negative) in
                    [(a, is_negative), (b, is_negative ^ (*op == BinOp::Sub))]
                {
                    if is_operation(operands, part) {
                        self.fault(span, Problem::Nested);
                    }
                    self.term(operands, part, is_negative, span, terms);
                }
            }
            Ex::Cast(inner, ty) if ty.width() >= inner.ty().width() => {
                self.terms(operands, inner, is_negative, span, terms);
            }
            side => self.term(operands, side, is_negative, span, terms),
        }
    }

    fn term(
        &mut self,
        operands: &Operands,
        e: &Ex,
        is_negative: bool,
        span: Span,
        terms: &mut Vec<(Ex, bool)>,
    ) {
        if is_zero(e) {
            return;
        }
        match operands.kind(e) {
            Kind::WordSlice => self.fault(span, Problem::Slice),
            Kind::Operation if operands.uses_register(e) => {
                if let Some(problem) = operation(operands, e) {
                    self.fault(span, problem);
                }
            }
            _ => {}
        }
        terms.push((e.clone(), is_negative));
    }

    /// Reports more terms of a kind than a comparison unit has inputs for.
    fn limits(&mut self, operands: &Operands, terms: &[(Ex, bool)], span: Span) {
        let mut counts = [0; 3];
        for (term, _) in terms {
            match operands.kind(masked(term)) {
                Kind::Word(_) | Kind::WordSlice => counts[0] += 1,
                Kind::Packet => counts[1] += 1,
                Kind::Constant | Kind::Parameter => counts[2] += 1,
                _ => {}
            }
        }
        let problems = [Problem::Words, Problem::Packets, Problem::Constants];
        for (count, problem) in counts.into_iter().zip(problems) {
            if count > 1 {
                self.fault(span, problem);
            }
        }
    }

    fn fault(&mut self, span: Span, problem: Problem) {
        if !self.faults.contains(&(span, problem)) {
            self.faults.push((span, problem));
        }
    }
}

/// Returns why a comparison cannot contain this operation on a register.
fn operation(operands: &Operands, e: &Ex) -> Option<Problem> {
    match e {
        Ex::Binary(BinOp::BitAnd, ..) if masked(e) != e => match operands.kind(masked(e)) {
            Kind::WordSlice => Some(Problem::Slice),
            Kind::Operation => Some(Problem::Operation),
            _ => None,
        },
        Ex::Slice { .. } | Ex::Cast(..) => Some(Problem::ResultSlice),
        Ex::Cond(..) | Ex::Unary(UnOp::Neg, ..) => None,
        _ => Some(Problem::Operation),
    }
}

/// Returns true for an operation on an operation, other than on packet operands alone.
fn is_operation(operands: &Operands, e: &Ex) -> bool {
    let is_sum = matches!(e, Ex::Binary(BinOp::Add | BinOp::Sub, ..));
    is_sum && operands.uses_register(e)
}

/// Returns the operand that a constant masks, or the whole expression.
fn masked(e: &Ex) -> &Ex {
    match e {
        Ex::Binary(BinOp::BitAnd, a, b, _) if b.is_const() => a,
        Ex::Binary(BinOp::BitAnd, a, b, _) if a.is_const() => b,
        e => e,
    }
}
