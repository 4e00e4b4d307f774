// SPDX-License-Identifier: Apache-2.0
//! Compares every index structure with a scan over all entries, under random insertions and removals.

use smallvec::smallvec;
use softswitch_random::Rng;

use super::space::Space;
use crate::entry::{EntryKey, MatchField};
use crate::info::{KeyInfo, MatchKind};
use crate::phv::mask64;
use crate::program::criteria::Criteria;
use crate::program::key::KeyShape;
use crate::value::Value;

use MatchKind::{Exact, Lpm, Optional, Range, Ternary, Valid};

/// The parameters of a test.
struct Plan {
    key: Vec<KeyInfo>,
    /// Number of first and last bits in which fields differ, so that entries overlap and packets hit.
    bits: u32,
    priorities: u64,
    /// Number of entries above which random ones are removed.
    most: usize,
    steps: usize,
}

fn plan(key: &[(MatchKind, u32)], bits: u32, priorities: u64, most: usize, steps: usize) -> Plan {
    let info = |&(kind, width)| KeyInfo {
        name: "f".to_owned(),
        kind,
        width,
    };
    Plan {
        key: key.iter().map(info).collect(),
        bits,
        priorities,
        most,
        steps,
    }
}

/// Returns one of few values: only the first and the last bits are random.
fn value(rng: &mut Rng, width: u32, bits: u32) -> Value {
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    let set = |i: u32, bytes: &mut Vec<u8>| {
        let last = bytes.len() - 1;
        bytes[last - (i / 8) as usize] |= 1 << (i % 8);
    };
    for i in (0..width.min(bits)).chain(width.saturating_sub(bits)..width) {
        if rng.next() & 1 != 0 {
            set(i, &mut bytes);
        }
    }
    Value::from_be_bytes(&bytes)
}

fn and(a: &Value, b: &Value, width: u32) -> Value {
    let len = width.div_ceil(8) as usize;
    let pair = [a, b].map(|v| v.to_padded(len).expect("it has this width"));
    let bytes: Vec<u8> = pair[0].iter().zip(&pair[1]).map(|(a, b)| a & b).collect();
    Value::from_be_bytes(&bytes)
}

/// Returns a mask of ones except for the last bits.
fn prefix(width: u32, len: u32) -> Value {
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    for i in width - len..width {
        let last = bytes.len() - 1;
        bytes[last - (i / 8) as usize] |= 1 << (i % 8);
    }
    Value::from_be_bytes(&bytes)
}

fn field(rng: &mut Rng, info: &KeyInfo, bits: u32) -> MatchField {
    let width = info.width;
    let v = value(rng, width, bits);
    match info.kind {
        Exact => MatchField::Exact(v),
        Valid => MatchField::Valid(rng.next() & 1 != 0),
        Lpm => {
            let near = rng.uniform(0, 2 * u64::from(bits.min(width))) as u32;
            let prefix_len = if near > bits {
                width.saturating_sub(near - bits)
            } else {
                near
            };
            let value = and(&v, &prefix(width, prefix_len), width);
            MatchField::Lpm { value, prefix_len }
        }
        Ternary => {
            let mask = match rng.uniform(0, 3) {
                0 => value(rng, width, width),
                1 => prefix(width, rng.uniform(0, width.into()) as u32),
                2 => Value::ones(width),
                _ => Value::from(0u64),
            };
            let value = and(&v, &mask, width);
            MatchField::Ternary { value, mask }
        }
        Optional => MatchField::Optional((rng.next() & 1 == 0).then_some(v)),
        Range => {
            let other = value(rng, width, bits);
            let in_order =
                |a: &Value, b: &Value| (a.bits(), a.as_bytes()) <= (b.bits(), b.as_bytes());
            let (low, high) = if in_order(&v, &other) {
                (v, other)
            } else {
                (other, v)
            };
            MatchField::Range { low, high }
        }
    }
}

fn matches(c: &Criteria, key: &[u64], shape: &KeyShape) -> bool {
    let masked = key.iter().zip(&c.masks).map(|(k, m)| k & m);
    masked.eq(c.values.iter().copied()) && shape.in_ranges(key, &c.ranges)
}

