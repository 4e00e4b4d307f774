// SPDX-License-Identifier: Apache-2.0
//! Reads the corpus of a target: the packed inputs, and the regression inputs beside the archive.
//!
//! The host agents' fuzz crate includes this file, too: the folder is that of the crate that is compiled.

use std::fs;
use std::io::Read;
use std::path::Path;

/// Return all inputs of a target, each with its name. `tools/fuzz --pack` writes the archive.
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut inputs = packed(&corpus.join(format!("{target}.tar.gz")));
    assert!(!inputs.is_empty(), "the corpus of {target} is empty");
    inputs.extend(regressions(&corpus.join(target)));
    inputs
}

fn packed(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let file = fs::File::open(archive).unwrap_or_else(|e| panic!("{}: {e}", archive.display()));
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = archive.entries().expect("the archive is readable");
    entries
        .map(|entry| {
            let mut entry = entry.expect("the archive is readable");
            let name = entry.path().expect("valid name").display().to_string();
            let mut input = Vec::new();
            entry
                .read_to_end(&mut input)
                .expect("the archive is readable");
            (name, input)
        })
        .collect()
}

fn regressions(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(files) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = files
        .map(|file| file.expect("the folder is readable").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let input = fs::read(&path).expect("the file is readable");
            (path.display().to_string(), input)
        })
        .collect()
}
