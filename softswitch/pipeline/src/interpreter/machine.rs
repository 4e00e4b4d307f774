// SPDX-License-Identifier: Apache-2.0
//! The interpreter of actions.

use num_bigint::{BigInt, Sign};

use super::eval::Env;
use crate::packet::{CountedCell, Packet};
use crate::phv::Field;
use crate::program::calculation::Calculation;
use crate::program::call::CallRef;
use crate::program::expr::HeaderRef;
use crate::program::layout::{HeaderId, Layout};
use crate::program::op::{Op, Target};
use crate::program::{Action, Compiled};
use crate::state::Externs;
use crate::state::meter::Color;
use crate::{Nanos, phv};

/// The packet, the program and the state that an action works on.
pub(crate) struct Machine<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) calculations: &'a [Calculation],
    pub(crate) externs: &'a mut Externs,
    pub(crate) pkt: &'a mut Packet,
    pub(crate) now: Nanos,
}

impl<'a> Machine<'a> {
    #[inline]
    pub(crate) fn new(
        c: &'a Compiled,
        externs: &'a mut Externs,
        pkt: &'a mut Packet,
        now: Nanos,
    ) -> Self {
        Self {
            layout: &c.layout,
            calculations: &c.calculations,
            externs,
            pkt,
            now,
        }
    }
}

