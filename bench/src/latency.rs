// SPDX-License-Identifier: Apache-2.0
//! The time that packets need through a switch, one at a time at a fixed rate, from far end to far end of its links.
//!
//! The last bytes of each frame contain the time of its sending, so a lost or delayed packet does not affect others.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use softswitch::port::{Receive, Receiver, Transmit};

use crate::traffic::Packet;
use crate::wire::{self, Attachment};

/// Minimum length in bytes of the frames that are sent: the end of a shorter one may be a header.
const MIN_FRAME: usize = 128;
/// Bytes of the time in a frame.
const STAMP: usize = size_of::<u64>();
/// Time without arrivals after which missing packets count as lost.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval at which receivers look whether they should end, in milliseconds.
const POLL_INTERVAL: libc::c_int = 50;

/// Delays in microseconds.
#[derive(Serialize)]
pub struct Delays {
    p50: f64,
    p99: f64,
    p9999: f64,
    longest: f64,
    sent: u64,
    received: u64,
}

/// Sends `rate` packets per second for a number of seconds.
pub fn measure(
    packets: &[Packet],
    attachments: &[Attachment],
    rate: f64,
    seconds: f64,
) -> Result<Delays> {
    let long: Vec<_> = packets
        .iter()
        .filter(|packet| packet.frame.len() >= MIN_FRAME)
        .collect();
    ensure!(
        !long.is_empty(),
        "no packet of the site has {MIN_FRAME} bytes: choose another site"
    );
    let mut links = wire::open(attachments)?;
    let receivers = attachments
        .iter()
        .map(|attachment| Receiver::open(&attachment.interface))
        .collect::<Result<Vec<_>>>()?;
    let (begin, done) = (Instant::now(), AtomicBool::new(false));
    let (sent, mut delays) = thread::scope(|scope| -> Result<_> {
        let receive = |receiver| scope.spawn(|| delays_of(receiver, begin, &done));
        let receiving: Vec<_> = receivers.into_iter().map(receive).collect();
        let mut sent = 0;
        while begin.elapsed().as_secs_f64() < seconds {
            let due = Duration::from_secs_f64(sent as f64 / rate);
            sleep(due.saturating_sub(begin.elapsed()));
            let packet = long[sent as usize % long.len()];
            let mut frame = packet.frame.clone();
            let stamp = frame.len() - STAMP;
            frame[stamp..].copy_from_slice(&nanos(begin).to_be_bytes());
            let link = links.get_mut(&packet.port);
            let link = link.with_context(|| format!("missing link at port {}", packet.port))?;
            link.send(&frame);
            ensure!(
                link.flush().sent == 1,
                "cannot send to port {}",
                packet.port
            );
            sent += 1;
        }
        sleep(DRAIN_TIMEOUT);
        done.store(true, Ordering::Relaxed);
        let delays = receiving.into_iter().map(|thread| {
            let delays = thread.join();
            delays.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok((sent, delays.flatten().collect::<Vec<_>>()))
    })?;
    ensure!(
        !delays.is_empty(),
        "the switch does not forward this traffic"
    );
    delays.sort_unstable();
    let at = |share: f64| {
        let index = (share * (delays.len() - 1) as f64).round() as usize;
        delays[index] as f64 / 1000.0
    };
    Ok(Delays {
        p50: at(0.5),
        p99: at(0.99),
        p9999: at(0.9999),
        longest: at(1.0),
        sent,
        received: delays.len() as u64,
    })
}

/// Returns the delays in nanoseconds of the frames that arrive until `done`.
fn delays_of(mut receiver: Receiver, begin: Instant, done: &AtomicBool) -> Vec<u64> {
    let mut delays = Vec::new();
    while !done.load(Ordering::Relaxed) {
        while receiver.fill() {
            let now = nanos(begin);
            receiver.frames(&mut |frame| {
                if let Some(stamp) = frame.last_chunk::<STAMP>() {
                    delays.push(now.saturating_sub(u64::from_be_bytes(*stamp)));
                }
            });
        }
        let mut poll_fd = libc::pollfd {
            fd: receiver.poll_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array has one element, whose descriptor the receiver keeps open.
        unsafe { libc::poll(&mut poll_fd, 1, POLL_INTERVAL) };
    }
    delays
}

fn nanos(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}
