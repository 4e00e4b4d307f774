// SPDX-License-Identifier: Apache-2.0
//! A network namespace with veth pairs for one test. It disappears with the test's threads.

use std::path::Path;
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
            without_ipv6();
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

/// Keeps the kernel from sending packets of its own through the interfaces of this thread's network namespace.
fn without_ipv6() {
    for interfaces in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6");
        // A kernel without IPv6 does not have the file.
        if Path::new(&path).exists() {
            std::fs::write(path, "1").unwrap();
        }
    }
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
