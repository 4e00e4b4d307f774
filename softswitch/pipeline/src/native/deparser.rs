// SPDX-License-Identifier: Apache-2.0
//! Generates code for checksums and the deparser.

use std::collections::BTreeSet;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Variable;

use super::generator::{Args, Gen, Result, Unsupported};
use super::memory::{kind, pieces};
use super::runtime::Context;
use crate::packet::MAX_FRAME;
use crate::program::layout::HeaderId;
use crate::program::op::Target;
use crate::program::{Compiled, Deparser};

/// Number of headers whose validity one load checks, if they are adjacent.
const GROUP: usize = 8;

/// Returns the maximum number of bytes that a deparser emits before the payload.
pub(super) fn most_emitted(c: &Compiled, deparser: &Deparser) -> usize {
    let bytes = |&h: &HeaderId| c.layout.headers[h as usize].fixed_bytes as usize;
    deparser.headers.iter().map(bytes).sum()
}

impl Gen<'_, '_> {
    /// Compiles the checksum verification; the result is 1 if a checksum is wrong, else 0.
    pub(super) fn verify_checksums(&mut self) -> Result<Value> {
        let c = self.c;
        let wrong = self.b.declare_var(I64);
        let zero = self.int(0);
        self.b.def_var(wrong, zero);
        for sum in c.checksums.iter().filter(|s| s.verify) {
            if !self.reads(sum.field) {
                return Err(Unsupported);
            }
            let (present, check, next) = (
                self.b.create_block(),
                self.b.create_block(),
                self.b.create_block(),
            );
            let valid = self.byte(c.layout.headers[sum.header as usize].valid)?;
            self.brif(valid, present, next);
            self.enter(present)?;
            match &sum.condition {
                Some(cond) => self.branch(cond, Args::Known(&[]), check, next)?,
                None => self.jump(check),
            }
            self.enter(check)?;
            let expected = self.field64(sum.field)?;
            let found = self.calculation(sum.calculation)?;
            let differs = self.compare(IntCC::NotEqual, expected, found);
            let differs = self.b.ins().uextend(I64, differs);
            let so_far = self.b.use_var(wrong);
            let so_far = self.b.ins().bor(so_far, differs);
            self.b.def_var(wrong, so_far);
            self.jump(next);
            self.enter(next)?;
        }
        Ok(self.b.use_var(wrong))
    }

    fn update_checksums(&mut self) -> Result<()> {
        let c = self.c;
        for sum in c.checksums.iter().filter(|s| s.update) {
            let to = Target::Field(sum.field);
            if !self.writes(&to) {
                return Err(Unsupported);
            }
            let (update, next) = (self.b.create_block(), self.b.create_block());
            match &sum.condition {
                Some(cond) => self.branch(cond, Args::Known(&[]), update, next)?,
                None => self.jump(update),
            }
            self.enter(update)?;
            let v = self.calculation(sum.calculation)?;
            self.set_target(&to, v)?;
            self.jump(next);
            self.enter(next)?;
        }
        Ok(())
    }

    /// Compiles the checksum update and a deparser; the result is the number of emitted bytes.
    pub(super) fn deparser(&mut self, deparser: &Deparser) -> Result<()> {
        let c = self.c;
        let headers = |h: HeaderId| &c.layout.headers[h as usize];
        let simple = |&h: &HeaderId| headers(h).varbit.is_none() && !headers(h).metadata;
        if !deparser.headers.iter().all(simple) || most_emitted(c, deparser) > MAX_FRAME {
            return Err(Unsupported);
        }
        self.update_checksums()?;
        self.action(&deparser.ops, Args::Known(&[]))?;
        let out = self.context(offset_of!(Context, out));
        let to = self.b.declare_var(I64);
        self.b.def_var(to, out);
        // Most headers are invalid.
        for group in deparser.headers.chunks(GROUP) {
            let (some, next) = (self.b.create_block(), self.b.create_block());
            let valid: BTreeSet<u32> = group.iter().map(|&h| headers(h).valid).collect();
            let any = self.any_byte(&valid)?;
            self.brif(any, some, next);
            self.enter(some)?;
            for &h in group {
                self.emit(h, to)?;
            }
            self.jump(next);
            self.enter(next)?;
        }
        let end = self.b.use_var(to);
        let bytes = self.b.ins().isub(end, out);
        self.b.ins().return_(&[bytes]);
        Ok(())
    }

    /// Emits a header if it is valid.
    fn emit(&mut self, id: HeaderId, to: Variable) -> Result<()> {
        let h = &self.c.layout.headers[id as usize];
        let (present, next) = (self.b.create_block(), self.b.create_block());
        let valid = self.byte(h.valid)?;
        self.brif(valid, present, next);
        self.enter(present)?;
        let off = self.inside(h.base, h.fixed_bytes)?;
        let at = self.b.use_var(to);
        for (first, size) in pieces(h.fixed_bytes) {
            let first = first as i32;
            let v = self
                .b
                .ins()
                .load(kind(size), Self::phv(), self.mem, off + first);
            self.b.ins().store(Self::other(), v, at, first);
        }
        let end = self.b.ins().iadd_imm(at, i64::from(h.fixed_bytes));
        self.b.def_var(to, end);
        self.jump(next);
        self.enter(next)
    }
}
