// SPDX-License-Identifier: Apache-2.0
//! Generates code for the methods of Internet checksums.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I16, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::generator::{Gen, Result};
use super::runtime::Context;
use crate::program::op::SumStep;

/// The highest sum, which is that of data with a right checksum.
const ALL_ONES: u64 = 0xffff;

impl Gen<'_, '_> {
    /// Compiles a method of a checksum; returns false if the interpreter must run it.
    pub(super) fn sum_step(&mut self, number: u32, step: &SumStep) -> Result<bool> {
        match step {
            SumStep::Clear => {
                let zero = self.int(0);
                self.store_sum(number, zero);
            }
            SumStep::Add(calculation) => {
                let complement = self.calculation(*calculation)?;
                let ones = self.int(ALL_ONES);
                let v = self.b.ins().bxor(complement, ones);
                self.add_to_sum(number, v);
            }
            SumStep::Subtract(calculation) => {
                let complement = self.calculation(*calculation)?;
                self.add_to_sum(number, complement);
            }
            SumStep::Get(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                let ones = self.int(ALL_ONES);
                let v = self.b.ins().bxor(sum, ones);
                self.set_target(to, v)?;
            }
            SumStep::GetState(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                self.set_target(to, sum)?;
            }
            SumStep::IsWrong(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                let ones = self.int(ALL_ONES);
                let wrong = self.compare(IntCC::NotEqual, sum, ones);
                let wrong = self.b.ins().uextend(I64, wrong);
                self.set_target(to, wrong)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_to_sum(&mut self, number: u32, v: Value) {
        let old = self.load_sum(number);
        let sum = self.b.ins().iadd(old, v);
        let (low, carry) = (self.mask(sum, ALL_ONES), self.shift_right(sum, 16));
        let sum = self.b.ins().iadd(low, carry);
        self.store_sum(number, sum);
    }

    fn load_sum(&mut self, number: u32) -> Value {
        let sums = self.context(offset_of!(Context, sums));
        let off = (number * 2) as i32;
        let v = self.b.ins().load(I16, Self::other(), sums, off);
        self.b.ins().uextend(I64, v)
    }

    fn store_sum(&mut self, number: u32, v: Value) {
        let sums = self.context(offset_of!(Context, sums));
        let v = self.b.ins().ireduce(I16, v);
        let off = (number * 2) as i32;
        self.b.ins().store(Self::other(), v, sums, off);
    }
}
