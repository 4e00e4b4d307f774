// SPDX-License-Identifier: Apache-2.0
//! Packets per second through a switch. Memory-mapped packet sockets send into the far ends of its links. The counters of
//! the receiving interfaces count the packets, so there is no receiver that takes core time.

use std::collections::HashMap;
use std::fs;
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use softswitch::port::{Transmit, Transmitter};

use crate::clock::core_time;
use crate::traffic::Packet;

/// Maximum share of missing packets in a run that counts as lossless.
const LOSS: f64 = 0.001;
/// Duration of a run.
const RUN: Duration = Duration::from_millis(800);
/// Number of steps in the search for the highest rate.
const STEPS: usize = 7;
/// Packets per second that every switch must forward.
const MIN_RATE: f64 = 500.0;
/// Seconds between two bursts. Bursts are small, because the buffer of a switch may be small.
const BURST_INTERVAL: f64 = 100e-6;
/// Packets per burst in overload, and the maximum at any rate.
const OVERLOAD_BURST: usize = 64;
/// Time without arrivals after which missing packets count as lost.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval of polling for the last packets.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The far end of a link of the switch.
#[derive(Clone)]
pub struct Attachment {
    pub port: u32,
    pub interface: String,
}

impl FromStr for Attachment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, interface) = text
            .split_once('@')
            .ok_or("invalid attachment: use PORT@INTERFACE")?;
        let port = port
            .parse()
            .map_err(|e| format!("invalid port \"{port}\": {e}"))?;
        Ok(Self {
            port,
            interface: interface.into(),
        })
    }
}

/// Results in packets per second.
#[derive(Serialize)]
pub struct Rates {
    /// The highest rate found at which fewer than one packet in a thousand is lost.
    lossless: f64,
    /// Rate of packets that get through when the sender sends as fast as it can.
    overload: f64,
    /// Share of a core that the sender used at the highest rate. Near one, the sender may be the limit.
    sender: f64,
    /// Packets that got through in all runs.
    received: u64,
}

pub fn measure(packets: &[Packet], attachments: &[Attachment]) -> Result<Rates> {
    let mut sender = Sender::open(packets, attachments)?;
    let first = sender.run(MIN_RATE)?;
    ensure!(
        first.lossless(),
        "only {} of {} packets got through at {MIN_RATE} per second: the switch does not forward this traffic",
        first.received,
        first.sent
    );
    let overload = sender.run(f64::INFINITY)?;
    let (mut low, mut high) = (0.0, overload.received_rate());
    let (mut lossless, mut busy) = (0.0, 0.0);
    let mut lossy = None;
    for _ in 0..STEPS {
        // Raise the rate until packets are lost, then bisect.
        let rate = lossy.map_or(high, |lossy| (low + lossy) / 2.0);
        let mut run = sender.run(rate)?;
        if !run.lossless() {
            // Try again: another process may have caused the loss.
            run = sender.run(rate)?;
        }
        if run.lossless() {
            low = rate;
            high = 1.5 * rate;
            if run.received_rate() > lossless {
                (lossless, busy) = (run.received_rate(), run.busy);
            }
        } else {
            lossy = Some(rate);
        }
    }
    Ok(Rates {
        lossless,
        overload: overload.received_rate(),
        sender: busy,
        received: sender.received,
    })
}

/// Opens the far ends of links, by port, for this thread, which then sleeps exactly.
pub fn open(attachments: &[Attachment]) -> Result<HashMap<u32, Transmitter>> {
    // Reduce the timer slack of this thread from 50 us to 1 us.
    // SAFETY: the call only reads an integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
    let open = |a: &Attachment| Ok((a.port, Transmitter::open(&a.interface)?));
    attachments.iter().map(open).collect()
}

struct Run {
    sent: u64,
    received: u64,
    /// Time until the last packet arrived. It exceeds the time of sending if packets are queued in the switch at its end.
    receiving: Duration,
    /// Share of the sending time in which the sender used its core.
    busy: f64,
}

impl Run {
    fn lossless(&self) -> bool {
        self.received as f64 >= self.sent as f64 * (1.0 - LOSS)
    }

    fn received_rate(&self) -> f64 {
        self.received as f64 / self.receiving.as_secs_f64()
    }
}

struct Sender<'a> {
    packets: &'a [Packet],
    links: HashMap<u32, Transmitter>,
    interfaces: Vec<&'a str>,
    /// Index of the next packet.
    next: usize,
    /// Packets that got through so far.
    received: u64,
}

impl<'a> Sender<'a> {
    fn open(packets: &'a [Packet], attachments: &'a [Attachment]) -> Result<Self> {
        let links = open(attachments)?;
        for port in packets.iter().flat_map(|p| [p.port, p.out_port]) {
            ensure!(
                links.contains_key(&port),
                "missing link at port {port}: add {port}@INTERFACE"
            );
        }
        let interfaces = attachments.iter().map(|a| a.interface.as_str()).collect();
        Ok(Self {
            packets,
            links,
            interfaces,
            next: 0,
            received: 0,
        })
    }

    /// Sends `rate` packets per second, or as fast as possible if it is infinite, and waits until arrivals stop.
    fn run(&mut self, rate: f64) -> Result<Run> {
        let burst = ((rate * BURST_INTERVAL) as usize).clamp(1, OVERLOAD_BURST);
        let before = received(&self.interfaces)?;
        let (start, core_start) = (Instant::now(), core_time());
        let mut sent = 0;
        while start.elapsed() < RUN {
            let due = Duration::from_secs_f64(sent as f64 / rate);
            if let Some(wait) = due.checked_sub(start.elapsed()) {
                sleep(wait);
            }
            sent += self.send(burst)?;
        }
        let busy = (core_time() - core_start).as_secs_f64() / start.elapsed().as_secs_f64();
        let (mut count, mut receiving) = (received(&self.interfaces)?, start.elapsed());
        while start.elapsed() < receiving + DRAIN_TIMEOUT {
            sleep(POLL_INTERVAL);
            let now = received(&self.interfaces)?;
            if now != count {
                (count, receiving) = (now, start.elapsed());
            }
        }
        self.received += count - before;
        Ok(Run {
            sent,
            received: count - before,
            receiving,
            busy,
        })
    }

    /// Sends the next `count` packets with one system call per port.
    fn send(&mut self, count: usize) -> Result<u64> {
        let end = (self.next + count).min(self.packets.len());
        let burst = &self.packets[self.next..end];
        self.next = end % self.packets.len();
        for packet in burst {
            let link = self.links.get_mut(&packet.port);
            link.context("each port has a link")?.send(&packet.frame);
        }
        for (port, link) in &mut self.links {
            let flushed = link.flush();
            ensure!(
                flushed.too_long + flushed.busy + flushed.down == 0,
                "cannot send to port {port}: {flushed:?}"
            );
        }
        Ok(burst.len() as u64)
    }
}

/// Returns the number of packets that these interfaces of this network namespace have received so far.
fn received(interfaces: &[&str]) -> Result<u64> {
    let path = "/proc/thread-self/net/dev";
    let text = fs::read_to_string(path).context(path)?;
    let mut total = 0;
    for interface in interfaces {
        let counts = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))
            .with_context(|| format!("{path}: missing interface {interface}"))?;
        let packets = counts
            .split_whitespace()
            .nth(1)
            .with_context(|| format!("{path}: missing packet counter"))?;
        total += packets.parse::<u64>()?;
    }
    Ok(total)
}