impl Machine<'_> {
    #[inline]
    pub(crate) fn env<'e>(&'e self, args: &'e [u64]) -> Env<'e> {
        Env {
            mem: &self.pkt.mem,
            args,
            layout: self.layout,
            registers: &self.externs.registers,
        }
    }

    fn field(&self, to: &Target, args: &[u64]) -> Option<Field> {
        match to {
            Target::Word(..) => None,
            Target::Field(f) => Some(*f),
            Target::Dyn(d) => d.resolve(&self.env(args)),
        }
    }

    /// Writes to a target; ignored for an element beyond the end of its stack.
    #[inline]
    pub(crate) fn set64(&mut self, to: &Target, args: &[u64], v: u64) {
        match to {
            Target::Word(w, mask) => w.set(&mut self.pkt.mem, v & mask),
            other => {
                if let Some(f) = self.field(other, args) {
                    f.set64(&mut self.pkt.mem, v);
                }
            }
        }
    }

    /// Writes a number of words, most significant first.
    pub(crate) fn set_words(&mut self, to: &Target, words: &[u64]) {
        if let [word] = words {
            self.set64(to, &[], *word);
        } else if let ([high, low], Target::Field(f)) = (words, to) {
            f.set128(
                &mut self.pkt.mem,
                u128::from(*high) << 64 | u128::from(*low),
            );
        } else {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
            self.set_big(to, &[], &BigInt::from_bytes_be(Sign::Plus, &bytes));
        }
    }

    pub(super) fn set_big(&mut self, to: &Target, args: &[u64], v: &BigInt) {
        match to {
            Target::Word(w, mask) => {
                let low = phv::wrap(v, 64).iter_u64_digits().next().unwrap_or(0);
                w.set(&mut self.pkt.mem, low & mask);
            }
            other => {
                if let Some(f) = self.field(other, args) {
                    f.set_big(&mut self.pkt.mem, v);
                }
            }
        }
    }

    /// Runs an action to its end. `exit` takes effect after the action, as in BMv2.
    pub(crate) fn call(&mut self, actions: &[Action], call: CallRef<'_>) {
        if let Some(coverage) = &mut self.externs.coverage {
            coverage.begin_action(call.action);
        }
        self.run_action(&actions[call.action as usize], call.args);
        if let Some(coverage) = &mut self.externs.coverage {
            coverage.end_action();
        }
    }

    /// Runs the steps of an action.
    #[inline]
    pub(crate) fn run_action(&mut self, action: &Action, args: &[u64]) {
        self.externs.take_locks(action.locks);
        self.run(&action.ops, args);
    }

    /// Runs steps to their end.
    pub(crate) fn run(&mut self, ops: &[Op], args: &[u64]) {
        if self.externs.is_observed() {
            self.run_ops::<true>(ops, args);
        } else {
            self.run_ops::<false>(ops, args);
        }
    }

    /// Records that a step runs.
    fn observe(&mut self, step: usize) {
        if let Some(trace) = &mut self.externs.trace {
            trace.primitive(step);
        }
        if let Some(coverage) = &mut self.externs.coverage {
            coverage.step(step);
        }
    }

    #[inline]
    fn run_ops<const OBSERVED: bool>(&mut self, ops: &[Op], args: &[u64]) {
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            if OBSERVED {
                self.observe(at);
            }
            at += 1;
            match op {
                Op::SetConst(to, v) => to.set(&mut self.pkt.mem, *v),
                Op::SetWord(to, mask, from) => {
                    let v = from.get(&self.pkt.mem) & mask;
                    to.set(&mut self.pkt.mem, v);
                }
                Op::SetArg(to, mask, limb) => {
                    to.set(&mut self.pkt.mem, args[*limb as usize] & mask);
                }
                Op::Set64(to, v) => {
                    let v = v.eval(&self.env(args));
                    self.set64(to, args, v);
                }
                Op::RemoveHeader(HeaderRef::Static(id)) => self.invalidate(*id),
                Op::Jump(to) => {
                    if !self.jump(&mut at, *to) {
                        return;
                    }
                }
                Op::JumpUnless(c, to) => {
                    if !c.eval(&self.env(args)) {
                        if OBSERVED && let Some(coverage) = &mut self.externs.coverage {
                            coverage.jump(at - 1);
                        }
                        if !self.jump(&mut at, *to) {
                            return;
                        }
                    }
                }
                other if OBSERVED && self.externs.trace.is_some() => self.traced_step(other, args),
                other => self.step(other, args),
            }
        }
    }

    /// Jumps from the step before `at`. Returns false if the packet has too many loop iterations.
    #[inline]
    fn jump(&mut self, at: &mut usize, to: usize) -> bool {
        let is_backward = to < *at;
        *at = to;
        !is_backward || self.pkt.iterate(self.externs.max_iterations)
    }

    pub(crate) fn step(&mut self, op: &Op, args: &[u64]) {
        match op {
            Op::SetConst(..)
            | Op::SetWord(..)
            | Op::SetArg(..)
            | Op::Set64(..)
            | Op::Jump(_)
            | Op::JumpUnless(..)
            | Op::Nop => {}
            Op::Set128(to, v) => {
                let v = v.eval(&self.env(args));
                if let Some(f) = self.field(to, args) {
                    f.set128(&mut self.pkt.mem, v);
                }
            }
            Op::SetBig(to, v) => {
                let v = v.eval(&self.env(args));
                self.set_big(to, args, &v);
            }
            Op::SetVarbit(to, from) => {
                let mem = &mut self.pkt.mem;
                let v = from.get_big(mem);
                let len = from.varbit_len(mem);
                to.set_varbit_len(mem, len);
                to.set_big(mem, &v);
            }
            Op::SetHeader(x) => {
                let env = &self.env(args);
                if let (Some(to), Some(from)) = (x[0].resolve(env), x[1].resolve(env)) {
                    self.layout.assign_header(&mut self.pkt.mem, to, from);
                }
            }
            Op::SetUnion(x) => {
                let env = &self.env(args);
                if let (Some(to), Some(from)) = (x[0].resolve(env), x[1].resolve(env)) {
                    self.layout.assign_union(&mut self.pkt.mem, to, from);
                }
            }
            Op::SetStack {
                of_unions,
                to,
                from,
            } => self.set_stack(*of_unions, *to, *from),
            Op::AddHeader(h) => self.add_header(h, args),
            Op::RemoveHeader(h) => self.remove_header(h, args),
            Op::ShiftStack {
                of_unions,
                stack,
                count,
                towards_end,
            } => {
                let count = count.eval(&self.env(args)).min(1 << 16) as i64;
                let by = if *towards_end { count } else { -count };
                if *of_unions {
                    self.layout.shift_union_stack(&mut self.pkt.mem, *stack, by);
                } else {
                    self.layout.shift_stack(&mut self.pkt.mem, *stack, by);
                }
            }
            Op::ReadRegister {
                to,
                register,
                index,
            } => {
                let index = index.eval(&self.env(args)) as usize;
                let r = &self.externs.registers[*register as usize];
                if index >= r.len() {
                    return;
                }
                if r.is_narrow() {
                    let v = r.get(index);
                    self.set64(to, args, v);
                } else {
                    let v: BigInt = r.get(index);
                    self.set_big(to, args, &v);
                }
            }
            Op::WriteRegister64 {
                register,
                index,
                value,
            } => {
                let env = &self.env(args);
                let (index, v) = (index.eval(env) as usize, value.eval(env));
                self.externs.set_register(*register, index, v);
            }
            Op::WriteRegisterBig {
                register,
                index,
                value,
            } => {
                let env = &self.env(args);
                let (index, v) = (index.eval(env) as usize, value.eval(env));
                let width = self.externs.registers[*register as usize].width();
                let v = phv::wrap(&v, width);
                self.externs.set_big_register(*register, index, v);
            }
            Op::ReadDirect { to, register } => self.read_direct(to, *register, args),
            Op::WriteDirect { register, value } => self.write_direct(*register, value, args),
            Op::Count { counter, index } => {
                let index = index.eval(&self.env(args)) as usize;
                if let Some(c) = self.externs.counters[*counter as usize].get_mut(index) {
                    c.add(self.pkt.ingress_len);
                }
            }
            Op::CorrectCount(correction) => {
                let env = &self.env(args);
                let cell = match &correction.cell {
                    Some((counter, index)) => CountedCell::Array(*counter, index.eval(env)),
                    None => CountedCell::Entry(self.pkt.entry_table, self.pkt.entry),
                };
                let less = correction.less.as_ref().map(|bytes| bytes.eval(env));
                self.pkt.count_corrections.push((cell, less));
            }
            Op::ExecuteMeter {
                meter,
                index,
                to,
                before,
                less,
                codes,
            } => {
                let less = less.as_ref().map_or(0, |node| node.eval(&self.env(args)));
                let bytes = self.pkt.ingress_len.wrapping_sub(less as u32);
                let before = before.as_ref().map(|node| node.eval(&self.env(args)));
                let before = before.map_or(Color::Green, |code| Color::of_code(code, codes));
                let index = index.eval(&self.env(args)) as usize;
                let externs = &mut *self.externs;
                let color = externs.execute_meter(*meter, index, bytes, self.now, before);
                if let Some(color) = color {
                    self.set64(to, args, codes[color as usize].into());
                }
            }
            Op::Filter(call) => self.filter(call, args),
            Op::Math(call) => {
                let v = call.value.eval(&self.env(args));
                let result = call.unit.execute(v, call.max);
                self.set64(&call.to, args, result);
            }
            Op::Digest(d) => self.pkt.digest = Some(*d),
            Op::Random { to, bounds } => {
                let env = &self.env(args);
                let (low, high) = (bounds[0].eval(env), bounds[1].eval(env));
                // v1model does not define low > high; BMv2 does not write then.
                if low <= high {
                    let v = self.externs.rng.uniform(low, high);
                    self.set64(to, args, v);
                }
            }
            Op::Hash {
                to,
                calculation,
                range,
            } => {
                let c = &self.calculations[*calculation as usize];
                let hash = self.externs.hash(c, self.layout, self.pkt);
                let in_range = range.as_deref().map_or(hash, |[base, size]| {
                    let env = &self.env(args);
                    let (base, size) = (base.eval(env), size.eval(env).max(1));
                    base.wrapping_add(hash % size)
                });
                self.set64(to, args, in_range);
            }
            Op::Sum(number, step) => self.sum(*number, step, args),
            Op::Clone(x) => {
                let env = &self.env(args);
                self.pkt.clone_to = Some((x[0].eval(env) as u32 & 0x7fff, x[1].eval(env) as u32));
            }
            // Field list 0 means no request, as in BMv2.
            Op::Resubmit(list) => self.pkt.resubmit = list.eval(&self.env(args)) as u32 & 0xffff,
            Op::Recirculate(list) => {
                self.pkt.recirculate = list.eval(&self.env(args)) as u32 & 0xffff;
            }
            Op::Mirror(session, fields) => {
                let session = session.eval(&self.env(args)) as u32;
                self.pkt.mirror = Some((session, self.front(*fields)));
            }
            Op::ResubmitWith(fields) => self.pkt.resubmit_front = Some(self.front(*fields)),
            Op::Generate(fields) => self.pkt.generator_header = Some(self.front(*fields)),
            Op::Truncate(len) => {
                let len = len.eval(&self.env(args));
                self.pkt.truncate_to = self
                    .pkt
                    .truncate_to
                    .min(u32::try_from(len).unwrap_or(u32::MAX));
            }
            Op::MarkToDrop(egress_spec, mcast_grp) => {
                let mem = &mut self.pkt.mem;
                egress_spec.set64(mem, u64::from(self.externs.drop_port));
                if let Some(f) = mcast_grp {
                    f.set64(mem, 0);
                }
            }
            Op::Exit => self.pkt.exit = true,
            Op::Assert(c) => {
                if !c.eval(&self.env(args)) {
                    self.pkt.assertion_failed = true;
                }
            }
            Op::Log(x) => {
                if self.externs.keep_log {
                    let env = &self.env(args);
                    let values: Vec<BigInt> = x.1.iter().map(|v| v.eval(env)).collect();
                    self.externs.log.push(format_message(&x.0, &values));
                }
            }
        }
    }

    fn set_stack(&mut self, of_unions: bool, to: u32, from: u32) {
        let (layout, mem) = (self.layout, &mut self.pkt.mem);
        if of_unions {
            let (t, f) = (
                &layout.union_stacks[to as usize],
                &layout.union_stacks[from as usize],
            );
            mem[t.next as usize] = mem[f.next as usize].min(t.elements.len() as u8);
            for (&t, &f) in t.elements.iter().zip(&f.elements) {
                layout.assign_union(mem, t, f);
            }
        } else {
            let (t, f) = (&layout.stacks[to as usize], &layout.stacks[from as usize]);
            mem[t.next as usize] = mem[f.next as usize].min(t.elements.len() as u8);
            for (&t, &f) in t.elements.iter().zip(&f.elements) {
                layout.assign_header(mem, t, f);
            }
        }
    }

    fn add_header(&mut self, h: &HeaderRef, args: &[u64]) {
        let Some(id) = h.resolve(&self.env(args)) else {
            return;
        };
        let header = &self.layout.headers[id as usize];
        if !header.is_valid(&self.pkt.mem) {
            if !self.layout.keeps_fields {
                header.clear(&mut self.pkt.mem);
            }
            self.layout.set_valid(&mut self.pkt.mem, id, true);
            self.pkt.len += header.fixed_bytes;
        }
    }

    fn remove_header(&mut self, h: &HeaderRef, args: &[u64]) {
        if let Some(id) = h.resolve(&self.env(args)) {
            self.invalidate(id);
        }
    }

    #[inline]
    fn invalidate(&mut self, id: HeaderId) {
        let header = &self.layout.headers[id as usize];
        if header.is_valid(&self.pkt.mem) {
            let bytes = header.wire_bytes(&self.pkt.mem) as u32;
            self.pkt.len = self.pkt.len.saturating_sub(bytes);
            self.layout.set_valid(&mut self.pkt.mem, id, false);
        }
    }
}

/// Replaces each `{...}` by a value in decimal; `\{` is a brace.
pub(crate) fn format_message(format: &str, values: &[BigInt]) -> String {
    let mut out = String::new();
    let mut values = values.iter();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if matches!(rest.peek(), Some('{' | '}')) => out.extend(rest.next()),
            '{' => {
                rest.by_ref().find(|&c| c == '}');
                if let Some(v) = values.next() {
                    out.push_str(&v.to_string());
                }
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_message_replaces_placeholders() {
        let values = [BigInt::from(1), BigInt::from(-2)];
        assert_eq!(format_message("a={} b={}.", &values), "a=1 b=-2.");
        assert_eq!(format_message("\\{{}\\}", &values), "{1}");
        assert_eq!(format_message("{} {} {", &values), "1 -2 ");
    }
}
