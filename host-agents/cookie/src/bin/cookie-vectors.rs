// SPDX-License-Identifier: Apache-2.0
//! Print `docs/cookie-vectors.json`.

use frontage_cookie::vectors;

fn main() {
    print!("{}", vectors::to_json(&vectors::generate()));
}
