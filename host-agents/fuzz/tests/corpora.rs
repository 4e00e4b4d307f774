//! Every seed, and every input of every corpus, keeps its target's promise.

use std::path::Path;

use frontage_fuzz::{TARGETS, seeds};

#[test]
fn promises_are_kept() {
    for (target, run) in TARGETS {
        for (i, seed) in seeds::of(target).iter().enumerate() {
            println!("{target}: seed {i}");
            run(seed);
        }
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"));
        let Ok(files) = std::fs::read_dir(corpus.join("corpus").join(target)) else {
            continue;
        };
        for file in files {
            let path = file.expect("the folder can be read").path();
            println!("{target}: {}", path.display());
            run(&std::fs::read(path).expect("it can be read"));
        }
    }
}
