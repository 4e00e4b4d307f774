// SPDX-License-Identifier: Apache-2.0
//! Packets from and to a client instead of network interfaces. Any port number is valid, and there are no queues.

use std::collections::{BTreeSet, VecDeque};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of a client's packets that wait for the data plane, and of sent packets that wait for the client.
pub const BACKLOG: usize = 4096;

/// A packet on its way between a client and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPacket {
    /// The client's number of the packet, and of those that result from it.
    pub id: u64,
    /// The port that receives or sends it.
    pub port: u32,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The state that the data plane and the service of packets share.
#[derive(Debug, Default)]
pub struct PacketStream {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    incoming: VecDeque<StreamPacket>,
    client: Option<mpsc::Sender<StreamPacket>>,
    /// Told when all packets have been processed.
    waiting: Vec<oneshot::Sender<()>>,
    ports_down: BTreeSet<u32>,
}

impl PacketStream {
    /// Makes this client the one that takes packets; returns `None` if there is another one.
    pub fn open(&self) -> Option<mpsc::Receiver<StreamPacket>> {
        let mut state = self.state.lock();
        if state.client.as_ref().is_some_and(|c| !c.is_closed()) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(BACKLOG);
        state.client = Some(sender);
        Some(receiver)
    }

    /// Ends the client's stream, so that another client can open one.
    pub fn close(&self) {
        self.state.lock().client = None;
    }

    /// Adds a packet for the data plane; returns it if too many are waiting.
    pub(super) fn add(&self, packet: StreamPacket) -> Result<(), StreamPacket> {
        let mut state = self.state.lock();
        if state.incoming.len() >= BACKLOG {
            return Err(packet);
        }
        state.incoming.push_back(packet);
        Ok(())
    }

    /// Takes the packets for the data plane.
    pub(super) fn take(&self) -> VecDeque<StreamPacket> {
        std::mem::take(&mut self.state.lock().incoming)
    }

    /// Returns a channel that reports when all packets have been processed.
    pub(super) fn processed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().waiting.push(sender);
        receiver
    }

    /// Notes that the data plane has no work.
    pub(super) fn idle(&self) {
        let mut state = self.state.lock();
        if state.incoming.is_empty() {
            for waiting in state.waiting.drain(..) {
                // The client may have left.
                let _ = waiting.send(());
            }
        }
    }

    /// Passes a packet that a port sends to the client; returns false if no client takes it.
    pub(super) fn send(&self, packet: StreamPacket) -> bool {
        let state = self.state.lock();
        let client = state.client.as_ref();
        client.is_some_and(|client| client.try_send(packet).is_ok())
    }

    /// Notes the state of a port.
    pub(super) fn set_port_up(&self, port: u32, is_up: bool) {
        let ports = &mut self.state.lock().ports_down;
        if is_up {
            ports.remove(&port);
        } else {
            ports.insert(port);
        }
    }

    /// Returns the ports that are down.
    pub(super) fn ports_down(&self) -> Vec<u32> {
        self.state.lock().ports_down.iter().copied().collect()
    }
}
