// SPDX-License-Identifier: Apache-2.0
//! A client's association with a proxy: it demultiplexes datagrams from the proxy to connections.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

mod handshake;
mod socket;

use crate::Error;
use crate::socks::{self, Destination, Reply};
use crate::udp;
pub use handshake::{Credentials, associate_blocking};
pub(super) use socket::Socket;

/// Capacity, in datagrams, of each connection's receive queue.
const RECEIVE_QUEUE: usize = 256;
/// Length, in bytes, of the connection ids that noq chooses.
const CID_LEN: usize = 8;
/// Placeholder for the address of an IPv6 server: in the discard-only prefix (RFC 6666).
///
/// QUIC stacks need a server address that does not change, and the real one is not known at first.
const PLACEHOLDER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1));
/// Placeholder for the address of an IPv4 server: the IPv4 dummy address (RFC 7600).
const PLACEHOLDER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// Returns the placeholder for the address of a server.
#[must_use]
pub const fn placeholder(ipv4: bool) -> IpAddr {
    if ipv4 { PLACEHOLDER_V4 } else { PLACEHOLDER_V6 }
}

/// A UDP association with a proxy (RFC 1928, section 7). It ends when it and all its sockets are dropped.
#[derive(Debug)]
pub struct Association {
    socket: UdpSocket,
    routes: Mutex<Routes>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Routes {
    by_destination: HashMap<Destination, Route>,
    /// Queues by the connection id that noq chose for the handshake. Servers use it until the client migrates.
    by_cid: HashMap<[u8; CID_LEN], mpsc::Sender<Bytes>>,
}

#[derive(Debug)]
struct Route {
    queue: mpsc::Sender<Bytes>,
    address: watch::Sender<Option<Resolution>>,
}

/// The proxy's report about a name: its address, or why it has no address.
type Resolution = Result<SocketAddr, Reply>;

/// Subscription to the proxy's report about a name.
#[derive(Clone, Debug)]
pub(super) struct PendingAddress(watch::Receiver<Option<Resolution>>);

impl PendingAddress {
    /// Waits until the proxy reports the address.
    pub(super) async fn resolved(&mut self) -> Result<SocketAddr, Error> {
        let report = self.0.wait_for(Option::is_some).await;
        let report = report.map_err(|_| Error::ProxyClosed)?;
        report
            .expect("wait_for returns a report")
            .map_err(Error::Rejected)
    }

    /// Waits until the proxy reports a failure or the association ends. Never returns otherwise.
    pub(super) async fn failed(&mut self) -> Error {
        if let Err(error) = self.resolved().await {
            return error;
        }
        while self.0.changed().await.is_ok() {}
        Error::ProxyClosed
    }
}

impl Association {
    /// Opens an association with the proxy at `host:port`.
    ///
    /// Takes one round trip for TCP and one for SOCKS: the client offers only one authentication method, so it can send all
    /// its messages at once.
    ///
    /// # Errors
    /// Returns the proxy's reply if it rejects the request, and the socket error if it is unreachable.
    pub async fn connect(
        proxy: &str,
        credentials: Option<&Credentials>,
    ) -> Result<Arc<Self>, Error> {
        let (control, bound) = handshake::associate(proxy, credentials, None).await?;
        let socket = udp::connect(bound)?;
        let association = Arc::new(Self {
            socket,
            routes: Mutex::default(),
            tasks: Mutex::default(),
        });
        let mut tasks = association.tasks.lock();
        let weak = Arc::downgrade(&association);
        tasks.spawn(async move {
            let mut control = control;
            while matches!(control.read(&mut [0; 64]).await, Ok(1..)) {}
            // Dropping the routes notifies everyone who waits for an address.
            if let Some(association) = weak.upgrade() {
                association.routes().by_destination.clear();
            }
        });
        let weak = Arc::downgrade(&association);
        tasks.spawn(async move {
            // Dropping the association aborts this task, so the task must not keep the association alive.
            while let Some(association) = weak.upgrade() {
                let ready = std::future::poll_fn(|cx| association.socket.poll_recv_ready(cx));
                let ready = timeout(Duration::from_secs(1), ready).await;
                if matches!(ready, Ok(Ok(()))) {
                    association.receive();
                }
            }
        });
        drop(tasks);
        Ok(association)
    }

    /// Opens a socket to `name`, and a subscription to the proxy's report about its address.
    pub(super) fn open(
        self: &Arc<Self>,
        name: &str,
        port: u16,
    ) -> Result<(Socket, PendingAddress), Error> {
        let destination = Destination::name(name.as_bytes(), port)
            .map_err(|_| io::Error::other(format!("invalid host name {name:?}")))?;
        let (queue, receiver) = mpsc::channel(RECEIVE_QUEUE);
        let (address, report) = watch::channel(None);
        let mut routes = self.routes();
        // Routes are keyed by name, because the proxy's report carries the name only.
        if routes.by_destination.contains_key(&destination) {
            return Err(io::Error::other(format!(
                "another connection to {name}:{port} is using this association: open a second association"
            ))
            .into());
        }
        routes
            .by_destination
            .insert(destination.clone(), Route { queue, address });
        drop(routes);
        let placeholder = (placeholder(self.socket.local_addr()?.is_ipv4()), port).into();
        let socket = Socket::new(self.clone(), destination, receiver, placeholder);
        Ok((socket, PendingAddress(report)))
    }

    /// Receives all waiting datagrams from the proxy.
    fn receive(&self) {
        while let Ok(()) = udp::with_buffer(|buffer| {
            let n = self.socket.try_recv(buffer)?;
            if let Ok((from, datagram)) = socks::parse_datagram(&buffer[..n]) {
                self.dispatch(&from, datagram);
            }
            Ok::<_, io::Error>(())
        }) {}
    }

    /// Passes a datagram to the connections that it may belong to.
    fn dispatch(&self, from: &Destination, datagram: &[u8]) {
        let routes = self.routes();
        match from {
            Destination::Name(..) => {
                let route = routes.by_destination.get(from);
                if let Some((route, (reply, address))) =
                    route.zip(socks::parse_reply(datagram).ok())
                {
                    let resolution = match (reply, address) {
                        (Reply::Succeeded, Destination::Address(address)) => Ok(address),
                        (Reply::Succeeded, Destination::Name(..)) => Err(Reply::Failure),
                        (reply, _) => Err(reply),
                    };
                    route.address.send_replace(Some(resolution));
                }
            }
            Destination::Address(address) => {
                let bytes = Bytes::copy_from_slice(datagram);
                if let Some(queue) =
                    destination_cid(datagram).and_then(|cid| routes.by_cid.get(cid))
                {
                    // A full queue drops the datagram, as a full socket buffer would.
                    let _ = queue.try_send(bytes);
                    return;
                }
                // Pass it to every connection with this address: QUIC ignores packets of other connections.
                let has_address = |route: &&Route| *route.address.borrow() == Some(Ok(*address));
                for route in routes.by_destination.values().filter(has_address) {
                    let _ = route.queue.try_send(bytes.clone());
                }
            }
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock()
    }
}

/// Returns the destination connection id of a packet for noq.
fn destination_cid(packet: &[u8]) -> Option<&[u8; CID_LEN]> {
    let is_long = packet.first()? & 0x80 != 0;
    packet.get(if is_long { 6 } else { 1 }..)?.first_chunk()
}
