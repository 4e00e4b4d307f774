// SPDX-License-Identifier: Apache-2.0
//! Write the seeds of a target to a folder, as the fuzzer's initial inputs.
//!
//! Example: `frontage-fuzz-seeds to_server build/fuzz/to_server`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let [target, folder] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| {
            eprintln!(
                "usage: frontage-fuzz-seeds TARGET FOLDER\nExample: frontage-fuzz-seeds to_server build/fuzz/to_server"
            );
            std::process::exit(2);
        });
    std::fs::create_dir_all(&folder)?;
    for (i, seed) in frontage_fuzz::seeds::of(&target).iter().enumerate() {
        std::fs::write(Path::new(&folder).join(format!("seed-{i}")), seed)?;
    }
    Ok(())
}
