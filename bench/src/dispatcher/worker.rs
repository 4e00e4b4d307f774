// SPDX-License-Identifier: Apache-2.0
//! A worker thread as in `frontage-dispatcher`, with access to its CPU time.

use std::os::unix::thread::JoinHandleExt as _;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use socket2::Socket;

use super::cpu_time;
use super::workload::{DISPATCHER, view};
use frontage_dispatcher::config::Limits;
use frontage_dispatcher::engine::Engine;
use frontage_dispatcher::outcome::Counters;
use frontage_dispatcher::targets::tunnel_address;
use frontage_dispatcher::udp::bind;
use frontage_dispatcher::worker::{ViewChannel, serve};

/// Idle time after which the worker ends. Measurements never pause for that long.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);

/// A worker on its own thread. It ends when it has been idle for [`IDLE_TIMEOUT`].
pub struct Worker {
    thread: Option<JoinHandle<io::Error>>,
    clock: libc::clockid_t,
    task: libc::pid_t,
}

/// Opens a tunnel endpoint at the loopback address `address`.
pub fn open(address: std::net::IpAddr) -> Result<Socket> {
    bind(tunnel_address(address)).with_context(|| format!("cannot open {address}"))
}

impl Worker {
    /// Starts a worker without any flights.
    pub fn start() -> Result<Self> {
        let socket = open(DISPATCHER)?;
        socket.set_read_timeout(Some(IDLE_TIMEOUT))?;
        let views = Arc::new(ViewChannel::default());
        views.publish(Arc::new(view()));
        let counters = Arc::new(Counters::default());
        let engine = Engine::new(&Limits::default(), counters.clone());
        let (id_sender, id) = mpsc::channel();
        let thread = thread::spawn(move || {
            // SAFETY: gettid has no arguments and cannot fail.
            let _ = id_sender.send(unsafe { libc::gettid() });
            serve(&socket, engine, views.subscribe(), &counters)
        });
        let mut clock = 0;
        // SAFETY: the thread has not been joined.
        let error = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) };
        let error = io::Error::from_raw_os_error(error);
        ensure!(
            error.raw_os_error() == Some(0),
            "cannot get the CPU clock of a thread: {error}"
        );
        Ok(Self {
            thread: Some(thread),
            clock,
            task: id.recv().context("the worker did not start")?,
        })
    }

    /// Returns the CPU time of the worker.
    pub fn cpu_time(&self) -> Duration {
        cpu_time(self.clock)
    }

    /// Returns the time for which the worker was runnable but not running (`/proc/PID/schedstat`).
    pub fn scheduling_delay(&self) -> Result<Duration> {
        let path = format!("/proc/self/task/{}/schedstat", self.task);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let delay = text.split(' ').nth(1).and_then(|text| text.parse().ok());
        let delay = delay.with_context(|| format!("{path} has no scheduling delay"))?;
        Ok(Duration::from_nanos(delay))
    }
}

impl Drop for Worker {
    /// Waits until the worker ends, because the next one uses the same address.
    fn drop(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
