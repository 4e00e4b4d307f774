// SPDX-License-Identifier: Apache-2.0
//! A thread of the data plane: it waits for frames, timers and the control plane, and never spins.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::TimerFd;
use parking_lot::MutexGuard;
use softswitch_pipeline::Nanos;

use super::entrance::Entrance;
use super::outlet::Report;
use super::packet_stream::PacketStream;
use super::shared::{Change, Shared};
use super::switching::Locked;
use crate::port::PortError;

const WAKE: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Number of consecutive batches after which a busy thread checks for other events.
const BATCHES_PER_LOOK: u32 = 64;

/// Interval at which the ports' drop counters are read while there is traffic.
const DROPS_READ_EVERY: Nanos = 1_000_000_000;

fn readable(data: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, data)
}

/// The state of a thread.
pub(super) struct Worker {
    index: usize,
    shared: Arc<Shared>,
    entrances: Vec<Entrance>,
    epoll: Epoll,
    events: Vec<EpollEvent>,
    timer: Arc<TimerFd>,
    /// The timer has expired, and the data plane does not know yet.
    expired: bool,
    /// There are other events than frames.
    due: bool,
    /// Ports with frames to send.
    leaving: Vec<usize>,
    spare: Vec<Vec<u8>>,
    drops_read_at: Nanos,
}

