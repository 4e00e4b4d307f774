// SPDX-License-Identifier: Apache-2.0
//! A thread's timer for its queues.

use std::sync::Arc;

use anyhow::Context;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use softswitch_pipeline::Nanos;

use super::clock::Clock;

/// A thread's timer. It is not used while the thread is awake, because the thread then serves the queues anyway.
#[derive(Debug)]
pub struct Alarm {
    timer: Arc<TimerFd>,
    clock: Clock,
    /// `None` if the timer is not set.
    at: Option<Nanos>,
    awake: bool,
}

impl Alarm {
    /// Creates the timer of a thread that is awake.
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

    /// Returns the descriptor that becomes readable when the timer expires.
    pub fn timer(&self) -> Arc<TimerFd> {
        Arc::clone(&self.timer)
    }

    /// Notes that the thread is awake.
    pub fn awake(&mut self, expired: bool) {
        self.awake = true;
        if expired {
            self.at = None;
        }
    }

    /// Notes that the thread is about to sleep, until `at` at the latest.
    ///
    /// # Errors
    /// The system's error.
    pub fn sleep(&mut self, until: Option<Nanos>) -> anyhow::Result<()> {
        self.awake = false;
        if until == self.at {
            Ok(())
        } else {
            self.set(until)
        }
    }

    /// Wakes the thread up at `at` at the latest, if it sleeps.
    ///
    /// # Errors
    /// The system's error.
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
