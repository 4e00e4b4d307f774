//! A client's UDP association with the proxy (RFC 1928, section 7) and its flows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use frontage_quicsocks_client::socks::{self, Destination, Malformed};
use frontage_quicsocks_client::udp;
use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, JoinSet};

use crate::flow::Flow;
use crate::metrics::GaugeGuard;
use crate::outcome::{ClientDatagram, FlowEnd};
use crate::proxy::Shared;
use crate::quota::{Permit, TokenBucket};

/// A UDP association.
#[derive(Debug)]
pub struct Association {
    pub shared: Arc<Shared>,
    /// Address of the control connection's client. Datagrams from other addresses are dropped.
    pub client: IpAddr,
    socket: UdpSocket,
    /// The client's address and port. The first datagram shows the port, because a NAT may have chosen it.
    source: OnceLock<SocketAddr>,
    permit: Permit,
    _gauge: GaugeGuard,
}

impl Association {
    /// Opens an association of `client` with a port of its own at the proxy's address `local`.
    ///
    /// # Errors
    /// Returns the system's error if the port cannot be opened.
    pub fn new(
        shared: Arc<Shared>,
        client: IpAddr,
        local: IpAddr,
        permit: Permit,
    ) -> io::Result<Self> {
        let gauge = GaugeGuard::new(&shared.metrics, |metrics| &metrics.associations);
        Ok(Self {
            shared,
            client: client.to_canonical(),
            socket: udp::bind((local.to_canonical(), 0).into())?,
            source: OnceLock::new(),
            permit,
            _gauge: gauge,
        })
    }

    /// Returns the proxy's address for the client's datagrams.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the client's bandwidth limit.
    pub fn bandwidth(&self) -> &Arc<TokenBucket> {
        self.permit.bandwidth()
    }

    /// Returns the unspecified address of the client's family.
    pub fn unspecified(&self) -> SocketAddr {
        match self.client {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// Sends `wire` to the client; returns true if the kernel accepted it.
    pub fn send(&self, wire: &[u8]) -> bool {
        self.source
            .get()
            .is_some_and(|client| udp::send_to(&self.socket, wire, *client).is_ok())
    }

    /// Receives the client's datagrams until the task is dropped, which also ends the flows.
    pub async fn run(self: Arc<Self>) {
        let mut flows = Flows::default();
        // An error concerns one datagram (ICMP), not the socket.
        while self.socket.readable().await.is_ok() {
            while let Some(outcome) = udp::with_buffer(|buffer| {
                let received = self.socket.try_recv_from(buffer);
                match received {
                    Ok((n, from)) => Some(self.on_datagram(&mut flows, &buffer[..n], from)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                    Err(_) => Some(ClientDatagram::SendFailed),
                }
            }) {
                self.shared.metrics.client_datagrams.add(outcome);
            }
            flows.remove_ended();
        }
    }

    fn on_datagram(
        self: &Arc<Self>,
        flows: &mut Flows,
        wire: &[u8],
        from: SocketAddr,
    ) -> ClientDatagram {
        if from.ip().to_canonical() != self.client
            || self.source.get().is_some_and(|known| *known != from)
        {
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
        if !self.bandwidth().try_take(datagram.len()) {
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
        self: &Arc<Self>,
        flows: &mut Flows,
        destination: Destination,
        datagram: &[u8],
        from: SocketAddr,
    ) -> Result<ClientDatagram, ClientDatagram> {
        if let Destination::Address(address) = &destination
            && !self.shared.policy.allows(address.ip())
        {
            return Err(ClientDatagram::Denied);
        }
        flows.remove_ended();
        if flows.open.len() >= self.shared.limits.max_flows {
            return Err(ClientDatagram::FlowLimit);
        }
        let flow = Flow::new(self, destination.clone(), datagram)?;
        self.source.get_or_init(|| from);
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
