// SPDX-License-Identifier: Apache-2.0
//! The needs of tests on their machine. A test that cannot run fails, so that a machine without root or without a tool does
//! not report success. With `ALLOW_SKIPS=1` in the environment, it prints that it is skipped instead.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io::Write;

/// Environment variable that allows tests to be skipped, if its value is not empty.
pub const ALLOW_SKIPS: &str = "ALLOW_SKIPS";

/// Return whether `what`, which a test needs, is `present`. If not, and skips are not allowed, panic with a message that
/// contains the `fix`.
pub fn require(present: bool, what: &str, fix: &str) -> bool {
    if present {
        return true;
    }
    let allowed = std::env::var_os(ALLOW_SKIPS).is_some_and(|value| !value.is_empty());
    assert!(
        allowed,
        "{what}: missing: {fix}, or set {ALLOW_SKIPS}=1 to skip the test"
    );
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // The test harness would capture the output of `eprintln!`, and drop it because the test succeeds.
    let _ = writeln!(std::io::stderr(), "skipped {test}: {what}: missing: {fix}");
    false
}

/// Return whether this process may create network namespaces. If not, and skips are not allowed, panic.
pub fn privileged() -> bool {
    let root = nix::unistd::geteuid().is_root();
    require(root, "root", "network namespaces need it")
}
