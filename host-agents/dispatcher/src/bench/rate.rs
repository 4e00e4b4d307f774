//! What a worker's core takes, sockets and system included: a switch that sends, the worker, a replica that counts what comes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Result, ensure};
use socket2::Socket;

use super::flights::{DISPATCHER, Kind, REPLICA, SWITCH, flight};
use super::worker::{Worker, open};
use crate::outbox::Outbox;
use crate::udp::{Receiver, Sender};

/// Flights of a measurement, and how many are under way.
const FLIGHTS: usize = 60_000;
const WINDOW: usize = 256;
const PATIENCE: Duration = Duration::from_secs(30);

/// How many packets came to the replica.
#[derive(Default)]
struct Replica {
    came: AtomicUsize,
    over: AtomicBool,
}

impl Replica {
    fn take(&self, socket: &Socket) -> io::Result<()> {
        let mut receiver = Receiver::default();
        while !self.over.load(Ordering::Relaxed) {
            match receiver.receive(socket) {
                Ok(()) => {
                    let came = receiver.datagrams().count();
                    self.came.fetch_add(came, Ordering::Release);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until all but `left` of `sent` have come.
    fn wait(&self, sent: usize, left: usize, end: Instant) -> Result<()> {
        while sent - self.came.load(Ordering::Acquire) > left {
            ensure!(Instant::now() < end, "packets were lost on this machine");
            thread::yield_now();
        }
        Ok(())
    }
}

/// Packets per second of the worker's core time, one by one or as trains.
pub fn rate(singly: bool) -> Result<f64> {
    let (switch, end) = (open(SWITCH)?, open(REPLICA)?);
    end.set_read_timeout(Some(Duration::from_millis(20)))?;
    let packets: Vec<_> = (0..FLIGHTS as u32)
        .flat_map(|number| flight(Kind::One, number))
        .collect();
    let worker = Worker::start()?;
    let replica = Replica::default();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| replica.take(&end));
        let took = send(&packets, &switch, &replica, &worker, singly);
        replica.over.store(true, Ordering::Relaxed);
        let received = receiver.join();
        received.map_err(|_| io::Error::other("the receiver failed"))??;
        Ok(FLIGHTS as f64 / took?.as_secs_f64())
    })
}

/// The core time that the worker takes for all flights.
fn send(
    packets: &[Vec<u8>],
    switch: &Socket,
    replica: &Replica,
    worker: &Worker,
    singly: bool,
) -> Result<Duration> {
    let (mut sender, mut out) = (Sender::new(singly), Outbox::default());
    let (before, end) = (worker.core_time(), Instant::now() + PATIENCE);
    let mut sent = 0;
    for batch in packets.chunks(32) {
        batch
            .iter()
            .for_each(|packet| out.push(DISPATCHER, packet, &[]));
        let unsent = sender.send(switch, &mut out);
        ensure!(unsent == 0, "the system does not send");
        sent += batch.len();
        replica.wait(sent, WINDOW, end)?;
    }
    replica.wait(sent, 0, end)?;
    Ok(worker.core_time() - before)
}
