//! What a first flight waits in the dispatcher, over sockets of this machine.
//!
//! ```text
//!   switch ......... this thread: notes the time, sends a flight when it is due, and sleeps until the next is
//!   dispatcher ..... a worker, as in the program; or nobody, and the flight goes to the replica directly
//!   replica ........ the kernel notes when a packet comes, so that nobody has to be awake for it
//! ```
//!
//! So neither sender nor receiver are in the worker's way, and nothing that they wait for is in the result.

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

use super::flights::{DISPATCHER, Kind, REPLICA, SWITCH, flight, number};
use super::worker::{Worker, open};
use crate::outbox::Outbox;
use crate::udp::Sender;

/// Handshakes in progress, and how long each is: one round trip between client and replica. By Little's law 25,000 begin in a second.
const IN_PROGRESS: u32 = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(40);
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the replica's socket is emptied.
const PAUSE: Duration = Duration::from_millis(1);

/// When flights begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A thousand handshakes are in progress, each begun at its own time: a Poisson process.
    InProgress,
    /// A thousand begin at the same time, and the next when all of these are forwarded.
    AtOnce,
}

impl Load {
    /// Flights of a round.
    const fn flights(self) -> u32 {
        match self {
            Self::InProgress => 25 * IN_PROGRESS,
            Self::AtOnce => IN_PROGRESS,
        }
    }
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Latency {
    /// From the sending of a flight's last packet until the replica has all of them, sorted: without dispatcher and through it.
    pub direct: Vec<Duration>,
    pub through: Vec<Duration>,
    /// Flights that began in a second.
    pub offered: f64,
    /// For how long the worker waited for a core that others had, for each flight.
    pub waited: Duration,
}

/// Measures in rounds, which go by either way in turn.
pub fn measure(load: Load, rounds: u32) -> Result<Latency> {
    // SAFETY: an int that the call reads. This thread sleeps to the microsecond, not to 50 of them.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    let (switch, replica) = (open(SWITCH)?, open(REPLICA)?);
    // A packet has its own time, where a train would have one for all of it.
    set_receive_offload(&replica, false)?;
    setsockopt(&replica, ReceiveTimestampns, &true)?;
    let flights = Flights::new(load);
    let mut found = Latency::default();
    let mut sending = Duration::ZERO;
    for _ in 0..rounds {
        let (took, _) = flights.run(&switch, &replica, REPLICA)?;
        found.direct.extend(took);
        // One that has seen none of them.
        let worker = Worker::start()?;
        let (took, seconds) = flights.run(&switch, &replica, DISPATCHER)?;
        found.through.extend(took);
        found.waited += worker.waited()?;
        sending += seconds;
    }
    let sent = rounds * load.flights();
    found.offered = f64::from(sent) / sending.as_secs_f64();
    found.waited /= sent;
    found.direct.sort_unstable();
    found.through.sort_unstable();
    Ok(found)
}

/// A round's flights, numbered from 0: half of them of one packet, half of two, as with a post-quantum key share.
struct Flights {
    packets: Vec<Vec<Vec<u8>>>,
    /// When each begins.
    due: Vec<Duration>,
}

impl Flights {
    fn new(load: Load) -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        let mut next = Duration::ZERO;
        let gap = ROUND_TRIP / IN_PROGRESS;
        let mut begin = || {
            if load == Load::InProgress {
                let uniform: f64 = random.random_range(f64::EPSILON..1.0);
                next += gap.mul_f64(-uniform.ln());
            }
            next
        };
        let kind = |number| [Kind::One, Kind::Two][number as usize % 2];
        Self {
            due: (0..load.flights()).map(|_| begin()).collect(),
            packets: (0..load.flights())
                .map(|number| flight(kind(number), number))
                .collect(),
        }
    }

    /// How long each flight was under way to `replica` by `to`, and how long sending took.
    fn run(
        &self,
        switch: &Socket,
        replica: &Socket,
        to: IpAddr,
    ) -> Result<(Vec<Duration>, Duration)> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| self.receive(replica, &over));
            let begun = Instant::now();
            let sent = self.send(switch, to);
            let sending = begun.elapsed();
            over.store(true, Ordering::Relaxed);
            let came = receiver.join();
            let came = came.map_err(|_| io::Error::other("the receiver failed"))??;
            let took = came.iter().zip(sent?).map(|(came, sent)| {
                came.duration_since(sent)
                    .context("the system's clock was set back: measure again")
            });
            Ok((took.collect::<Result<_>>()?, sending))
        })
    }

    /// Sends each flight when it is due, those that are due together as one batch; when the last packet of each was sent.
    fn send(&self, switch: &Socket, to: IpAddr) -> Result<Vec<SystemTime>> {
        let together = self.due.last() == Some(&Duration::ZERO);
        let (mut sender, mut out) = (Sender::new(!together), Outbox::default());
        let mut sent = Vec::with_capacity(self.packets.len());
        let start = Instant::now();
        for (packets, due) in self.packets.iter().zip(&self.due) {
            packets.iter().for_each(|packet| out.push(to, packet, &[]));
            if !together {
                thread::sleep(due.saturating_sub(start.elapsed()));
                sent.push(SystemTime::now());
                ensure!(
                    sender.send(switch, &mut out) == 0,
                    "the system does not send"
                );
            }
        }
        if together {
            sent.resize(self.packets.len(), SystemTime::now());
            ensure!(
                sender.send(switch, &mut out) == 0,
                "the system does not send"
            );
        }
        Ok(sent)
    }

    /// When the last packet of each flight came. Empties the socket now and then, until all are here.
    fn receive(&self, replica: &Socket, over: &AtomicBool) -> Result<Vec<SystemTime>> {
        let mut came = vec![UNIX_EPOCH; self.packets.len()];
        let mut missing: usize = self.packets.iter().map(Vec::len).sum();
        let mut buffer = [0; 2048];
        let mut patience = PATIENCE;
        while missing > 0 {
            while let Some((n, at)) = receive(replica, &mut buffer)? {
                let flight = number(&buffer[..n]).and_then(|flight| came.get_mut(flight));
                let came = flight.context("a packet came that is no flight's")?;
                *came = at.max(*came);
                missing -= 1;
            }
            thread::sleep(PAUSE);
            if over.load(Ordering::Relaxed) {
                patience = patience.saturating_sub(PAUSE);
            }
            ensure!(
                patience > Duration::ZERO,
                "{missing} packets were lost: have nothing else run, and set net.core.rmem_max to 4194304 or more"
            );
        }
        Ok(came)
    }
}

/// A packet's bytes, and when the kernel had it; nothing if none is there.
fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<(usize, SystemTime)>> {
    // One control message: its head of two words, seconds, and nanoseconds.
    let mut control = [0_u64; 4];
    let mut part = iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: plain data, of which all zeros are a value.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all pointers are to what outlives the call, with their lengths.
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
