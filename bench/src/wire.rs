// SPDX-License-Identifier: Apache-2.0
//! Packets per second through a switch: sent by memory-mapped packet sockets into the far ends of its links, counted
//! where they arrive by the interfaces themselves, which costs no receiver any time.

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

/// The share of packets that may be missing in a run that is called free of loss.
const LOSS: f64 = 0.001;
const RUN: Duration = Duration::from_millis(800);
/// Steps of the search for the highest rate.
const STEPS: usize = 7;
/// Packets per second that any switch must manage.
const GENTLE: f64 = 500.0;
/// Packets are sent in bursts so far apart, as timers go: small ones, since a switch's buffer may be small ...
const APART: f64 = 100e-6;
/// ... or this large in overload, where it does not matter.
const OVERLOAD_BURST: usize = 64;
/// When nothing arrives for so long, what is missing is lost.
const QUIET: Duration = Duration::from_millis(200);
/// How closely it is seen when the last packet arrives.
const LOOK: Duration = Duration::from_millis(5);

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
            .ok_or("not of the form PORT@INTERFACE")?;
        let port = port.parse().map_err(|e| format!("port '{port}': {e}"))?;
        Ok(Self {
            port,
            interface: interface.into(),
        })
    }
}

/// Packets per second.
#[derive(Serialize)]
pub struct Rates {
    /// The highest rate found at which fewer than one packet in a thousand is lost.
    lossless: f64,
    /// What comes through when as many are sent as can be.
    overload: f64,
    /// The share of its time that the sender needed to send at the highest rate: near one, it may be what ended the search.
    sender: f64,
    /// Packets that came through in all runs.
    received: u64,
}

pub fn measure(packets: &[Packet], attachments: &[Attachment]) -> Result<Rates> {
    let mut sender = Sender::open(packets, attachments)?;
    let first = sender.run(GENTLE)?;
    ensure!(
        first.lossless(),
        "only {} of {} packets came through at {GENTLE} a second: the switch does not forward this traffic",
        first.received,
        first.sent
    );
    let overload = sender.run(f64::INFINITY)?;
    let (mut low, mut high) = (0.0, overload.received_rate());
    let (mut lossless, mut busy) = (0.0, 0.0);
    let mut lossy = None;
    for _ in 0..STEPS {
        // Raised until packets are lost, then between the two.
        let rate = lossy.map_or(high, |lossy| (low + lossy) / 2.0);
        let mut run = sender.run(rate)?;
        if !run.lossless() {
            // Once may be chance: the machine does other things, too.
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

struct Run {
    sent: u64,
    received: u64,
    /// Until the last packet arrived: what waits in the switch when sending ends is no throughput of that time.
    receiving: Duration,
    /// The share of the time of sending that the sender computed.
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
    /// The next packet.
    at: usize,
    /// Packets that came through so far.
    received: u64,
}

impl<'a> Sender<'a> {
    fn open(packets: &'a [Packet], attachments: &'a [Attachment]) -> Result<Self> {
        // Sleep to the microsecond; 50 us is the system's own habit.
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
        let links: HashMap<_, _> = attachments
            .iter()
            .map(|a| Ok((a.port, Transmitter::open(&a.interface)?)))
            .collect::<Result<_>>()?;
        for port in packets.iter().flat_map(|p| [p.port, p.out_port]) {
            ensure!(
                links.contains_key(&port),
                "the traffic needs a link at port {port}"
            );
        }
        let interfaces = attachments.iter().map(|a| a.interface.as_str()).collect();
        Ok(Self {
            packets,
            links,
            interfaces,
            at: 0,
            received: 0,
        })
    }

    /// Sends at this many packets a second, or as many as can be, and waits until no more arrive.
    fn run(&mut self, rate: f64) -> Result<Run> {
        let burst = ((rate * APART) as usize).clamp(1, OVERLOAD_BURST);
        let before = received(&self.interfaces)?;
        let (start, worked) = (Instant::now(), core_time());
        let mut sent = 0;
        while start.elapsed() < RUN {
            let due = Duration::from_secs_f64(sent as f64 / rate);
            if let Some(wait) = due.checked_sub(start.elapsed()) {
                sleep(wait);
            }
            sent += self.send(burst)?;
        }
        let busy = (core_time() - worked).as_secs_f64() / start.elapsed().as_secs_f64();
        let (mut count, mut receiving) = (received(&self.interfaces)?, start.elapsed());
        while start.elapsed() < receiving + QUIET {
            sleep(LOOK);
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

    /// Sends the next `count` packets, one system call a port.
    fn send(&mut self, count: usize) -> Result<u64> {
        let end = (self.at + count).min(self.packets.len());
        let burst = &self.packets[self.at..end];
        self.at = end % self.packets.len();
        for packet in burst {
            let link = self.links.get_mut(&packet.port);
            link.context("checked at the beginning")?
                .send(&packet.frame);
        }
        for (port, link) in &mut self.links {
            let flushed = link.flush();
            ensure!(
                flushed.too_long + flushed.busy + flushed.down == 0,
                "sending to port {port}: {flushed:?}"
            );
        }
        Ok(burst.len() as u64)
    }
}

/// Packets that these interfaces of this network namespace have received so far.
fn received(interfaces: &[&str]) -> Result<u64> {
    let path = "/proc/thread-self/net/dev";
    let text = fs::read_to_string(path).context(path)?;
    let mut total = 0;
    for interface in interfaces {
        let counts = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))
            .with_context(|| format!("{path} has no interface {interface}"))?;
        let packets = counts.split_whitespace().nth(1).context("no packets")?;
        total += packets.parse::<u64>()?;
    }
    Ok(total)
}
