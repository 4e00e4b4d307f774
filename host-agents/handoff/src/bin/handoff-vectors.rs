// SPDX-License-Identifier: Apache-2.0
//! Prints `docs/handoff-vectors.json`.

use frontage_handoff::vectors;

fn main() {
    print!("{}", vectors::to_json(&vectors::generate()));
}
