// SPDX-License-Identifier: Apache-2.0
//! Random packets for `programs/everything.p4`.

use super::{Command, ethernet};
use softswitch_random::Rng;

pub fn random_frame(rng: &mut Rng) -> Vec<u8> {
    let command = || Command { ..Command::op(0) }.frame();
    let mut frame = match rng.below(5) {
        0 => (0..rng.below(100)).map(|_| rng.next() as u8).collect(),
        1 => [ethernet(0x9000), vec![2; 20]].concat(),
        2 => [ethernet(0x9001), vec![20; 30]].concat(),
        3 => [ethernet(0x9002), vec![1; 20]].concat(),
        _ => command(),
    };
    let behind_addresses = frame.len().min(14);
    for byte in &mut frame[behind_addresses..] {
        if rng.below(3) == 0 {
            *byte = rng.next() as u8;
        }
    }
    if let Some(op) = frame.get_mut(14)
        && rng.below(2) == 0
    {
        *op %= 32;
    }
    for _ in 0..rng.below(3) {
        if !frame.is_empty() {
            let at = rng.below(frame.len());
            frame[at] ^= 1 << rng.below(8);
        }
    }
    frame.truncate(rng.below(2) * 1000 + rng.below(80));
    frame
}
