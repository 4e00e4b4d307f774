// SPDX-License-Identifier: Apache-2.0
//! A thread of the data plane: it waits for frames, timers and the control plane, and never spins.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::TimerFd;
use softswitch_pipeline::Nanos;

use super::current::Current;
use super::entrance::Entrance;
use super::outlet::Report;
use super::packet_stream::PacketStream;
use super::shared::{Change, Shared};
use super::switching::Switching;
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
    current: Current,
    switching: Switching,
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
            current: Current::default(),
            switching: Switching::new(index),
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
        if self.switching.has_work(&self.shared) {
            self.due = true;
            return Ok(());
        }
        self.shared.sleep(self.index)?;
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
                    let port = self.shared.ports.get(entrance.slot);
                    self.shared.failed(port, error);
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

    /// Handles the events, then sends the frames.
    fn turn(&mut self) -> anyhow::Result<()> {
        let expired = std::mem::take(&mut self.expired);
        self.shared.alarms[self.index].lock().awake(expired);
        if self.current.refresh(&self.shared, self.index) {
            self.switching.refresh(&self.shared);
        }
        self.note_working_ports();
        let now = self.switch()?;
        self.send()?;
        if now - self.drops_read_at >= DROPS_READ_EVERY {
            self.drops_read_at = now;
            self.read_drops();
        }
        Ok(())
    }

    /// Notes that the ports with frames work.
    fn note_working_ports(&self) {
        let filled = self.entrances.iter().filter(|e| e.filled);
        for entrance in filled.filter(|_| self.current.is_some()) {
            let port = self.shared.ports.get(entrance.slot);
            if !port.is_up() {
                self.shared.port_works(port);
            }
        }
    }

    /// Takes the waiting packets through the switch, and returns the time.
    fn switch(&mut self) -> anyhow::Result<Nanos> {
        let (shared, switching) = (&*self.shared, &mut self.switching);
        let handle = &shared.handle;
        let packet_outs = match self.index {
            0 => std::mem::take(&mut *handle.packet_outs.lock()),
            _ => Default::default(),
        };
        let stream = handle.packet_stream.as_ref().filter(|_| self.index == 0);
        let streamed = stream.map(PacketStream::take).unwrap_or_default();
        let filled = self.entrances.iter_mut().filter(|e| e.filled);
        let now;
        if let Some(mut entered) = self.current.enter(shared) {
            // Read inside the pipeline, so that time does not go back from one thread's turn to the next, if they take turns.
            now = handle.now();
            switching.serve_queues(&mut entered, now);
            if let Some(cpu_port) = handle.cpu_port {
                for frame in packet_outs {
                    switching.packet_out(&mut entered, cpu_port, &frame, now);
                }
            }
            switching.inject(&mut entered, now);
            for packet in streamed {
                switching.stream_packet(&mut entered, &packet, now);
            }
            for entrance in filled {
                switching.receive(&mut entered, entrance.slot, &mut *entrance.receiver, now);
            }
            switching.recirculate(&mut entered, now);
            switching.generate(&mut entered, now);
            entered.leave();
            switching.finish_elsewhere(shared);
        } else {
            now = handle.now();
            filled.for_each(|e| Switching::discard(shared.ports.get(e.slot), &mut *e.receiver));
        }
        self.due = switching.has_work(shared);
        if let Some(stream) = stream.filter(|_| !self.due) {
            stream.idle();
        }
        switching.end(shared)?;
        Ok(now)
    }

    /// Sends frames to the ports.
    fn send(&mut self) -> anyhow::Result<()> {
        let shared = &*self.shared;
        while let Some((slot, spare)) = self.switching.next_leaving() {
            let port = shared.ports.get(slot);
            match port.outlet.send(spare) {
                None => {}
                Some(Report::Failed(error)) => shared.failed(port, error),
                Some(Report::Held) => shared.hold_or_release(port)?,
            }
        }
        Ok(())
    }

    fn read_drops(&mut self) {
        for entrance in &mut self.entrances {
            entrance.counters.rx_kernel.add(entrance.receiver.drops());
        }
    }
}
