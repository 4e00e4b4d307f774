//! Over sockets of loopback addresses: a switch that sends, a worker, a replica that takes what comes.

use std::os::unix::thread::JoinHandleExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{hint, io, thread};

use anyhow::{Context as _, Result, ensure};
use socket2::Socket;

use super::core_time;
use super::flights::{DISPATCHER, Kind, REPLICA, SWITCH, flight, number, view};
use crate::choice::tunnel_end;
use crate::config::Limits;
use crate::counts::Counts;
use crate::engine::Engine;
use crate::outbox::Outbox;
use crate::udp::{Receiver, Sender, bind};
use crate::worker::{Views, serve};

/// Flights of a measurement of the rate, and how many are under way.
const FLIGHTS: usize = 60_000;
const WINDOW: usize = 256;
/// Concurrent handshakes, and how long each takes: 25,000 new ones a second.
const HANDSHAKES: usize = 1000;
const HANDSHAKE: Duration = Duration::from_millis(40);
const PACED: usize = 25_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether packets pass the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Direct,
    Dispatcher,
}

/// The replica's end: how many packets came, and when each.
struct Replica {
    came: AtomicUsize,
    at: Vec<std::sync::OnceLock<Instant>>,
    over: AtomicBool,
}

impl Replica {
    fn take(&self, socket: &Socket) -> io::Result<()> {
        let mut receiver = Receiver::default();
        while !self.over.load(Ordering::Relaxed) {
            match receiver.receive(socket) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            for (_, packet) in receiver.datagrams() {
                if let Some(at) = number(packet).and_then(|n| self.at.get(n)) {
                    let _ = at.set(now);
                }
                self.came.fetch_add(1, Ordering::Release);
            }
        }
        Ok(())
    }
}

/// What one measurement has: `send` gets the switch's socket and the replica, and says what came of it. The worker ends with
/// the process.
fn with<T>(
    flights: usize,
    send: impl FnOnce(&Socket, &Replica, libc::clockid_t) -> Result<T>,
) -> Result<T> {
    let open =
        |address| bind(tunnel_end(address)).with_context(|| format!("{address} cannot be opened"));
    let (switch, dispatcher, end) = (open(SWITCH)?, open(DISPATCHER)?, open(REPLICA)?);
    end.set_read_timeout(Some(Duration::from_millis(20)))?;
    let views = Arc::new(Views::default());
    views.publish(Arc::new(view()));
    let counts = Arc::new(Counts::default());
    let engine = Engine::new(&Limits::default(), counts.clone());
    let follower = views.follow();
    // A timeout ends the worker: it waits no longer than the measurement's patience for anything.
    dispatcher.set_read_timeout(Some(Duration::from_secs(1)))?;
    let worker = thread::spawn(move || serve(&dispatcher, engine, follower, &counts));
    let mut clock = 0;
    // SAFETY: the thread has not been joined.
    let error = unsafe { libc::pthread_getcpuclockid(worker.as_pthread_t(), &raw mut clock) };
    ensure!(
        error == 0,
        "no clock of a thread: {}",
        io::Error::from_raw_os_error(error)
    );
    let replica = Replica {
        came: AtomicUsize::new(0),
        at: (0..flights).map(|_| std::sync::OnceLock::new()).collect(),
        over: AtomicBool::new(false),
    };
    let result = thread::scope(|scope| {
        let receiver = scope.spawn(|| replica.take(&end));
        let result = send(&switch, &replica, clock);
        replica.over.store(true, Ordering::Relaxed);
        receiver
            .join()
            .map_err(|_| io::Error::other("the receiver failed"))??;
        result
    });
    let _ = worker.join();
    result
}

/// Packets per second of the worker's core time, sockets and system included, one by one or as trains.
pub fn rate(singly: bool) -> Result<f64> {
    with(FLIGHTS, |switch, replica, clock| {
        let mut packets = Vec::with_capacity(FLIGHTS);
        packets.extend((0..FLIGHTS as u32).flat_map(|number| flight(Kind::One, number)));
        let (mut sender, mut out) = (Sender::new(singly), Outbox::default());
        let before = core_time(clock);
        let end = Instant::now() + PATIENCE;
        let mut sent = 0;
        for batch in packets.chunks(32) {
            batch
                .iter()
                .for_each(|packet| out.push(DISPATCHER, packet, &[]));
            ensure!(
                sender.send(switch, &mut out) == 0,
                "the system does not send"
            );
            sent += batch.len();
            while sent - replica.came.load(Ordering::Acquire) > WINDOW {
                ensure!(Instant::now() < end, "packets were lost on this machine");
                thread::yield_now();
            }
        }
        while replica.came.load(Ordering::Acquire) < sent {
            ensure!(Instant::now() < end, "packets were lost on this machine");
            thread::yield_now();
        }
        Ok(sent as f64 / (core_time(clock) - before).as_secs_f64())
    })
}

/// How long each packet was under way, sorted, while a thousand handshakes are.
pub fn latency(way: Way) -> Result<Vec<Duration>> {
    with(PACED, |switch, replica, _| {
        let packets: Vec<_> = (0..PACED as u32)
            .flat_map(|number| flight(Kind::One, number))
            .collect();
        let to = match way {
            Way::Direct => REPLICA,
            Way::Dispatcher => DISPATCHER,
        };
        let gap = HANDSHAKE / HANDSHAKES as u32;
        let (mut sender, mut out) = (Sender::new(true), Outbox::default());
        let mut sent = Vec::with_capacity(PACED);
        let start = Instant::now();
        for (n, packet) in (0..).zip(&packets) {
            while start.elapsed() < gap * n {
                hint::spin_loop();
            }
            out.push(to, packet, &[]);
            sent.push(Instant::now());
            sender.send(switch, &mut out);
        }
        let end = Instant::now() + Duration::from_secs(1);
        while replica.came.load(Ordering::Acquire) < PACED && Instant::now() < end {
            thread::yield_now();
        }
        let came = replica.at.iter().map(std::sync::OnceLock::get);
        let mut took: Vec<_> = came
            .zip(sent)
            .filter_map(|(came, sent)| Some(*came? - sent))
            .collect();
        ensure!(
            took.len() * 100 >= PACED * 99,
            "{} of {PACED} packets were lost on this machine",
            PACED - took.len()
        );
        took.sort_unstable();
        Ok(took)
    })
}
