// SPDX-License-Identifier: Apache-2.0
//! A forwarder that does nothing but forward, as a yardstick: from the receiving ring of one interface to the sending
//! ring of the other, in both directions, by the means of softswitch's ports. No switch on them can be faster.

use std::os::fd::AsRawFd;
use std::thread;

use anyhow::{Context, Result, bail};
use softswitch::port::{Receive, Receiver, Transmit, Transmitter};

/// Forwards between two interfaces until the process ends, one thread a direction. Prints `ready` when it begins.
pub fn forward(one: &str, other: &str) -> Result<()> {
    let directions = [(one, other), (other, one)].map(|(from, to)| {
        let ends = (Receiver::open(from)?, Transmitter::open(to)?);
        anyhow::Ok(thread::spawn(move || run(ends.0, ends.1)))
    });
    let threads = directions.into_iter().collect::<Result<Vec<_>>>()?;
    println!("ready");
    for thread in threads {
        let Ok(result) = thread.join() else {
            bail!("a direction ended");
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
                return Err(failure).context("forwarding");
            }
            continue;
        }
        let mut waiting = libc::pollfd {
            fd: receiver.poll_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which the receiver keeps open.
        unsafe { libc::poll(&mut waiting, 1, -1) };
    }
}
