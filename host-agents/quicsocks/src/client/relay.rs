//! An association as its client sees it, and whom what comes is for.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

mod associate;
mod socket;

use super::Error;
use crate::socks::{self, Destination, Reply};
use crate::udp;
pub use associate::Credentials;
pub(super) use socket::Socket;

/// How long the proxy may take for an association.
const PATIENCE: Duration = Duration::from_secs(10);
/// Datagrams of a connection that may wait to be read.
const QUEUE: usize = 256;
/// Octets of the connection ids that noq chooses.
const CID: usize = 8;
/// What noq takes for the server's port and address: it must not change, and the real address is not known at first. They are of a prefix that
/// leads nowhere (RFC 6666), and the dummy address of RFC 7600.
const SERVER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1));
const SERVER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// An association at a proxy; it ends when this and all its sockets are dropped.
#[derive(Debug)]
pub struct Relay {
    socket: UdpSocket,
    routes: Mutex<Routes>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Routes {
    of: HashMap<Destination, Route>,
    /// By the connection id that noq chose for the handshake, which servers use until the client migrates.
    by_cid: HashMap<[u8; CID], mpsc::Sender<Bytes>>,
}

#[derive(Debug)]
struct Route {
    queue: mpsc::Sender<Bytes>,
    address: watch::Sender<Option<Found>>,
}

type Found = Result<SocketAddr, Reply>;

/// What the proxy says of a name's address.
#[derive(Clone, Debug)]
pub(super) struct Address(watch::Receiver<Option<Found>>);

impl Address {
    /// The address, once the proxy says it.
    pub(super) async fn found(&mut self) -> Result<SocketAddr, Error> {
        let said = self.0.wait_for(Option::is_some).await;
        let said = said.map_err(|_| Error::Closed)?;
        said.expect("waited for").map_err(Error::Refused)
    }

    /// That there is none; for ever if there is one and the association lasts.
    pub(super) async fn refused(&mut self) -> Error {
        if let Err(error) = self.found().await {
            return error;
        }
        // Nothing is said later; this waits for the association's end.
        while self.0.changed().await.is_ok() {}
        Error::Closed
    }
}

impl Relay {
    /// An association at the proxy at `host:port`. One round trip for TCP, one for all else: as only one method is offered, nothing has to be waited for.
    pub async fn connect(
        proxy: &str,
        credentials: Option<&Credentials>,
    ) -> Result<Arc<Self>, Error> {
        let opened = timeout(PATIENCE, associate::associate(proxy, credentials)).await;
        let (control, bound) = opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let socket = udp::connect(bound)?;
        let relay = Arc::new(Self {
            socket,
            routes: Mutex::default(),
            tasks: Mutex::default(),
        });
        let mut tasks = relay.tasks.lock().expect("nobody panics with it");
        let weak = Arc::downgrade(&relay);
        tasks.spawn(async move {
            let mut control = control;
            while matches!(control.read(&mut [0; 64]).await, Ok(1..)) {}
            // Whoever waits for an address learns of it.
            if let Some(relay) = weak.upgrade() {
                relay.routes().of.clear();
            }
        });
        let weak = Arc::downgrade(&relay);
        tasks.spawn(async move {
            // The relay's end ends this task, so it must not keep it.
            while let Some(relay) = weak.upgrade() {
                let ready = std::future::poll_fn(|cx| relay.socket.poll_recv_ready(cx));
                let ready = timeout(Duration::from_secs(1), ready).await;
                if matches!(ready, Ok(Ok(()))) {
                    relay.receive();
                }
            }
        });
        drop(tasks);
        Ok(relay)
    }

    /// A socket towards `name`, and what the proxy says of its address.
    pub(super) fn open(
        self: &Arc<Self>,
        name: &str,
        port: u16,
    ) -> Result<(Socket, Address), Error> {
        let destination = Destination::name(name.as_bytes(), port)
            .map_err(|_| io::Error::other(format!("{name:?} is no host's name")))?;
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (address, said) = watch::channel(None);
        let mut routes = self.routes();
        // Datagrams say the server's address, not its name.
        if routes.of.contains_key(&destination) {
            return Err(io::Error::other(format!(
                "a connection to {name}:{port} is being made through this association; make another association"
            ))
            .into());
        }
        routes
            .of
            .insert(destination.clone(), Route { queue, address });
        drop(routes);
        let server = match self.socket.local_addr()? {
            SocketAddr::V4(_) => SERVER_V4,
            SocketAddr::V6(_) => SERVER_V6,
        };
        let server = (server, port).into();
        let socket = Socket::new(self.clone(), destination, receiver, server);
        Ok((socket, Address(said)))
    }

    /// Hands what came to whom it is for.
    fn receive(&self) {
        while let Ok(()) = udp::with_buffer(|buffer| {
            let n = self.socket.try_recv(buffer)?;
            if let Ok((from, datagram)) = socks::datagram(&buffer[..n]) {
                self.hand(&from, datagram);
            }
            Ok::<_, io::Error>(())
        }) {}
    }

    fn hand(&self, from: &Destination, datagram: &[u8]) {
        let routes = self.routes();
        match from {
            Destination::Name(..) => {
                let route = routes.of.get(from);
                if let Some((route, (reply, address))) = route.zip(socks::read_reply(datagram).ok())
                {
                    let found = match (reply, address) {
                        (Reply::Succeeded, Destination::Address(address)) => Ok(address),
                        (Reply::Succeeded, Destination::Name(..)) => Err(Reply::Failure),
                        (refused, _) => Err(refused),
                    };
                    route.address.send_replace(Some(found));
                }
            }
            Destination::Address(address) => {
                let bytes = Bytes::copy_from_slice(datagram);
                if let Some(queue) = dst_cid(datagram).and_then(|cid| routes.by_cid.get(cid)) {
                    // A full queue loses it, as a full socket would.
                    let _ = queue.try_send(bytes);
                    return;
                }
                // One of those with this address: QUIC knows its packets.
                let of = |route: &&Route| *route.address.borrow() == Some(Ok(*address));
                for route in routes.of.values().filter(of) {
                    let _ = route.queue.try_send(bytes.clone());
                }
            }
        }
    }

    fn routes(&self) -> std::sync::MutexGuard<'_, Routes> {
        self.routes.lock().expect("nobody panics with it")
    }
}

/// The Destination Connection ID of a packet to noq, if it has one.
fn dst_cid(packet: &[u8]) -> Option<&[u8; CID]> {
    let long = packet.first()? & 0x80 != 0;
    packet.get(if long { 6 } else { 1 }..)?.first_chunk()
}
