// SPDX-License-Identifier: Apache-2.0
//! The state of code generation: the function being built, calls from it, and the known values of the packet's state at
//! the current position.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, InstBuilder, InstructionData, MemFlags, Opcode, SigRef,
    Signature, StackSlot, StackSlotData, StackSlotKind, Type, Value, ValueDef,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::runtime::{Callout, Context};
use crate::packet::Packet;
use crate::phv::Word;
use crate::program::Compiled;

/// The program part cannot be compiled, or is too large; the interpreter runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsupported;

pub(super) type Result<T> = std::result::Result<T, Unsupported>;

/// Maximum number of instructions of one function without copies for frequent paths, which bounds the load time.
const MAX_INSTRUCTIONS: usize = 1 << 17;

/// The arguments of the action that is being compiled, as 64-bit limbs.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    Known(&'a [u64]),
    /// Address and number of limbs.
    At(Value, u32),
}

/// Something known of a field, because the field was just read, written or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    Number(u64),
    Computed(Value),
}

/// Facts by field. Shared, because many blocks begin with the same ones.
pub(super) type Known = Rc<HashMap<Word, Fact>>;

/// Maximum number of fields with facts; with more, all are discarded.
const MAX_KNOWN: usize = 4096;

pub(super) struct Gen<'a, 'f> {
    pub(super) c: &'a Compiled,
    /// The code is for the lanes of a pipeline.
    pub(super) is_for_lanes: bool,
    pub(super) b: FunctionBuilder<'f>,
    pub(super) ctx: Value,
    /// The packet's headers and metadata.
    pub(super) mem: Value,
    pub(super) pkt: Value,
    pub(super) known: Known,
    /// The fields of one bit.
    bits: HashSet<Word>,
    /// Facts at the beginning of jump targets that are not yet filled.
    arriving: HashMap<Block, Known>,
    /// In the parser: the number of parsed bytes of the frame.
    pub(super) start: Option<Variable>,
    /// Maximum number of instructions, with those of copies for frequent paths.
    max_instructions: usize,
    signatures: HashMap<usize, SigRef>,
    convention: CallConv,
    buffer: Option<(StackSlot, u32)>,
}

