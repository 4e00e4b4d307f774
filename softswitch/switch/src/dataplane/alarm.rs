//! When a thread must wake up for a queue.

use std::sync::Arc;

use anyhow::Context;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use softswitch_pipeline::Nanos;

use super::clock::Clock;

/// A thread's timer. While the thread is awake it looks after the queues anyway, and the timer is left alone.
#[derive(Debug)]
pub struct Alarm {
    timer: Arc<TimerFd>,
    clock: Clock,
    /// None if the timer is not set.
    at: Option<Nanos>,
    awake: bool,
}

impl Alarm {
    /// Of a thread that is awake.
    ///
    /// # Errors
    /// If the kernel refuses a timer.
    pub fn new(clock: Clock) -> anyhow::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).context("creating a timer")?;
        Ok(Self {
            timer: Arc::new(timer),
            clock,
            at: None,
            awake: true,
        })
    }

    /// What becomes readable when the time has come.
    pub fn timer(&self) -> Arc<TimerFd> {
        Arc::clone(&self.timer)
    }

    /// The thread is awake.
    pub fn awake(&mut self, expired: bool) {
        self.awake = true;
        if expired {
            self.at = None;
        }
    }

    /// The thread is about to sleep, until then at the latest.
    ///
    /// # Errors
    /// The system's.
    pub fn sleep(&mut self, until: Option<Nanos>) -> anyhow::Result<()> {
        self.awake = false;
        if until == self.at {
            Ok(())
        } else {
            self.set(until)
        }
    }

    /// If the thread sleeps, it is not to sleep longer than that.
    ///
    /// # Errors
    /// The system's.
    pub fn not_after(&mut self, until: Option<Nanos>) -> anyhow::Result<()> {
        let earlier = until.is_some_and(|until| self.at.is_none_or(|at| until < at));
        if self.awake || !earlier {
            Ok(())
        } else {
            self.set(until)
        }
    }

    fn set(&mut self, until: Option<Nanos>) -> anyhow::Result<()> {
        self.at = until;
        match until {
            None => self.timer.unset(),
            Some(at) => {
                let at = TimeSpec::from_duration(self.clock.absolute(at));
                self.timer.set(
                    Expiration::OneShot(at),
                    TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                )
            }
        }
        .context("setting a timer")
    }
}
