// SPDX-License-Identifier: Apache-2.0
//! Exact keys that are too long to be indices of an array, in every engine.

mod common;

use std::collections::BTreeMap;

use common::far_keys::{FAR, insert, pipelines, table};
use common::key;
use softswitch_pipeline::{EntryKey, MatchField, Pipeline, Value};
use softswitch_random::Rng;

fn entry_key(width: u32, (a, b): (u8, u8)) -> EntryKey {
    let mask = u128::MAX >> (128 - width);
    let far = FAR.wrapping_mul(a.into()) & mask;
    let fields = [Value::from(far), Value::from(u128::from(b))];
    key(fields.map(MatchField::Exact).to_vec(), 0)
}

/// Compares a pipeline with a map while entries come and go.
fn compare_with_map(width: u32, mut p: Pipeline, seed: u64) {
    let table = table(&p);
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
            insert(&mut p, key, n);
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
        for pipeline in pipelines(width, "exact") {
            compare_with_map(width, pipeline, 7);
        }
    }
}
