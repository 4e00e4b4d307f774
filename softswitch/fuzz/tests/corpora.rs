//! Every input of every corpus, and every seed, keeps its target's promise.

use std::path::Path;

use softswitch_fuzz::{TARGETS, seeds};

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let files = files.map(|file| file.expect("the folder can be read").path());
    let mut inputs: Vec<_> = files
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read(&path).expect("it can be read"),
            )
        })
        .collect();
    inputs.sort();
    inputs
}

fn replay(target: &str) {
    let (_, run) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("it is a target");
    let seeds = seeds::of(target)
        .into_iter()
        .enumerate()
        .map(|(i, seed)| (format!("seed {i}"), seed));
    for (name, input) in seeds.chain(corpus(target)) {
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

replay!(compiler, json, packets, write, read, config, stream);

#[test]
fn something_of_everything_is_valid() {
    use softswitch_fuzz::server::{Server, block_on};
    block_on(async {
        let mut server = Server::with_features().await;
        server
            .write(seeds::something_of_everything())
            .await
            .expect("it is valid");
    });
}
