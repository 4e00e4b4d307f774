// SPDX-License-Identifier: Apache-2.0
//! Throughput of one core with sockets: a switch sends, a worker forwards, and a replica counts packets.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Result, ensure};
use socket2::Socket;

use super::worker::{Worker, open};
use super::workload::{DISPATCHER, Kind, REPLICA, SWITCH, flight};
use frontage_dispatcher::outbox::Outbox;
use frontage_dispatcher::udp::{Receiver, Sender};

/// Number of flights in a measurement.
const FLIGHTS: usize = 60_000;
/// Maximum number of packets in flight.
const WINDOW: usize = 256;
/// Time limit for a measurement.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Counts the packets that reach the replica.
#[derive(Default)]
struct Replica {
    received: AtomicUsize,
    is_done: AtomicBool,
}

impl Replica {
    fn receive(&self, socket: &Socket) -> io::Result<()> {
        let mut receiver = Receiver::default();
        while !self.is_done.load(Ordering::Relaxed) {
            match receiver.receive(socket) {
                Ok(()) => {
                    let received = receiver.datagrams().count();
                    self.received.fetch_add(received, Ordering::Release);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until at most `in_flight` of the `sent` packets are missing.
    fn wait(&self, sent: usize, in_flight: usize, deadline: Instant) -> Result<()> {
        while sent - self.received.load(Ordering::Acquire) > in_flight {
            ensure!(Instant::now() < deadline, "packets were lost on loopback");
            thread::yield_now();
        }
        Ok(())
    }
}

/// Measures packets per second of the worker's CPU time, with or without GSO at the sender.
pub fn rate(gso: bool) -> Result<f64> {
    let (switch, endpoint) = (open(SWITCH)?, open(REPLICA)?);
    endpoint.set_read_timeout(Some(Duration::from_millis(20)))?;
    let packets: Vec<_> = (0..FLIGHTS as u32)
        .flat_map(|number| flight(Kind::One, number))
        .collect();
    let worker = Worker::start()?;
    let replica = Replica::default();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| replica.receive(&endpoint));
        let cpu_time = send(&packets, &switch, &replica, &worker, gso);
        replica.is_done.store(true, Ordering::Relaxed);
        let received = receiver.join();
        received.map_err(|_| io::Error::other("the receiver thread panicked"))??;
        Ok(FLIGHTS as f64 / cpu_time?.as_secs_f64())
    })
}

/// Sends all packets; returns the CPU time of the worker.
fn send(
    packets: &[Vec<u8>],
    switch: &Socket,
    replica: &Replica,
    worker: &Worker,
    gso: bool,
) -> Result<Duration> {
    let (mut sender, mut out) = (Sender::new(gso), Outbox::default());
    let (before, deadline) = (worker.cpu_time(), Instant::now() + TIMEOUT);
    let mut sent = 0;
    for batch in packets.chunks(32) {
        batch
            .iter()
            .for_each(|packet| out.push(DISPATCHER, packet, &[]));
        let unsent = sender.send(switch, &mut out);
        ensure!(
            unsent == 0,
            "the system does not accept packets for sending"
        );
        sent += batch.len();
        replica.wait(sent, WINDOW, deadline)?;
    }
    replica.wait(sent, 0, deadline)?;
    Ok(worker.cpu_time() - before)
}
