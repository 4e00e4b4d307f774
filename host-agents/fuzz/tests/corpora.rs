// SPDX-License-Identifier: Apache-2.0
//! Run every seed and every input of the corpora through its target.

#[path = "../../../softswitch/fuzz/tests/corpus/mod.rs"]
mod corpus;

use frontage_fuzz::{TARGETS, seeds};

#[test]
fn every_seed_and_corpus_input_passes() {
    for (target, run) in TARGETS {
        let seeds = seeds::of(target)
            .into_iter()
            .enumerate()
            .map(|(i, seed)| (format!("seed {i}"), seed));
        for (name, input) in seeds.chain(corpus::inputs(target)) {
            println!("{target}: {name}");
            run(&input);
        }
    }
}
