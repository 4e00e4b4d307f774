// SPDX-License-Identifier: Apache-2.0
//! The data plane and its threads.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::entrance::Entrance;
use super::port::{Port, Ports};
use super::port_control::PortControl;
use super::port_view::PortView;
use super::shared::Shared;
use super::worker::Worker;
use super::{Handle, Setup};

/// A data plane, ready to run.
pub struct Engine {
    handle: Arc<Handle>,
    ports: Vec<PortView>,
    workers: Vec<Worker>,
    shared: Arc<Shared>,
}

/// A channel with the result of each thread.
pub type Ends = mpsc::Receiver<anyhow::Result<()>>;

/// Stack size in bytes of a packet thread: the interpreter recurses over the program's expressions.
const STACK: usize = 16 << 20;

impl Engine {
    /// Creates a data plane.
    ///
    /// # Errors
    /// If the kernel refuses a descriptor.
    pub fn new(setup: Setup) -> anyhow::Result<Self> {
        let threads = setup.threads.get();
        let handle = Handle::new(
            setup.clock,
            setup.cpu_port,
            setup.threads,
            setup.observers,
            setup.packet_stream,
        );
        let handle = handle.context("creating an eventfd")?;
        let handle = Arc::new(handle);
        let alarms = (0..threads).map(|_| Alarm::new(handle.clock));
        let alarms = alarms.collect::<anyhow::Result<Vec<_>>>()?;
        let timers: Vec<_> = alarms.iter().map(Alarm::timer).collect();
        let slots = Ports::new(setup.ports.len());
        let shared = Shared::new(Arc::clone(&handle), slots, setup.events, alarms, setup.seed);
        let mut ports = Vec::new();
        let mut entrances: Vec<Vec<Entrance>> = (0..threads).map(|_| Vec::new()).collect();
        for port in setup.ports {
            let view = PortView {
                number: port.number,
                name: port.name.clone(),
                counters: Arc::default(),
            };
            let make = |owner| Port::new(&view, port.transmitter, port.link, setup.seed, owner);
            let slot = shared.add_port(port.number, make)?;
            let counters = Arc::clone(&view.counters);
            let entrance = Entrance::new(slot, port.receiver, counters);
            entrances[shared.owner(slot)].push(entrance);
            ports.push(view);
        }
        let shared = Arc::new(shared);
        let workers = entrances.into_iter().zip(timers).enumerate();
        let workers = workers.map(|(index, (entrances, timer))| {
            Worker::new(index, Arc::clone(&shared), entrances, timer)
        });
        Ok(Self {
            workers: workers.collect::<anyhow::Result<_>>()?,
            handle,
            ports,
            shared,
        })
    }

    /// Returns the access to ports and queues.
    pub fn port_control(&self) -> PortControl {
        PortControl::new(Arc::clone(&self.shared))
    }

    /// Returns the control plane's handle.
    pub fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    /// Returns the ports, for monitoring.
    pub fn ports(&self) -> Vec<PortView> {
        self.ports.clone()
    }

    /// Runs in its own threads until [`Handle::stop`]. The receiver is closed after all threads have ended.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn spawn(self) -> anyhow::Result<Ends> {
        let (ended, ends) = mpsc::channel(self.workers.len());
        for (index, worker) in self.workers.into_iter().enumerate() {
            let mut end = End(Some(ended.clone()));
            std::thread::Builder::new()
                .name(format!("packets-{index}"))
                .stack_size(STACK)
                .spawn(move || end.tell(worker.run()))
                .context("starting a packet thread")?;
        }
        Ok(ends)
    }
}

/// Reports how a thread ended, even if it panicked.
struct End(Option<mpsc::Sender<anyhow::Result<()>>>);

impl End {
    fn tell(&mut self, result: anyhow::Result<()>) {
        if let Some(ended) = self.0.take() {
            // The channel has room for all threads. While the switch shuts down, it may have no receiver.
            let _ = ended.try_send(result);
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.tell(Err(anyhow!("a packet thread panicked")));
    }
}
