// SPDX-License-Identifier: Apache-2.0
//! Runs every seed and every input of the corpora through its target.

mod corpus;

use softswitch_fuzz::{TARGETS, seeds};

fn replay(target: &str) {
    let (_, run) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("known target");
    let seeds = seeds::of(target)
        .into_iter()
        .enumerate()
        .map(|(i, seed)| (format!("seed {i}"), seed));
    for (name, input) in seeds.chain(corpus::inputs(target)) {
        println!("{target}: {name}");
        run(&input);
    }
}

macro_rules! replay {
    ($($target:ident),*) => {$(
        #[test]
        fn $target() {
            replay(stringify!($target));
        }
    )*};
}

replay!(
    compiler,
    json,
    packets,
    write,
    read,
    config,
    stream,
    thrift,
    thrift_calls
);

#[test]
fn switch_accepts_batch_with_every_entity() {
    softswitch_fuzz::server::block_on(seeds::server_with_every_entity());
}
