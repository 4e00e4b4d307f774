// SPDX-License-Identifier: Apache-2.0
//! Latency that the dispatcher adds to first flights, measured over loopback sockets.
//!
//! ```text
//!   switch ......... this thread: records the time, sends each flight when it is due, and sleeps until the next
//!   dispatcher ..... a worker as in the program; absent in the reference measurement
//!   replica ........ the kernel timestamps each packet, so that no thread has to be awake
//! ```
//!
//! So sender and receiver take no CPU time from the worker, and the result does not include their scheduling delays.

use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use frontage_daemon::socket::set_receive_offload;
use libc::{iovec, msghdr};
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use socket2::Socket;

use super::worker::{Worker, open};
use super::workload::{DISPATCHER, Kind, REPLICA, SWITCH, flight, number};
use frontage_dispatcher::outbox::Outbox;
use frontage_dispatcher::udp::Sender;

/// Number of concurrent handshakes. By Little's law, 25,000 start per second.
const CONCURRENT: u32 = 1000;
/// Duration of a handshake: one round trip between client and replica.
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// Time limit for the last packets of a round.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the replica's socket is emptied.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Arrival process of flights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A Poisson process with a thousand concurrent handshakes on average.
    Poisson,
    /// Bursts of a thousand flights, each after the previous one was forwarded.
    Burst,
}

impl Load {
    /// Returns the number of flights in a round.
    const fn flights(self) -> u32 {
        match self {
            Self::Poisson => 25 * CONCURRENT,
            Self::Burst => CONCURRENT,
        }
    }
}

/// Results of a measurement.
#[derive(Debug, Default)]
pub struct Latency {
    /// Time from sending the last packet of a flight until the replica has all its packets, without the dispatcher; sorted.
    pub direct: Vec<Duration>,
    /// The same through the dispatcher; sorted.
    pub through: Vec<Duration>,
    /// Flights started per second.
    pub offered: f64,
    /// Mean time per flight for which the worker waited for a CPU.
    pub scheduling_delay: Duration,
}

/// Measures in rounds, alternately without and with the dispatcher.
pub fn measure(load: Load, rounds: u32) -> Result<Latency> {
    // Reduce the timer slack of this thread from 50 us to 1 ns.
    // SAFETY: the call only reads an integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    let (switch, replica) = (open(SWITCH)?, open(REPLICA)?);
    // Without GRO, each packet has its own timestamp.
    set_receive_offload(&replica, false)?;
    setsockopt(&replica, ReceiveTimestampns, &true)?;
    let flights = Flights::new(load);
    let mut latency = Latency::default();
    let mut sending = Duration::ZERO;
    for _ in 0..rounds {
        let (latencies, _) = flights.run(&switch, &replica, REPLICA)?;
        latency.direct.extend(latencies);
        // A new worker knows none of the flights.
        let worker = Worker::start()?;
        let (latencies, duration) = flights.run(&switch, &replica, DISPATCHER)?;
        latency.through.extend(latencies);
        latency.scheduling_delay += worker.scheduling_delay()?;
        sending += duration;
    }
    let sent = rounds * load.flights();
    latency.offered = f64::from(sent) / sending.as_secs_f64();
    latency.scheduling_delay /= sent;
    latency.direct.sort_unstable();
    latency.through.sort_unstable();
    Ok(latency)
}

/// The flights of a round, numbered from 0: half of them have one packet, half two, as with a post-quantum key share.
struct Flights {
    packets: Vec<Vec<Vec<u8>>>,
    /// Start time of each flight.
    due: Vec<Duration>,
}

