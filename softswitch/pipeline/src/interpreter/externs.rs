// SPDX-License-Identifier: Apache-2.0
//! The interpreter of externs with state: checksums, direct registers, filters, and the bytes in front of copies.

use num_bigint::BigInt;

use super::machine::Machine;
use crate::packet::{Front, Packet};
use crate::phv;
use crate::program::expr::Node;
use crate::program::hash::csum16;
use crate::program::op::{FilterCall, FilterOutput, SumStep, Target};
use crate::state::Externs;
use crate::state::filter::Filter;

impl Machine<'_> {
    /// Reads the direct register of the entry that the table hit; the initial value after a miss.
    pub(super) fn read_direct(&mut self, to: &Target, register: u32, args: &[u64]) {
        let r = &self.externs.direct_registers[register as usize];
        let cell = self.pkt.entry.map_or(usize::MAX, |entry| entry as usize);
        if r.is_narrow() {
            let v = r.get(cell);
            self.set64(to, args, v);
        } else {
            let v: BigInt = r.get(cell);
            self.set_big(to, args, &v);
        }
    }

    /// Writes the direct register of the entry that the table hit; nothing after a miss.
    pub(super) fn write_direct(&mut self, register: u32, value: &Node<BigInt>, args: &[u64]) {
        let v: BigInt = value.eval(&self.env(args));
        let r = &mut self.externs.direct_registers[register as usize];
        if let Some(entry) = self.pkt.entry {
            r.grow(entry as usize);
            r.set_big(entry as usize, phv::wrap(&v, r.width()));
        }
    }

    pub(super) fn filter(&mut self, call: &FilterCall, args: &[u64]) {
        let env = &self.env(args);
        let value = call.value.eval(env);
        let index = match &call.index {
            Some(index) => Some(index.eval(env) as usize),
            None => self.pkt.entry.map(|entry| entry as usize),
        };
        let now = self.now;
        let externs = &mut *self.externs;
        let cells = &mut externs.filters[call.filter as usize];
        let mut other = Filter::default();
        let cell = index.and_then(|i| cells.get_mut(i)).unwrap_or(&mut other);
        let result = match call.output {
            FilterOutput::Level => cell.execute(value, now),
            FilterOutput::Drop { drop, keep } => match cell.drops(value, now, &mut externs.rng) {
                true => drop,
                false => keep,
            },
        };
        self.set64(&call.to, args, result);
    }

    /// Returns the bytes in front of a mirrored or resubmitted packet.
    pub(super) fn front(&mut self, calculation: u32) -> Front {
        let c = &self.calculations[calculation as usize];
        Front::from_slice(self.externs.input(c, self.layout, self.pkt))
    }

    /// Runs a method of an Internet checksum.
    pub(super) fn sum(&mut self, number: u32, step: &SumStep, args: &[u64]) {
        let old = self.externs.sums[number as usize];
        let input = |calculation: u32, externs: &mut Externs, pkt: &Packet| {
            let c = &self.calculations[calculation as usize];
            // The hash is the complement of the input's sum.
            externs.hash(c, self.layout, pkt) as u16
        };
        let new = match step {
            SumStep::Clear => 0,
            SumStep::Add(c) => add16(old, !input(*c, self.externs, self.pkt)),
            SumStep::Subtract(c) => add16(old, input(*c, self.externs, self.pkt)),
            SumStep::SetState(v) => v.eval(&self.env(args)) as u16,
            SumStep::IsWrong(to) => {
                self.set64(to, args, (old != u16::MAX).into());
                old
            }
            SumStep::Deposit(deposit) => {
                let start = self.pkt.start;
                self.pkt.deposits.push((number, *deposit, start));
                old
            }
            SumStep::Get(to) => {
                self.set64(to, args, (!old).into());
                old
            }
            SumStep::Verify(to, field) => {
                let is_right = field.eval(&self.env(args)) == u64::from(!old);
                self.set64(to, args, is_right.into());
                old
            }
            SumStep::GetState(to) => {
                self.set64(to, args, old.into());
                old
            }
        };
        self.externs.sums[number as usize] = new;
    }

    /// Writes the residual checksums that the parser has begun.
    pub(crate) fn deposit(&mut self, targets: &[Target]) {
        for (sum, deposit, start) in std::mem::take(&mut self.pkt.deposits) {
            let complement = csum16(&self.pkt.frame[start..self.pkt.start]);
            let residual = add16(self.externs.sums[sum as usize], complement);
            self.set64(&targets[deposit as usize], &[], residual.into());
        }
        self.trace_changes(true);
    }
}

/// Adds in ones' complement.
fn add16(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}
