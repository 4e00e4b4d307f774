//! An association: a client's port at the proxy (RFC 1928, section 7), and the flows that it has there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, JoinSet};

use crate::account::{Account, Place};
use crate::flow::Flow;
use crate::metrics::Gauge;
use crate::outcome::{End, FromClient};
use crate::proxy::Shared;
use crate::socks::{self, Destination, Malformed};
use crate::udp;

/// One association.
#[derive(Debug)]
pub struct Association {
    pub shared: Arc<Shared>,
    /// The address of the control connection's client: none else may use this.
    pub client: IpAddr,
    socket: UdpSocket,
    /// Where the client sends from; its first datagram shows it, since a NAT may have chosen the port.
    from: OnceLock<SocketAddr>,
    place: Place,
    _gauge: Gauge,
}

impl Association {
    /// An association of `client` at the proxy's address `local`, with a port of its own.
    pub fn new(
        shared: Arc<Shared>,
        client: IpAddr,
        local: IpAddr,
        place: Place,
    ) -> io::Result<Self> {
        let gauge = Gauge::new(&shared.metrics, |metrics| &metrics.associations);
        Ok(Self {
            shared,
            client: client.to_canonical(),
            socket: udp::bind((local.to_canonical(), 0).into())?,
            from: OnceLock::new(),
            place,
            _gauge: gauge,
        })
    }

    /// Where the client is to send to.
    pub fn bound(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the client may use.
    pub fn account(&self) -> &Arc<Account> {
        self.place.account()
    }

    /// No address, of the client's family.
    pub fn unspecified(&self) -> SocketAddr {
        match self.client {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// Sends `wire` to the client; whether the kernel took it.
    pub fn send(&self, wire: &[u8]) -> bool {
        self.from
            .get()
            .is_some_and(|client| udp::send_to(&self.socket, wire, *client).is_ok())
    }

    /// Takes what the client sends, for ever; its flows end with this.
    pub async fn run(self: Arc<Self>) {
        let mut flows = Flows::default();
        // An error is of one datagram (ICMP), not of the socket.
        while self.socket.readable().await.is_ok() {
            while let Some(outcome) = udp::with_buffer(|buffer| {
                let received = self.socket.try_recv_from(buffer);
                match received {
                    Ok((n, from)) => Some(self.received(&mut flows, &buffer[..n], from)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                    Err(_) => Some(FromClient::NotSent),
                }
            }) {
                self.shared.metrics.from_client.add(outcome);
            }
            flows.forget();
        }
    }

    fn received(self: &Arc<Self>, flows: &mut Flows, wire: &[u8], from: SocketAddr) -> FromClient {
        if from.ip().to_canonical() != self.client
            || self.from.get().is_some_and(|known| *known != from)
        {
            return FromClient::Foreign;
        }
        let (destination, datagram) = match socks::datagram(wire) {
            Ok(read) => read,
            Err(malformed) => {
                return match malformed {
                    Malformed::Short => FromClient::Malformed,
                    Malformed::AddressType => FromClient::AddressType,
                    Malformed::Name => FromClient::Name,
                    Malformed::Port => FromClient::Port,
                    Malformed::Reserved => FromClient::Reserved,
                    Malformed::Fragment => FromClient::Fragment,
                };
            }
        };
        if datagram.is_empty() {
            return flows.release(&destination);
        }
        if !self.account().take(datagram.len()) {
            return FromClient::Bandwidth;
        }
        if let Some((flow, _)) = flows.open.get(&destination)
            && !flow.is_over()
        {
            return flow.from_client(datagram);
        }
        self.begin(flows, destination, datagram, from)
            .unwrap_or_else(|refused| refused)
    }

    fn begin(
        self: &Arc<Self>,
        flows: &mut Flows,
        destination: Destination,
        datagram: &[u8],
        from: SocketAddr,
    ) -> Result<FromClient, FromClient> {
        if let Destination::Address(address) = &destination
            && !self.shared.policy.allows(address.ip())
        {
            return Err(FromClient::Denied);
        }
        flows.forget();
        if flows.open.len() >= self.shared.limits.flows {
            return Err(FromClient::Flows);
        }
        let flow = Flow::begin(self, destination.clone(), datagram)?;
        self.from.get_or_init(|| from);
        let (running, to) = (flow.clone(), destination.clone());
        let task = flows.tasks.spawn(async move {
            running.run().await;
            to
        });
        flows.open.insert(destination, (flow, task));
        Ok(FromClient::Waiting)
    }
}

/// The flows of an association.
#[derive(Debug, Default)]
struct Flows {
    open: HashMap<Destination, (Arc<Flow>, AbortHandle)>,
    /// Each says whose it was when it ends by itself.
    tasks: JoinSet<Destination>,
}

impl Flows {
    /// Forgets those that ended.
    fn forget(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(destination) = ended
                && let Entry::Occupied(entry) = self.open.entry(destination)
                && entry.get().0.is_over()
            {
                entry.remove();
            }
        }
    }

    /// The client needs the flow to `destination` no more.
    fn release(&mut self, destination: &Destination) -> FromClient {
        let Some((flow, task)) = self.open.remove(destination) else {
            return FromClient::Empty;
        };
        flow.end(End::Released);
        task.abort();
        FromClient::Released
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        for (flow, _) in self.open.values() {
            flow.end(End::Association);
        }
    }
}
