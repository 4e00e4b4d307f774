// SPDX-License-Identifier: Apache-2.0
//! picoquic as a client with several paths: each real server responds on its own (`docs/clients.md`).

#[allow(dead_code)]
mod common;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use common::{BALANCER, PORT, Testbed, content};
use frontage_testkit::privileged;

const SOURCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../cclb7-quic/tests/clients/get_picoquic.c"
);
/// Addresses of the client's further paths, one for each real server.
const FURTHER: [&str; 2] = ["10.0.0.21", "10.0.0.22"];
/// Sizes in bytes of the first object and of the others, which are also their names.
const SIZES: [usize; 2] = [1_000, 1_000_000];
/// Number of the other objects.
const DOWNLOADS: u64 = 3;

/// Compile the client with the static libraries in `folder`, which contains the built checkouts `picoquic` and `picotls`.
fn compile(folder: &Path, program: &Path) {
    let script = format!(
        "cd '{}' && cc -O1 -Wall -Wextra -Werror -Ipicoquic/picoquic -Ipicoquic/picohttp -Ipicotls/include '{SOURCE}' -o '{}' \
         -Wl,--start-group picoquic/build/libpico*.a picotls/libpicotls-*.a -Wl,--end-group -lssl -lcrypto -lpthread -lm",
        folder.display(),
        program.display()
    );
    let compiled = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(compiled.success(), "{script}");
}

#[test]
fn real_servers_respond_on_paths_of_picoquic() {
    if !privileged() {
        return;
    }
    // Unlike tests with other missing tools, this one never fails, because no distribution packages picoquic.
    let Some(picoquic) = env::var_os("PICOQUIC") else {
        let fix = "set PICOQUIC to the folder of its build (docs/clients.md)";
        // The test harness would drop the output of `eprintln!`.
        let _ = writeln!(std::io::stderr(), "skipped: picoquic: missing: {fix}");
        return;
    };
    let files = SIZES.map(|size| (size.to_string(), content(size, size)));
    let testbed = Testbed::new("picoquic", FURTHER.len(), "round-robin", "", &files);
    let program = testbed.folder.join("get_picoquic");
    compile(Path::new(&picoquic), &program);
    for address in FURTHER {
        testbed
            .client
            .sh(&format!("ip addr add {address}/24 dev br0"));
    }
    let (folder, log) = (
        testbed.folder.join("downloads"),
        testbed.folder.join("client.log"),
    );
    fs::create_dir(&folder).unwrap();
    testbed.client.sh(&format!(
        "timeout 60 {} {} {BALANCER} {PORT} lb.test {} {} >{} 2>&1 || true",
        program.display(),
        folder.display(),
        SIZES[1],
        FURTHER.join(" "),
        log.display()
    ));
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("3 paths"), "{log}");
    for (name, content) in &files {
        assert!(fs::read(folder.join(name)).unwrap() == *content, "{name}");
    }
    // The balancer sends the first object, because the client opens its further paths only afterwards.
    assert_eq!(
        (
            testbed.balancer_metric("handoff_local_total"),
            testbed.balancer_metric("body_bytes_total")
        ),
        (1, SIZES[0] as u64)
    );
    let sent = |server| testbed.server_metric(server, "body_bytes_total");
    assert_eq!(sent(0) + sent(1), DOWNLOADS * SIZES[1] as u64);
    assert!(
        sent(0) > 0 && sent(1) > 0,
        "each real server sends an object"
    );
}
