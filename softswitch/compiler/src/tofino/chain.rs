// SPDX-License-Identifier: Apache-2.0
//! The longest chain of dependent steps of a gress.
//!
//! A step is a table, an access to a register, or an operation outside tables. A step that reads what another writes runs in
//! a later stage. The number of steps in the longest chain is therefore a lower bound on stages: it ignores all resources.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::fields::{ALL, Field, VALID, each_field, field, header_name, is_variable, output};
use crate::diag::Span;
use crate::ir::{Arg, Ex, HeaderRef, Lowered, St, StKind, Then};

/// A table, an access to a register, or an operation.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) span: Span,
    /// Number of the stage in which it can run at the earliest; the first is 1.
    pub(super) stage: u32,
    /// The step on whose result it waits.
    after: Option<usize>,
}

/// A point in time: after a stage, because of a step.
#[derive(Clone, Copy, Default)]
struct When {
    stage: u32,
    step: Option<usize>,
}

impl When {
    fn later(self, other: When) -> When {
        if other.stage > self.stage {
            other
        } else {
            self
        }
    }
}

/// Returns the longest chain of dependent steps of a control, first step first.
pub(super) fn longest(program: &Lowered, control: &[St]) -> Vec<Step> {
    let mut schedule = Schedule {
        program,
        steps: Vec::new(),
        written: HashMap::new(),
        registers: HashMap::new(),
    };
    schedule.block(control, Context::default());
    let steps = &schedule.steps;
    let mut next = (0..steps.len()).max_by_key(|&i| (steps[i].stage, Reverse(i)));
    let mut chain = Vec::new();
    while let Some(i) = next {
        chain.push(i);
        next = steps[i].after;
    }
    chain.reverse();
    let mut steps: Vec<Option<Step>> = schedule.steps.into_iter().map(Some).collect();
    chain.into_iter().filter_map(|i| steps[i].take()).collect()
}

/// Where statements stand.
#[derive(Clone, Copy, Default)]
struct Context {
    /// They run after this.
    since: When,
    /// The table or the register to whose action they belong.
    within: Option<usize>,
}

impl Context {
    fn after(self, when: When) -> Self {
        let since = self.since.later(when);
        Self { since, ..self }
    }
}

/// Schedules each step as early as possible.
struct Schedule<'p, 'a> {
    program: &'p Lowered<'a>,
    steps: Vec<Step>,
    /// When fields have their values, by header and field.
    written: HashMap<Field, When>,
    /// The latest access to each register: all are in the same stage.
    registers: HashMap<usize, When>,
}

impl Schedule<'_, '_> {
    fn block(&mut self, block: &[St], context: Context) {
        for st in block {
            self.statement(st, context);
        }
    }

    /// Schedules blocks of which a packet runs at most one: none waits for another.
    fn branches(&mut self, blocks: &[&[St]], context: Context) {
        let before = self.written.clone();
        for block in blocks {
            let others = std::mem::replace(&mut self.written, before.clone());
            self.block(block, context);
            for (field, when) in others {
                let known = self.written.entry(field).or_default();
                *known = known.later(when);
            }
        }
    }

    fn statement(&mut self, st: &St, context: Context) {
        match &st.kind {
            StKind::If(cond, yes, no) => {
                let context = context.after(self.read(cond));
                self.branches(&[yes, no], context);
            }
            StKind::Apply { table, then } => self.table(*table, then, context, st.span),
            StKind::Labelled(_, inner) => self.block(inner, context),
            StKind::Access { register, body, .. } => {
                self.register(*register, body, context, st.span);
            }
            StKind::Assign(to, from) => self.assign(to, from, context, st.span),
            StKind::AssignHeader(to, from) => {
                let when = self.header(from);
                let when = self.step("assignment", st.span, context.after(when));
                self.written.insert((header_name(to), ALL.to_owned()), when);
            }
            StKind::SetValid(header, _) => {
                let when = self.step("validity of a header", st.span, context);
                self.written
                    .insert((header_name(header), VALID.to_owned()), when);
            }
            StKind::Primitive { op, args } => self.primitive(op, args, context, st.span),
            _ => {}
        }
    }

    /// Schedules a table for a stage in which its keys and all that its actions read are there.
    fn table(&mut self, table: usize, then: &Then, context: Context, span: Span) {
        let t = &self.program.tables[table];
        let keys = t.keys.iter().map(|key| self.read(&key.target));
        let mut at = keys.fold(context, Context::after);
        let bodies = t.actions.iter();
        let bodies: Vec<&[St]> = bodies
            .map(|a| &*self.program.actions[a.action].body)
            .collect();
        for body in &bodies {
            at = at.after(self.inputs(body));
        }
        let when = self.step(&format!("table {}", t.name), span, at);
        let within = Context {
            within: when.step,
            ..at
        };
        self.branches(&bodies, within);
        match then {
            Then::Nothing => {}
            Then::HitMiss(hit, miss) => self.branches(&[hit, miss], at),
            Then::Switch { cases, default } => {
                let mut bodies: Vec<&[St]> = cases.iter().map(|(_, body)| &**body).collect();
                bodies.push(default);
                self.branches(&bodies, at);
            }
        }
    }