impl Worker {
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        entrances: Vec<Entrance>,
        timer: Arc<TimerFd>,
    ) -> anyhow::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("creating an epoll")?;
        epoll.add(&shared.handle.wakes[index], readable(WAKE))?;
        epoll.add(timer.as_fd(), readable(TIMER))?;
        for (i, entrance) in entrances.iter().enumerate() {
            epoll.add(entrance.receiver.poll_fd(), readable(i as u64))?;
        }
        Ok(Self {
            index,
            events: vec![EpollEvent::empty(); entrances.len() + 2],
            shared,
            entrances,
            epoll,
            timer,
            expired: false,
            due: false,
            leaving: Vec::new(),
            spare: Vec::new(),
            drops_read_at: 0,
        })
    }

    /// Runs until [`super::Handle::stop`].
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let mut batches = 0;
        while !self.shared.handle.stop.load(Ordering::Acquire) {
            let frames = self.fill();
            if !frames && !self.due {
                self.sleep()?;
            } else {
                self.turn()?;
                batches += 1;
                if batches % BATCHES_PER_LOOK == 0 {
                    self.look(EpollTimeout::ZERO)?;
                }
            }
        }
        self.read_drops();
        Ok(())
    }

    fn fill(&mut self) -> bool {
        for entrance in &mut self.entrances {
            entrance.filled = entrance.receiver.fill();
        }
        self.entrances.iter().any(|entrance| entrance.filled)
    }

    /// Waits for an event.
    fn sleep(&mut self) -> anyhow::Result<()> {
        let mut switching = self.shared.switching.lock();
        if switching.has_work() {
            self.due = true;
            return Ok(());
        }
        switching.sleep(self.index)?;
        drop(switching);
        self.look(EpollTimeout::NONE)
    }

    /// Checks for other events than frames.
    fn look(&mut self, timeout: EpollTimeout) -> anyhow::Result<()> {
        let n = match self.epoll.wait(&mut self.events, timeout) {
            Ok(n) => n,
            Err(nix::errno::Errno::EINTR) => return Ok(()),
            Err(e) => return Err(e).context("waiting for packets"),
        };
        let mut woken = false;
        for event in &self.events[..n] {
            match event.data() {
                WAKE => {
                    // The value does not matter: the request itself is stored elsewhere.
                    let _ = self.shared.handle.wakes[self.index].read();
                    (woken, self.due) = (true, true);
                }
                TIMER => {
                    let _ = self.timer.wait();
                    (self.expired, self.due) = (true, true);
                }
                i if event.events().contains(EpollFlags::EPOLLERR) => {
                    let entrance = &mut self.entrances[i as usize];
                    let Some(error) = entrance.receiver.failure() else {
                        continue;
                    };
                    if !matches!(error, PortError::Down) {
                        // If it is not there any more, so much the better.
                        let _ = self.epoll.delete(entrance.receiver.poll_fd());
                    }
                    self.shared.switching.lock().failed(entrance.slot, error);
                }
                _ => {}
            }
        }
        // The events refer to the ports before the changes.
        if woken { self.change() } else { Ok(()) }
    }

    /// Attaches and detaches ports.
    fn change(&mut self) -> anyhow::Result<()> {
        let changes = std::mem::take(&mut *self.shared.changes[self.index].lock());
        for change in changes {
            match change {
                Change::Attach(entrance) => {
                    let event = readable(self.entrances.len() as u64);
                    self.epoll.add(entrance.receiver.poll_fd(), event)?;
                    self.entrances.push(entrance);
                    self.events.push(EpollEvent::empty());
                }
                Change::Detach(slot) => self.remove_entrance(slot),
            }
        }
        Ok(())
    }

    fn remove_entrance(&mut self, slot: usize) {
        let Some(at) = self.entrances.iter().position(|e| e.slot == slot) else {
            return;
        };
        let entrance = self.entrances.swap_remove(at);
        // A failed port was deleted before.
        let _ = self.epoll.delete(entrance.receiver.poll_fd());
        if let Some(moved) = self.entrances.get(at) {
            let fd = moved.receiver.poll_fd();
            // A failed port does not have events.
            let _ = self.epoll.modify(fd, &mut readable(at as u64));
        }
    }

    /// Handles the events under the data plane's lock, then sends the frames.
    fn turn(&mut self) -> anyhow::Result<()> {
        let handle = &self.shared.handle;
        let packet_outs = match self.index {
            0 => std::mem::take(&mut *handle.packet_outs.lock()),
            _ => Default::default(),
        };
        let stream = handle.packet_stream.as_ref().filter(|_| self.index == 0);
        let streamed = stream.map(PacketStream::take).unwrap_or_default();
        let filled = self.entrances.iter_mut().filter(|e| e.filled);
        let mut switching = self.shared.switching.lock();
        switching.begin(
            self.index,
            std::mem::take(&mut self.expired),
            &mut self.spare,
        );
        let now;
        if let Some(shared) = switching.pipeline() {
            let mut locked = Locked {
                shared: &shared,
                guard: shared.lock(),
            };
            // Read under the locks, so that time does not go back from one thread's turn to the next.
            now = handle.now();
            switching.serve_queues(&mut locked, now);
            if let Some(cpu_port) = handle.cpu_port {
                for frame in packet_outs {
                    switching.packet_out(&mut locked, cpu_port, &frame, now);
                }
            }
            switching.inject(&mut locked, now);
            for packet in streamed {
                switching.stream_packet(&mut locked, &packet, now);
            }
            for entrance in filled {
                switching.receive(&mut locked, entrance.slot, &mut *entrance.receiver, now);
            }
            switching.recirculate(&mut locked, now);
            switching.generate(&mut locked, now);
            handle.write_trace(&mut locked.guard);
            let digests = locked.guard.take_digests();
            // A waiting control plane gets the lock next.
            MutexGuard::unlock_fair(locked.guard);
            if !digests.is_empty() {
                switching.send_digests(&shared, digests);
            }
        } else {
            now = handle.now();
            filled.for_each(|e| switching.discard(e.slot, &mut *e.receiver));
        }
        self.due = switching.has_work();
        if let Some(stream) = stream.filter(|_| !self.due) {
            stream.idle();
        }
        switching.end(&self.shared.outlets, &mut self.leaving)?;
        drop(switching);
        for slot in self.leaving.drain(..) {
            let Some(outlet) = self.shared.outlets[slot].get() else {
                continue;
            };
            if let Some(report) = outlet.send(&mut self.spare) {
                let mut switching = self.shared.switching.lock();
                match report {
                    Report::Failed(error) => switching.failed(slot, error),
                    // Another thread may have sent the frames in the meantime.
                    Report::Held if outlet.holds() => switching.held(slot, handle.now())?,
                    Report::Held => switching.released(slot, handle.now())?,
                }
            }
        }
        if now - self.drops_read_at >= DROPS_READ_EVERY {
            self.drops_read_at = now;
            self.read_drops();
        }
        Ok(())
    }

    fn read_drops(&mut self) {
        for entrance in &mut self.entrances {
            entrance.counters.rx_kernel.add(entrance.receiver.drops());
        }
    }
}
