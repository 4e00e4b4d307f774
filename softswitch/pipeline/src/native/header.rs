// SPDX-License-Identifier: Apache-2.0
//! Generates code for adding and removing headers.

use std::collections::BTreeSet;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::generator::{Gen, Result};
use super::memory::{kind, pieces};
use super::runtime::Callout;
use crate::packet::Packet;
use crate::program::expr::HeaderRef;
use crate::program::layout::{Header, HeaderId};
use crate::program::op::Op;

/// Number of headers from which on one code sequence removes them together.
const MANY: usize = 4;
/// Maximum size in bytes of a header that is cleared inline; larger ones take a call.
const MAX_CLEARED: u32 = 128;

/// Returns the header that a step removes, if it is known.
fn removed(op: &Op) -> Option<HeaderId> {
    match op {
        Op::RemoveHeader(HeaderRef::Static(h)) => Some(*h),
        _ => None,
    }
}

impl Gen<'_, '_> {
    /// Compiles the removals at the beginning of `ops` if there are many, and returns their number. Parsers begin with the
    /// removal of all headers, none of which is valid yet.
    pub(super) fn remove_many(&mut self, ops: &[Op]) -> Result<usize> {
        let headers: Vec<HeaderId> = ops.iter().map_while(removed).collect();
        if headers.len() < MANY {
            return Ok(0);
        }
        let count = headers.len();
        let valid = headers
            .iter()
            .map(|&h| self.c.layout.headers[h as usize].valid);
        let valid: BTreeSet<u32> = valid.collect();
        let any = self.any_byte(&valid)?;
        let (some, after) = (self.b.create_block(), self.b.create_block());
        let known = self.known.clone();
        self.b.ins().brif(any, some, &[], after, &[]);
        self.b.switch_to_block(some);
        let (at, n) = (self.address(&ops[0]), self.int(count as u64));
        let none = self.int(0);
        self.call(Callout::Steps, &[at, n, none, none]);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        self.known = known;
        for off in valid {
            self.forget(off * 8, off * 8 + 8);
        }
        Ok(count)
    }

    /// Returns a value that is not zero if one of the bytes at these offsets is not zero.
    pub(super) fn any_byte(&mut self, offsets: &BTreeSet<u32>) -> Result<Value> {
        let mut any = self.int(0);
        let mut rest = offsets.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut bytes = 1;
            while rest.next_if_eq(&(first + bytes)).is_some() {
                bytes += 1;
            }
            let off = self.inside(first, bytes)?;
            for (at, size) in pieces(bytes) {
                let v = self.load_be(self.mem, off + at as i32, size);
                any = self.b.ins().bor(any, v);
            }
        }
        Ok(any)
    }

    /// Returns true if native code can add and remove this header.
    pub(super) fn is_simple(&self, h: HeaderId) -> bool {
        let h = &self.c.layout.headers[h as usize];
        h.varbit.is_none() && h.stored_bytes <= MAX_CLEARED
    }

    /// Sets the fields of a header to zero.
    fn clear(&mut self, h: &Header) -> Result<()> {
        let off = self.inside(h.base, h.stored_bytes)?;
        for (at, size) in pieces(h.stored_bytes) {
            let zero = self.b.ins().iconst(kind(size), 0);
            self.b
                .ins()
                .store(Self::phv(), zero, self.mem, off + at as i32);
        }
        self.forget(h.base * 8, (h.base + h.stored_bytes) * 8);
        Ok(())
    }

    pub(super) fn add_header(&mut self, id: HeaderId) -> Result<()> {
        let h = &self.c.layout.headers[id as usize];
        let valid = self.byte(h.valid)?;
        let (add, after) = (self.b.create_block(), self.b.create_block());
        self.brif(valid, after, add);
        self.enter(add)?;
        if !self.c.layout.keeps_fields {
            self.clear(h)?;
        }
        self.set_valid(h)?;
        let len = self.load_state(I32, offset_of!(Packet, len));
        let len = self.b.ins().iadd_imm(len, i64::from(h.fixed_bytes));
        self.store_state(len, offset_of!(Packet, len));
        self.jump(after);
        self.enter(after)
    }

    pub(super) fn remove_header(&mut self, id: HeaderId) -> Result<()> {
        let h = &self.c.layout.headers[id as usize];
        let valid = self.byte(h.valid)?;
        let (remove, after) = (self.b.create_block(), self.b.create_block());
        self.brif(valid, remove, after);
        self.enter(remove)?;
        let len = self.load_state(I32, offset_of!(Packet, len));
        let bytes = self.b.ins().iconst(I32, i64::from(h.fixed_bytes));
        let less = self.b.ins().isub(len, bytes);
        let zero = self.b.ins().iconst(I32, 0);
        let enough = self.compare(IntCC::UnsignedGreaterThanOrEqual, len, bytes);
        let len = self.b.ins().select(enough, less, zero);
        self.store_state(len, offset_of!(Packet, len));
        self.set_byte(h.valid, 0)?;
        self.jump(after);
        self.enter(after)
    }

    /// Makes a header valid, and its siblings in a union invalid.
    pub(super) fn set_valid(&mut self, h: &Header) -> Result<()> {
        let siblings = h.union.map(|u| &self.c.layout.unions[u as usize].members);
        for &m in siblings.into_iter().flatten() {
            self.set_byte(self.c.layout.headers[m as usize].valid, 0)?;
        }
        self.set_byte(h.valid, 1)
    }
}
