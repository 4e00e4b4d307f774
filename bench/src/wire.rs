//! Packets per second through a switch: sent by packet sockets into the far ends of its links, counted where they
//! arrive by the interfaces themselves, which costs no receiver any time.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

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
    port: u32,
    interface: String,
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
    let mut lossless = 0.0;
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
            lossless = f64::max(lossless, run.received_rate());
        } else {
            lossy = Some(rate);
        }
    }
    Ok(Rates {
        lossless,
        overload: overload.received_rate(),
    })
}

struct Run {
    sent: u64,
    received: u64,
    /// Until the last packet arrived: what waits in the switch when sending ends is no throughput of that time.
    receiving: Duration,
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
    sockets: HashMap<u32, OwnedFd>,
    interfaces: Vec<&'a str>,
    /// The next packet.
    at: usize,
}

impl<'a> Sender<'a> {
    fn open(packets: &'a [Packet], attachments: &'a [Attachment]) -> Result<Self> {
        // Sleep to the microsecond; 50 us is the system's own habit.
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
        let sockets: HashMap<_, _> = attachments
            .iter()
            .map(|a| Ok((a.port, open(&a.interface)?)))
            .collect::<Result<_>>()?;
        for port in packets.iter().flat_map(|p| [p.port, p.out_port]) {
            ensure!(
                sockets.contains_key(&port),
                "the traffic needs a link at port {port}"
            );
        }
        let interfaces = attachments.iter().map(|a| a.interface.as_str()).collect();
        Ok(Self {
            packets,
            sockets,
            interfaces,
            at: 0,
        })
    }

    /// Sends at this many packets a second, or as many as can be, and waits until no more arrive.
    fn run(&mut self, rate: f64) -> Result<Run> {
        let burst = ((rate * APART) as usize).clamp(1, OVERLOAD_BURST);
        let before = received(&self.interfaces)?;
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < RUN {
            let due = Duration::from_secs_f64(sent as f64 / rate);
            if let Some(wait) = due.checked_sub(start.elapsed()) {
                sleep(wait);
            }
            sent += self.send(burst)?;
        }
        let (mut count, mut receiving) = (received(&self.interfaces)?, start.elapsed());
        while start.elapsed() < receiving + QUIET {
            sleep(LOOK);
            let now = received(&self.interfaces)?;
            if now != count {
                (count, receiving) = (now, start.elapsed());
            }
        }
        Ok(Run {
            sent,
            received: count - before,
            receiving,
        })
    }

    /// Sends the next `count` packets, one system call a port.
    fn send(&mut self, count: usize) -> Result<u64> {
        let end = (self.at + count).min(self.packets.len());
        let burst = &self.packets[self.at..end];
        self.at = end % self.packets.len();
        for (port, socket) in &self.sockets {
            let frames: Vec<&[u8]> = burst
                .iter()
                .filter(|p| p.port == *port)
                .map(|p| p.frame.as_slice())
                .collect();
            send_all(socket, &frames).with_context(|| format!("sending to port {port}"))?;
        }
        Ok(burst.len() as u64)
    }
}

/// A packet socket that only sends, past the interface's queue.
fn open(interface: &str) -> Result<OwnedFd> {
    let name = CString::new(interface)?;
    // SAFETY: a zero-terminated string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    ensure!(
        index != 0,
        "there is no interface {interface} in this network namespace"
    );
    // SAFETY: plain system call; the descriptor is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error()).context("opening a packet socket; run as root");
    }
    // SAFETY: a new descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let bypass: libc::c_int = 1;
    // SAFETY: pointer and size are those of `bypass`.
    let done = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const bypass).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(done).context("PACKET_QDISC_BYPASS")?;
    // SAFETY: all zeros are a valid address; protocol zero receives nothing.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = i32::try_from(index)?;
    // SAFETY: pointer and size are those of `address`.
    let done = unsafe {
        libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(done).with_context(|| format!("binding to {interface}"))?;
    Ok(socket)
}

fn send_all(socket: &OwnedFd, frames: &[&[u8]]) -> io::Result<()> {
    let mut parts: Vec<libc::iovec> = frames
        .iter()
        .map(|f| libc::iovec {
            iov_base: f.as_ptr().cast_mut().cast(),
            iov_len: f.len(),
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|part| {
            // SAFETY: all zeros are a valid message.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    let mut sent = 0;
    while sent < messages.len() {
        let left = &mut messages[sent..];
        // SAFETY: the messages point to `parts`, and those to `frames`; both live on, and sending changes neither.
        let n = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                left.as_mut_ptr(),
                left.len() as libc::c_uint,
                0,
            )
        };
        check(n)?;
        sent += n as usize;
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
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
