// SPDX-License-Identifier: Apache-2.0
//! Random damage to a program's JSON.

use serde_json::Value as Json;

use softswitch_random::Rng;

/// Changes one value somewhere in the document.
pub fn damage(json: &mut Json, rng: &mut Rng, depth: usize) {
    let replacement = |rng: &mut Rng| match rng.below(7) {
        0 => Json::Null,
        1 => Json::from(rng.below(70)),
        2 => Json::from("0x"),
        3 => Json::from("-0xffffffffffffffffffffffffff"),
        4 => Json::from(true),
        5 => Json::Array(vec![]),
        _ => Json::from(u64::MAX),
    };
    if depth > 2 && rng.below(4) == 0 {
        *json = replacement(rng);
        return;
    }
    match json {
        Json::Array(a) if !a.is_empty() => {
            let i = rng.below(a.len());
            if rng.below(20) == 0 {
                a.remove(i);
            } else {
                damage(&mut a[i], rng, depth + 1);
            }
        }
        Json::Object(o) if !o.is_empty() => {
            let i = rng.below(o.len());
            let value = o.values_mut().nth(i).expect("in range");
            damage(value, rng, depth + 1);
        }
        other => *other = replacement(rng),
    }
}
