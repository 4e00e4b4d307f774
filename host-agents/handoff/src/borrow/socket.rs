//! The socket under noq. What it receives comes from puppets, by memory; what it sends is a client's, of whom noq knows a stand-in for the
//! address, so that the client may move and several connections may be of the same one.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use rustc_hash::FxBuildHasher;
use tokio::sync::mpsc::UnboundedReceiver;

use super::pool::Unnumbered;
use super::puppet::Datagram;
use super::seal::{self, Sealer};

/// Of the block that no packet is ever sent to (RFC 6666).
const STAND_IN: u128 = 0x0100 << 112;

/// The port of the first stand-in of a connection.
const PORT: u16 = 443;

/// Where a client is, and from where it wants to be sent to.
#[derive(Clone)]
struct Route {
    client: SocketAddr,
    server: IpAddr,
    sealer: Arc<Sealer>,
}

/// By the stand-in's address, whatever its port.
#[derive(Default)]
pub struct Routes(RwLock<HashMap<IpAddr, Route, FxBuildHasher>>);

impl Routes {
    fn get(&self, address: IpAddr) -> Option<Route> {
        let routes = self.0.read().expect("nobody panics with it");
        routes.get(&address).cloned()
    }

    /// Where the client is whose stand-in is at `address`, and from where it wants to be sent to.
    pub fn of(&self, address: IpAddr) -> Option<(SocketAddr, IpAddr)> {
        self.get(address).map(|route| (route.client, route.server))
    }
}

/// The true socket.
pub type Outer = Arc<Mutex<Box<dyn AsyncUdpSocket>>>;

/// What sends by it.
pub fn sender(outer: &Outer) -> Pin<Box<dyn UdpSender>> {
    let outer = outer.lock().expect("nobody panics with it");
    outer.create_sender()
}

/// Stand-ins, until this is dropped.
pub struct Routed {
    address: IpAddr,
    port: AtomicU16,
    sealer: Arc<Sealer>,
    routes: Arc<Routes>,
}

impl Routed {
    /// That of the `n`th borrowed connection.
    pub fn new(
        n: u64,
        client: SocketAddr,
        server: SocketAddr,
        sealer: &Arc<Sealer>,
        routes: &Arc<Routes>,
    ) -> Self {
        let routed = Self {
            address: Ipv6Addr::from_bits(STAND_IN | u128::from(n)).into(),
            port: AtomicU16::new(PORT),
            sealer: sealer.clone(),
            routes: routes.clone(),
        };
        routed.set(client, server);
        routed
    }

    /// By which noq knows the client now.
    pub fn stand_in(&self) -> SocketAddr {
        (self.address, self.port.load(Relaxed)).into()
    }

    /// The client is at `client`. Its stand-in if that is another now: not if a NAT gave it another port (RFC 9000, section 9.4).
    pub fn set(&self, client: SocketAddr, server: SocketAddr) -> Option<SocketAddr> {
        let server = server.ip();
        let mut routes = self.routes.0.write().expect("nobody panics with it");
        let sealer = self.sealer.clone();
        let route = Route {
            client,
            server,
            sealer,
        };
        let before = routes.insert(self.address, route)?;
        if before.client.ip() == client.ip() {
            return None;
        }
        self.port.fetch_add(1, Relaxed);
        Some(self.stand_in())
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        let mut routes = self.routes.0.write().expect("nobody panics with it");
        routes.remove(&self.address);
    }
}

/// Between noq, the puppets and the true socket, of which it uses the sending half alone.
#[derive(Debug)]
pub struct Between {
    outer: Outer,
    inbox: UnboundedReceiver<Datagram>,
    routes: Arc<Routes>,
}

impl Between {
    pub fn new(outer: Outer, inbox: UnboundedReceiver<Datagram>, routes: Arc<Routes>) -> Self {
        Self {
            outer,
            inbox,
            routes,
        }
    }

    fn outer<T>(&self, of: impl FnOnce(&dyn AsyncUdpSocket) -> T) -> T {
        of(&**self.outer.lock().expect("nobody panics with it"))
    }
}

impl AsyncUdpSocket for Between {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            outer: sender(&self.outer),
            routes: self.routes.clone(),
            left: Vec::new(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut filled = 0;
        for (buffer, meta) in buffers.iter_mut().zip(meta) {
            let Poll::Ready(Some((addr, datagram))) = self.inbox.poll_recv(cx) else {
                break;
            };
            buffer[..datagram.len()].copy_from_slice(&datagram);
            *meta = RecvMeta::default();
            (meta.addr, meta.len, meta.stride) = (addr, datagram.len(), datagram.len());
            filled += 1;
        }
        match filled {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok(filled)),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.outer(|outer| outer.local_addr())
    }

    fn may_fragment(&self) -> bool {
        self.outer(|outer| outer.may_fragment())
    }
}

#[derive(Debug)]
struct Sender {
    outer: Pin<Box<dyn UdpSender>>,
    routes: Arc<Routes>,
    /// The segments of a batch that leave, if not all do.
    left: Vec<u8>,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Routes(..)")
    }
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let whole = transmit.contents.len();
        let segments = || {
            transmit
                .contents
                .chunks(transmit.segment_size.unwrap_or(whole))
        };
        let Some(route) = this.routes.get(transmit.destination.ip()) else {
            return Poll::Ready(Ok(()));
        };
        if let Some(pool) = route.sealer.pool() {
            let waiting = segments().filter(|segment| seal::waits(segment));
            pool.add(waiting.map(|segment| Unnumbered {
                octets: segment.into(),
                ecn: transmit.ecn,
            }));
            return Poll::Ready(Ok(()));
        }
        let contents = if segments().all(seal::leaves) {
            transmit.contents
        } else {
            this.left.clear();
            for segment in segments().filter(|segment| seal::leaves(segment)) {
                this.left.extend(segment);
            }
            &this.left
        };
        if contents.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let transmit = Transmit {
            destination: route.client,
            ecn: transmit.ecn,
            contents,
            segment_size: transmit.segment_size.filter(|size| *size < contents.len()),
            src_ip: Some(route.server),
        };
        this.outer.as_mut().poll_send(&transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.outer.max_transmit_segments()
    }
}
