// SPDX-License-Identifier: Apache-2.0
//! Generates code for the parser: one block per state.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::{Switch, Variable};

use super::generator::{Args, Gen, Result, Unsupported};
use super::key::put;
use super::memory::kind;
use super::runtime::{Callout, Context, REJECTED};
use crate::packet::Packet;
use crate::program::expr::Node;
use crate::program::layout::HeaderId;
use crate::program::parser::{Case, Destination, Parsed, ParserOp, ParserState, SelectPart};
use crate::program::tna::IntrinsicHeader;

/// Maximum size in bytes of a header that is copied inline; larger ones take a call.
const MAX_INLINE: u32 = 256;

/// The bit of the result that is set if a checksum is wrong; the lower ones are the error code.
const CHECKSUM_BIT: i64 = 63;

/// Reads the result of the generated code.
pub(super) fn parsed(result: u64) -> Parsed {
    Parsed {
        error: result & !(1 << CHECKSUM_BIT),
        bad_checksum: result >> CHECKSUM_BIT != 0,
    }
}

/// Values and blocks that all states use.
pub(super) struct Walk {
    frame: Value,
    frame_bytes: Value,
    start: Variable,
    states: BTreeMap<u32, Block>,
    /// The final block; its parameter is the error code.
    end: Block,
}

impl Gen<'_, '_> {
    /// Compiles a parser and the verification of checksums; the result is as [`parsed`] reads it.
    pub(super) fn parser(&mut self, parser_number: usize) -> Result<()> {
        let parser = &self.c.parser;
        let received = self.c.received_header(parser_number);
        let frame = self.context(offset_of!(Context, frame));
        let frame_bytes = self.context(offset_of!(Context, frame_bytes));
        let most = self.context(offset_of!(Context, max_parser_states));
        let (start, visited) = (self.b.declare_var(I64), self.b.declare_var(I64));
        let zero = self.int(0);
        self.b.def_var(start, zero);
        self.b.def_var(visited, zero);
        self.start = Some(start);
        let end = self.b.create_block();
        let code = self.b.append_block_param(end, I64);
        let reachable = parser.reachable(parser_number);
        let states = reachable
            .into_iter()
            .map(|state| (state, self.b.create_block()))
            .collect();
        let walk = Walk {
            frame,
            frame_bytes,
            start,
            states,
            end,
        };
        self.go(&walk, parser.starts[parser_number]);
        for (&number, &block) in &walk.states {
            let state = &parser.states[number as usize];
            self.enter_loop(block)?;
            let so_far = self.b.use_var(visited);
            let so_far = self.b.ins().iadd_imm(so_far, 1);
            self.b.def_var(visited, so_far);
            let few = self.compare(IntCC::UnsignedLessThanOrEqual, so_far, most);
            self.require(&walk, few, parser.errors.parser_timeout);
            let received = received.filter(|_| number == parser.starts[parser_number]);
            for op in &state.ops[self.receive(received)?..] {
                self.parser_op(&walk, op)?;
            }
            self.select(&walk, state)?;
        }
        self.enter_loop(end)?;
        let start = self.b.use_var(start);
        self.store_state(start, offset_of!(Packet, start));
        self.start = None;
        let wrong = self.verify_checksums()?;
        let wrong = self.b.ins().ishl_imm(wrong, CHECKSUM_BIT);
        let result = self.b.ins().bor(code, wrong);
        self.b.ins().return_(&[result]);
        Ok(())
    }

    /// Compiles the extraction of a header that is not in the frame, and returns the number of steps that do this.
    fn receive(&mut self, header: Option<&IntrinsicHeader>) -> Result<usize> {
        let Some((header, id)) = header.and_then(|header| Some((header, header.id?))) else {
            return Ok(0);
        };
        for (value, field) in &header.mentioned {
            let v = self.load_state(I64, offset_of!(Packet, intrinsic) + value.offset());
            self.set_field64(*field, v)?;
        }
        self.set_valid(&self.c.layout.headers[id as usize])?;
        Ok(1)
    }

