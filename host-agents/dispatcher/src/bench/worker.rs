//! A worker as the program has it, and what comes of it.

use std::os::unix::thread::JoinHandleExt as _;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use socket2::Socket;

use super::core_time;
use super::flights::{DISPATCHER, view};
use crate::choice::tunnel_end;
use crate::config::Limits;
use crate::counts::Counts;
use crate::engine::Engine;
use crate::udp::bind;
use crate::worker::{Views, serve};

/// In no measurement does nothing come for so long.
const PATIENCE: Duration = Duration::from_millis(500);

/// A worker on a thread of its own, which ends when nothing has come for some time.
pub struct Worker {
    thread: Option<JoinHandle<io::Error>>,
    clock: libc::clockid_t,
    task: libc::pid_t,
}

/// A tunnel's end at `address`, on this machine.
pub fn open(address: std::net::IpAddr) -> Result<Socket> {
    bind(tunnel_end(address)).with_context(|| format!("{address} cannot be opened"))
}

impl Worker {
    /// Starts one that has seen no flight.
    pub fn start() -> Result<Self> {
        let socket = open(DISPATCHER)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let views = Arc::new(Views::default());
        views.publish(Arc::new(view()));
        let counts = Arc::new(Counts::default());
        let engine = Engine::new(&Limits::default(), counts.clone());
        let (said, task) = mpsc::channel();
        let thread = thread::spawn(move || {
            // SAFETY: no arguments, cannot fail.
            let _ = said.send(unsafe { libc::gettid() });
            serve(&socket, engine, views.follow(), &counts)
        });
        let mut clock = 0;
        // SAFETY: the thread has not been joined.
        let error = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) };
        let error = io::Error::from_raw_os_error(error);
        ensure!(
            error.raw_os_error() == Some(0),
            "no clock of a thread: {error}"
        );
        Ok(Self {
            thread: Some(thread),
            clock,
            task: task.recv().context("the worker did not start")?,
        })
    }

    /// The time for which it has worked.
    pub fn core_time(&self) -> Duration {
        core_time(self.clock)
    }

    /// The time for which it would have worked, but others had the cores (`/proc/PID/schedstat`).
    pub fn waited(&self) -> Result<Duration> {
        let path = format!("/proc/self/task/{}/schedstat", self.task);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let waited = text.split(' ').nth(1).and_then(|text| text.parse().ok());
        let waited = waited.with_context(|| format!("{path} does not say how long it waited"))?;
        Ok(Duration::from_nanos(waited))
    }
}

impl Drop for Worker {
    /// Waits for its end: the next one takes its address.
    fn drop(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
