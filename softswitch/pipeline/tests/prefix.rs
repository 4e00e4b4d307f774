// SPDX-License-Identifier: Apache-2.0
//! Longest prefixes of keys beside exact fields, in every engine.

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
/// byte. Its action writes the second byte.
fn program(width: u32) -> Program {
    let ingress = format!(
        "action found(bit<8> n) {{ h.h.b = n; }}
         table t {{ key = {{ m.key : lpm; m.rest : exact; }} actions = {{ found; NoAction; }} size = 4096; }}
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

/// A prefix: its value, its length, and the exact byte beside it.
type Prefix = (u128, u32, u8);

/// Returns the first `len` bits of the key that a packet with the first byte `a` has.
fn first_bits(width: u32, a: u8, len: u32) -> u128 {
    let all = u128::MAX >> (128 - width);
    let rest = u128::MAX.checked_shr(128 - (width - len)).unwrap_or(0);
    FAR.wrapping_mul(a.into()) & all & !rest
}

fn random_prefix(rng: &mut Rng, width: u32) -> Prefix {
    let len = rng.uniform(0, width.into()) as u32;
    let a = rng.uniform(0, 40) as u8;
    let value = first_bits(width, a, len);
    (value, len, rng.uniform(0, 3) as u8)
}

fn entry_key((value, prefix_len, rest): Prefix) -> EntryKey {
    let value = Value::from(value);
    let rest = Value::from(u64::from(rest));
    key(
        vec![
            MatchField::Lpm { value, prefix_len },
            MatchField::Exact(rest),
        ],
        0,
    )
}

/// Compares a pipeline with a search of all lengths while entries come and go.
fn compare_with_search(width: u32, mut p: Pipeline, seed: u64) {
    let table = p.program().info().table("I.t").expect("the table");
    let action = p.program().info().tables[table.index()]
        .action("I.found")
        .expect("the action");
    let (mut map, mut rng) = (BTreeMap::new(), Rng::new(seed));
    for _ in 0..6 {
        for _ in 0..200 {
            let prefix = random_prefix(&mut rng, width);
            let n = rng.next() as u8;
            if map.insert(prefix, n).is_some() {
                p.delete_entry(table, &entry_key(prefix)).expect("an entry");
            }
            let args = vec![u64::from(n).into()];
            let entry = Entry {
                key: entry_key(prefix),
                action: EntryAction::Direct(ActionCall { action, args }),
                idle_timeout: 0,
            };
            p.insert_entry(table, entry, 0).expect("a new entry");
        }
        while map.len() > 250 {
            let at = rng.uniform(0, map.len() as u64 - 1) as usize;
            let victim = *map.keys().nth(at).expect("an entry");
            map.remove(&victim);
            p.delete_entry(table, &entry_key(victim)).expect("an entry");
        }
        for (a, b) in (0..48).flat_map(|a| (0..5).map(move |b| (a, b))) {
            let longest = (0..=width)
                .rev()
                .find_map(|len| map.get(&(first_bits(width, a, len), len, b)));
            let sent = p.process(0, &[a, b], 0);
            assert_eq!(sent[0].1, [a, *longest.unwrap_or(&b)], "{a}, {b}");
        }
    }
}

#[test]
fn packets_hit_the_longest_prefix() {
    // Keys of one word, with and without unused bits, of two, and of three.
    for width in [24, 56, 64, 120, 128] {
        let program = program(width);
        for engine in ENGINES {
            let options = Options {
                engine,
                ..Options::default()
            };
            let pipeline = Pipeline::new(program.clone(), options);
            compare_with_search(width, pipeline, 7);
        }
    }
}
