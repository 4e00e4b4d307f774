// SPDX-License-Identifier: Apache-2.0
//! Test support for the host agents: network namespaces in which tests run real programs, a NAT that can rebind, and
//! sockets on a bad network.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use lossy::{Impairment, impaired, lossy};
pub use nat::Nat;
pub use test_requirements::{privileged, require};

mod lossy;
mod nat;

/// Time after which [`wait_for`] gives up.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
static NAMESPACES: AtomicU32 = AtomicU32::new(0);

/// A network namespace and the processes in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    children: Vec<Child>,
}

impl Namespace {
    /// Create a namespace whose loopback interface is up. `role` becomes part of its name.
    pub fn new(role: &str) -> Self {
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("agents-{}-{number}-{role}", std::process::id());
        sh(&format!(
            "ip netns add {name} && ip -n {name} link set lo up"
        ));
        Self {
            name,
            children: Vec::new(),
        }
    }

    /// The name by which `ip netns` knows the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Run a shell `command` in the namespace and return its output; panic if it fails.
    pub fn sh(&self, command: &str) -> String {
        self.run(|| sh(command))
    }

    /// Run `work` on a thread in the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                work()
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Start a process in the namespace, which ends with the namespace. Return the process id.
    pub fn spawn(&mut self, command: &[&str]) -> u32 {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.name])
            .args(command)
            .stdin(Stdio::null())
            .spawn()
            .expect("ip netns exec");
        let id = child.id();
        self.children.push(child);
        id
    }

    fn enter(&self) {
        let file = File::open(format!("/run/netns/{}", self.name)).expect("the namespace exists");
        setns(file, CloneFlags::CLONE_NEWNET).expect("setns");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Not SIGKILL, because nginx's master must end its workers. The id is still the child's, which nothing
            // has waited for.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            let _ = child.wait();
        }
        sh(&format!("ip netns del {}", self.name));
    }
}

/// Wait until `condition` holds; panic after [`TEST_TIMEOUT`].
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "waited {TEST_TIMEOUT:?} for {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Run a shell `command` and return its output; panic if it fails.
pub fn sh(command: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("sh");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