impl Flights {
    fn new(load: Load) -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        let mut next = Duration::ZERO;
        let gap = ROUND_TRIP / CONCURRENT;
        let mut next_start = || {
            if load == Load::Poisson {
                let uniform: f64 = random.random_range(f64::EPSILON..1.0);
                next += gap.mul_f64(-uniform.ln());
            }
            next
        };
        let kind = |number| [Kind::One, Kind::Two][number as usize % 2];
        Self {
            due: (0..load.flights()).map(|_| next_start()).collect(),
            packets: (0..load.flights())
                .map(|number| flight(kind(number), number))
                .collect(),
        }
    }

    /// Sends all flights to `to`; returns the latency of each to `replica`, and the duration of sending.
    fn run(
        &self,
        switch: &Socket,
        replica: &Socket,
        to: IpAddr,
    ) -> Result<(Vec<Duration>, Duration)> {
        let is_sent = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| self.receive(replica, &is_sent));
            let started = Instant::now();
            let sent = self.send(switch, to);
            let sending = started.elapsed();
            is_sent.store(true, Ordering::Relaxed);
            let received = receiver.join();
            let received =
                received.map_err(|_| io::Error::other("the receiver thread panicked"))??;
            let latencies = received.iter().zip(sent?).map(|(received, sent)| {
                received
                    .duration_since(sent)
                    .context("the system clock was set back: measure again")
            });
            Ok((latencies.collect::<Result<_>>()?, sending))
        })
    }

    /// Sends each flight when it is due, or all in one batch if they are due at once. Returns when the last packet of each was sent.
    fn send(&self, switch: &Socket, to: IpAddr) -> Result<Vec<SystemTime>> {
        let is_burst = self.due.last() == Some(&Duration::ZERO);
        let (mut sender, mut out) = (Sender::new(is_burst), Outbox::default());
        let mut sent = Vec::with_capacity(self.packets.len());
        let start = Instant::now();
        for (packets, due) in self.packets.iter().zip(&self.due) {
            packets.iter().for_each(|packet| out.push(to, packet, &[]));
            if !is_burst {
                thread::sleep(due.saturating_sub(start.elapsed()));
                sent.push(SystemTime::now());
                ensure!(
                    sender.send(switch, &mut out) == 0,
                    "the system does not accept packets for sending"
                );
            }
        }
        if is_burst {
            sent.resize(self.packets.len(), SystemTime::now());
            ensure!(
                sender.send(switch, &mut out) == 0,
                "the system does not accept packets for sending"
            );
        }
        Ok(sent)
    }

    /// Receives all packets, polling the socket. Returns when the last packet of each flight arrived.
    fn receive(&self, replica: &Socket, is_sent: &AtomicBool) -> Result<Vec<SystemTime>> {
        let mut arrivals = vec![UNIX_EPOCH; self.packets.len()];
        let mut missing: usize = self.packets.iter().map(Vec::len).sum();
        let mut buffer = [0; 2048];
        let mut time_left = TIMEOUT;
        while missing > 0 {
            while let Some((n, at)) = receive(replica, &mut buffer)? {
                let arrival = number(&buffer[..n]).and_then(|flight| arrivals.get_mut(flight));
                let arrival = arrival.context("a packet belongs to no flight")?;
                *arrival = at.max(*arrival);
                missing -= 1;
            }
            thread::sleep(POLL_INTERVAL);
            if is_sent.load(Ordering::Relaxed) {
                time_left = time_left.saturating_sub(POLL_INTERVAL);
            }
            ensure!(
                time_left > Duration::ZERO,
                "{missing} packets were lost: stop other programs, and set net.core.rmem_max to 4194304 or more"
            );
        }
        Ok(arrivals)
    }
}

/// Receives a packet without waiting; returns its length and the kernel's timestamp.
fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<(usize, SystemTime)>> {
    // One control message: a header of two words, seconds and nanoseconds.
    let mut control = [0_u64; 4];
    let mut part = iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: msghdr is plain data, for which zeros are valid.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all pointers have correct lengths and outlive the call.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    if n < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        };
    }
    let [_, _, seconds, nanoseconds] = control;
    let at = UNIX_EPOCH + Duration::new(seconds, nanoseconds as u32);
    Ok(Some((n as usize, at)))
}