impl<'a, 'f> Gen<'a, 'f> {
    /// Begins a function whose only parameter is the context.
    pub(super) fn new(
        c: &'a Compiled,
        is_for_lanes: bool,
        mut b: FunctionBuilder<'f>,
        convention: CallConv,
    ) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let ctx = b.block_params(entry)[0];
        let mut generator = Self {
            c,
            is_for_lanes,
            b,
            ctx,
            mem: ctx,
            pkt: ctx,
            known: Known::default(),
            bits: c.layout.bits().collect(),
            arriving: HashMap::new(),
            start: None,
            max_instructions: MAX_INSTRUCTIONS,
            signatures: HashMap::new(),
            convention,
            buffer: None,
        };
        generator.mem = generator.context(offset_of!(Context, mem));
        generator.pkt = generator.context(offset_of!(Context, pkt));
        generator
    }

    /// Flags for accesses to the packet's headers and metadata, at any alignment.
    pub(super) fn phv() -> MemFlags {
        MemFlags::new()
            .with_notrap()
            .with_alias_region(Some(AliasRegion::Heap))
    }

    /// Flags for all other accesses.
    pub(super) fn other() -> MemFlags {
        MemFlags::new()
            .with_notrap()
            .with_alias_region(Some(AliasRegion::Vmctx))
    }

    pub(super) fn int(&mut self, v: u64) -> Value {
        self.b.ins().iconst(I64, v as i64)
    }

    /// Returns the address of an object that lives as long as the program.
    pub(super) fn address<T>(&mut self, of: &T) -> Value {
        self.int(std::ptr::from_ref(of) as u64)
    }

    /// Loads a word of the context.
    pub(super) fn context(&mut self, at: usize) -> Value {
        self.b.ins().load(I64, Self::other(), self.ctx, at as i32)
    }

    pub(super) fn load_state(&mut self, t: Type, at: usize) -> Value {
        self.b.ins().load(t, Self::other(), self.pkt, at as i32)
    }

    pub(super) fn store_state(&mut self, v: Value, at: usize) {
        self.b.ins().store(Self::other(), v, self.pkt, at as i32);
    }

    /// Returns the address of `bytes` bytes on the stack for a call.
    pub(super) fn buffer(&mut self, bytes: u32) -> StackSlot {
        match self.buffer {
            Some((slot, size)) if size >= bytes => slot,
            _ => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
                let slot = self.b.create_sized_stack_slot(data);
                self.buffer = Some((slot, bytes));
                slot
            }
        }
    }

    /// Calls a runtime function with the context and further words.
    pub(super) fn call(&mut self, callout: Callout, args: &[Value]) -> Value {
        let start = self.start;
        if let Some(start) = start {
            let v = self.b.use_var(start);
            self.store_state(v, offset_of!(Packet, start));
        }
        let convention = self.convention;
        let words = args.len() + 1;
        let b = &mut self.b;
        let signature = *self.signatures.entry(words).or_insert_with(|| {
            let mut s = Signature::new(convention);
            s.params = vec![AbiParam::new(I64); words];
            s.returns = vec![AbiParam::new(I64)];
            b.import_signature(s)
        });
        let target = self.int(callout.address());
        let all: Vec<Value> = std::iter::once(self.ctx)
            .chain(args.iter().copied())
            .collect();
        let call = self.b.ins().call_indirect(signature, target, &all);
        let result = self.b.inst_results(call)[0];
        if let Some(start) = start {
            let v = self.load_state(I64, offset_of!(Packet, start));
            self.b.def_var(start, v);
        }
        if callout.writes() {
            self.known = Known::default();
        }
        result
    }

    /// Takes the locks of an action in a lane.
    pub(super) fn take_locks(&mut self, action: u32) {
        let locks = self.c.actions[action as usize].locks;
        if self.is_for_lanes && locks != 0 {
            let locks = self.int(locks);
            self.call(Callout::TakeLocks, &[locks]);
        }
    }

    /// Returns the address and number of an action's arguments.
    pub(super) fn pass(&mut self, args: Args) -> [Value; 2] {
        match args {
            Args::Known(limbs) => {
                let (at, n) = (limbs.as_ptr() as u64, limbs.len() as u64);
                [self.int(at), self.int(n)]
            }
            Args::At(at, n) => [at, self.int(u64::from(n))],
        }
    }

    /// Returns true unless the copies of steps for frequent paths are too many.
    pub(super) fn has_room_for_copies(&self) -> bool {
        self.b.func.dfg.num_insts() < MAX_INSTRUCTIONS / 2
    }

    /// Does not count the instructions up to here, which are those of copies.
    pub(super) fn begin_common_code(&mut self) {
        self.max_instructions = MAX_INSTRUCTIONS + self.b.func.dfg.num_insts();
    }

    /// Returns true if code has jumped to a block that is not yet filled.
    pub(super) fn is_reached(&self, block: Block) -> bool {
        self.arriving.contains_key(&block)
    }

    /// Continues in a block whose forward jumps are all known.
    pub(super) fn enter(&mut self, block: Block) -> Result<()> {
        self.b.switch_to_block(block);
        self.known = self.arriving.remove(&block).unwrap_or_default();
        if self.b.func.dfg.num_insts() > self.max_instructions {
            return Err(Unsupported);
        }
        Ok(())
    }

    /// Continues in a block that later blocks may jump to.
    pub(super) fn enter_loop(&mut self, block: Block) -> Result<()> {
        self.enter(block)?;
        self.known = Known::default();
        Ok(())
    }

    /// Records the value of a field that was read or written.
    pub(super) fn note(&mut self, w: Word, v: Value) {
        let fact = self.number(v).map_or(Fact::Computed(v), Fact::Number);
        self.note_fact(w, fact);
    }

    fn note_fact(&mut self, w: Word, fact: Fact) {
        let known = Rc::make_mut(&mut self.known);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(w, fact);
    }

    /// Returns the number that a value is, if it is a constant.
    pub(super) fn number(&self, v: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(v) else {
            return None;
        };
        match dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits() as u64),
            _ => None,
        }
    }

    /// Returns the number that a field is known to have.
    pub(super) fn known_number(&self, w: Word) -> Option<u64> {
        match self.known.get(&w) {
            Some(Fact::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns true for a field of one bit.
    pub(super) fn is_bit(&self, w: Word) -> bool {
        matches!(w, Word::Packed { mask: 1, .. }) || self.bits.contains(&w)
    }

    /// Records that fields are zero.
    pub(super) fn assume_zero(&mut self, fields: &[Word]) {
        for &field in fields {
            self.note_fact(field, Fact::Number(0));
        }
    }

    pub(super) fn arrive(&mut self, block: Block) {
        let here = &self.known;
        match self.arriving.get_mut(&block) {
            Some(there) if Rc::ptr_eq(there, here) => {}
            Some(there) => Rc::make_mut(there).retain(|w, v| here.get(w) == Some(v)),
            None => {
                self.arriving.insert(block, here.clone());
            }
        }
    }

    pub(super) fn jump(&mut self, block: Block) {
        self.arrive(block);
        self.b.ins().jump(block, &[]);
    }

    /// Branches on a condition that may imply a number of a field in each of both blocks.
    pub(super) fn brif_knowing(
        &mut self,
        c: Value,
        then: (Block, Option<u64>),
        other: (Block, Option<u64>),
        field: Word,
    ) {
        let here = self.known.clone();
        for (block, number) in [then, other] {
            if let Some(number) = number {
                self.note_fact(field, Fact::Number(number));
            }
            self.arrive(block);
            self.known = here.clone();
        }
        self.b.ins().brif(c, then.0, &[], other.0, &[]);
    }

    pub(super) fn brif(&mut self, c: Value, then: Block, other: Block) {
        self.arrive(then);
        self.arrive(other);
        self.b.ins().brif(c, then, &[], other, &[]);
    }

    /// Records that a switch may jump to these blocks.
    pub(super) fn arrive_at(&mut self, blocks: impl IntoIterator<Item = Block>) {
        for b in blocks {
            self.arrive(b);
        }
    }

    /// Jumps to `block` with a value.
    pub(super) fn jump_with(&mut self, block: Block, v: Value) {
        self.arrive(block);
        self.b.ins().jump(block, &[v.into()]);
    }

    pub(super) fn compare(&mut self, order: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(order, a, b)
    }
}
