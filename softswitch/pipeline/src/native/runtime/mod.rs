//! Where native code meets Rust, and the only place with `unsafe`: running it, what it calls, and the memory
//! it lies in.
//!
//! Native code gets one [`Context`], which lives as long as the call. It reads and writes the packet's state
//! within the layout's size, the frame within its length, and cells of arrays within their number: the
//! first is checked when it is generated, the others when it runs. Of a table it reads the records whose numbers
//! the table gives, and of an array for short keys the place of a key that is masked to its length.

mod callout;

use cranelift_jit::JITModule;

use crate::Nanos;
use crate::action::Externs;
use crate::core::Core;
use crate::entry::CounterValue;
use crate::packet::State;
use crate::program::Compiled;
use crate::table::Table;
pub(super) use callout::{Callout, HIT, REJECTED};

/// What native code works on.
#[repr(C)]
pub(super) struct Context {
    pub(super) mem: *mut u8,
    pub(super) pkt: *mut State,
    pub(super) frame: *const u8,
    pub(super) frame_bytes: u64,
    pub(super) registers: *const View,
    pub(super) counters: *const View,
    pub(super) tables: *const Table,
    /// Where emitted headers go.
    pub(super) out: *mut u8,
    /// Arguments of the action that a table chose.
    pub(super) args: *const u64,
    args_len: u64,
    pub(super) drop_port: u64,
    pub(super) max_parser_states: u64,
    /// The parser error of a callout.
    pub(super) error: u64,
    core: *mut Core,
    program: *const Compiled,
    now: Nanos,
}

/// The cells of an array.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct View {
    pub(super) cells: *mut u8,
    pub(super) len: usize,
}

/// The cells of all register and counter arrays, which never move.
#[derive(Debug, Default)]
pub(crate) struct Views {
    registers: Vec<View>,
    counters: Vec<View>,
}

// SAFETY: a view is a part of the arrays beside which it is kept, and is used only by who has those.
unsafe impl Send for Views {}
// SAFETY: nothing is reached through a shared view.
unsafe impl Sync for Views {}

impl Views {
    pub(crate) fn new(externs: &mut Externs) -> Self {
        let view = |cells: &mut Vec<CounterValue>| View {
            cells: cells.as_mut_ptr().cast(),
            len: cells.len(),
        };
        let registers = externs.registers.iter_mut().map(|r| {
            let cells = r.narrow_mut();
            View {
                cells: cells.as_mut_ptr().cast(),
                len: cells.len(),
            }
        });
        Self {
            registers: registers.collect(),
            counters: externs.counters.iter_mut().map(view).collect(),
        }
    }
}

/// Where a table keeps what native code reads and counts. Who owns all that makes a new view when something has moved.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TableView {
    /// Numbers of records, by short keys.
    pub(super) dense: *const u32,
    pub(super) records: *const u64,
    pub(super) record_bytes: usize,
    /// By number of record.
    pub(super) counters: *mut CounterValue,
}

// SAFETY: a view is a part of the table that it is of, and is used only by who has that.
unsafe impl Send for TableView {}
// SAFETY: nothing is reached through a shared view.
unsafe impl Sync for TableView {}

impl TableView {
    /// Of records of so many words.
    pub(crate) fn new(
        dense: Option<&[u32]>,
        records: &[u64],
        stride: usize,
        counters: &mut [CounterValue],
    ) -> Self {
        Self {
            dense: dense.map_or(std::ptr::null(), <[u32]>::as_ptr),
            records: records.as_ptr(),
            record_bytes: stride * size_of::<u64>(),
            counters: counters.as_mut_ptr(),
        }
    }
}

impl Default for TableView {
    fn default() -> Self {
        Self::new(None, &[], 0, &mut [])
    }
}

/// A function in native code.
pub(super) type Entry = unsafe extern "C" fn(*mut Context) -> u64;

/// Memory that native code lies in.
pub(super) struct Code(Option<JITModule>);

// SAFETY: once its functions are finished, a module is only dropped.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    pub(super) fn new(module: JITModule) -> Self {
        Self(Some(module))
    }

    /// A function that [`Gen`](super::generator::Gen) has made, of this finished module.
    pub(super) fn entry(&self, id: cranelift_module::FuncId) -> Entry {
        let module = self.0.as_ref().expect("it is there until it is dropped");
        // SAFETY: it was declared with this signature.
        unsafe { std::mem::transmute(module.get_finalized_function(id)) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: the code belongs to the program, and whoever runs it holds the program.
            unsafe { module.free_memory() }
        }
    }
}

impl Core {
    /// Runs native code of this program on a packet; its emitted headers fit into `out`.
    pub(super) fn enter(
        &mut self,
        entry: Entry,
        c: &Compiled,
        pkt: &mut State,
        now: Nanos,
        out: &mut [u8],
    ) -> u64 {
        assert_eq!(
            pkt.mem.len(),
            c.layout.blank.len(),
            "the packet is of another program"
        );
        let mut context = Context {
            mem: pkt.mem.as_mut_ptr(),
            frame: pkt.frame.as_ptr(),
            frame_bytes: pkt.frame.len() as u64,
            pkt,
            registers: self.views.registers.as_ptr(),
            counters: self.views.counters.as_ptr(),
            tables: self.tables.as_ptr(),
            out: out.as_mut_ptr(),
            args: std::ptr::null(),
            args_len: 0,
            drop_port: self.options.drop_port.into(),
            max_parser_states: self.options.max_parser_states.into(),
            error: 0,
            core: self,
            program: c,
            now,
        };
        // SAFETY: every pointer is to something that is borrowed for this call, the arrays of the views and
        // the tables are those of this program, and the state has the size that the code was generated for.
        unsafe { entry(&raw mut context) }
    }
}
