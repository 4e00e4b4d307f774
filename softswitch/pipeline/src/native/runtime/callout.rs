// SPDX-License-Identifier: Apache-2.0
//! The functions that native code calls.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::Context;
use crate::interpreter::control::{self, choose};
use crate::interpreter::eval::Env;
use crate::interpreter::machine::Machine;
use crate::packet::{Front, Packet};
use crate::program::Compiled;
use crate::program::expr::{Cond, Node};
use crate::program::hash::HashState;
use crate::program::op::Op;
use crate::program::parser::{ParserOp, ParserState};
use crate::state::State;
use crate::state::table::NO_ACTION;

/// Bit of [`Callout::Apply`]'s result that indicates a hit; the action is in the upper half.
pub(in crate::native) const HIT: u64 = 1;
/// [`Callout::Select`]'s result if there is no next state; the error is in the context.
pub(in crate::native) const REJECTED: u64 = u64::MAX;

/// A function that native code calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Callout {
    /// Runs steps of an action.
    Steps,
    /// Mirrors the packet, if the session exists.
    Mirror,
    /// Evaluates a value of 64 bits.
    Value,
    /// Evaluates a value of 128 bits.
    Wide,
    /// Evaluates a condition.
    Condition,
    /// Finds the record of the entry that a key hits.
    Find,
    /// Looks up a table's entry, counts the hit, and selects the action.
    Apply,
    /// Meters the packet in a record.
    Meter,
    /// Runs the selected action.
    Chosen,
    /// Takes locks of registers.
    TakeLocks,
    /// Releases locks of registers.
    ReleaseLocks,
    /// Runs a step of the parser; 1 if it rejects the packet.
    ParserStep,
    /// Selects the next parser state.
    Select,
    /// Looks up a key in a value set.
    InSet,
    /// Hashes bytes.
    Hash,
    /// Computes the hash of a calculation.
    Calculate,
}

impl Callout {
    pub(in crate::native) fn address(self) -> u64 {
        let f = match self {
            Self::Steps => steps as *const (),
            Self::Mirror => mirror as *const (),
            Self::Value => value as *const (),
            Self::Wide => wide as *const (),
            Self::Condition => condition as *const (),
            Self::Find => find as *const (),
            Self::Apply => apply as *const (),
            Self::Meter => meter as *const (),
            Self::Chosen => chosen as *const (),
            Self::TakeLocks => take_locks as *const (),
            Self::ReleaseLocks => release_locks as *const (),
            Self::ParserStep => parser_step as *const (),
            Self::Select => select as *const (),
            Self::InSet => in_set as *const (),
            Self::Hash => hash as *const (),
            Self::Calculate => calculate as *const (),
        };
        f as u64
    }

    /// Returns true if the function may write the packet's headers and metadata.
    pub(in crate::native) fn writes(self) -> bool {
        matches!(self, Self::Steps | Self::Chosen | Self::ParserStep)
    }
}

impl Context {
    fn parts(&mut self) -> (&mut State, &Compiled, &mut Packet) {
        // SAFETY: [`enter`](super::enter) has mutable references to them, and the calling native code does not hold any.
        unsafe { (&mut *self.state, &*self.program, &mut *self.pkt) }
    }

    fn machine(&mut self) -> Machine<'_> {
        let now = self.now;
        let (state, c, pkt) = self.parts();
        state.machine(c, pkt, now)
    }
}

