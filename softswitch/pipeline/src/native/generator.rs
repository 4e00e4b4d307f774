//! What all of code generation shares: the function being built, calls out of it, and what is known of the
//! packet's state where it stands.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, InstBuilder, MemFlags, SigRef, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::runtime::{Callout, Context};
use crate::packet::State;
use crate::phv::Word;
use crate::program::Compiled;

/// What native code cannot express, or is too large for it: the interpreter runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsupported;

pub(super) type Result<T> = std::result::Result<T, Unsupported>;

/// Most instructions of one function, which bound the time that loading takes.
const MAX_INSTRUCTIONS: usize = 1 << 17;

/// The arguments of the action that is being compiled, as 64-bit limbs.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    Known(&'a [u64]),
    /// At this address, so many.
    At(Value, u32),
}

/// Values of fields that are known, since they were just read or written.
pub(super) type Known = HashMap<Word, Value>;

pub(super) struct Gen<'a, 'f> {
    pub(super) c: &'a Compiled,
    pub(super) b: FunctionBuilder<'f>,
    pub(super) ctx: Value,
    /// The packet's headers and metadata.
    pub(super) mem: Value,
    pub(super) pkt: Value,
    pub(super) known: Known,
    /// What is known at the beginning of blocks that are jumped to and not yet filled.
    arriving: HashMap<Block, Known>,
    /// Bytes of the frame that are parsed, in the parser.
    pub(super) start: Option<Variable>,
    signatures: HashMap<(usize, bool), SigRef>,
    convention: CallConv,
    buffer: Option<(StackSlot, u32)>,
}

impl<'a, 'f> Gen<'a, 'f> {
    /// Begins a function whose only parameter is the context.
    pub(super) fn new(c: &'a Compiled, mut b: FunctionBuilder<'f>, convention: CallConv) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let ctx = b.block_params(entry)[0];
        let mut generator = Self {
            c,
            b,
            ctx,
            mem: ctx,
            pkt: ctx,
            known: Known::new(),
            arriving: HashMap::new(),
            start: None,
            signatures: HashMap::new(),
            convention,
            buffer: None,
        };
        generator.mem = generator.context(offset_of!(Context, mem));
        generator.pkt = generator.context(offset_of!(Context, pkt));
        generator
    }

    /// Accesses to the packet's headers and metadata, at any alignment.
    pub(super) fn phv() -> MemFlags {
        MemFlags::new()
            .with_notrap()
            .with_alias_region(Some(AliasRegion::Heap))
    }

    /// Accesses to anything else.
    pub(super) fn other() -> MemFlags {
        MemFlags::new()
            .with_notrap()
            .with_alias_region(Some(AliasRegion::Vmctx))
    }

    pub(super) fn int(&mut self, v: u64) -> Value {
        self.b.ins().iconst(I64, v as i64)
    }

    /// The address of something that lives as long as the program.
    pub(super) fn address<T>(&mut self, of: &T) -> Value {
        self.int(std::ptr::from_ref(of) as u64)
    }

    /// A word of the context.
    pub(super) fn context(&mut self, at: usize) -> Value {
        self.b.ins().load(I64, Self::other(), self.ctx, at as i32)
    }

    pub(super) fn load_state(&mut self, t: Type, at: usize) -> Value {
        self.b.ins().load(t, Self::other(), self.pkt, at as i32)
    }

    pub(super) fn store_state(&mut self, v: Value, at: usize) {
        self.b.ins().store(Self::other(), v, self.pkt, at as i32);
    }

    /// Where the function may put `bytes` bytes for a call.
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

    /// Calls a function of the runtime with the context and further words.
    pub(super) fn call(&mut self, callout: Callout, args: &[Value]) -> Value {
        let start = self.start;
        if let Some(start) = start {
            let v = self.b.use_var(start);
            self.store_state(v, offset_of!(State, start));
        }
        let convention = self.convention;
        let key = (args.len(), true);
        let b = &mut self.b;
        let signature = *self.signatures.entry(key).or_insert_with(|| {
            let mut s = Signature::new(convention);
            s.params = vec![AbiParam::new(I64); key.0 + 1];
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
            let v = self.load_state(I64, offset_of!(State, start));
            self.b.def_var(start, v);
        }
        if callout.writes() {
            self.known.clear();
        }
        result
    }

    /// Address and number of an action's arguments.
    pub(super) fn pass(&mut self, args: Args) -> [Value; 2] {
        match args {
            Args::Known(limbs) => {
                let (at, n) = (limbs.as_ptr() as u64, limbs.len() as u64);
                [self.int(at), self.int(n)]
            }
            Args::At(at, n) => [at, self.int(u64::from(n))],
        }
    }

    /// Continues in a block, of which all forward jumps are known.
    pub(super) fn enter(&mut self, block: Block) -> Result<()> {
        self.b.switch_to_block(block);
        self.known = self.arriving.remove(&block).unwrap_or_default();
        if self.b.func.dfg.num_insts() > MAX_INSTRUCTIONS {
            return Err(Unsupported);
        }
        Ok(())
    }

    /// Continues in a block that may be jumped to from later ones.
    pub(super) fn enter_loop(&mut self, block: Block) -> Result<()> {
        self.enter(block)?;
        self.known.clear();
        Ok(())
    }

    fn arrive(&mut self, block: Block) {
        match self.arriving.get_mut(&block) {
            Some(there) => {
                let here = &self.known;
                there.retain(|w, v| here.get(w) == Some(v));
            }
            None => {
                self.arriving.insert(block, self.known.clone());
            }
        }
    }

    pub(super) fn jump(&mut self, block: Block) {
        self.arrive(block);
        self.b.ins().jump(block, &[]);
    }

    pub(super) fn brif(&mut self, c: Value, then: Block, other: Block) {
        self.arrive(then);
        self.arrive(other);
        self.b.ins().brif(c, then, &[], other, &[]);
    }

    /// Notes that a switch may go to these blocks.
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
