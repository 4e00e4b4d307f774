// SPDX-License-Identifier: Apache-2.0
//! The interface between native code and Rust: calls into native code, calls from it, and its memory.
//!
//! Native code receives one [`Context`], which lives as long as the call. It accesses the packet's state within the
//! layout's size, the frame within its length, the inputs of its control within their number, and arrays within their
//! number of cells. The first bound is checked at code generation, the others at run time. In a table it reads the records
//! whose numbers the table returns or has in its arrays for exact keys, whose indices it masks to their lengths.

mod callout;

use cranelift_jit::JITModule;

use crate::Nanos;
use crate::packet::Packet;
use crate::program::Compiled;
use crate::state::State;
use crate::state::table::Table;
use crate::state::view::View;
pub(super) use callout::{Callout, HIT, REJECTED};

/// The data that native code works on.
#[repr(C)]
pub(super) struct Context {
    pub(super) mem: *mut u8,
    pub(super) pkt: *mut Packet,
    pub(super) frame: *const u8,
    pub(super) frame_bytes: u64,
    pub(super) registers: *const View,
    pub(super) counters: *const View,
    /// In a lane, by table.
    pub(super) entry_counters: *const View,
    pub(super) tables: *const Table,
    pub(super) sums: *mut u16,
    /// Values of a control's inputs.
    pub(super) input: *const u64,
    /// Output buffer for the emitted headers.
    pub(super) out: *mut u8,
    /// Arguments of the action that a table selected.
    pub(super) args: *const u64,
    args_len: u64,
    pub(super) drop_port: u64,
    pub(super) max_parser_states: u64,
    pub(super) max_iterations: u64,
    /// The parser error of a callout.
    pub(super) error: u64,
    state: *mut State,
    program: *const Compiled,
    now: Nanos,
}

/// A function in native code.
pub(super) type Entry = unsafe extern "C" fn(*mut Context) -> u64;

/// The memory of native code.
pub(super) struct Code(Option<JITModule>);

// SAFETY: after its functions are finished, a module is only dropped.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    pub(super) fn new(module: JITModule) -> Self {
        Self(Some(module))
    }

    /// Returns a function of this finished module that [`Gen`](super::generator::Gen) generated.
    pub(super) fn entry(&self, id: cranelift_module::FuncId) -> Entry {
        let module = self.0.as_ref().expect("present until drop");
        // SAFETY: it was declared with this signature.
        unsafe { std::mem::transmute(module.get_finalized_function(id)) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: the code belongs to the program, and the caller holds the program.
            unsafe { module.free_memory() }
        }
    }
}

/// The memory that a function reads or writes besides the packet and the program's state.
#[derive(Default)]
pub(super) struct Buffers<'a> {
    /// Values of a control's inputs, one for each field.
    pub(super) input: &'a [u64],
    /// Room for the headers that a deparser emits.
    pub(super) out: &'a mut [u8],
}

/// Runs native code of this program on a packet.
pub(super) fn enter(
    entry: Entry,
    c: &Compiled,
    state: &mut State,
    pkt: &mut Packet,
    now: Nanos,
    buffers: Buffers<'_>,
) -> u64 {
    assert_eq!(
        pkt.mem.len(),
        c.layout.bytes,
        "the packet belongs to another program"
    );
    let mut context = Context {
        mem: pkt.mem.as_mut_ptr(),
        frame: pkt.frame.as_ptr(),
        frame_bytes: pkt.frame.len() as u64,
        pkt,
        registers: state.views.registers.as_ptr(),
        counters: state.views.counters.as_ptr(),
        entry_counters: state.views.entry_counters.as_ptr(),
        tables: state.tables.as_ptr(),
        sums: state.externs.sums.as_mut_ptr(),
        input: buffers.input.as_ptr(),
        out: buffers.out.as_mut_ptr(),
        args: std::ptr::null(),
        args_len: 0,
        drop_port: state.externs.drop_port.into(),
        max_parser_states: state.max_parser_states.into(),
        max_iterations: state.externs.max_iterations.into(),
        error: 0,
        state,
        program: c,
        now,
    };
    // SAFETY: every pointer is to data that this call has a reference to, the views and tables belong to this
    // program, and the state has the size that the code was generated for. In a lane, tables do not change during the
    // call, and counters are the lane's own. Accesses to a cell of a register that other lanes write are under its lock,
    // or single loads and stores of an aligned word.
    unsafe { entry(&raw mut context) }
}
