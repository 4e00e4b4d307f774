//! The data plane's thread: waits for frames, timers and the control plane, and never spins.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use parking_lot::MutexGuard;
use softswitch_pipeline::Nanos;
use tokio::sync::oneshot;

use super::counters::PortCounters;
use super::switching::{Locked, Switching};
use super::{Handle, Setup, SharedPipeline};
use crate::port::PortError;

const WAKE: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// How often, while there is traffic, the kernel is asked how many frames it dropped.
const DROPS_READ_EVERY: Nanos = 1_000_000_000;

/// A data plane, ready to run.
pub struct Engine {
    switching: Switching,
    handle: Arc<Handle>,
    epoll: Epoll,
    timer: TimerFd,
    timer_at: Option<Nanos>,
    pipeline: Option<SharedPipeline>,
    version: u64,
    drops_read_at: Nanos,
}

/// A port as others see it.
#[derive(Debug, Clone)]
pub struct PortView {
    /// Its number.
    pub number: u32,
    /// Its interface's name.
    pub name: String,
    /// Its counters.
    pub counters: Arc<PortCounters>,
}

impl Engine {
    /// Puts a data plane together.
    ///
    /// # Errors
    /// If the kernel refuses a descriptor.
    pub fn new(setup: Setup) -> anyhow::Result<Self> {
        let handle =
            Arc::new(Handle::new(setup.cpu_port, setup.trace).context("creating an eventfd")?);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("creating an epoll")?;
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .context("creating a timer")?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        epoll.add(handle.wake_fd(), readable(WAKE))?;
        epoll.add(timer.as_fd(), readable(TIMER))?;
        let switching = Switching::new(setup.ports, Arc::clone(&handle), setup.events, setup.seed);
        for (slot, port) in switching.ports.iter().enumerate() {
            epoll.add(port.io.poll_fd(), readable(slot as u64))?;
        }
        Ok(Self {
            switching,
            handle,
            epoll,
            timer,
            timer_at: None,
            pipeline: None,
            version: 0,
            drops_read_at: 0,
        })
    }

    /// The handle by which others reach the data plane.
    pub fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    /// The ports, to watch their counters.
    pub fn ports(&self) -> Vec<PortView> {
        let views = self.switching.ports.iter().map(|port| PortView {
            number: port.number,
            name: port.name.clone(),
            counters: Arc::clone(&port.counters),
        });
        views.collect()
    }

    /// Runs in a thread of its own until [`Handle::stop`]; the receiver tells how it ended, and is
    /// closed without a word if the thread panicked.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn spawn(mut self) -> anyhow::Result<oneshot::Receiver<anyhow::Result<()>>> {
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new()
            .name("dataplane".into())
            .spawn(move || {
                let result = self.run();
                // Nobody listens if the whole switch is ending.
                let _ = ended.send(result);
            })
            .context("starting the data plane's thread")?;
        Ok(end)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut events = vec![EpollEvent::empty(); self.switching.ports.len() + 2];
        let mut ready = Vec::new();
        while !self.handle.stop.load(Ordering::Acquire) {
            let timeout = match self.switching.has_work() {
                true => EpollTimeout::ZERO,
                false => EpollTimeout::NONE,
            };
            let n = match self.epoll.wait(&mut events, timeout) {
                Ok(n) => n,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e).context("waiting for packets"),
            };
            ready.clear();
            for event in &events[..n] {
                match event.data() {
                    WAKE => drop(self.handle.wake.read()),
                    TIMER => {
                        // It is set again below if anything is left to be done.
                        let _ = self.timer.wait();
                        self.timer_at = None;
                    }
                    slot => ready.push(slot as usize),
                }
            }
            self.turn(&ready);
            self.arm_timer()?;
        }
        self.read_kernel_drops();
        Ok(())
    }

    /// Handles what is there.
    fn turn(&mut self, ready: &[usize]) {
        for &slot in ready {
            match self.switching.ports[slot].io.fill() {
                Ok(0) => {}
                Ok(_) => self.set_up(slot, true),
                Err(error) => self.failed(slot, error),
            }
        }
        self.take_new_pipeline();
        let now = self.handle.now();
        if now - self.drops_read_at >= DROPS_READ_EVERY {
            self.drops_read_at = now;
            self.read_kernel_drops();
        }
        let packet_outs = std::mem::take(&mut *self.handle.packet_outs.lock());
        let Some(shared) = self.pipeline.clone() else {
            ready.iter().for_each(|&slot| self.switching.discard(slot));
            return;
        };
        let mut locked = Locked {
            shared: &shared,
            guard: shared.lock(),
        };
        self.switching.serve_queues(&mut locked, now);
        if let Some(cpu_port) = self.handle.cpu_port {
            for frame in packet_outs {
                self.switching
                    .packet_out(&mut locked, cpu_port, &frame, now);
            }
        }
        for &slot in ready {
            self.switching.receive(&mut locked, slot, now);
        }
        self.switching.recirculate(&mut locked, now);
        self.handle.write_trace(&mut locked.guard);
        let digests = locked.guard.take_digests();
        // The control plane, if it waits, goes next; sending takes longest and needs no lock.
        MutexGuard::unlock_fair(locked.guard);
        if !digests.is_empty() {
            self.switching.send_digests(&shared, digests);
        }
        for (slot, error) in self.switching.flush() {
            self.failed(slot, error);
        }
    }

    fn read_kernel_drops(&mut self) {
        for port in self.switching.ports.iter_mut().filter(|port| port.attached) {
            port.counters.rx_kernel.add(port.io.kernel_drops());
        }
    }

    fn take_new_pipeline(&mut self) {
        let version = self.handle.version.load(Ordering::Acquire);
        if version == self.version {
            return;
        }
        self.version = version;
        self.pipeline = self.handle.pipeline.lock().clone();
        if let Some(pipeline) = &self.pipeline {
            let mut pipeline = pipeline.lock();
            pipeline.set_tracing(self.handle.trace.is_some());
            for port in self.switching.ports.iter().filter(|port| !port.up) {
                pipeline.set_port_up(port.number, false);
            }
        }
    }

    fn set_up(&mut self, slot: usize, up: bool) {
        let port = &mut self.switching.ports[slot];
        if port.up == up {
            return;
        }
        port.up = up;
        let state = if up { "up" } else { "down" };
        tracing::info!("port {} ({}) is {state}", port.number, port.name);
        if let Some(pipeline) = &self.pipeline {
            pipeline.lock().set_port_up(port.number, up);
        }
    }

    fn failed(&mut self, slot: usize, error: PortError) {
        self.set_up(slot, false);
        let port = &mut self.switching.ports[slot];
        // Down may be up again; all else stays as it is.
        if port.attached && !matches!(error, PortError::Down) {
            let (number, name) = (port.number, &port.name);
            tracing::error!("port {number} ({name}): {error}; the switch goes on without it");
            port.attached = false;
            // If it is not there any more, so much the better.
            let _ = self.epoll.delete(port.io.poll_fd());
        }
    }

    /// Lets the timer expire when a queue next has something to do.
    fn arm_timer(&mut self) -> anyhow::Result<()> {
        let next = self.switching.next_event();
        if next == self.timer_at {
            return Ok(());
        }
        self.timer_at = next;
        match next {
            None => self.timer.unset(),
            Some(at) => {
                let at = TimeSpec::from_duration(self.handle.clock.absolute(at));
                self.timer.set(
                    Expiration::OneShot(at),
                    TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                )
            }
        }
        .context("setting the timer")
    }
}