/// Defines a function that native code calls with its context and words. Pointers are to parts of the program that the
/// code belongs to, or to arguments and buffers of the length that follows.
macro_rules! callout {
    ($(#[$doc:meta])* fn $name:ident($ctx:ident $(, $arg:ident: $t:ty)*) $body:block) => {
        $(#[$doc])*
        unsafe extern "C" fn $name($ctx: *mut Context $(, $arg: $t)*) -> u64 {
            // SAFETY: native code passes the context that it received, and the arguments that the generator compiled.
            let $ctx = unsafe { &mut *$ctx };
            $body
        }
    };
}

/// Returns the slice that native code passes by address and length.
///
/// # Safety
///
/// `n` words begin at `at`, or `n` is 0.
unsafe fn words<'a>(at: *const u64, n: u64) -> &'a [u64] {
    if n == 0 {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { from_raw_parts(at, n as usize) }
}

callout! {
    fn steps(ctx, ops: *const Op, count: u64, args: *const u64, n: u64) {
        // SAFETY: see `callout`.
        let (ops, args) = unsafe { (from_raw_parts(ops, count as usize), words(args, n)) };
        ctx.machine().run(ops, args);
        0
    }
}

callout! {
    fn mirror(ctx, session: u64, front: *const u8, n: u64) {
        // SAFETY: see `callout`.
        let front = unsafe { from_raw_parts(front, n as usize) };
        let session = session as u32;
        let (state, _, pkt) = ctx.parts();
        let exists = state.pre.has_session(session);
        pkt.mirror = exists.then(|| (session, Front::from_slice(front)));
        0
    }
}

callout! {
    fn value(ctx, node: *const Node<u64>, args: *const u64, n: u64) {
        // SAFETY: see `callout`.
        let (node, args) = unsafe { (&*node, words(args, n)) };
        node.eval(&ctx.machine().env(args))
    }
}

callout! {
    fn wide(ctx, node: *const Node<u128>, args: *const u64, n: u64, to: *mut u64) {
        // SAFETY: see `callout`; `to` has room for two words.
        let (node, args, to) = unsafe { (&*node, words(args, n), from_raw_parts_mut(to, 2)) };
        let v = node.eval(&ctx.machine().env(args));
        to.copy_from_slice(&[v as u64, (v >> 64) as u64]);
        0
    }
}

callout! {
    fn condition(ctx, cond: *const Cond, args: *const u64, n: u64) {
        // SAFETY: see `callout`.
        let (cond, args) = unsafe { (&*cond, words(args, n)) };
        cond.eval(&ctx.machine().env(args)).into()
    }
}

callout! {
    fn find(ctx, number: u64, key: *const u64) {
        let (state, c, _) = ctx.parts();
        let words = c.tables[number as usize].shape.words;
        // SAFETY: see `callout`; native code made the table's key there.
        let key = unsafe { self::words(key, words as u64) };
        let slot = state.tables[number as usize].hit(key);
        slot.map_or(0, |slot| u64::from(slot) + 1)
    }
}

callout! {
    fn apply(ctx, number: u64, key: *const u64) {
        let now = ctx.now;
        let (state, c, pkt) = ctx.parts();
        let fixed = &c.tables[number as usize];
        let (number, len) = (number as u32, pkt.ingress_len);
        let (tables, counters) = (&mut state.tables, &mut state.externs.entry_counters);
        let slot = if tables[number as usize].len() == 0 {
            tables.miss(number, len, counters);
            None
        } else if key.is_null() {
            let env = Env {
                mem: &pkt.mem,
                args: &[],
                layout: &c.layout,
                registers: &state.externs.registers,
            };
            fixed.load_key(&env, &mut state.key);
            tables.lookup(number, &state.key, len, now, counters)
        } else {
            // SAFETY: see `callout`; native code made the table's key there.
            let key = unsafe { words(key, fixed.shape.words as u64) };
            tables.lookup(number, key, len, now, counters)
        };
        if fixed.has_direct_state {
            (pkt.entry, pkt.entry_table) = (slot, number);
        }
        let mut m = Machine::new(c, &mut state.externs, pkt, now);
        control::meter(fixed, slot, (&mut *tables, number), &mut m);
        let table = &tables[number as usize];
        let call = choose(c, fixed, slot, table, &state.profiles, &mut m).0;
        let (action, args) = call.map_or((NO_ACTION, &[][..]), |c| (c.action, c.args));
        let (at, n) = (args.as_ptr(), args.len() as u64);
        (ctx.args, ctx.args_len) = (at, n);
        u64::from(action) << 32 | if slot.is_some() { HIT } else { 0 }
    }
}

callout! {
    fn meter(ctx, number: u64, record: u64) {
        let now = ctx.now;
        let (state, c, pkt) = ctx.parts();
        let fixed = &c.tables[number as usize];
        let slot = (record as u32).checked_sub(1);
        let mut m = Machine::new(c, &mut state.externs, pkt, now);
        control::meter(fixed, slot, (&mut state.tables, number as u32), &mut m);
        0
    }
}

callout! {
    fn chosen(ctx, action: u64) {
        // SAFETY: `apply` stored them there, and no table has changed since then.
        let args = unsafe { words(ctx.args, ctx.args_len) };
        let now = ctx.now;
        let (state, c, pkt) = ctx.parts();
        state.machine(c, pkt, now).run_action(&c.actions[action as usize], args);
        0
    }
}

callout! {
    fn take_locks(ctx, locks: u64) {
        ctx.parts().0.externs.take_locks(locks);
        0
    }
}

callout! {
    fn release_locks(ctx, locks: u64) {
        ctx.parts().0.externs.release_locks(locks);
        0
    }
}

callout! {
    fn parser_step(ctx, op: *const ParserOp) {
        // SAFETY: see `callout`.
        let op = unsafe { &*op };
        let now = ctx.now;
        let (state, c, pkt) = ctx.parts();
        let done = c.parser.step(op, &mut state.machine(c, pkt, now));
        match done {
            Ok(()) => 0,
            Err(error) => {
                ctx.error = error.0;
                1
            }
        }
    }
}

callout! {
    fn select(ctx, at: *const ParserState) {
        // SAFETY: see `callout`.
        let at = unsafe { &*at };
        let now = ctx.now;
        let (state, c, pkt) = ctx.parts();
        let mut key = std::mem::take(&mut state.key);
        let m = Machine::new(c, &mut state.externs, pkt, now);
        let next = c.parser.select(at, &m, &state.value_sets, &mut key);
        state.key = key;
        match next {
            Ok(next) => next.into(),
            Err(error) => {
                ctx.error = error.0;
                REJECTED
            }
        }
    }
}

callout! {
    fn in_set(ctx, set: u64, key: *const u64, n: u64) {
        // SAFETY: see `callout`.
        let key = unsafe { words(key, n) };
        let (state, _, _) = ctx.parts();
        state.value_sets[set as usize].iter().any(|v| v.matches(key)).into()
    }
}

callout! {
    fn hash(ctx, calculation: u64, data: *const u8, n: u64) {
        // SAFETY: see `callout`.
        let data = unsafe { from_raw_parts(data, n as usize) };
        let (state, c, _) = ctx.parts();
        let e = &mut state.externs;
        let mut hashes = HashState {
            rng: &mut e.rng,
            calls: &mut e.round_robin,
            parameters: &e.hash_parameters,
        };
        c.calculations[calculation as usize].compute(data, &mut hashes)
    }
}

callout! {
    fn calculate(ctx, calculation: u64) {
        let (state, c, pkt) = ctx.parts();
        state.externs.hash(&c.calculations[calculation as usize], &c.layout, pkt)
    }
}
