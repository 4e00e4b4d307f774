// SPDX-License-Identifier: Apache-2.0
//! The control plane's access to ports and queues of a running data plane.

use std::sync::Arc;

use anyhow::bail;

use super::entrance::Entrance;
use super::port::Port;
use super::port_view::{PortStatus, PortView};
use super::queue_limit::QueueLimit;
use super::shared::{Change, Shared};
use super::wake;
use crate::port::{self, LinkStates, Sockets};
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
        let Shared { handle, ports, .. } = &*self.shared;
        let slot = port.map(|number| ports.by_number().get(&number).copied());
        if slot == Some(None) {
            return false;
        }
        let all = ports.iter();
        for (_, port) in all.filter(|(it, _)| slot.flatten().is_none_or(|slot| *it == slot)) {
            let mut queue = port.queue();
            priorities
                .clone()
                .for_each(|priority| queue.limit(priority, limit));
        }
        // Packets may leave earlier than planned.
        handle.wakes.iter().for_each(wake);
        true
    }

    /// Lets the data plane see changes of the pipeline that cause packets.
    pub fn wake(&self) {
        self.shared.handle.wake();
    }

    /// Returns the attached ports, by number.
    pub fn list(&self) -> Vec<PortStatus> {
        let links = LinkStates::open();
        let status = |port: &Port| {
            // The data plane learns only from the next packet that an interface is up again.
            let link = links.as_ref().and_then(|links| links.is_up(&port.name));
            PortStatus {
                number: port.number,
                name: port.name.clone(),
                up: port.is_attached() && link.unwrap_or(port.is_up()),
            }
        };
        let ports = &self.shared.ports;
        let slots = ports.by_number();
        let mut list: Vec<_> = slots
            .values()
            .map(|&slot| status(ports.get(slot)))
            .collect();
        list.sort_by_key(|port| port.number);
        list
    }

    /// Attaches an interface as a port, whose link has no limits.
    ///
    /// # Errors
    /// If the port exists, its number is the CPU port's, the interface cannot be opened, or too many ports were attached.
    pub fn attach(&self, number: u32, interface: &str) -> anyhow::Result<()> {
        let Shared { handle, seed, .. } = &*self.shared;
        if handle.cpu_port == Some(number) {
            bail!("port {number} is the CPU port: choose another number");
        }
        let (receiver, transmitter) = port::open(interface, Sockets::Auto)?;
        let view = PortView {
            number,
            name: interface.to_owned(),
            counters: Arc::default(),
        };
        let make = |owner| Port::new(&view, transmitter, LinkConfig::default(), *seed, owner);
        let slot = self.shared.add_port(number, make)?;
        handle.look_again();
        let entrance = Entrance::new(slot, receiver, Arc::clone(&view.counters));
        self.tell(self.shared.owner(slot), Change::Attach(entrance));
        Ok(())
    }

    /// Detaches a port. Returns false if it does not exist.
    pub fn detach(&self, number: u32) -> bool {
        let Some(slot) = self.shared.detach(number) else {
            return false;
        };
        self.shared.ports.get(slot).outlet.close();
        self.shared.handle.look_again();
        self.tell(self.shared.owner(slot), Change::Detach(slot));
        true
    }

    /// Passes a change to a packet thread.
    fn tell(&self, thread: usize, change: Change) {
        self.shared.changes[thread].lock().push(change);
        wake(&self.shared.handle.wakes[thread]);
    }
}
