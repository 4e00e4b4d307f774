// SPDX-License-Identifier: Apache-2.0
//! A bare forwarder as a reference: it copies frames from the receive ring of one interface to the transmit ring of the
//! other, in both directions, through softswitch's ports. A switch with these ports cannot be faster.

use std::os::fd::AsRawFd;
use std::thread;

use anyhow::{Context, Result, bail};
use softswitch::port::{self, Receive, Sockets, Transmit};

/// Forwards between two interfaces until the process ends, with one thread per direction. Prints `ready` when it starts.
pub fn forward(one: &str, other: &str, sockets: Sockets) -> Result<()> {
    let open = |name| port::open(name, sockets);
    let ((one_in, one_out), (other_in, other_out)) = (open(one)?, open(other)?);
    let threads = [
        thread::spawn(move || run(one_in, other_out)),
        thread::spawn(move || run(other_in, one_out)),
    ];
    println!("ready");
    for thread in threads {
        let Ok(result) = thread.join() else {
            bail!("a forwarding thread panicked");
        };
        result?;
    }
    Ok(())
}

fn run(mut receiver: Box<dyn Receive>, mut transmitter: Box<dyn Transmit>) -> Result<()> {
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
