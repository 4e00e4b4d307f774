// SPDX-License-Identifier: Apache-2.0
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

use artemis::{Cache, Name};

fn folder(name: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn shared_cache_loses_no_concurrent_writes() {
    let folder = folder("shared");
    let path = folder.join("cache");
    let name = |text: &str| Name::new(text).unwrap();
    assert_eq!(Cache::shared(&path).get(&name("a"), 443).unwrap(), None);
    // Concurrent writers, each with its own `Cache`, as in separate processes.
    thread::scope(|scope| {
        for writer in 0..8u16 {
            let path = &path;
            scope.spawn(move || {
                let cache = Cache::shared(path);
                for i in 0..20u16 {
                    let unicast: SocketAddr = ([192, 0, 2, 1], i + 1).into();
                    cache
                        .put(&name(&format!("{writer} {i}")), 443, unicast, 60)
                        .unwrap();
                }
            });
        }
    });
    let cache = Cache::shared(&path);
    for writer in 0..8 {
        for i in 0..20u16 {
            let found = cache.get(&name(&format!("{writer} {i}.")), 443).unwrap();
            assert_eq!(found, Some(([192, 0, 2, 1], i + 1).into()));
        }
    }
    cache.invalidate(&name("3 7"), 443).unwrap();
    assert_eq!(Cache::shared(&path).get(&name("3 7"), 443).unwrap(), None);
    let nowhere = Cache::shared(folder.join("none/cache"));
    assert!(
        nowhere
            .put(&name("a"), 1, ([192, 0, 2, 1], 1).into(), 1)
            .is_err()
    );
    std::fs::remove_dir_all(folder).unwrap();
}
