// SPDX-License-Identifier: Apache-2.0
//! A network namespace with veth pairs for one test. It disappears with the test's threads.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use test_requirements::privileged;

/// Runs a test with a veth pair `pN` and `eN` per port, where N is 1, 2 and so on.
pub fn with_veths(pairs: usize, test: impl FnOnce() + Send) {
    if !privileged() {
        return;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // New threads and programs inherit the namespace.
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            for n in 1..=pairs {
                ip(&format!("link add p{n} type veth peer name e{n}"));
                ip(&format!("link set p{n} up"));
                ip(&format!("link set e{n} up"));
            }
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs `ip` with these arguments.
pub fn ip(args: &str) {
    let output = Command::new("ip")
        .args(args.split_whitespace())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {args}: {error}");
}
