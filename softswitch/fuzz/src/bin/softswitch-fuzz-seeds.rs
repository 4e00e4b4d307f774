// SPDX-License-Identifier: Apache-2.0
//! Writes the seeds of a target to a folder, as the fuzzer's first inputs.
//!
//! Example: `softswitch-fuzz-seeds write build/fuzz/write`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let [target, folder] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| {
            eprintln!(
                "usage: softswitch-fuzz-seeds TARGET FOLDER\nExample: softswitch-fuzz-seeds write build/fuzz/write"
            );
            std::process::exit(2);
        });
    std::fs::create_dir_all(&folder)?;
    for (i, seed) in softswitch_fuzz::seeds::of(&target).iter().enumerate() {
        std::fs::write(Path::new(&folder).join(format!("seed-{i}")), seed)?;
    }
    Ok(())
}
