// SPDX-License-Identifier: Apache-2.0
//! The interpreter of the parser: a state machine over the frame.

use smallvec::{SmallVec, smallvec};

use super::machine::Machine;
use crate::Nanos;
use crate::packet::Packet;
use crate::phv::{copy_bits, mask64};
use crate::program::Compiled;
use crate::program::expr::Node;
use crate::program::key_part::KeyPart;
use crate::program::parser::{
    Case, Destination, Parsed, Parser, ParserOp, ParserState, SelectPart,
};
use crate::state::{SetMember, State};

/// A parser error's code.
pub(crate) struct Reject(pub(crate) u64);

/// Returns the `width` bits at bit `at` of the frame as words, most significant first.
fn peek(frame: &[u8], at: usize, width: u32, into: &mut [u64]) {
    let words = into.len();
    let mut bytes = [0; 8];
    let mut first = at;
    for (i, word) in into.iter_mut().enumerate() {
        // The first word is the partial one.
        let bits = if i == 0 {
            width as usize - (words - 1) * 64
        } else {
            64
        };
        bytes.fill(0);
        copy_bits(frame, first, &mut bytes, 64 - bits, bits);
        *word = u64::from_be_bytes(bytes);
        first += bits;
    }
}

impl State {
    /// Runs a parser and verifies checksums.
    pub(crate) fn parse(
        &mut self,
        c: &Compiled,
        parser: usize,
        pkt: &mut Packet,
        now: Nanos,
    ) -> Parsed {
        let mut m = Machine::new(c, &mut self.externs, pkt, now);
        if let Some(trace) = &mut m.externs.trace {
            trace.look(&m.pkt.mem);
        }
        let error = c.parser.parse(
            c.parser.starts[parser],
            &mut m,
            &self.value_sets,
            self.max_parser_states,
            &mut self.key,
        );
        m.trace_changes(true);
        if error != c.parser.errors.no_error
            && let Some(trace) = &mut m.externs.trace
        {
            trace.parser_error(c, error);
        }
        let mut bad_checksum = false;
        for sum in c.checksums.iter().filter(|s| s.verify) {
            let env = &m.env(&[]);
            let header = &c.layout.headers[sum.header as usize];
            if header.is_valid(env.mem) && sum.condition.as_ref().is_none_or(|c| c.eval(env)) {
                let expected = sum.field.get64(env.mem);
                let calculation = &c.calculations[sum.calculation as usize];
                let computed = m.externs.hash(calculation, &c.layout, m.pkt);
                bad_checksum |= computed != expected;
                if let Some(trace) = &mut m.externs.trace {
                    trace.checksum(&c.layout, sum, expected, computed);
                }
            }
        }
        Parsed {
            error,
            bad_checksum,
        }
    }
}

impl Parser {
    /// Parses the packet's frame from state `start`, and returns the error code.
    fn parse(
        &self,
        start: u32,
        m: &mut Machine,
        value_sets: &[Vec<SetMember>],
        max_states: u32,
        key: &mut Vec<u64>,
    ) -> u64 {
        m.pkt.start = 0;
        let mut state = start;
        let mut visited = 0;
        while let Some(s) = self.states.get(state as usize) {
            visited += 1;
            if visited > max_states {
                return self.errors.parser_timeout;
            }
            if let Some(trace) = &mut m.externs.trace {
                trace.parser_state(s);
            }
            if let Some(coverage) = &mut m.externs.coverage {
                coverage.enter_state(state);
            }
            for (i, op) in s.ops.iter().enumerate() {
                if let Some(coverage) = &mut m.externs.coverage {
                    coverage.parser_step(state, i);
                }
                if let Err(Reject(code)) = self.step(op, m) {
                    return code;
                }
            }
            m.trace_changes(true);
            let case = match self.case(s, m, value_sets, key) {
                Ok(case) => case,
                Err(Reject(code)) => return code,
            };
            if let Some(coverage) = &mut m.externs.coverage {
                coverage.transition(state, case);
            }
            state = s.next(case);
            if m.externs.trace.is_some() {
                m.trace_select(self, s, key, state);
            }
        }
        self.errors.no_error
    }

    #[inline]
    pub(crate) fn step(&self, op: &ParserOp, m: &mut Machine) -> Result<(), Reject> {
        match op {
            ParserOp::Extract(id) => {
                let layout = m.layout;
                let h = &layout.headers[*id as usize];
                let pkt = &mut *m.pkt;
                let end = pkt.start + h.fixed_bytes as usize;
                let Some(wire) = pkt.frame.get(pkt.start..end) else {
                    return Err(Reject(self.errors.packet_too_short));
                };
                h.extract(&mut pkt.mem, wire, 0);
                pkt.start = end;
                layout.set_valid(&mut pkt.mem, *id, true);
                Ok(())
            }
            ParserOp::ExtractTo(to, varbit) => self.extract_to(to, varbit.as_ref(), m),
            ParserOp::Lookahead { to, offset, width } => {
                let at = m.pkt.start * 8 + *offset as usize;
                if m.pkt.frame.len() * 8 < at + *width as usize {
                    return Err(Reject(self.errors.packet_too_short));
                }
                let mut words: SmallVec<[u64; 4]> =
                    smallvec![0; width.div_ceil(64).max(1) as usize];
                peek(&m.pkt.frame, at, *width, &mut words);
                m.set_words(to, &words);
                Ok(())
            }
            ParserOp::Verify(cond, code) => {
                let env = &m.env(&[]);
                if cond.eval(env) {
                    Ok(())
                } else {
                    Err(Reject(code.eval(env)))
                }
            }
            ParserOp::Advance(bits) => {
                let bits = bits.eval(&m.env(&[]));
                if bits % 8 != 0 {
                    return Err(Reject(self.errors.invalid_argument));
                }
                let left = m.pkt.frame.len() - m.pkt.start;
                match usize::try_from(bits / 8) {
                    Ok(bytes) if bytes <= left => {
                        m.pkt.start += bytes;
                        Ok(())
                    }
                    _ => Err(Reject(self.errors.packet_too_short)),
                }
            }
            ParserOp::Run(ops) => {
                m.run(ops, &[]);
                Ok(())
            }
        }
    }