    /// Schedules an access to a register. All that it computes is there in the next stage.
    fn register(&mut self, register: usize, body: &[St], context: Context, span: Span) {
        let mut at = context.after(self.inputs(body));
        if let Some(&other) = self.registers.get(&register) {
            // All accesses to a register are in one stage.
            let stage = other.stage.saturating_sub(1);
            let step = at.since.step;
            at = at.after(When { stage, step });
        }
        let name = format!("register {}", self.program.objects[register].name);
        let when = self.step(&name, span, at);
        self.registers.insert(register, when);
        each_field(body, &mut |field, is_written| {
            if is_written {
                self.written.insert(field, when);
            }
        });
    }

    fn assign(&mut self, to: &Ex, from: &Ex, context: Context, span: Span) {
        let value = self.read(from);
        // A variable that only names a value, or a part of one, costs nothing: neither when it is set, nor when it is
        // copied.
        let is_copy = is_name(from) && (is_variable(to) || is_variable(from));
        let when = match is_copy && context.within.is_none() {
            true => value.later(context.since),
            false => self.step("assignment", span, context.after(value)),
        };
        self.write(to, when);
    }

    fn primitive(&mut self, op: &str, args: &[Arg], context: Context, span: Span) {
        let output = output(op);
        let inputs = args.iter().enumerate().filter(|(i, _)| Some(*i) != output);
        let read = inputs.fold(When::default(), |when, (_, arg)| {
            when.later(self.argument(arg))
        });
        let result = output.and_then(|i| match args.get(i) {
            Some(Arg::Ex(result)) => Some(result),
            _ => None,
        });
        // The unit that uses a hash computes it.
        let when = match op.starts_with("_Hash_") {
            true => read,
            false => self.step(op.trim_start_matches('_'), span, context.after(read)),
        };
        if let Some(result) = result {
            self.write(result, when);
        }
    }

    /// Adds a step in the first stage after `context`, unless the table or register around it is in that stage. An action
    /// that reads what it has written itself is in one stage, too: the compiler replaces copies, and the result of a
    /// register is an operand of the action.
    fn step(&mut self, name: &str, span: Span, context: Context) -> When {
        let stage = context.since.stage + 1;
        let within = context
            .within
            .filter(|&i| self.steps[i].stage == stage || context.since.step == Some(i));
        let step = within.unwrap_or_else(|| {
            self.steps.push(Step {
                name: name.to_owned(),
                span,
                stage,
                after: context.since.step,
            });
            self.steps.len() - 1
        });
        When {
            stage: self.steps[step].stage,
            step: Some(step),
        }
    }

    fn argument(&self, arg: &Arg) -> When {
        match arg {
            Arg::Ex(e) => self.read(e),
            Arg::FieldList(list) | Arg::Vector(list) => list
                .iter()
                .map(|e| self.read(e))
                .fold(When::default(), When::later),
            Arg::Header(header) => self.header(header),
            Arg::Named(..) | Arg::Str(_) => When::default(),
        }
    }

    /// Returns when all fields are there that an expression reads.
    fn read(&self, e: &Ex) -> When {
        let mut when = When::default();
        e.visit(&mut |e| {
            let field = match e {
                Ex::Valid(header) => Some((header_name(header), VALID.to_owned())),
                e => field(e),
            };
            if let Some(field) = field {
                when = when.later(self.at(&field));
            }
        });
        when
    }

    /// Returns when a field has its value.
    fn at(&self, field: &Field) -> When {
        let whole = (field.0.clone(), ALL.to_owned());
        let places = [self.written.get(field), self.written.get(&whole)];
        places
            .into_iter()
            .flatten()
            .copied()
            .fold(When::default(), When::later)
    }

    fn header(&self, header: &HeaderRef) -> When {
        let name = header_name(header);
        let fields = self
            .written
            .iter()
            .filter(|((header, _), _)| *header == name);
        fields.fold(When::default(), |when, (_, at)| when.later(*at))
    }

    /// Returns when all is there that statements read before they write it.
    fn inputs(&self, block: &[St]) -> When {
        let mut known = HashSet::new();
        let mut when = When::default();
        each_field(block, &mut |field, is_written| {
            if is_written {
                known.insert(field);
            } else if !known.contains(&field) {
                when = when.later(self.at(&field));
            }
        });
        when
    }

    fn write(&mut self, to: &Ex, when: When) {
        if let Some(field) = field(to) {
            let known = self.written.entry(field).or_default();
            *known = known.later(when);
        }
    }
}

/// Whether an expression is a value that is there, or a slice of it.
fn is_name(e: &Ex) -> bool {
    match e {
        Ex::Slice { base, .. } => is_name(base),
        e => matches!(e, Ex::Field { .. } | Ex::Const(..) | Ex::Param(..)),
    }
}