fn run(plan: &Plan, seed: u64) {
    let shape = KeyShape::new("t", &plan.key);
    let rng = &mut Rng::new(seed);
    let mut space = Space::new(&shape);
    let mut model: Vec<(u32, u64, Criteria)> = Vec::new();
    let (mut hits, mut duplicates) = (0, 0);
    for step in 0..plan.steps {
        let fields = plan.key.iter().map(|k| field(rng, k, plan.bits)).collect();
        let priority = if shape.needs_priority {
            rng.uniform(1, plan.priorities) as i32
        } else {
            0
        };
        let c = shape
            .encode(&EntryKey { fields, priority })
            .expect("valid key");
        let known = model.iter().find(|(.., m)| *m == c).map(|m| m.0);
        assert_eq!(space.find(&c), known, "find at step {step}, seed {seed}");
        if known.is_none() {
            let slot = space.insert(&c, &shape);
            assert!(
                model.iter().all(|m| m.0 != slot),
                "a used slot was assigned again"
            );
            model.push((slot, space.seq(slot), c));
        } else {
            duplicates += 1;
        }
        // Occasionally, almost all entries are removed.
        let most = if step % 2000 == 1999 { 5 } else { plan.most };
        while model.len() > most {
            let (slot, seq, c) = model.swap_remove(rng.uniform(0, model.len() as u64 - 1) as usize);
            assert_eq!((space.seq(slot), space.criteria(slot, &shape)), (seq, c));
            space.remove(slot, &shape);
            assert!(!space.is_used(slot));
        }
        assert_eq!(space.len(), model.len());
        let near = &model[rng.uniform(0, model.len() as u64 - 1) as usize].2;
        let values: Vec<Value> = plan
            .key
            .iter()
            .map(|k| value(rng, k.width, plan.bits))
            .collect();
        let random = shape.pack(&values).expect("values fit");
        // The bits that an entry does not match are random.
        let hit = random.iter().zip(&near.masks).zip(&near.values);
        let hit: Vec<u64> = hit.map(|((r, m), v)| r & !m | v).collect();
        for key in [random, hit] {
            let expected = model.iter().filter(|(.., c)| matches(c, &key, &shape));
            let expected = expected.max_by_key(|(_, seq, c)| (c.priority, std::cmp::Reverse(*seq)));
            let expected = expected.map(|m| m.0);
            assert_eq!(
                space.lookup(&key, &shape),
                expected,
                "key {key:x?} at step {step}, seed {seed}"
            );
            hits += usize::from(expected.is_some());
        }
    }
    assert!(hits > plan.steps / 2, "{hits} hits of {} steps", plan.steps);
    assert!(
        duplicates > 0 || plan.key.iter().any(|k| k.width > 8),
        "duplicate entries"
    );
}

#[test]
fn exact_table_equals_scan() {
    run(&plan(&[(Exact, 8)], 4, 1, 100, 3000), 1);
    run(&plan(&[(Exact, 48), (Valid, 1)], 3, 1, 60, 3000), 2);
    run(
        &plan(
            &[(Exact, 128), (Exact, 9), (Exact, 64), (Exact, 100)],
            1,
            1,
            60,
            4000,
        ),
        3,
    );
}

#[test]
fn lpm_table_equals_scan() {
    run(&plan(&[(Lpm, 8)], 4, 1, 40, 3000), 4);
    run(&plan(&[(Lpm, 32)], 32, 1, 800, 3000), 5);
    run(&plan(&[(Lpm, 32)], 7, 1, 800, 3000), 6);
    run(&plan(&[(Lpm, 128), (Exact, 16)], 5, 1, 400, 3000), 7);
    run(
        &plan(
            &[(Exact, 70), (Lpm, 48), (Valid, 1), (Exact, 48)],
            2,
            1,
            400,
            6000,
        ),
        8,
    );
    run(&plan(&[(Lpm, 64)], 9, 1, 800, 3000), 9);
    run(&plan(&[(Lpm, 200)], 6, 1, 800, 3000), 10);
}

#[test]
fn ternary_table_equals_scan() {
    run(&plan(&[(Ternary, 8)], 8, 20, 100, 3000), 11);
    run(
        &plan(&[(Ternary, 6), (Range, 5), (Optional, 3)], 3, 20, 60, 6000),
        12,
    );
    run(
        &plan(
            &[
                (Ternary, 32),
                (Ternary, 32),
                (Range, 16),
                (Range, 16),
                (Ternary, 8),
            ],
            3,
            1000,
            1500,
            5000,
        ),
        13,
    );
    run(&plan(&[(Lpm, 32), (Optional, 9)], 6, 3, 1500, 2500), 14);
    run(
        &plan(
            &[(Ternary, 128), (Range, 100), (Exact, 1), (Optional, 64)],
            2,
            50,
            1500,
            4000,
        ),
        15,
    );
    run(&plan(&[(Range, 16)], 16, 1 << 30, 1500, 2500), 16);
}

/// Thousands of entries share masks and are in tuples; entries with unique masks are in blocks.
#[test]
fn large_ternary_table_uses_tuples_and_blocks() {
    let shape = KeyShape::new("t", &plan(&[(Ternary, 64)], 0, 0, 0, 0).key);
    let rng = &mut Rng::new(17);
    let mut space = Space::new(&shape);
    let mut model: Vec<(u32, Criteria)> = Vec::new();
    let lens = [12, 16, 20, 24];
    for i in 0..6000 {
        let mask = match i % 5 {
            4 => rng.next(),
            _ => mask64(64) << (64 - lens[rng.uniform(0, 3) as usize]),
        };
        let c = Criteria {
            values: smallvec![rng.next() & mask],
            masks: smallvec![mask],
            ranges: smallvec![],
            priority: rng.uniform(1, 1 << 20) as i32,
        };
        if space.find(&c).is_none() {
            model.push((space.insert(&c, &shape), c));
        }
    }
    while model.len() > 10 {
        for _ in 0..40 {
            let near = &model[rng.uniform(0, model.len() as u64 - 1) as usize].1;
            let key = [rng.next() & !near.masks[0] | near.values[0]];
            let expected = model.iter().filter(|(_, c)| matches(c, &key, &shape));
            let expected =
                expected.max_by_key(|(s, c)| (c.priority, std::cmp::Reverse(space.seq(*s))));
            assert_eq!(space.lookup(&key, &shape), expected.map(|m| m.0));
        }
        for _ in 0..model.len() / 10 + 1 {
            let (slot, c) = model.swap_remove(rng.uniform(0, model.len() as u64 - 1) as usize);
            assert_eq!(space.find(&c), Some(slot));
            space.remove(slot, &shape);
            assert_eq!(space.find(&c), None);
        }
    }
}
