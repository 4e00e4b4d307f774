// SPDX-License-Identifier: Apache-2.0
//! Longest prefixes of keys beside exact fields, in every engine.

mod common;

use std::collections::BTreeMap;

use common::far_keys::{FAR, insert, pipelines, table};
use common::key;
use softswitch_pipeline::{EntryKey, MatchField, Pipeline, Value};
use softswitch_random::Rng;

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
    let table = table(&p);
    let (mut map, mut rng) = (BTreeMap::new(), Rng::new(seed));
    for _ in 0..6 {
        for _ in 0..200 {
            let prefix = random_prefix(&mut rng, width);
            let n = rng.next() as u8;
            if map.insert(prefix, n).is_some() {
                p.delete_entry(table, &entry_key(prefix)).expect("an entry");
            }
            insert(&mut p, entry_key(prefix), n);
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
        for pipeline in pipelines(width, "lpm") {
            compare_with_search(width, pipeline, 7);
        }
    }
}
