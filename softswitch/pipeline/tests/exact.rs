// SPDX-License-Identifier: Apache-2.0
//! Exact keys that are too long to be indices of an array, in every engine.

mod common;

use std::collections::BTreeMap;

use common::source::Source;
use common::{ENGINES, key};
use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program, Value,
};
use softswitch_random::Rng;

/// The factor by which keys are far from each other.
const FAR: u128 = 0x0012_3456_789a_bcdf_0123_4567_89ab_cdef;

/// Returns a program with a table whose key is the first byte times [`FAR`], in the given number of bits, and the second
/// byte. Its action writes the third byte.
fn program(width: u32) -> Program {
    let ingress = format!(
        "action found(bit<8> n) {{ h.h.b = n; }}
         table t {{ key = {{ m.key : exact; m.rest : exact; }} actions = {{ found; NoAction; }} size = 4096; }}
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

fn entry_key(width: u32, (a, b): (u8, u8)) -> EntryKey {
    let mask = u128::MAX >> (128 - width);
    let far = FAR.wrapping_mul(a.into()) & mask;
    let fields = [Value::from(far), Value::from(u128::from(b))];
    key(fields.map(MatchField::Exact).to_vec(), 0)
}

/// Compares a pipeline with a map while entries come and go.
fn compare_with_map(width: u32, mut p: Pipeline, seed: u64) {
    let table = p.program().info().table("I.t").expect("the table");
    let action = p.program().info().tables[table.index()]
        .action("I.found")
        .expect("the action");
    let (mut map, mut rng) = (BTreeMap::new(), Rng::new(seed));
    let byte = |rng: &mut Rng, most: u64| (rng.next() % most) as u8;
    for _ in 0..4 {
        for _ in 0..300 {
            let at = (byte(&mut rng, 40), byte(&mut rng, 10));
            let n = byte(&mut rng, 256);
            let key = entry_key(width, at);
            if map.insert(at, n).is_some() {
                p.delete_entry(table, &key).expect("an entry");
            }
            let args = vec![u64::from(n).into()];
            let entry = Entry {
                key,
                action: EntryAction::Direct(ActionCall { action, args }),
                idle_timeout: 0,
            };
            p.insert_entry(table, entry, 0).expect("a new entry");
            let victim = (byte(&mut rng, 40), byte(&mut rng, 10));
            if map.remove(&victim).is_some() {
                let key = entry_key(width, victim);
                p.delete_entry(table, &key).expect("an entry");
            }
        }
        for at in (0..48).flat_map(|a| (0..12).map(move |b| (a, b))) {
            let sent = p.process(0, &[at.0, at.1], 0);
            let expected = map.get(&at).copied().unwrap_or(at.1);
            assert_eq!(sent[0].1, [at.0, expected], "{at:?}");
        }
    }
    for at in std::mem::take(&mut map).into_keys() {
        p.delete_entry(table, &entry_key(width, at))
            .expect("an entry");
        assert_eq!(p.process(0, &[at.0, at.1], 0)[0].1, [at.0, at.1]);
    }
}

#[test]
fn packets_hit_the_entries_that_exist() {
    // Keys of one word, of two, and of three.
    for width in [40, 64, 120] {
        let program = program(width);
        for engine in ENGINES {
            let options = Options {
                engine,
                ..Options::default()
            };
            let pipeline = Pipeline::new(program.clone(), options);
            compare_with_map(width, pipeline, 7);
        }
    }
}