    fn extract_to(
        &self,
        to: &Destination,
        varbit: Option<&Node<u64>>,
        m: &mut Machine,
    ) -> Result<(), Reject> {
        let layout = m.layout;
        // The fill count of a stack, and its element.
        let (next, id) = match to {
            Destination::Header(id) => (None, Some(*id)),
            Destination::Stack(s) => {
                let stack = &layout.stacks[*s as usize];
                let filled = m.pkt.mem[stack.next as usize];
                (
                    Some(stack.next),
                    stack.elements.get(usize::from(filled)).copied(),
                )
            }
            Destination::UnionStack(s, member) => {
                let stack = &layout.union_stacks[*s as usize];
                let filled = m.pkt.mem[stack.next as usize];
                let union = stack.elements.get(usize::from(filled));
                let id = union.map(|&u| layout.unions[u as usize].members[*member as usize]);
                (Some(stack.next), id)
            }
        };
        let id = id.ok_or(Reject(self.errors.stack_out_of_bounds))?;
        let h = &layout.headers[id as usize];
        let bits = varbit.map_or(0, |n| n.eval(&m.env(&[])));
        if !bits.is_multiple_of(8) {
            return Err(Reject(self.errors.invalid_argument));
        }
        let pkt = &mut *m.pkt;
        let left = pkt.frame.len() - pkt.start;
        let bytes = (bits / 8).saturating_add(u64::from(h.fixed_bytes));
        if bytes > left as u64 {
            return Err(Reject(self.errors.packet_too_short));
        }
        if bytes > u64::from(h.max_bytes) {
            return Err(Reject(self.errors.header_too_short));
        }
        let end = pkt.start + bytes as usize;
        h.extract(
            &mut pkt.mem,
            &pkt.frame[pkt.start..end],
            (bits / 8) as usize,
        );
        pkt.start = end;
        layout.set_valid(&mut pkt.mem, id, true);
        if let Some(next) = next {
            pkt.mem[next as usize] += 1;
        }
        Ok(())
    }

    /// Returns the next state.
    #[inline]
    pub(crate) fn select(
        &self,
        s: &ParserState,
        m: &Machine,
        value_sets: &[Vec<SetMember>],
        key: &mut Vec<u64>,
    ) -> Result<u32, Reject> {
        self.case(s, m, value_sets, key).map(|case| s.next(case))
    }

    /// Returns the number of the first case that matches, or of the default transition.
    #[inline]
    fn case(
        &self,
        s: &ParserState,
        m: &Machine,
        value_sets: &[Vec<SetMember>],
        key: &mut Vec<u64>,
    ) -> Result<usize, Reject> {
        if s.cases.is_empty() {
            return Ok(0);
        }
        key.clear();
        key.resize(s.words, 0);
        for part in &s.key {
            match part {
                SelectPart::Field(part) => part.load(&m.pkt.mem, key),
                other => self.load_computed(other, m, key)?,
            }
        }
        let matches = |case: &Case| match case {
            Case::Word { value, mask, .. } => key[0] & mask == *value,
            Case::Words { values, masks, .. } => {
                let masked = key.iter().zip(masks).map(|(k, m)| k & m);
                masked.eq(values.iter().copied())
            }
            Case::ValueSet { set, .. } => value_sets[*set as usize].iter().any(|v| v.matches(key)),
        };
        Ok(s.cases.iter().position(matches).unwrap_or(s.cases.len()))
    }

    fn load_computed(&self, part: &SelectPart, m: &Machine, key: &mut [u64]) -> Result<(), Reject> {
        match part {
            SelectPart::Field(_) => {}
            SelectPart::Dyn { field, word, shift } => {
                let f = field
                    .resolve(&m.env(&[]))
                    .ok_or(Reject(self.errors.stack_out_of_bounds))?;
                KeyPart::new(f, (*word, *shift), None).load(&m.pkt.mem, key);
            }
            SelectPart::Lookahead {
                offset,
                width,
                word,
                shift,
            } => {
                let at = m.pkt.start * 8 + *offset as usize;
                if m.pkt.frame.len() * 8 < at + *width as usize {
                    return Err(Reject(self.errors.packet_too_short));
                }
                if *width <= 64 {
                    let mut v = [0];
                    peek(&m.pkt.frame, at, *width, &mut v);
                    key[*word] |= (v[0] & mask64(*width)) << shift;
                } else {
                    let words = width.div_ceil(64) as usize;
                    peek(&m.pkt.frame, at, *width, &mut key[*word..*word + words]);
                }
            }
        }
        Ok(())
    }
}
