// SPDX-License-Identifier: Apache-2.0
//! A program whose table has long keys that are far from each other, for comparisons with a model.

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, Options, Pipeline, Program, TableId,
};

use super::ENGINES;
use super::source::Source;

/// The factor by which keys are far from each other.
pub const FAR: u128 = 0x0012_3456_789a_bcdf_0123_4567_89ab_cdef;

/// Returns a program with a table whose key is the first byte times [`FAR`], in the given number of bits and with the given kind
/// of match, and the second byte, which is exact. Its action writes the second byte.
fn program(width: u32, kind: &str) -> Program {
    let ingress = format!(
        "action found(bit<8> n) {{ h.h.b = n; }}
         table t {{ key = {{ m.key : {kind}; m.rest : exact; }} actions = {{ found; NoAction; }} size = 4096; }}
         apply {{
             s.egress_spec = 1;
             m.key = (bit<{width}>) {FAR} * (bit<{width}>) h.h.a;
             m.rest = h.h.b;
             t.apply();
         }}"
    );
    let metadata = format!("bit<{width}> key; bit<8> rest;");
    Source {
        metadata: &metadata,
        ingress: &ingress,
        ..Source::default()
    }
    .compile()
}

/// Returns a pipeline of each engine.
pub fn pipelines(width: u32, kind: &str) -> [Pipeline; 2] {
    let program = program(width, kind);
    ENGINES.map(|engine| {
        let options = Options {
            engine,
            ..Options::default()
        };
        Pipeline::new(program.clone(), options)
    })
}

/// Returns the table.
pub fn table(p: &Pipeline) -> TableId {
    p.program().info().table("I.t").expect("the table")
}

/// Inserts an entry that writes `n`.
pub fn insert(p: &mut Pipeline, key: EntryKey, n: u8) {
    let table = table(p);
    let info = &p.program().info().tables[table.index()];
    let action = info.action("I.found").expect("the action");
    let args = vec![u64::from(n).into()];
    let entry = Entry {
        key,
        action: EntryAction::Direct(ActionCall { action, args }),
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).expect("a new entry");
}
