//! Network namespaces in which the tests of host agents run real programs, and what such tests wait for.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use nat::Nat;
pub use rough::{Rough, Roughness};

mod nat;
mod rough;

/// How long [`wait_for`] waits.
pub const PATIENCE: Duration = Duration::from_secs(20);
static NAMESPACES: AtomicU32 = AtomicU32::new(0);

/// Whether namespaces can be made here; says so if not.
pub fn privileged() -> bool {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: network namespaces need root");
    }
    root
}

/// A network namespace, with the processes that were started in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    children: Vec<Child>,
}

impl Namespace {
    /// A new one with its loopback interface up. `role` becomes part of its name.
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

    /// As `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The output of shell `command`, run inside.
    pub fn sh(&self, command: &str) -> String {
        self.run(|| sh(command))
    }

    /// Runs `work` on a thread inside.
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

    /// Starts a process inside, which ends with the namespace. Its number.
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
        let file = File::open(format!("/run/netns/{}", self.name)).expect("it exists");
        // SAFETY: a plain system call on a descriptor that outlives it.
        let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "setns: {}", std::io::Error::last_os_error());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Not SIGKILL: nginx's master has to end its workers.
            // SAFETY: a process that we started and have not waited for, so the number is still its own.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
            let _ = child.wait();
        }
        sh(&format!("ip netns del {}", self.name));
    }
}

/// Waits until `condition` holds; panics if it does not for [`PATIENCE`].
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The output of shell `command`; panics if it fails.
pub fn sh(command: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("sh");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
