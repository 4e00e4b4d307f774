//! An association as its client sees it, and the sockets that noq gets.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Error;
use crate::socks::{
    self, AUTH_VERSION, Destination, NO_AUTH, PASSWORD, Reply, UDP_ASSOCIATE, VERSION,
};
use crate::udp;

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

/// User name and password at the proxy (RFC 1929).
#[derive(Clone)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

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
        let opened = timeout(PATIENCE, associate(proxy, credentials)).await;
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
        let socket = Socket {
            relay: self.clone(),
            header: socks::header(&destination),
            destination,
            cid: Arc::default(),
            receiver,
            server: (server, port).into(),
        };
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

/// The Source Connection ID of a packet of noq's with a long header.
fn src_cid(packet: &[u8]) -> Option<&[u8; CID]> {
    if packet.first()? & 0x80 == 0 {
        return None;
    }
    let length = usize::from(*packet.get(5)?);
    packet.get(7 + length..)?.first_chunk()
}

/// The control connection, and where datagrams are to go.
async fn associate(
    proxy: &str,
    credentials: Option<&Credentials>,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut control = TcpStream::connect(proxy).await?;
    control.set_nodelay(true)?;
    let method = if credentials.is_some() {
        PASSWORD
    } else {
        NO_AUTH
    };
    let mut wire = vec![VERSION, 1, method];
    if let Some(Credentials { name, password }) = credentials {
        wire.push(AUTH_VERSION);
        for text in [name, password] {
            let text = &text.as_bytes()[..text.len().min(255)];
            wire.push(text.len() as u8);
            wire.extend(text);
        }
    }
    wire.extend([VERSION, UDP_ASSOCIATE, 0]);
    // A NAT may change the client's address and port, so it does not say them.
    let unspecified = match control.local_addr()? {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Destination::Address((unspecified, 0).into()).put(&mut wire);
    control.write_all(&wire).await?;
    if [control.read_u8().await?, control.read_u8().await?] != [VERSION, method] {
        return Err(Error::Refused(Reply::NotAllowed));
    }
    if credentials.is_some() && [control.read_u8().await?, control.read_u8().await?] != [1, 0] {
        return Err(Error::Refused(Reply::NotAllowed));
    }
    let mut head = [0; 3];
    control.read_exact(&mut head).await?;
    let bound = socks::read_destination(&mut control).await?;
    match (Reply::of(head[1]), bound) {
        (Reply::Succeeded, Ok(Destination::Address(bound))) => {
            let mut bound = bound;
            if bound.ip().is_unspecified() {
                bound.set_ip(control.peer_addr()?.ip());
            }
            Ok((control, bound))
        }
        (Reply::Succeeded, _) => Err(Error::Refused(Reply::Failure)),
        (refused, _) => Err(Error::Refused(refused)),
    }
}

/// A socket towards one server, through the proxy. It releases the proxy's flow when it is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    relay: Arc<Relay>,
    destination: Destination,
    header: Vec<u8>,
    /// The client's connection id, once a packet shows it.
    cid: Arc<OnceLock<[u8; CID]>>,
    receiver: mpsc::Receiver<Bytes>,
    server: SocketAddr,
}

impl Socket {
    /// What noq is to take for the server's address.
    pub(super) const fn server(&self) -> SocketAddr {
        self.server
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut routes = self.relay.routes();
        routes.of.remove(&self.destination);
        if let Some(cid) = self.cid.get() {
            routes.by_cid.remove(cid);
        }
        drop(routes);
        // If it is lost, the flow ends a little later, as one that idles.
        let _ = udp::send(&self.relay.socket, &self.header);
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            relay: self.relay.clone(),
            header: self.header.clone(),
            destination: self.destination.clone(),
            cid: self.cid.clone(),
            wire: Vec::new(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some(datagram) = ready!(self.receiver.poll_recv(cx)) else {
            // The association is over. QUIC's own timer says so if nothing else does.
            return Poll::Pending;
        };
        let length = datagram.len().min(bufs[0].len());
        bufs[0][..length].copy_from_slice(&datagram[..length]);
        meta[0] = RecvMeta::default();
        meta[0].addr = self.server;
        (meta[0].len, meta[0].stride) = (length, length);
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.relay.socket.local_addr()
    }

    /// One comes at a time, but noq's buffers are made for the endpoint's first socket, and must take what the direct path's hands over: of what
    /// does not fit, all but the first datagram would be lost.
    fn max_receive_segments(&self) -> NonZeroUsize {
        udp::MOST_SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Sender {
    relay: Arc<Relay>,
    header: Vec<u8>,
    destination: Destination,
    cid: Arc<OnceLock<[u8; CID]>>,
    wire: Vec<u8>,
}

impl Sender {
    /// Has what is for this connection find it.
    fn learn(&self, packet: &[u8]) {
        let Some(cid) = src_cid(packet) else { return };
        let mut routes = self.relay.routes();
        if let Some(queue) = routes
            .of
            .get(&self.destination)
            .map(|route| route.queue.clone())
        {
            routes.by_cid.insert(*self.cid.get_or_init(|| *cid), queue);
        }
    }
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.cid.get().is_none() {
            this.learn(transmit.contents);
        }
        this.wire.clone_from(&this.header);
        this.wire.extend(transmit.contents);
        // Connections share the socket: what does not fit is lost, as on the way.
        let _ = udp::send(&this.relay.socket, &this.wire);
        Poll::Ready(Ok(()))
    }
}
