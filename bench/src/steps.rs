// SPDX-License-Identifier: Apache-2.0
//! Counts instructions exactly, on any machine: a child process runs the code, and its parent steps through it (ptrace(2)).

use std::io;

use anyhow::{Context, Result, bail};

/// Returns the number of instructions that `run` executes in user space.
///
/// The child is a copy of this process, so it must be single-threaded, and what `run` changes is lost.
pub fn instructions(run: impl FnOnce()) -> Result<u64> {
    let nothing = between_stops(|| {})?;
    Ok(between_stops(run)?.saturating_sub(nothing))
}

/// Counts the instructions between two stops of a child, including those of the stops.
fn between_stops(run: impl FnOnce()) -> Result<u64> {
    // SAFETY: the child runs only the code below, and this process does not have other threads.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error()).context("cannot fork");
    }
    if child == 0 {
        // SAFETY: the calls do not access memory. The child ends without running the exit handlers of its parent.
        unsafe {
            let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            run();
            libc::raise(libc::SIGSTOP);
            libc::_exit(i32::from(traced < 0));
        }
    }
    let counted = count(child);
    // SAFETY: the child is this function's own, and has not been waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    counted
}

/// Steps from a child's first stop to its second one.
fn count(child: libc::pid_t) -> Result<u64> {
    wait_for(child, libc::SIGSTOP)?;
    let mut steps = 0;
    loop {
        // SAFETY: the child is stopped, and the request does not access this process's memory.
        if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) } < 0 {
            return Err(io::Error::last_os_error())
                .context("cannot step through a child with ptrace");
        }
        match stop_signal(child)? {
            libc::SIGTRAP => steps += 1,
            libc::SIGSTOP => return Ok(steps),
            signal => {
                bail!("a child stopped with signal {signal} while its instructions were counted")
            }
        }
    }
}

fn wait_for(child: libc::pid_t, signal: i32) -> Result<()> {
    match stop_signal(child)? {
        stopped if stopped == signal => Ok(()),
        other => {
            bail!("a child stopped with signal {other} instead of {signal}: is ptrace forbidden?")
        }
    }
}

/// Waits for the next stop of a child, and returns its signal.
fn stop_signal(child: libc::pid_t) -> Result<i32> {
    let mut status = 0;
    // SAFETY: the status is valid for writes.
    if unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        return Err(io::Error::last_os_error()).context("cannot wait for a child");
    }
    if !libc::WIFSTOPPED(status) {
        bail!("a child ended while its instructions were counted: status {status:#x}");
    }
    Ok(libc::WSTOPSIG(status))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// A loop whose rounds all have the same instructions.
    fn spin(rounds: u64) {
        for round in 0..rounds {
            black_box(round);
        }
    }

    #[test]
    fn count_is_proportional_to_rounds() {
        // Sandboxes may forbid ptrace.
        let Ok(none) = instructions(|| spin(0)) else {
            return;
        };
        let count = |rounds| instructions(|| spin(rounds)).unwrap() - none;
        let (ten, hundred) = (count(10), count(100));
        assert!(ten >= 10, "{ten}");
        assert!(hundred.abs_diff(10 * ten) < 40, "{ten}, {hundred}");
    }
}
