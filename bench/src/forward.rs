// SPDX-License-Identifier: Apache-2.0
//! A bare forwarder as a reference: it copies frames from the receive ring of one interface to the transmit ring of the
//! other, in both directions, through softswitch's ports. A switch with these ports cannot be faster.

use std::os::fd::AsRawFd;
use std::thread;

use anyhow::{Context, Result, bail};
use softswitch::port::{Receive, Receiver, Transmit, Transmitter};

/// Forwards between two interfaces until the process ends, with one thread per direction. Prints `ready` when it starts.
pub fn forward(one: &str, other: &str) -> Result<()> {
    let directions = [(one, other), (other, one)].map(|(from, to)| {
        let ends = (Receiver::open(from)?, Transmitter::open(to)?);
        anyhow::Ok(thread::spawn(move || run(ends.0, ends.1)))
    });
    let threads = directions.into_iter().collect::<Result<Vec<_>>>()?;
    println!("ready");
    for thread in threads {
        let Ok(result) = thread.join() else {
            bail!("a forwarding thread panicked");
        };
        result?;
    }
    Ok(())
}

fn run(mut receiver: Receiver, mut transmitter: Transmitter) -> Result<()> {
    loop {
        if receiver.fill() {
            receiver.frames(&mut |frame| transmitter.send(frame));
            let flushed = transmitter.flush();
            if let Some(failure) = flushed.failure {
                return Err(failure).context("cannot forward frames");
            }
            continue;
        }
        let mut poll_fd = libc::pollfd {
            fd: receiver.poll_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array has one element, whose descriptor the receiver keeps open.
        unsafe { libc::poll(&mut poll_fd, 1, -1) };
    }
}
