// SPDX-License-Identifier: Apache-2.0
//! A client's UDP association with the proxy (RFC 1928, section 7) and its flows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use frontage_quicsocks_client::socks::{self, Destination, Malformed};
use frontage_quicsocks_client::udp;
use tokio::task::{AbortHandle, JoinSet};

use crate::client_port::ClientPort;
use crate::flow::Flow;
use crate::metrics::GaugeGuard;
use crate::outcome::{ClientDatagram, FlowEnd};

/// A UDP association.
#[derive(Debug)]
pub struct Association {
    port: Arc<ClientPort>,
    _gauge: GaugeGuard,
}

impl Association {
    /// Creates an association with the client's `port`.
    pub fn new(port: ClientPort) -> Self {
        let gauge = GaugeGuard::new(&port.shared.metrics, |metrics| &metrics.associations);
        Self {
            port: Arc::new(port),
            _gauge: gauge,
        }
    }

    /// Receives the client's datagrams until the task is dropped, which also ends the flows.
    pub async fn run(self) {
        let mut flows = Flows::default();
        while self.port.readable().await.is_ok() {
            while let Some(outcome) = udp::with_buffer(|buffer| {
                let received = self.port.try_recv_from(buffer);
                match received {
                    Ok((n, from)) => Some(self.on_datagram(&mut flows, &buffer[..n], from)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                    Err(_) => Some(ClientDatagram::SendFailed),
                }
            }) {
                self.port.shared.metrics.client_datagrams.add(outcome);
            }
            flows.remove_ended();
        }
    }

    fn on_datagram(&self, flows: &mut Flows, wire: &[u8], from: SocketAddr) -> ClientDatagram {
        if !self.port.accepts(from) {
            return ClientDatagram::WrongSource;
        }
        let (destination, datagram) = match socks::parse_datagram(wire) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                return match malformed {
                    Malformed::Short => ClientDatagram::Malformed,
                    Malformed::AddressType => ClientDatagram::AddressType,
                    Malformed::Name => ClientDatagram::InvalidName,
                    Malformed::Port => ClientDatagram::InvalidPort,
                    Malformed::Reserved => ClientDatagram::Reserved,
                    Malformed::Fragment => ClientDatagram::Fragment,
                };
            }
        };
        if datagram.is_empty() {
            return flows.release(&destination);
        }
        if !self.port.bandwidth().try_take(datagram.len()) {
            return ClientDatagram::BandwidthLimit;
        }
        if let Some((flow, _)) = flows.open.get(&destination)
            && !flow.has_ended()
        {
            return flow.on_client_datagram(datagram);
        }
        self.open_flow(flows, destination, datagram, from)
            .unwrap_or_else(|rejected| rejected)
    }

    fn open_flow(
        &self,
        flows: &mut Flows,
        destination: Destination,
        datagram: &[u8],
        from: SocketAddr,
    ) -> Result<ClientDatagram, ClientDatagram> {
        if let Destination::Address(address) = &destination
            && !self.port.shared.policy.allows(address.ip())
        {
            return Err(ClientDatagram::Denied);
        }
        flows.remove_ended();
        if flows.open.len() >= self.port.shared.limits.max_flows {
            return Err(ClientDatagram::FlowLimit);
        }
        let flow = Flow::new(&self.port, destination.clone(), datagram)?;
        self.port.bind_source(from);
        let (running, key) = (flow.clone(), destination.clone());
        let task = flows.tasks.spawn(async move {
            running.run().await;
            key
        });
        flows.open.insert(destination, (flow, task));
        Ok(ClientDatagram::Queued)
    }
}

/// The flows of an association.
#[derive(Debug, Default)]
struct Flows {
    open: HashMap<Destination, (Arc<Flow>, AbortHandle)>,
    /// Tasks of the flows. Each returns its destination when its flow ends by itself.
    tasks: JoinSet<Destination>,
}

impl Flows {
    /// Removes the flows whose tasks have ended.
    fn remove_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(destination) = ended
                && let Entry::Occupied(entry) = self.open.entry(destination)
                && entry.get().0.has_ended()
            {
                entry.remove();
            }
        }
    }

    /// Ends the flow to `destination` at the client's request.
    fn release(&mut self, destination: &Destination) -> ClientDatagram {
        let Some((flow, task)) = self.open.remove(destination) else {
            return ClientDatagram::Empty;
        };
        flow.end(FlowEnd::Released);
        task.abort();
        ClientDatagram::Released
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        for (flow, _) in self.open.values() {
            flow.end(FlowEnd::Association);
        }
    }
}