    /// Jumps to a state, or to the end.
    fn go(&mut self, walk: &Walk, state: u32) {
        match walk.states.get(&state) {
            Some(&block) => self.jump(block),
            None => {
                let code = self.int(self.c.parser.errors.no_error);
                self.b.ins().jump(walk.end, &[code.into()]);
            }
        }
    }

    /// Compiles a rejection of the packet unless `holds`.
    fn require(&mut self, walk: &Walk, holds: Value, error: u64) {
        let next = self.b.create_block();
        let code = self.int(error);
        self.b
            .ins()
            .brif(holds, next, &[], walk.end, &[code.into()]);
        self.b.switch_to_block(next);
    }

    /// Compiles a check that the frame has `bytes` more bytes at `from`, and returns their end.
    fn ahead(&mut self, walk: &Walk, from: Value, bytes: u32) -> Value {
        let end = self.b.ins().iadd_imm(from, i64::from(bytes));
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, end, walk.frame_bytes);
        self.require(walk, fits, self.c.parser.errors.packet_too_short);
        end
    }

    fn parser_op(&mut self, walk: &Walk, op: &ParserOp) -> Result<()> {
        match op {
            ParserOp::Extract(id) if self.plain(*id) => {
                let h = &self.c.layout.headers[*id as usize];
                let start = self.b.use_var(walk.start);
                let end = self.ahead(walk, start, h.fixed_bytes);
                let from = self.b.ins().iadd(walk.frame, start);
                self.copy_in(from, h.base, h.fixed_bytes)?;
                self.b.def_var(walk.start, end);
                self.set_valid(h)
            }
            ParserOp::ExtractTo(Destination::Stack(s), None) if self.regular(*s) => {
                self.extract_next(walk, *s)
            }
            ParserOp::Lookahead { to, offset, width }
                if aligned(*offset, *width) && self.writes(to) =>
            {
                let v = self.lookahead(walk, *offset, *width);
                self.set_target(to, v)
            }
            ParserOp::Verify(cond, code) => {
                let (good, bad) = (self.b.create_block(), self.b.create_block());
                let none = Args::Known(&[]);
                self.branch(cond, none, good, bad)?;
                self.enter(bad)?;
                let code = self.node(code, none)?;
                self.b.ins().jump(walk.end, &[code.into()]);
                self.enter(good)
            }
            ParserOp::Advance(bits) => self.advance(walk, bits),
            ParserOp::Run(ops) => self.action(ops, Args::Known(&[])),
            op => {
                let op = self.address(op);
                let rejected = self.call(Callout::ParserStep, &[op]);
                self.leave_if_rejected(walk, rejected);
                Ok(())
            }
        }
    }

    fn advance(&mut self, walk: &Walk, bits: &Node<u64>) -> Result<()> {
        let errors = &self.c.parser.errors;
        let bits = self.node(bits, Args::Known(&[]))?;
        let odd = self.mask(bits, 7);
        let whole = self.b.ins().icmp_imm(IntCC::Equal, odd, 0);
        self.require(walk, whole, errors.invalid_argument);
        let bytes = self.shift_right(bits, 3);
        let start = self.b.use_var(walk.start);
        let left = self.b.ins().isub(walk.frame_bytes, start);
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, bytes, left);
        self.require(walk, fits, errors.packet_too_short);
        let start = self.b.ins().iadd(start, bytes);
        self.b.def_var(walk.start, start);
        Ok(())
    }

    fn leave_if_rejected(&mut self, walk: &Walk, rejected: Value) {
        let (bad, good) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(rejected, bad, &[], good, &[]);
        self.b.switch_to_block(bad);
        let code = self.context(offset_of!(Context, error));
        self.b.ins().jump(walk.end, &[code.into()]);
        self.b.switch_to_block(good);
    }

    /// Returns true if the extraction of a header is a short copy.
    fn plain(&self, id: HeaderId) -> bool {
        let h = &self.c.layout.headers[id as usize];
        h.varbit.is_none() && !h.metadata && h.fixed_bytes <= MAX_INLINE
    }

    /// Returns true if the elements of a stack are plain and at equal distances.
    fn regular(&self, stack: u32) -> bool {
        let elements = &self.c.layout.stacks[stack as usize].elements;
        let headers = &self.c.layout.headers;
        let element = |i: usize| &headers[elements[i] as usize];
        let same = |i: usize| {
            let (a, b, first, second) = (element(i), element(i + 1), element(0), element(1));
            b.fixed_bytes == a.fixed_bytes
                && b.base > a.base
                && b.valid > a.valid
                && b.base - a.base == second.base - first.base
                && b.valid - a.valid == second.valid - first.valid
        };
        let plain = |&id: &HeaderId| self.plain(id) && headers[id as usize].union.is_none();
        elements.len() > 1
            && elements.iter().all(plain)
            && element(1).base > element(0).base
            && element(1).valid > element(0).valid
            && (0..elements.len() - 1).all(same)
    }

    /// Extracts the next element of a [regular](Self::regular) stack.
    fn extract_next(&mut self, walk: &Walk, stack: u32) -> Result<()> {
        let c = self.c;
        let stack = &c.layout.stacks[stack as usize];
        let element = |i: usize| &c.layout.headers[stack.elements[i] as usize];
        let (first, second, last) = (element(0), element(1), element(stack.elements.len() - 1));
        let bytes = first.fixed_bytes;
        let filled = self.byte(stack.next)?;
        let depth = self.int(stack.elements.len() as u64);
        let room = self.compare(IntCC::UnsignedLessThan, filled, depth);
        self.require(walk, room, c.parser.errors.stack_out_of_bounds);
        let start = self.b.use_var(walk.start);
        let end = self.ahead(walk, start, bytes);
        let from = self.b.ins().iadd(walk.frame, start);
        self.inside(last.base, bytes)?;
        self.inside(last.valid, 1)?;
        let at = self
            .b
            .ins()
            .imul_imm(filled, i64::from(second.base - first.base));
        let to = self.b.ins().iadd(self.mem, at);
        self.copy(from, to, self.inside(first.base, bytes)?, bytes);
        self.forget(first.base * 8, (last.base + bytes) * 8);
        let at = self
            .b
            .ins()
            .imul_imm(filled, i64::from(second.valid - first.valid));
        let to = self.b.ins().iadd(self.mem, at);
        let one = self.int(1);
        self.store_be(one, to, self.inside(first.valid, 1)?, 1);
        self.forget(first.valid * 8, last.valid * 8 + 8);
        let filled = self.b.ins().iadd_imm(filled, 1);
        self.set_fill(stack.next, filled)?;
        self.b.def_var(walk.start, end);
        Ok(())
    }

    /// Loads the bits of a lookahead that are whole [aligned] words.
    fn lookahead(&mut self, walk: &Walk, offset: u32, width: u32) -> Value {
        let start = self.b.use_var(walk.start);
        self.ahead(walk, start, (offset + width) / 8);
        let from = self.b.ins().iadd(walk.frame, start);
        let t = kind(width / 8);
        let v = self
            .b
            .ins()
            .load(t, Self::other(), from, (offset / 8) as i32);
        let v = self.swap(v);
        if t == I64 {
            v
        } else {
            self.b.ins().uextend(I64, v)
        }
    }

    fn select(&mut self, walk: &Walk, state: &ParserState) -> Result<()> {
        if state.cases.is_empty() {
            self.go(walk, state.default);
            return Ok(());
        }
        let Some(key) = self.select_key(walk, state)? else {
            return self.select_by_call(walk, state);
        };
        let zero = self.int(0);
        let key: Vec<Value> = key.into_iter().map(|v| v.unwrap_or(zero)).collect();
        for case in &state.cases {
            let (matches, next) = match case {
                Case::Word { value, mask, next } => {
                    (self.key_matches(&key[..1], &[*value], &[*mask]), *next)
                }
                Case::Words {
                    values,
                    masks,
                    next,
                } => (self.key_matches(&key, values, masks), *next),
                Case::ValueSet { set, next } => {
                    let at = self.store_key(&key)?;
                    let (set, words) = (self.int((*set).into()), self.int(key.len() as u64));
                    (self.call(Callout::InSet, &[set, at, words]), *next)
                }
            };
            let (found, other) = (self.b.create_block(), self.b.create_block());
            self.brif(matches, found, other);
            self.enter(found)?;
            self.go(walk, next);
            self.enter(other)?;
        }
        self.go(walk, state.default);
        Ok(())
    }

    fn key_matches(&mut self, key: &[Value], values: &[u64], masks: &[u64]) -> Value {
        let mut differing: Option<Value> = None;
        for ((&word, &value), &mask) in key.iter().zip(values).zip(masks) {
            let word = self.mask(word, mask);
            let value = self.int(value);
            if key.len() == 1 {
                return self.compare(IntCC::Equal, word, value);
            }
            let bits = self.b.ins().bxor(word, value);
            differing = Some(match differing {
                Some(before) => self.b.ins().bor(before, bits),
                None => bits,
            });
        }
        match differing {
            Some(bits) => self.b.ins().icmp_imm(IntCC::Equal, bits, 0),
            None => self.int(1),
        }
    }

    /// Compiles a `select` key into words; `None` if the interpreter must build it.
    fn select_key(
        &mut self,
        walk: &Walk,
        state: &ParserState,
    ) -> Result<Option<Vec<Option<Value>>>> {
        let native = |part: &SelectPart| match part {
            SelectPart::Field(part) => self.loads(part),
            SelectPart::Lookahead { offset, width, .. } => aligned(*offset, *width),
            SelectPart::Dyn { .. } => false,
        };
        if !state.key.iter().all(native) {
            return Ok(None);
        }
        let mut key = vec![None; state.words];
        for part in &state.key {
            match part {
                SelectPart::Field(part) => self.key_part(part, &mut key)?,
                SelectPart::Lookahead {
                    offset,
                    width,
                    word,
                    shift,
                } => {
                    let v = self.lookahead(walk, *offset, *width);
                    let v = self.shift_left(v, *shift);
                    put(self, &mut key[*word], v);
                }
                SelectPart::Dyn { .. } => return Err(Unsupported),
            }
        }
        Ok(Some(key))
    }

    /// Leaves a `select` to the interpreter.
    fn select_by_call(&mut self, walk: &Walk, state: &ParserState) -> Result<()> {
        let at = self.address(state);
        let next = self.call(Callout::Select, &[at]);
        let rejected = self.b.ins().icmp_imm(IntCC::Equal, next, REJECTED as i64);
        self.leave_if_rejected(walk, rejected);
        let mut switch = Switch::new();
        let mut blocks = BTreeMap::new();
        let cases = state.cases.iter().map(|case| match case {
            Case::Word { next, .. } | Case::Words { next, .. } | Case::ValueSet { next, .. } => {
                *next
            }
        });
        for next in cases.chain([state.default]) {
            blocks.entry(next).or_insert_with(|| self.b.create_block());
        }
        for (&next, &block) in &blocks {
            switch.set_entry(next.into(), block);
        }
        let accept = self.b.create_block();
        self.arrive_at(blocks.values().copied().chain([accept]));
        switch.emit(&mut self.b, next, accept);
        for (next, block) in blocks {
            self.enter(block)?;
            self.go(walk, next);
        }
        self.enter(accept)?;
        self.go(walk, crate::program::parser::ACCEPT);
        Ok(())
    }
}

/// Returns true if a single load can read this piece of the frame.
fn aligned(offset: u32, width: u32) -> bool {
    offset.is_multiple_of(8) && offset < 1 << 24 && matches!(width, 8 | 16 | 32 | 64)
}
