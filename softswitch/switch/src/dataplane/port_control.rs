// SPDX-License-Identifier: Apache-2.0
//! The control plane's access to ports and queues of a running data plane.

use std::sync::Arc;

use anyhow::{anyhow, bail};

use super::entrance::Entrance;
use super::outlet::Outlet;
use super::port_view::{PortStatus, PortView};
use super::queue_limit::QueueLimit;
use super::shared::{Change, Shared};
use super::wake;
use crate::port::{LinkStates, Receiver, Transmitter};
use softswitch_queue::LinkConfig;

/// The ports and queues of a running data plane.
#[derive(Clone)]
pub struct PortControl {
    shared: Arc<Shared>,
}

impl PortControl {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Limits the queues of priorities, of one port or of all. Returns false if the port does not exist.
    pub fn limit(
        &self,
        port: Option<u32>,
        priorities: impl Iterator<Item = usize> + Clone,
        limit: QueueLimit,
    ) -> bool {
        let found = self.shared.switching.lock().limit(port, priorities, limit);
        // Packets may leave earlier than planned.
        self.shared.handle.wake();
        found
    }

    /// Lets the data plane see changes of the pipeline that cause packets.
    pub fn wake(&self) {
        self.shared.handle.wake();
    }

    /// Returns the attached ports, by number.
    pub fn list(&self) -> Vec<PortStatus> {
        let ports = self.shared.switching.lock().attached_ports();
        let links = LinkStates::open();
        let ports = ports.into_iter().map(|(mut port, works)| {
            // The data plane learns only from the next packet that an interface is up again.
            let link = links.as_ref().and_then(|links| links.is_up(&port.name));
            port.up = works && link.unwrap_or(port.up);
            port
        });
        ports.collect()
    }

    /// Attaches an interface as a port, whose link has no limits.
    ///
    /// # Errors
    /// If the port exists, its number is the CPU port's, the interface cannot be opened, or too many ports were attached.
    pub fn attach(&self, number: u32, interface: &str) -> anyhow::Result<()> {
        let Shared {
            handle,
            switching,
            outlets,
            changes,
            seed,
        } = &*self.shared;
        if handle.cpu_port == Some(number) {
            bail!("port {number} is the CPU port: choose another number");
        }
        let (receiver, transmitter) = (Receiver::open(interface)?, Transmitter::open(interface)?);
        let view = PortView {
            number,
            name: interface.to_owned(),
            counters: Arc::default(),
        };
        let mut switching = switching.lock();
        if switching.slot(number).is_some() {
            bail!("port {number} exists already: remove it first");
        }
        let slot = switching.slots();
        let outlet = outlets.get(slot);
        let outlet =
            outlet.ok_or_else(|| anyhow!("too many ports were added: restart the switch"))?;
        let counters = || Arc::clone(&view.counters);
        outlet.get_or_init(|| {
            Outlet::new(number, view.name.clone(), counters(), Box::new(transmitter))
        });
        let owner = slot % changes.len();
        switching.add_port(&view, LinkConfig::default(), *seed, owner);
        drop(switching);
        let entrance = Entrance::new(slot, Box::new(receiver), counters());
        self.tell(owner, Change::Attach(entrance));
        Ok(())
    }

    /// Detaches a port. Returns false if it does not exist.
    pub fn detach(&self, number: u32) -> bool {
        let Some((slot, owner)) = self.shared.switching.lock().detach(number) else {
            return false;
        };
        if let Some(outlet) = self.shared.outlets[slot].get() {
            outlet.close();
        }
        self.tell(owner, Change::Detach(slot));
        true
    }

    /// Passes a change to a packet thread.
    fn tell(&self, thread: usize, change: Change) {
        self.shared.changes[thread].lock().push(change);
        wake(&self.shared.handle.wakes[thread]);
    }
}
